"""Losses within convex sets, against a general cone solver."""

import warnings

import cvxpy as cp
import numpy as np
import pytest

from nefele import DataWarning, Graph, LocalData, Problem, solve
from nefele.losses import (
    Absolute,
    Box,
    Constrained,
    HuberLoss,
    Logistic,
    Nonnegative,
    Poisson,
    Simplex,
    Squared,
)
from nefele.penalties import L1Norm, L2Norm, SquaredL2
from tests.problems import random_parts
from tests.reference.oracle import solved, terms_of

SETS = {
    "nonnegative": (Nonnegative(), lambda w: [w >= 0]),
    "box": (Box(-0.3, (0.2, 0.5)), lambda w: [w >= -0.3, w[:, 0] <= 0.2, w[:, 1] <= 0.5]),
    "half line": (Box(0.1, np.inf), lambda w: [w >= 0.1]),
    "simplex": (Simplex(), lambda w: [w >= 0, cp.sum(w, axis=1) == 1]),
}
PENALTIES = [L2Norm(), L1Norm(), SquaredL2()]
LOSSES = [Squared(), Squared(l2=0.1, l1=0.2), Logistic(l2=0.01), Poisson(), HuberLoss(delta=0.5)]


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_optimum_within_the_set(loss, name):
    within, stated = SETS[name]
    penalty = PENALTIES[(LOSSES.index(loss) + len(name)) % 3]
    graph, data, lam = random_parts(len(name), loss, d=2)
    problem = Problem(graph, data, loss=Constrained(loss, within), penalty=penalty, lam=lam)
    w, terms = terms_of(graph, data, loss, penalty, lam)
    value, there = solved(w, terms, stated(w))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result = solve(problem, tol=1e-7)
    assert result.converged and result.certificate == "dual"
    assert within.inside(result.w).all()
    scale = max(abs(value), 1e-3 * abs(problem.objective_at_zero))
    assert result.objective == pytest.approx(value, abs=2e-6 * scale)
    # The cone solver's point, brought into the set, is a true upper bound.
    point = problem.objective(problem.loss.prox(there, np.full(graph.n_nodes, 1e-12)))
    assert result.objective - result.gap_abs <= point + 1e-9 * scale


def test_least_squares_within_a_simplex_in_closed_form():
    """Two assets: the share w of the first minimises a parabola, cut off at 0 and 1."""
    a = np.array([0.3, 1.7, -0.4])
    rows = [(np.array([[1.0, 0.0]]), np.array([x])) for x in a]
    problem = Problem(
        Graph.from_edges([(0, 1)], nodes=range(3)),
        LocalData.from_list(rows),
        loss=Constrained(Squared(), "simplex"),
        lam=0.0,
    )
    result = solve(problem, tol=1e-10)
    np.testing.assert_allclose(result.w[:, 0], np.clip(a, 0, 1), atol=1e-7)
    np.testing.assert_allclose(result.w.sum(axis=1), 1, atol=1e-12)


def test_what_a_set_refuses():
    with pytest.raises(ValueError, match="Constrained needs a loss with a gradient; got Absolute"):
        Constrained(Absolute()).bind(LocalData([[1.0]], [1.0], [0, 1]))
    with pytest.raises(ValueError, match="low must be <= high"):
        Box(1.0, 0.0)
    with pytest.raises(ValueError, match="high must have 2 entries"):
        Constrained(Squared(), Box(0.0, (1.0, 2.0, 3.0))).bind(
            LocalData([[1.0, 2.0]], [1.0], [0, 1])
        )
    with pytest.raises(ValueError, match='No constraint "nonnegativ"'):
        Constrained(Squared(), "nonnegativ")
    with pytest.raises(ValueError, match="within must be one of nonnegative, simplex, a Box or a"):
        Constrained(Squared(), 3.0)
    with pytest.raises(ValueError, match="loss must be a Loss"):
        Constrained("squared")
