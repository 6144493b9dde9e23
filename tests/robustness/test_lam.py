"""The coupling strength, from nothing to everything, and values that are none."""

import numpy as np
import pytest

from nefele import LocalData, Problem, solve
from nefele.losses import Absolute, Hinge, Poisson, Squared
from nefele.penalties import Lp
from tests.robustness.problems import LOSSES, PENALTIES, data, lonely, path, table


@pytest.mark.parametrize(
    "lam", [-1.0, -1e-300, np.nan, np.inf, 1j, np.complex128(1.0), "1", None, [1.0, 2.0]], ids=repr
)
def test_lam_that_is_no_strength_is_an_error(lam):
    with pytest.raises(ValueError, match="lam must be"):
        Problem(path(4), data(), lam=lam)


@pytest.mark.parametrize("lam", [1, np.float32(0.5), np.int64(2)], ids=repr)
def test_lam_of_any_real_type(lam):
    assert Problem(path(4), data(), lam=lam).lam == float(lam)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_lam_zero_equals_the_local_fits(loss):
    rows = table(loss)
    whole = solve(Problem(path(4), LocalData.from_list(rows), loss=loss, lam=0.0), tol=1e-8)
    alone = [solve(Problem(lonely(), LocalData.from_list([r]), loss=loss, lam=1.0)) for r in rows]
    assert whole.converged
    assert whole.objective == pytest.approx(sum(r.objective for r in alone), rel=1e-6)
    if isinstance(loss, Squared):
        fits = [np.linalg.lstsq(X, y, rcond=None)[0] for X, y in rows]
        np.testing.assert_allclose(whole.w, fits, rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("lam", [1e-300, 1e-12])
def test_tiny_lam_is_nearly_local(loss, lam):
    problem = Problem(path(4), data(loss), loss=loss, lam=lam)
    local = solve(Problem(path(4), data(loss), loss=loss, lam=0.0))
    result = solve(problem)
    assert result.converged
    assert result.objective == pytest.approx(local.objective, rel=3e-6)


def pooled(loss):
    """Optimum when all nodes share one model: the rows side by side, each node with weight one."""
    X, y = (np.concatenate(part) for part in zip(*table(loss), strict=True))
    result = solve(Problem(lonely(), LocalData.from_list([(X, y)]), loss=loss, lam=0.0), tol=1e-8)
    return 4 * result.objective, result.w[0]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("lam", [1e12, 1e300])
def test_huge_lam_is_consensus(loss, lam):
    result = solve(Problem(path(4), data(loss), loss=loss, lam=lam))
    objective, w = pooled(loss)
    assert result.converged
    assert result.objective == pytest.approx(objective, rel=2e-6)
    assert np.ptp(result.w, axis=0).max() == 0.0
    if not isinstance(loss, Absolute | Hinge | Poisson) and result.w.shape[1] == 2:
        np.testing.assert_allclose(result.w[0], w, rtol=1e-3)


@pytest.mark.parametrize("penalty", [*PENALTIES, Lp(3)], ids=repr)
@pytest.mark.parametrize("lam", [1e-300, 0.0, 1e12])
def test_extreme_lam_with_any_penalty(penalty, lam):
    local = solve(Problem(path(4), data(), lam=0.0)).objective
    expected = local if lam < 1 else pooled(Squared())[0]
    result = solve(Problem(path(4), data(), penalty=penalty, lam=lam))
    assert result.converged
    assert result.objective == pytest.approx(expected, rel=2e-6)
