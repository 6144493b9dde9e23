"""Against a general cone solver, on random problems with everything that makes them hard."""

import warnings

import numpy as np
import pytest

from nefele import ConvergenceWarning, DataWarning, LocalData, Problem, solve
from nefele.losses import (
    Absolute,
    Hinge,
    HuberLoss,
    Logistic,
    Multinomial,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
)
from nefele.penalties import (
    HuberPenalty,
    L1Norm,
    L2Norm,
    LinfNorm,
    Lp,
    Partial,
    Quadratic,
    SquaredL2,
)
from tests.problems import random_parts
from tests.reference.oracle import oracle

TOL = 1e-7
ACCURACY = 1e-6

SINGULAR = [[2.0, 1.0], [1.0, 0.5]]
PENALTIES = [
    L1Norm(),
    L2Norm(),
    LinfNorm(),
    HuberPenalty(delta=0.3),
    SquaredL2(),
    Lp(3),
    Quadratic([[2.0, 0.5], [0.5, 1.0]]),
    Quadratic(SINGULAR),
    Partial(L2Norm(), [0, 2]),
    Partial(L1Norm(), [1, 2]),
]
LOSSES = [
    Squared(l1=0.1),
    Squared(l2=0.1),
    Squared(l2=0.05, l1=0.1),
    Logistic(),
    Logistic(l2=0.01),
    Poisson(),
    HuberLoss(delta=0.5),
    Absolute(),
    Quantile(q=0.8),
    Hinge(),
    SquaredHinge(l2=0.01),
    Multinomial(n_classes=3, l2=0.01),
]


def personal(problem):
    """Nodes that may run away alone, where the penalty leaves directions free."""
    free = isinstance(problem.penalty, Partial | Quadratic)
    return problem.with_lam(0.0).unbounded() if free else np.zeros(problem.graph.n_nodes, bool)


def attained(seed, loss, penalty, wide):
    """A random problem that has a minimiser: a cone solver cannot tell an infimum."""
    d = {Quadratic: 2, Partial: 3}.get(type(penalty))
    while True:
        parts = random_parts(seed, loss, d=d, wide=wide)
        problem = Problem(*parts[:2], loss=loss, penalty=penalty, lam=parts[2])
        if not (problem.unbounded() | personal(problem)).any():
            return problem, parts
        seed += 1000


def agrees(seed, loss, penalty, wide, must_converge=True):
    """The optimum within ACCURACY, and a certificate that really bounds the distance from it.

    The oracle errs on both sides: its value may lie below the optimum (its point is not exactly
    feasible in the cone form), while the objective at its point never does. So the objective must
    not be above the better of the two by more than ACCURACY, nor below the optimum by more than
    the oracle itself is off, and the bound is tested against the point, a true upper bound.
    A solve that need not converge must say that it did not, and its bound must hold all the same.
    """
    problem, parts = attained(seed, loss, penalty, wide)
    graph, data, lam = parts
    value, point = oracle(graph, data, loss, penalty, lam)
    with warnings.catch_warnings():
        # Components without data are part of the sweep.
        warnings.simplefilter("ignore", DataWarning)
        if not must_converge:
            warnings.simplefilter("ignore", ConvergenceWarning)
        result = solve(problem, tol=TOL)
    scale = max(abs(point), 1e-3 * abs(problem.objective_at_zero))
    assert result.converged or (not must_converge and result.gap > TOL), result
    if result.converged and value is not None:
        assert result.objective <= min(value, point) + ACCURACY * scale
        assert result.objective >= point - ACCURACY * scale - abs(point - value)
    assert result.objective - point <= result.gap_abs + 1e-9 * scale
    lower = result.objective - result.gap_abs
    assert lower <= point + 1e-9 * scale
    assert lower == pytest.approx(problem.certificate(result.w, result.u).lower, rel=1e-3) or (
        lower >= problem.certificate(result.w, result.u).lower
    )


def name(thing):
    return repr(thing) if not isinstance(thing, Quadratic) else f"Quadratic({thing.Q.tolist()})"


@pytest.mark.parametrize("wide", [False, True], ids=["", "wide"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
def test_squared_loss_with_every_penalty(seed, penalty, wide):
    agrees(seed, Squared(), penalty, wide)


@pytest.mark.parametrize("wide", [False, True], ids=["", "wide"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("penalty", [L2Norm(), L1Norm()], ids=name)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_every_loss_with_norms(seed, loss, penalty, wide):
    agrees(seed, loss, penalty, wide)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("penalty", [L2Norm(), SquaredL2()], ids=name)
@pytest.mark.parametrize(
    "loss",
    [
        Squared(l2=0.5),
        Squared(l2=0.1, l1=0.2),
        Logistic(l2=0.1),
        HuberLoss(delta=0.5, l2=0.3),
        Absolute(l2=0.2),
        Hinge(l2=0.2),
        Multinomial(n_classes=3, l2=0.1),
    ],
    ids=name,
)
def test_regularisers_that_see_columns_unequally(seed, penalty, loss):
    """One column is spared, the others have weights of their own; the certificate knows it."""
    rng = np.random.default_rng(seed)
    graph, data, lam = random_parts(seed, loss, d=3)
    shrink = np.append(rng.uniform(0.2, 2.0, 2), 0.0)
    data = LocalData(data.X, data.y, data.ptr, data.ids, shrink=shrink)
    problem = Problem(graph, data, loss=loss, penalty=penalty, lam=lam)
    value, point = oracle(graph, data, loss, penalty, lam)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result = solve(problem, tol=TOL)
    assert result.converged
    scale = max(abs(point), 1e-3 * abs(problem.objective_at_zero))
    assert value is not None
    assert abs(result.objective - value) <= ACCURACY * scale + abs(point - value)
    assert result.objective - point <= result.gap_abs + 1e-9 * scale


def test_the_sweep_has_what_makes_problems_hard():
    parts = [random_parts(seed, wide=True) for seed in range(4)]
    assert any((data.counts == 0).any() for _, data, _ in parts)
    assert any(((data.counts > 0) & (data.counts < data.d)).any() for _, data, _ in parts)
    assert any(graph.components.max() > 0 for graph, _, _ in parts)
    assert any((graph.degree == 0).any() for graph, _, _ in parts)
    assert any(np.ptp(np.log10(graph.weight)) > 4 for graph, _, _ in parts if graph.n_edges)


@pytest.mark.slow
@pytest.mark.parametrize("wide", [False, True], ids=["", "wide"])
@pytest.mark.parametrize("seed", range(4, 10))
@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
@pytest.mark.parametrize("loss", [Squared(), *LOSSES], ids=name)
def test_every_loss_with_every_penalty(seed, loss, penalty, wide):
    if isinstance(loss, Multinomial) and isinstance(penalty, Quadratic):
        penalty = Quadratic(np.kron(np.eye(3), penalty.Q))
    # Piecewise linear losses, and labels that are nearly separable, can need more iterations than
    # the limit: then the solve must say so.
    hard = isinstance(loss, Absolute | Hinge) or loss == Logistic()
    agrees(seed, loss, penalty, wide, must_converge=not hard)
