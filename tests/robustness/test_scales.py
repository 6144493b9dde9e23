"""Sizes and condition numbers at the edge of what floating point holds.

The tolerance is met, or a status and a warning say that it was not: never silence. What is
claimed to be optimal is compared with the optimum that scaling the problem back gives.
"""

import warnings

import numpy as np
import pytest

from nefele import ConvergenceWarning, Graph, LocalData, Problem, Status, solve
from nefele.losses import Absolute, Hinge, HuberLoss, Logistic, Poisson, Squared
from nefele.solvers import PrimalDual
from tests.robustness.problems import data, lonely, path, table


def honest(problem, **options):
    """A result and whether it is claimed optimal; the status and the warnings must agree."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = solve(problem, **{"max_iter": 1000, **options})
    kinds = [w.category for w in caught]
    assert kinds == ([] if result.converged else [ConvergenceWarning])
    assert np.isfinite(result.w).all() and np.isfinite(result.objective)
    assert result.gap_abs >= 0
    assert result.converged == (result.gap <= 1e-6)
    return result


def scaled(loss, sx, sy):
    sets = data(loss)
    return LocalData(sets.X * sx, sets.y * sy, sets.ptr)


SIZES = [1e-150, 1e-100, 1e-8, 1e8, 1e100, 1e150]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("loss", [Squared(), HuberLoss(), Absolute()], ids=repr)
def test_local_fits_to_labels_of_any_size(loss, size):
    """Scaling y scales a homogeneous loss; Huber's loss is homogeneous at its two ends."""
    result = honest(Problem(path(4), scaled(loss, 1.0, size), loss=loss, lam=0.0))
    kind = loss if size > 1 or not isinstance(loss, HuberLoss) else Squared()
    kind = Absolute() if isinstance(kind, HuberLoss) else kind
    plain = solve(Problem(path(4), data(loss), loss=kind, lam=0.0))
    half = 0.5 if isinstance(loss, HuberLoss) and size < 1 else 1.0
    expected = half * plain.objective * size ** (2 if isinstance(kind, Squared) else 1)
    if result.converged or not isinstance(loss, HuberLoss):
        assert result.objective == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("loss", [Squared(), Absolute()], ids=repr)
def test_coupled_fits_to_labels_of_any_size(loss, size):
    """Scaling y by c, and lam as the loss scales over the penalty, scales w by c."""
    lam = 0.3 * (size if isinstance(loss, Squared) else 1.0)
    plain = solve(Problem(path(4), data(loss), loss=loss, lam=0.3))
    result = honest(Problem(path(4), scaled(loss, 1.0, size), loss=loss, lam=lam))
    assert result.converged
    np.testing.assert_allclose(result.w / size, plain.w, atol=5e-3)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "loss", [Squared(), HuberLoss(), Absolute(), Logistic(), Hinge(), Poisson()], ids=repr
)
@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_features_of_any_size(loss, size, lam):
    """Scaling X by c and lam by c leaves the optimum as it was."""
    plain = solve(Problem(path(4), data(loss), loss=loss, lam=lam))
    result = honest(Problem(path(4), scaled(loss, size, 1.0), loss=loss, lam=lam * size))
    if result.converged:
        assert result.objective == pytest.approx(plain.objective, rel=3e-6)


@pytest.mark.parametrize("penalty", ["l1", "l2", "squared_l2", "huber"])
@pytest.mark.parametrize(("sx", "sy"), [(1e-150, 1.0), (1e150, 1.0), (1.0, 1e150), (1e-150, 1e150)])
def test_a_lam_that_does_not_follow_the_scale(penalty, sx, sy):
    """Then the optimum lies between that of the local fits and that of the pooled one."""
    result = honest(Problem(path(4), scaled(Squared(), sx, sy), penalty=penalty, lam=0.3))
    local = solve(Problem(path(4), data(), lam=0.0)).objective
    consensus = solve(Problem(path(4), data(), lam=1e6)).objective
    if result.converged:
        assert local * (1 - 1e-6) <= result.objective / sy**2 <= consensus * (1 + 1e-6)


@pytest.mark.parametrize("penalty", ["l1", "l2", "squared_l2"])
def test_edge_weights_of_any_size(penalty):
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)], weight=[1e-150, 1e150, 1.0])
    honest(Problem(graph, data(), penalty=penalty, lam=0.3))


