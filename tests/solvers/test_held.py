"""Nodes without a minimiser: they are held and named, and all others are solved."""

import warnings

import numpy as np
import pytest

from nefele import (
    ConvergenceWarning,
    DataWarning,
    GTVClassifier,
    LocalData,
    Problem,
    Status,
    solve,
)
from nefele.graphs import chain, grid
from nefele.losses import Logistic, Multinomial, Poisson, Squared
from nefele.losses.escape import Escape, joined, runs_away, runs_together
from nefele.penalties import L1Norm, L2Norm, LinfNorm, Partial
from nefele.solvers import PrimalDual


def separable(lost=(1,), n=8, seed=0):
    """Logistic and squared losses on a chain, the last entry personal; `lost` have one class."""
    rng = np.random.default_rng(seed)
    parts, losses = [], {}
    for i in range(n):
        X = np.column_stack([rng.standard_normal((12, 2)), np.ones(12)])
        z = X @ [1.0, -1.0, 0.2] + rng.standard_normal(12)
        kind = i % 2 == 1
        y = np.where(z > 0, 1.0, -1.0) if kind else z
        losses[i] = Logistic() if kind else Squared()
        parts.append((X, np.ones(12) if i in lost else y))
    return parts, losses


@pytest.mark.parametrize("penalty", [L2Norm(), L1Norm(), LinfNorm()], ids=repr)
def test_losses_of_different_kinds_do_not_stop_at_one_node(penalty):
    rows, losses = separable()
    problem = Problem(
        chain(8), LocalData.from_list(rows), losses, Partial(penalty, [0, 1]), lam=0.3
    )
    np.testing.assert_array_equal(problem.unbounded(), np.arange(8) == 1)
    with pytest.warns(DataWarning, match="no minimiser"):
        result = solve(problem)
    assert result.converged and result.status in (Status.OPTIMAL, Status.HELD)
    # The other nodes: as if that node were coupled, and had no data.
    without = {i: loss for i, loss in losses.items() if i != 1}
    rows[1] = None
    other = Problem(chain(8), LocalData.from_list(rows), without, problem.penalty, lam=0.3)
    best = solve(other, tol=1e-9)
    others = np.arange(8) != 1
    np.testing.assert_allclose(result.w[others], best.w[others], atol=1e-2)
    assert result.objective - best.objective <= 1e-3


