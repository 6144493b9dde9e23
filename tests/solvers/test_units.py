"""Features of very different units: columns of 1e-6, 1 and 1e6 side by side."""

import cvxpy as cp
import numpy as np
import pytest

from nefele import LocalData, Problem, solve
from nefele._systems.common import common_part
from nefele.graphs import grid
from nefele.solvers.interior_point.kinks import units as units_of

GRAPH = grid(4, 4)
UNITS = np.array([1e-6, 1.0, 1e6])
NORMS = {"l1": 1, "l2": 2, "linf": "inf"}


def rows(loss):
    """Rows of ordinary size; each third node has none."""
    rng = np.random.default_rng(3)
    true = 2 * rng.standard_normal((2, 3))
    found = []
    for i in range(GRAPH.n_nodes):
        X = rng.standard_normal((6, 3))
        y = X @ true[i // 8] + 0.3 * rng.standard_normal(6)
        if loss == "logistic":
            y = np.where(rng.random(6) < 1 / (1 + np.exp(-y)), 1.0, -1.0)
        found.append(None if i % 3 == 2 else (X, y))
    return found


def scaled(loss, penalty, lam, units=UNITS):
    data = [None if own is None else (own[0] * units, own[1]) for own in rows(loss)]
    return Problem(GRAPH, LocalData.from_list(data), loss, penalty, lam=lam)


def optimum(loss, penalty, lam, units):
    """Of the same problem in parameters w * units, which are of ordinary size."""
    w = cp.Variable((GRAPH.n_nodes, 3))
    total = 0
    for i, own in enumerate(rows(loss)):
        if own is not None:
            z, y = own[0] @ w[i], own[1]
            terms = {
                "squared": lambda z, y: cp.sum_squares(z - y),
                "absolute": lambda z, y: cp.norm1(z - y),
            }
            total += terms[loss](z, y) / len(y)
    for i, j in zip(GRAPH.head.tolist(), GRAPH.tail.tolist(), strict=True):
        total += lam * cp.norm(cp.multiply(1 / units, w[i] - w[j]), NORMS[penalty])
    return cp.Problem(cp.Minimize(total)).solve(solver="CLARABEL")


CASES = [
    *((loss, lam) for loss in ("squared", "huber", "logistic") for lam in (1e-3, 0.1, 10.0)),
    *(("absolute", lam) for lam in (1e-3, 0.1)),
]


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
@pytest.mark.parametrize(("loss", "lam"), CASES)
def test_columns_of_different_units_are_solved(loss, penalty, lam):
    result = solve(scaled(loss, penalty, lam), max_iter=100)
    assert result.converged
    assert result.gap <= 1e-6


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
def test_a_cone_solver_finds_the_same_in_ordinary_units(loss, penalty):
    """With units that leave the cone solver enough digits, too."""
    units, lam = np.array([1e-2, 1.0, 1e2]), 0.01
    result, exact = solve(scaled(loss, penalty, lam, units)), optimum(loss, penalty, lam, units)
    assert result.converged
    assert result.objective == pytest.approx(exact, rel=1e-5)
    assert result.objective - result.gap_abs <= exact * (1 + 1e-6)


def test_a_bound_of_mixed_units_holds_when_computed_again():
    result = solve(scaled("squared", "l2", 0.1))
    again = result.problem.certificate(result.w, result.u, tol=1e-6, direct=True)
    assert again.lower <= result.objective
    assert again.gap_abs <= 1e-5 * result.objective


def test_units_go_with_the_columns():
    plain = LocalData.from_list(rows("squared"))
    own = units_of(Problem(GRAPH, plain, lam=1.0))
    np.testing.assert_allclose(units_of(scaled("squared", "l2", 1.0)) * UNITS, own)


def test_the_common_part_is_that_of_each_group_whatever_the_units():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 8, 3)) * UNITS
    metric, groups = np.swapaxes(X, 1, 2) @ X, np.array([0, 1, 0, 1, 1])
    right = rng.standard_normal((5, 3)) * UNITS
    x = common_part(metric, right, groups)
    for group in (0, 1):
        of = groups == group
        np.testing.assert_allclose(x[of], np.broadcast_to(x[of][0], x[of].shape))
        left = metric[of].sum(axis=0) @ x[of][0]
        np.testing.assert_allclose(left / UNITS, right[of].sum(axis=0) / UNITS, atol=1e-9)