@pytest.mark.parametrize("condition", [1e6, 1e12])
def test_local_fits_with_columns_of_unlike_size(condition):
    rows = [(X * [1.0, 1 / condition], y) for X, y in table()]
    result = honest(Problem(path(4), LocalData.from_list(rows), lam=0.0))
    plain = solve(Problem(path(4), data(), lam=0.0))
    assert result.converged
    assert result.objective == pytest.approx(plain.objective, rel=1e-6)


@pytest.mark.parametrize("condition", [1e3, 1e6, 1e8, 1e12, 1e16])
@pytest.mark.parametrize("penalty", ["l1", "l2", "squared_l2"])
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
def test_columns_of_unlike_size_are_never_wrongly_optimal(loss, condition, penalty):
    """A column of tiny features needs huge parameters, equal over the nodes: they cost nothing."""
    rows = [(X * [1.0, 1 / condition], y) for X, y in table(loss)]
    sets = LocalData.from_list(rows)
    result = honest(Problem(path(4), sets, loss=loss, penalty=penalty, lam=0.3))
    if condition <= 1e6:
        assert result.converged
    if result.converged:
        # A good point by hand: the second parameter fitted in its own units, the same everywhere.
        by_hand = best_common_second(loss, penalty, condition)
        assert result.objective <= by_hand * (1 + 1e-5)


def best_common_second(loss, penalty, condition):
    """Objective of the problem with well-scaled columns and a second parameter that is common."""
    rows = table(loss)
    moderate = LocalData.from_list([(X * [1.0, 1e-3], y) for X, y in rows])
    fit = solve(Problem(path(4), moderate, loss=loss, penalty=penalty, lam=0.3), tol=1e-8)
    w = fit.w * [1.0, condition / 1e3]
    w[:, 1] = w[:, 1].mean()
    true = LocalData.from_list([(X * [1.0, 1 / condition], y) for X, y in rows])
    return Problem(path(4), true, loss=loss, penalty=penalty, lam=0.3).objective(w)


@pytest.mark.parametrize("singular", [1e-6, 1e-9])
def test_ill_conditioned_directions_that_are_no_columns(singular):
    rows = []
    for X, y in table(d=3):
        U, s, Vt = np.linalg.svd(X, full_matrices=False)
        s[-1] = singular * s[0]
        rows.append(((U * s) @ Vt, y))
    sets = LocalData.from_list(rows)
    result = honest(Problem(path(4), sets, lam=0.0))
    fits = [np.linalg.lstsq(X, y, rcond=None)[0] for X, y in rows]
    best = Problem(path(4), sets, lam=0.0).objective(fits)
    assert result.converged and result.objective == pytest.approx(best, rel=1e-6)
    coupled = honest(Problem(path(4), sets, lam=0.3))
    assert coupled.objective <= Problem(path(4), sets, lam=0.3).objective(result.w) * (1 + 1e-6)


@pytest.mark.parametrize("loss", [Squared(), HuberLoss(), Logistic(), Hinge()], ids=repr)
def test_features_whose_squares_overflow_are_an_error(loss):
    with pytest.raises(ValueError, match="Rescale the features"):
        solve(Problem(path(4), scaled(loss, 1e160, 1.0), loss=loss, lam=0.3))


def test_labels_whose_squares_overflow_are_an_error():
    with pytest.raises(ValueError, match=r"objective at w = 0 must be finite.*Rescale the labels"):
        solve(Problem(path(4), scaled(Squared(), 1.0, 1e160), lam=0.3))


def test_an_objective_that_overflows_on_the_way_is_a_failure_with_a_finite_point():
    """w of size 1e200 has no finite squared loss, penalty or certificate."""
    problem = Problem(path(4), data(), lam=0.3)
    plain = PrimalDual(polish=False)
    with pytest.warns(ConvergenceWarning, match="failed"):
        result = solve(problem, plain, w0=np.full((4, 2), 1e200), max_iter=3)
    assert result.status is Status.FAILED
    assert np.isfinite(result.w).all() and np.isfinite(result.objective)


@pytest.mark.parametrize("loss", [HuberLoss(), Absolute()], ids=repr)
def test_saturated_losses_are_not_certified_at_zero(loss):
    """All residuals far beyond the kink: the curvature is zero and proves nothing."""
    sets = scaled(loss, 1.0, 1e150)
    result = honest(Problem(lonely(), sets.subset([0]), loss=loss, lam=0.0))
    best = solve(Problem(lonely(), data(Absolute()).subset([0]), loss=Absolute(), lam=0.0))
    if result.converged:
        assert result.objective <= 1e150 * best.objective * (1 + 1e-5)
