"""Losses within convex sets, against a general cone solver."""

import warnings

import cvxpy as cp
import numpy as np
import pytest

from nefele import DataWarning, Graph, LocalData, Problem, solve
from nefele.graphs import chain
from nefele.losses import (
    Absolute,
    Box,
    Constrained,
    HuberLoss,
    Logistic,
    Multinomial,
    Nonnegative,
    Poisson,
    Simplex,
    Squared,
    SquaredHinge,
)
from nefele.penalties import HuberPenalty, L1Norm, L2Norm, LinfNorm, Lp, Partial, SquaredL2
from nefele.solvers.interior_point.bounds import interior
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


BOUNDED = [
    *LOSSES,
    Logistic(),
    Squared(l1=0.3),
    Poisson(l2=0.05),
    HuberLoss(delta=0.3, l1=0.1),
    SquaredHinge(),
    Logistic(l1=0.05),
    Multinomial(3, l2=0.1),
]
COUPLED = [
    *(L2Norm(), L1Norm(), LinfNorm(), SquaredL2(), HuberPenalty(0.3), Lp(3)),
    *(Partial(L2Norm(), [0]), Partial(L1Norm(), [1]), Partial(SquaredL2(), [0])),
]


@pytest.mark.filterwarnings("ignore:pnorm with p")
@pytest.mark.parametrize("loss", BOUNDED, ids=repr)
def test_steps_with_bounds_against_a_cone_solver(loss):
    """Ten problems each: bounds on one side, on both, on some entries, away from zero."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        graph, data, lam = random_parts(seed, loss, d=2)
        d = 2 * getattr(loss, "n_classes", 1)
        some = np.where(rng.random(d) < 0.5, -np.inf, -0.2), np.where(rng.random(d) < 0.5, 0.3, 1)
        high = tuple(rng.normal(size=d))
        sets = [Nonnegative(), Box(-0.3, 0.4), Box(0.1, np.inf), Box(-np.inf, high), Box(*some)]
        within, penalty = sets[seed % 5], COUPLED[rng.integers(len(COUPLED))]
        problem = Problem(graph, data, loss=Constrained(loss, within), penalty=penalty, lam=lam)
        w, terms = terms_of(graph, data, loss, penalty, lam)
        low, high = (np.broadcast_to(end, w.shape) for end in within.ends)
        stated = [w[low > -np.inf] >= low[low > -np.inf], w[high < np.inf] <= high[high < np.inf]]
        _, there = solved(w, terms, stated)
        point = problem.objective(np.clip(there, low, high))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            result = solve(problem, tol=1e-7)
        assert result.converged and result.n_iter < 100 and within.inside(result.w).all()
        scale = max(abs(point), 1e-3 * abs(problem.objective_at_zero))
        if result.held is None:
            assert result.certificate == "dual" or result.unbounded.any()
            assert result.objective <= point + 1e-6 * scale
            assert result.objective - result.gap_abs <= point + 1e-9 * scale


def test_a_separable_loss_beside_a_box():
    """It once took 37,372 iterations."""
    X = np.random.default_rng(0).normal(size=(8, 2))
    data = LocalData.from_list([(X, np.where(X[:, 0] > 0, 1.0, -1.0)), (X, X @ [1.0, 2.0])])
    losses = {0: Logistic(), 1: Constrained(Squared(), Box(-1.0, 1.0))}
    problem = Problem(chain(2), data, losses, Partial(L2Norm(), [1]), lam=0.1)
    with pytest.warns(DataWarning, match="no minimiser"):
        result = solve(problem)
    assert result.converged and result.n_iter < 100
    assert result.unbounded.tolist() == [True, False]


def test_losses_within_different_sets_beside_others():
    rng = np.random.default_rng(1)
    rows = [(rng.normal(size=(4, 2)), rng.normal(size=4)) for _ in range(6)] + [None]
    losses = {i: Absolute() for i in range(7)}
    losses |= {0: Constrained(Squared(), Box(0.2, np.inf)), 1: Constrained(HuberLoss(0.5))}
    losses |= {2: Constrained(Squared(l1=0.2), Box(-0.1, 0.1))}
    for last in ("simplex", Box(-1.0, -0.5)):
        losses[6] = Constrained(Squared(), last)
        problem = Problem(chain(7), LocalData.from_list(rows), losses, L1Norm(), lam=0.1)
        fast, slow = solve(problem, tol=1e-6), solve(problem, "primal_dual", tol=1e-4)
        assert fast.converged and slow.converged
        assert fast.objective - fast.gap_abs <= slow.objective
        assert slow.objective - slow.gap_abs <= fast.objective
    assert solve(problem).n_iter < 60  # the simplex has no such steps


def test_bounds_that_leave_one_point_or_nearly_one():
    rng = np.random.default_rng(2)
    data = LocalData.from_list([(rng.normal(size=(8, 2)), rng.normal(size=8)) for _ in range(3)])
    for high in (1.0, 1.0 + 1e-8, (1.0, 2.0)):
        result = solve(Problem(chain(3), data, Constrained(Squared(), Box(1.0, high)), lam=0.1))
        assert result.converged and result.certificate == "dual"


def test_steps_with_bounds_go_on_from_a_checkpoint(tmp_path):
    rng = np.random.default_rng(3)
    data = LocalData.from_list([(rng.normal(size=(6, 2)), rng.normal(size=6)) for _ in range(5)])
    problem = Problem(chain(5), data, Constrained(HuberLoss(0.3)), "l1", lam=0.2)
    file = tmp_path / "state.npz"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solve(problem, "newton", tol=1e-9, max_iter=4, checkpoint=file)
    again = solve(problem, "newton", tol=1e-9, resume=file)
    whole = solve(problem, "newton", tol=1e-9)
    assert again.converged and again.n_iter == whole.n_iter
    np.testing.assert_array_equal(again.w, whole.w)


def test_steps_with_bounds_start_where_counts_do_not_overflow():
    """Features up to 100: parameters as wide as the loss is high are far too large."""
    rng = np.random.default_rng(4)
    rows = [(rng.normal(size=(5, 2)) * [0.01, 100.0], rng.poisson(1.0, 5) * 1.0) for _ in range(4)]
    loss = Constrained(Poisson(l2=0.05), Box(0.1, np.inf))
    problem = Problem(chain(4), LocalData.from_list(rows), loss, lam=0.1)
    start = interior(problem)
    assert (start > 0.1).all()
    assert problem.loss.value(start).sum() <= 4 * problem.objective_at_zero
    result = solve(problem)
    assert result.converged and result.n_iter < 60
