"""Rows that arrive over time, against solves of all rows with faded weights."""

import numpy as np
import pytest

from nefele import Graph, GTVClassifier, GTVRegressor, LocalData, Problem, Stream, solve
from nefele.graphs import grid
from nefele.losses import Logistic, Squared
from tests.problems import labels

GRAPH = grid(3, 4)


def batches(kind="real", seed=0, count=5):
    """Batches of rows; the last node has none and no unique fit, the truth jumps in the third."""
    rng = np.random.default_rng(seed)
    out = []
    for k in range(count):
        node = rng.integers(0, 11, 40)
        X = rng.normal(size=(40, 2))
        z = X @ ([1.0, -1.0] if k < 2 else [-1.0, 2.0]) + 0.3 * (node < 6)
        out.append((X, labels(kind, z, rng), node, rng.uniform(0.5, 2, 40)))
    return out


def all_at_once(parts, forget, loss, **options):
    """The same problem from scratch: weights of age k times forget^k."""
    X, y, node = (np.concatenate([part[j] for part in parts]) for j in range(3))
    age = np.repeat(np.arange(len(parts))[::-1], [len(part[1]) for part in parts])
    weight = np.concatenate([part[3] for part in parts]) * forget**age
    data = LocalData.from_long(X, y, node, GRAPH.ids, sample_weight=weight)
    return solve(Problem(GRAPH, data, loss=loss, **options), tol=1e-8)


@pytest.mark.parametrize("forget", [1.0, 0.6])
@pytest.mark.parametrize(
    ("loss", "kind", "penalty"),
    [
        (Squared(), "real", "l2"),
        (Squared(l2=(0.1, 0.0)), "real", "squared_l2"),
        (Squared(l1=0.05), "real", "l1"),
        (Logistic(l2=0.01), "sign", "l2"),
    ],
    ids=["squared", "ridge", "lasso", "logistic"],
)
def test_every_update_is_the_solve_of_all_rows(loss, kind, penalty, forget):
    stream = Stream(GRAPH, 2, loss, penalty, lam=0.1, forget=forget, tol=1e-8)
    parts = batches(kind)
    for k, (X, y, node, weight) in enumerate(parts):
        result = stream.partial_fit(X, y, node, sample_weight=weight)
        answer = all_at_once(parts[: k + 1], forget, loss, penalty=penalty, lam=0.1)
        assert result.converged and result.certificate == "dual" and stream.result is result
        assert abs(result.objective - answer.objective) <= result.gap_abs + answer.gap_abs + 1e-12
        np.testing.assert_allclose(result.w[:11], answer.w[:11], atol=2e-3)
    assert stream.n_updates == 5
    assert stream.n_rows == (0 if isinstance(loss, Squared) and not loss.l1 else 200)


def test_what_is_forgotten_takes_no_memory():
    stream = Stream(GRAPH, 2, "huber", lam=0.1, forget=0.05)
    for X, y, node, _ in batches(count=7):
        stream.partial_fit(X, y, node)
    assert stream.n_rows == 40 * 5  # 0.05^4 counts, 0.05^5 does not


def test_a_jump_is_followed_the_sooner_the_more_is_forgotten():
    errors = []
    for forget in (1.0, 0.5, 0.1):
        stream = Stream(GRAPH, 2, lam=0.2, forget=forget)
        for X, y, node, _ in batches(count=4):
            stream.partial_fit(X, y, node)
        errors.append(np.abs(stream.result.w - [-1.0, 2.0]).mean())
    assert errors[0] > 1.5 * errors[1] > 1.5 * errors[2]
    once = Stream(GRAPH, 2, lam=0.2)
    for k, (X, y, node, _) in enumerate(batches(count=4)):
        once.partial_fit(X, y, node, forget=0.1 if k == 2 else None)
    assert np.abs(once.result.w - [-1.0, 2.0]).mean() < errors[0] / 2


def test_a_fit_that_is_still_good_takes_no_iteration():
    stream = Stream(GRAPH, 2, lam=0.1, tol=1e-4)
    X, y, node, _ = batches()[0]
    first = stream.partial_fit(X, y, node)
    again = stream.partial_fit(X, y, node)  # every row twice: the same means
    assert again.n_iter == 0 and again.converged
    np.testing.assert_array_equal(first.w, again.w)


def test_predictions_and_what_is_refused():
    stream = Stream(Graph.from_edges([("a", "b")]), 1, lam=0.1)
    with pytest.raises(ValueError, match="call partial_fit first"):
        stream.predict([[1.0]], ["a"])
    result = stream.partial_fit([[1.0], [2.0]], [1.0, 2.0], ["a", "b"])
    np.testing.assert_allclose(stream.predict([[3.0]], ["b"]), 3 * result["b"])
    with pytest.raises(ValueError, match="unknown"):
        stream.predict([[3.0]], ["c"])
    with pytest.raises(ValueError, match="X must have 1 columns; got 2"):
        stream.partial_fit([[1.0, 2.0]], [1.0], ["a"])
    with pytest.raises(ValueError, match="unknown"):
        stream.partial_fit([[1.0]], [1.0], ["c"])
    for wrong in (0.0, 1.5):
        with pytest.raises(ValueError, match=r"forget must be in \(0, 1\]"):
            Stream(GRAPH, 1, lam=1.0, forget=wrong)
    assert stream.n_updates == 1 and "n_updates=1" in repr(stream)


@pytest.mark.parametrize("kind", ["real", "sign"])
def test_estimators_forget_as_well(kind):
    make = GTVRegressor if kind == "real" else GTVClassifier
    parts = batches(kind, count=3)
    model = make(GRAPH, alpha=0.1, tol=1e-8)
    for X, y, node, weight in parts:
        model.partial_fit(X, y, sample_weight=weight, node_ids=node, forget=0.5)
    X, y, node = (np.concatenate([part[j] for part in parts]) for j in range(3))
    weight = np.concatenate([part[3] for part in parts]) * np.repeat([0.25, 0.5, 1.0], 40)
    whole = make(GRAPH, alpha=0.1, tol=1e-8).fit(X, y, weight, node_ids=node)
    np.testing.assert_allclose(model.coef_[:11], whole.coef_[:11], atol=2e-3)
    with pytest.raises(ValueError, match=r"forget must be in \(0, 1\]"):
        model.partial_fit(*parts[0][:2], node_ids=parts[0][2], forget=0.0)