def test_a_held_node_is_named_and_its_ridge_stated():
    rows, losses = separable(lost=(1, 3, 5))
    problem = Problem(
        chain(8), LocalData.from_list(rows), losses, Partial(L2Norm(), [0, 1]), lam=0.3
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = solve(problem, PrimalDual())  # Newton steps prove a bound without a minimiser
    assert result.status is Status.HELD and result.converged
    assert "held" in result.status.advice
    np.testing.assert_array_equal(result.unbounded, np.isin(np.arange(8), [1, 3, 5]))
    np.testing.assert_array_equal((result.held > 0).any(axis=1), result.unbounded)
    assert result.held.max() <= 1e-5
    # Objective and gap are those of the problem with the ridge.
    ridge = float((result.held * result.w**2).sum())
    assert result.objective == pytest.approx(problem.objective(result.w) + ridge)
    assert result.objective == result.problem.objective(result.w)
    exact = solve(result.problem, tol=1e-10)
    assert result.objective - result.gap_abs <= exact.objective * (1 + 1e-12)
    iterations = [record.iteration for record in result.history]
    assert iterations == sorted(iterations) and iterations[-1] <= result.n_iter


def test_max_iter_counts_both_solves():
    rows, losses = separable()
    problem = Problem(
        chain(8), LocalData.from_list(rows), losses, Partial(L2Norm(), [0, 1]), lam=0.3
    )
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = solve(problem, PrimalDual(), max_iter=230, tol=1e-12, callback=seen.append)
    assert result.n_iter <= 230
    assert [r.iteration for r in seen] == sorted(r.iteration for r in seen)


def test_a_held_solve_that_does_not_converge_says_whose_gap_it_is():
    rows, losses = separable()
    problem = Problem(
        chain(8), LocalData.from_list(rows), losses, Partial(L2Norm(), [0, 1]), lam=0.3
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = solve(problem, PrimalDual(polish=False), max_iter=260, tol=1e-10)
    assert result.held is not None and not result.converged
    assert result.objective == result.problem.objective(result.w)
    assert "those of result.problem" in result.advice and "result.held" in result._repr_html_()
    said = {w.category: str(w.message) for w in caught}
    assert "those of result.problem" in said[ConvergenceWarning]
    assert "not solved to the tolerance" in said[DataWarning]
    assert "all others are solved" not in said[DataWarning]


def test_a_classifier_with_nodes_of_one_class():
    """`penalty="linf"` and personal intercepts: it once stopped with a gap of 1."""
    rng = np.random.default_rng(0)
    graph = grid(4, 4)
    X, nodes = rng.standard_normal((16 * 8, 3)), np.repeat(np.arange(16), 8)
    y = (X @ [1.0, -1.0, 0.5] + rng.standard_normal(len(X)) > 0).astype(int)
    y[np.isin(nodes, [3, 7, 11])] = 1
    model = GTVClassifier(graph, alpha=0.1, penalty="linf", couple_intercept=False)
    with pytest.warns(DataWarning, match="no minimiser"):
        model.fit(X, y, node_ids=nodes)
    assert model.status_ in (Status.OPTIMAL, Status.HELD) and model.dual_gap_ <= model.tol
    assert np.isfinite(model.coef_).all()


def test_runs_together_agrees_with_single_nodes():
    rng = np.random.default_rng(1)
    none = np.zeros((0, 3))
    found = []
    for i in range(6):
        X = rng.standard_normal((5, 3))
        y = np.sign(X @ [1.0, 0.0, 0.0]) if i % 2 else rng.choice([-1.0, 1.0], 5)
        found.append(Escape(y[:, None] * X, none, none))
    alone = [runs_away(one) for one in found]
    assert any(alone) and not all(alone)
    every = runs_together(found, np.arange(6), np.zeros((3, 0)))
    np.testing.assert_array_equal(every, alone)
    own = runs_together(found, np.zeros(6, dtype=int), np.eye(3))
    np.testing.assert_array_equal(own, alone)
    together = runs_together(found, np.zeros(6, dtype=int), np.zeros((3, 0)))
    whole = runs_away(joined(found))
    assert together.any() == whole


def test_a_bound_without_an_optimum_is_called_an_estimate():
    """Ten iterations of a Poisson loss whose counts are all zero at every node."""
    rng = np.random.default_rng(3)
    data = LocalData.from_list([(np.abs(rng.standard_normal((3, 2))), np.zeros(3))] * 5)
    problem = Problem(chain(5), data, Poisson(), "l1", lam=0.5)
    with pytest.warns(DataWarning, match="no minimiser"), pytest.warns(ConvergenceWarning):
        result = solve(problem, PrimalDual(polish=False), max_iter=10, tol=1e-12)
    assert result.unbounded.all()
    if result.certificate == "dual":  # a leak that does not count, or it would be an estimate
        assert result.leak <= 1e-12 * abs(result.objective)
    assert problem.objective(np.full((5, 2), -50.0)) >= result.objective - result.gap_abs - 1e-12


@pytest.mark.parametrize("loss", [Logistic(l2=0.1), Multinomial(), Squared(), Poisson()], ids=repr)
def test_some_nodes_by_themselves_are_held_as_among_all(loss):
    rng = np.random.default_rng(0)
    labels = {Logistic: [-1.0, 1.0], Multinomial: [0.0, 2.0]}.get(type(loss), [1.0, 3.0])
    rows = [(rng.standard_normal((5, 2)), rng.choice(labels, 5)) for _ in range(4)]
    bound = Problem(chain(4), LocalData.from_list(rows), loss, lam=1.0).loss
    held = bound.held(rng.uniform(1.0, 2.0, (4, bound.d)))
    some, w = np.array([1, 3]), rng.standard_normal((2, bound.d))
    part, whole = held.restrict(some), np.zeros((4, bound.d))
    whole[some] = w
    np.testing.assert_allclose(part.value(w), held.value(whole)[some])
    np.testing.assert_allclose(part.grad(w), held.grad(whole)[some])
    assert (part.value(w) > bound.restrict(some).value(w) + 0.1).all()


def test_a_held_squared_loss_has_the_curvature_of_its_ridge():
    rng = np.random.default_rng(0)
    data = LocalData.from_list([(rng.standard_normal((4, 2)), rng.standard_normal(4))] * 2)
    loss = Problem(chain(2), data, lam=1.0).loss
    before = loss.curvature()
    held = loss.held(np.full((2, 2), 0.5))
    np.testing.assert_allclose(held.curvature(), before + 1.0)
    np.testing.assert_array_equal(loss.curvature(), before)
