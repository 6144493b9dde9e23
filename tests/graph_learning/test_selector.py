"""The comparison of graphs: references, controls, table, words."""

import numpy as np
import pandas as pd
import pytest

import nefele
from nefele import Graph, GraphSelectorCV, GTVClassifierCV, GTVRegressor, GTVRegressorCV
from nefele.estimators import MomentsKNN
from nefele.graph_learning import CliqueGraph, LabelGraph, LossGraph, ShuffledGraph
from tests.graph_learning.data import as_rows, planted


@pytest.fixture(scope="module")
def fitted():
    X, y, ids, _ = planted(0, n=12, m=16)
    table = pd.DataFrame(X, columns=["a", "b"]).assign(town=ids)
    search = GTVRegressorCV(penalty="l2", alphas=[0.0, 0.3, 3.0], cv=4, tol=1e-3)
    graphs = {"loss": LossGraph(k=3), "moments": MomentsKNN(k=3)}
    return GraphSelectorCV(graphs, estimator=search, node="town").fit(table, y), table, y


def test_table(fitted):
    found, _, _ = fitted
    table = found.cv_results_
    assert table["name"].tolist() == ["no edges", "one clique", "loss", "moments"]
    splits = np.stack([table[f"split{k}_test_score"] for k in range(4)])
    np.testing.assert_allclose(table["mean_test_score"], splits.mean(axis=0))
    rival = table["mean_test_score"][:2].max()
    np.testing.assert_allclose(table["gain"], table["mean_test_score"] - rival)
    loss, reference = (found.trials_[name].verdict for name in ("loss", found.reference_))
    over_nodes = (reference.coupled - loss.coupled).std(ddof=1) / 12**0.5
    at = table["name"].tolist().index(found.reference_)
    over_folds = (splits[:, 2] - splits[:, at]).std(ddof=1) / 2
    assert table["gain_se"][2] == pytest.approx(max(over_nodes, over_folds))
    assert table["n_edges"][:2].tolist() == [0, 66]
    assert np.isnan(table["graph_part"][:2]).all() and np.isfinite(table["graph_part"][2:]).all()


def test_no_edges_is_each_node_by_itself(fitted):
    found, table, y = fitted
    errors = []
    for train, test in nefele.WithinNodeKFold(4, node="town").split(table):
        alone = GTVRegressor(LossGraph(k=2), node="town", alpha=0.0)
        alone.fit(table.iloc[train], y[train])
        errors.append(np.mean((alone.predict(table.iloc[test]) - y[test]) ** 2))
    assert found.trials_["no edges"].mean == pytest.approx(-np.mean(errors))
    alone, loss = (found.trials_[name].verdict for name in ("no edges", "loss"))
    np.testing.assert_allclose(alone.coupled, loss.own, rtol=1e-6)


def test_strength_of_a_fold_is_chosen_by_the_others(fitted):
    """The score of a fold is that of the alpha best in the rest, which may not be its own best."""
    found, table, y = fitted
    search = GTVRegressorCV(
        LossGraph(k=3), penalty="l2", node="town", alphas=[0.0, 0.3, 3.0], cv=4, tol=1e-3
    ).fit(table, y)
    folds = np.stack([search.cv_results_[f"split{k}_test_score"] for k in range(4)])
    want = [folds[k, np.delete(folds, k, axis=0).mean(axis=0).argmax()] for k in range(4)]
    np.testing.assert_allclose(found.trials_["loss"].scores, want, rtol=1e-9)
    assert found.trials_["loss"].alpha == search.best_alpha_
    ours, theirs = found.trials_["loss"].verdict, search.verdict_
    np.testing.assert_allclose(ours.coupled, theirs.coupled, rtol=1e-9)
    assert (ours.helps, ours.text()) == (theirs.helps, theirs.text())


def test_final_fit_is_that_of_the_estimator(fitted):
    found, table, y = fitted
    assert found.best_name_ == "loss"
    again = GTVRegressor(LossGraph(k=3), node="town", alpha=found.alpha_, tol=1e-3).fit(table, y)
    np.testing.assert_allclose(found.predict(table), again.predict(table), rtol=1e-6)


def test_words(fitted):
    found, _, _ = fitted
    text = found.summary()
    lines = text.splitlines()
    assert lines[0].split()[:2] == ["graph", "score"] and len(lines) == 7
    assert lines[1].startswith("loss") and '"loss" helps' in lines[-1]
    assert "is the graph" in lines[-1]
    assert lines[-2] == f'With "loss": {found.trials_["loss"].verdict.text()}'
    assert lines[-2].startswith('With "loss": Coupling helps: the error at held-out rows is ')


