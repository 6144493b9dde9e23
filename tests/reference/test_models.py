"""Stated in more ways than one loss and one penalty: against a general cone solver."""

import warnings

import numpy as np
import pandas as pd
import pytest

from nefele import DataWarning, Graph, GTVRegressor, LocalData, Problem, as_graph, solve
from nefele.losses import HuberLoss, Logistic, Poisson, Quantile, Squared, SquaredHinge
from nefele.penalties import (
    ByEdge,
    HuberPenalty,
    L1Norm,
    L2Norm,
    LinfNorm,
    Partial,
    Quadratic,
    SquaredL2,
    edge_penalties,
)
from tests.problems import kind_of, random_data, random_graph, random_parts
from tests.reference.oracle import oracle

TOL, ACCURACY = 1e-7, 1e-6
KINDS = [
    L2Norm(),
    L1Norm(),
    LinfNorm(),
    SquaredL2(),
    HuberPenalty(delta=0.3),
    Quadratic([[2.0, 1.0], [1.0, 0.5]]),
    Partial(L2Norm(), [1]),
]


def agrees(graph, data, loss, penalty, lam):
    """The optimum, and a bound that holds."""
    problem = Problem(graph, data, loss=loss, penalty=penalty, lam=lam)
    value, point = oracle(graph, data, loss, problem.penalty, lam)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result = solve(problem, tol=TOL)
    scale = max(abs(point), 1e-3 * abs(problem.objective_at_zero))
    assert result.converged and result.certificate == "dual"
    if value is not None:
        assert result.objective <= min(value, point) + ACCURACY * scale
    assert result.objective - result.gap_abs <= point + 1e-9 * scale
    return result


@pytest.mark.parametrize("seed", range(6))
def test_a_penalty_per_edge(seed):
    graph, data, lam = random_parts(seed, d=2)
    kind = np.random.default_rng(seed).integers(0, len(KINDS), graph.n_edges)
    agrees(graph, data, Squared(l2=0.01), ByEdge(KINDS, kind), lam)


def test_penalties_by_pairs_and_by_a_column_of_the_edge_table():
    """Two kinds of ties in one network, in the core and in an estimator."""
    kinds = ["l1", None, "l1", "squared_l2"]
    edges = pd.DataFrame({"source": list("abcd"), "target": list("bcde"), "penalty": kinds})
    named = edge_penalties(edges)
    assert named == {
        ("a", "b"): L1Norm(),
        ("c", "d"): L1Norm(),
        ("d", "e"): SquaredL2(),
        None: L2Norm(),
    }
    graph = as_graph(edges[["source", "target"]])
    rng = np.random.default_rng(0)
    node = np.repeat(list("abcde"), 6)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    data = LocalData.from_long(X, y, node)
    result = solve(Problem(graph, data, penalty=named, lam=0.2), tol=1e-8)
    assert result.problem.penalty.kind.tolist() == [1, 0, 1, 2]
    model = GTVRegressor(
        graph, alpha=0.2, penalty=named, fit_intercept=False, standardize=False, tol=1e-8
    )
    model.fit(X, y, node_ids=node)
    np.testing.assert_allclose(model.coef_, result.w, atol=1e-4)
    shy = GTVRegressor(graph, alpha=0.2, penalty=named, couple_intercept=False)
    assert np.isfinite(shy.fit(X, y, node_ids=node).coef_).all()
    with pytest.raises(ValueError, match="must name every edge; edge 0"):
        Problem(graph, data, penalty={("b", "c"): "l1"}, lam=0.2)
    with pytest.raises(ValueError, match="which the graph does not have"):
        Problem(graph, data, penalty={("a", "c"): "l1", None: "l2"}, lam=0.2)
    with pytest.raises(ValueError, match=r"penalty is for 1 edges; the graph has 4"):
        Problem(graph, data, penalty=ByEdge([L1Norm()], [0]), lam=0.2)


@pytest.mark.parametrize(
    "loss",
    [Poisson(l2=0.01), Logistic(l2=0.1), SquaredHinge(l2=0.1), Squared(), HuberLoss(), Quantile()],
    ids=lambda loss: type(loss).__name__,
)
def test_offsets_are_a_known_part_of_predictions(loss):
    rng = np.random.default_rng(1)
    graph = random_graph(rng, 6, density=0.7)
    rows = random_data(rng, [6, 0, 7, 1, 8, 6], 2, kind_of(loss))
    data = LocalData(rows.X, rows.y, rows.ptr, offset=rng.normal(size=rows.n_rows))
    with_them = agrees(graph, data, loss, L2Norm(), 0.1)
    without = solve(Problem(graph, rows, loss=loss, lam=0.1))
    assert np.abs(with_them.w - without.w).max() > 1e-2


def test_the_exposure_of_counts_makes_them_rates():
    """A rate of 2 per hour, counted for 1 and for 100 hours: log 2, whatever the exposure."""
    hours = np.array([1.0, 100.0])
    data = LocalData(np.ones((2, 1)), 2 * hours, [0, 1, 2], offset=np.log(hours))
    problem = Problem(Graph.from_edges([(0, 1)]), data, loss="poisson", lam=0.1)
    np.testing.assert_allclose(solve(problem, tol=1e-9).w, np.log(2), atol=1e-5)


@pytest.mark.parametrize("penalty", [L2Norm(), SquaredL2()], ids=repr)
@pytest.mark.parametrize(
    "loss",
    [
        Squared(l2=(0.0, 3.0)),
        Squared(l2=(0.1, 0.0), l1=(0.0, 0.4)),
        Logistic(l2=(0.3, 0.01)),
        Logistic(l1=(0.05, 0.01), l2=0.01),
    ],
    ids=repr,
)
def test_ridge_and_lasso_by_column(loss, penalty):
    rng = np.random.default_rng(4)
    graph = random_graph(rng, 6, density=0.6)
    data = random_data(rng, [6, 0, 7, 1, 8, 6], 2, kind_of(loss))
    agrees(graph, data, loss, penalty, 0.1)
