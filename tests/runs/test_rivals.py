"""Boosted trees beside the methods of a run: errors, words, and what is left out."""

import numpy as np
import pytest

from nefele import Graph, graphs
from nefele.agnostic import NodeBoosting, boosted
from nefele.estimators.design import Rows
from nefele.runs import rivals
from nefele.runs.config import RunConfig
from nefele.selection import Verdict


def made(n=5, count=30, seed=0):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n), count)
    X = rng.normal(size=(len(ids), 2))
    y = X[:, 0] ** 2 + rng.normal(size=n)[ids] + 0.2 * rng.normal(size=len(ids))
    return Rows(X, y, ids, np.ones(len(ids)))


def halves(rows):
    even = np.arange(len(rows.y)) % 2 == 0
    return rows.take(np.flatnonzero(even)), rows.take(np.flatnonzero(~even))


def test_errors_are_those_of_the_methods_at_the_held_out_rows():
    train, held = halves(made())
    ticks = []
    found = rivals.boosted_errors(
        train, held, graphs.chain(5), "regression", lambda: ticks.append(1)
    )
    assert found["names"].tolist() == [boosted.ONE, boosted.RELAXED]
    assert len(ticks) == rivals.n_steps() and not len(found["notes"])
    model = NodeBoosting().fit(train.X, train.y, node_ids=train.node_ids)
    missed = (model.predict(held.X, node_ids=held.node_ids) - held.y) ** 2
    expected = [missed[held.node_ids == i].mean() for i in range(5)]
    np.testing.assert_allclose(found["node_error"][0], expected)


def test_classes_have_log_loss_and_a_class_that_training_rows_lack_is_no_error():
    rows = made()
    codes = np.digitize(rows.y, [0.5, 1.5]).astype(float)
    train, held = halves(Rows(rows.X, codes, rows.node_ids, rows.sample_weight))
    keep = np.flatnonzero(train.y < 2)
    found = rivals.boosted_errors(
        train.take(keep), held, graphs.chain(5), "classification", lambda: None
    )
    assert found["names"].tolist() == [boosted.ONE]
    assert "at most two classes; there are 3" in str(found["notes"][0])
    model = NodeBoosting("classification").fit(
        train.X[keep], train.y[keep], node_ids=train.node_ids[keep]
    )
    share = np.column_stack(
        [model.predict_proba(held.X, node_ids=held.node_ids), np.zeros(len(held.y))]
    )
    right = np.maximum(share[np.arange(len(held.y)), held.y.astype(int)], np.finfo(float).eps)
    expected = [-np.log(right[held.node_ids == i]).mean() for i in range(5)]
    np.testing.assert_allclose(found["node_error"][0], expected)
    assert found["wrong"][0] == pytest.approx((share.argmax(axis=1) != held.y).mean())


def test_fedrelax_is_left_out_of_large_networks(monkeypatch):
    monkeypatch.setattr(boosted, "MOST_NODES", 4)
    train, held = halves(made())
    found = rivals.boosted_errors(train, held, graphs.chain(5), "regression", lambda: None)
    assert found["names"].tolist() == [boosted.ONE]
    assert "at most 4 nodes; there are 5" in str(found["notes"][0])


def test_without_edges_a_centre_joins_the_nodes():
    train, held = halves(made())
    alone = Graph(np.arange(5), [], [])
    found = rivals.boosted_errors(train, held, alone, "regression", lambda: None)
    assert np.isfinite(found["node_error"]).all()


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (0.5, "But b, does better than nefele: its error is 50% smaller"),
        (2.0, "nefele does better than b: its error is 50% smaller"),
        (1.0, "no clear difference (2 against 2)"),
    ],
)
def test_words_say_who_is_better(factor, words):
    own, ours = np.full(3, 4.0), np.array([2.0, 2.1, 1.9])
    verdict = Verdict(own, own, ours, np.full(3, 5))
    text = rivals.rivals_text(verdict, {"worse": 9 * ours, "b": factor * ours})
    assert words in text


def test_the_configuration_knows_what_can_be_compared():
    config = RunConfig("a.csv", "id", "y", compare="boosting")
    assert 'compare = "boosting"' in config.to_toml()
    assert RunConfig.from_dict({"data": "a", "node": "b", "target": "c"}).compare is None
    with pytest.raises(ValueError, match="method to compare with"):
        RunConfig("a.csv", "id", "y", compare="bosting")
    with pytest.raises(ValueError, match="compare must be text"):
        RunConfig.from_dict({"data": "a", "node": "b", "target": "c", "compare": 3})