def test_same_seed_same_answer():
    X, y, ids, _ = planted(1, n=9, m=8)
    search = GTVRegressorCV(penalty="l2", alphas=[0.1, 1.0], cv=2, tol=1e-3)
    first, second = (
        GraphSelectorCV([LossGraph(k=2)], estimator=search).fit(X, y, node_ids=ids)
        for _ in range(2)
    )
    for key, values in first.cv_results_.items():
        np.testing.assert_array_equal(values, second.cv_results_[key])


def test_rows_of_nodes_without_training_rows_are_not_judged():
    X, y, ids, _ = planted(0, n=6, m=6)
    keep = np.r_[0:31]  # one row at the last node
    search = GTVRegressorCV(penalty="l2", alphas=[0.1], cv=3, tol=1e-3)
    given = Graph(np.unique(ids), np.arange(5), np.arange(1, 6))
    found = GraphSelectorCV({"given": given}, estimator=search, n_shuffles=0)
    found.fit(X[keep], y[keep], node_ids=ids[keep])
    assert found.n_left_out_ == 1
    assert np.isnan(found.cv_results_["graph_part"]).all()
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()


def test_ids_of_mixed_types():
    X, y, ids, _ = planted(0, n=6, m=6)
    mixed = np.array([7 if node == "node 00" else node for node in ids.tolist()], dtype=object)
    search = GTVRegressorCV(penalty="l2", alphas=[0.1], cv=2, tol=1e-3)
    found = GraphSelectorCV(
        {"loss": LossGraph(k=2)}, estimator=search, n_shuffles=1, max_complete=2
    ).fit(X, y, node_ids=mixed)
    assert set(mixed.tolist()) <= set(found.best_estimator_.nodes_.tolist())


def test_classes():
    rng = np.random.default_rng(0)
    node = np.repeat(np.arange(10), 20)
    X = rng.normal(size=(200, 2))
    y = np.where(np.where(node % 2, X[:, 0], -X[:, 0]) + 0.3 * rng.normal(size=200) > 0, "b", "a")
    search = GTVClassifierCV(
        penalty="l2", alphas=[0.01, 0.1], cv=3, loss=nefele.losses.Logistic(l2=1e-2), tol=1e-3
    )
    graphs = {"loss": LossGraph(k=3), "labels": LabelGraph(k=3)}
    found = GraphSelectorCV(graphs, estimator=search, n_shuffles=1).fit(X, y, node_ids=node)
    assert found.cv_results_["rank_test_score"].tolist().index(1) == 2  # "loss"
    assert found.predict_proba(X[:2], node_ids=node[:2]).shape == (2, 2)
    assert found.score(X, y, node_ids=node) > 0.85
    assert not hasattr(GraphSelectorCV(), "predict_proba")


def test_star_acts_as_a_clique_for_the_squared_penalty():
    """A star of weight a around a node without rows is a complete graph of weight a / n."""
    X, y, ids, _ = planted(0, n=6, m=5)
    options = {"penalty": "squared_l2", "tol": 1e-12}
    clique = GTVRegressor(CliqueGraph(), alpha=0.2 / 6, **options).fit(X, y, node_ids=ids)
    star = GTVRegressor(CliqueGraph(max_complete=3), alpha=0.2, **options).fit(X, y, node_ids=ids)
    assert star.graph_.n_nodes == 7 and star.graph_.n_edges == 6
    np.testing.assert_allclose(
        clique.predict(X, node_ids=ids), star.predict(X, node_ids=ids), atol=1e-5
    )


def test_the_new_node_of_a_star_has_a_new_id():
    rows = as_rows(np.ones((2, 1)), [1.0, 2.0], ["common", "b"])
    assert CliqueGraph(0).fit_graph(rows).ids.tolist() == ["common_", "b", "common"]


def test_shuffles_keep_the_shape():
    graph = Graph(list("abcdef"), [0, 0, 0, 1], [1, 2, 3, 2], [1.0, 2.0, 3.0, 4.0])
    rows = as_rows(np.ones((1, 1)), [1.0], ["a"])
    shuffled = ShuffledGraph(graph, random_state=1).fit_graph(rows)
    assert shuffled != graph and shuffled.ids.tolist() == graph.ids.tolist()
    values = [np.sort(np.linalg.eigvalsh(g.adjacency.toarray())) for g in (graph, shuffled)]
    np.testing.assert_allclose(*values, atol=1e-12)
