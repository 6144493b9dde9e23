"""The restricted likelihood of variance components, profiled, and its gradient.

The model: y_i = X_i b + X_i[:, personal] r_i + noise of variance s2, r ~ N(0, R^-1 x S) with
S = s2 F F^T, and b flat or, where a column has a ridge k_j > 0, b_j ~ N(0, s2 / k_j). Everything
is computed from u = F^-1 r, so that F may be as good as zero: a common coefficient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from nefele._checks import Array
from nefele._kernels.mixed import slopes as add_slopes
from nefele.mixed.coupling import Apart, Coupling, Eliminated, Index
from nefele.mixed.statistics import Statistics

# Added to what is left, as a share of the sum of squares or at all: a perfect fit has a noise too.
_ROUNDING, _TINY = 1e-12, 1e-250


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The likelihood at given components, and what it found on the way.

    Attributes
    ----------
    deviance : float
        Minus twice the log restricted likelihood, up to a constant of the rows.
    b : array of shape (d,)
        Common coefficients.
    r : array of shape (n_nodes, p)
        Personal deviations from them.
    s2 : float
        Variance of the noise.
    slope_F : array of shape (p, p)
        Gradient of the deviance by F.
    slope_ridge : array of shape (d,)
        Gradient by log k_j, zero where there is no ridge.
    spread : array of shape (d, d)
        Covariance of b, in units of s2.
    personal : Eliminated
        The system of the personal parts.
    """

    deviance: float
    b: Array
    r: Array
    s2: float
    slope_F: Array
    slope_ridge: Array
    spread: Array
    personal: Eliminated


class Likelihood:
    """The deviance as a function of F and the ridges.

    Parameters
    ----------
    statistics : Statistics
    personal : int array of shape (p,)
        Columns with a personal part.
    coupling : Coupling
        Default: the centre only.
    noise : float, optional
        The variance of the noise where it is known; it is estimated otherwise.

    Examples
    --------
    >>> from nefele import LocalData
    >>> data = LocalData.from_list([([[1.0], [1.0]], [0.0, 1.0]), ([[1.0], [1.0]], [4.0, 5.0])])
    >>> likelihood = Likelihood(Statistics.of(data), np.array([0]))
    >>> found = likelihood(np.array([[4.0]]), np.zeros(1))
    >>> found.b.round(2), found.r.ravel().round(2)
    (array([2.5]), array([-1.94,  1.94]))
    """

    def __init__(
        self,
        statistics: Statistics,
        personal: Index,
        coupling: Coupling | None = None,
        noise: float | None = None,
    ) -> None:
        self.noise = noise
        self.statistics, self.personal = statistics, np.asarray(personal, dtype=np.int64)
        self.coupling = Apart() if coupling is None else coupling
        self._G, self._c = statistics.G.sum(axis=0), statistics.c.sum(axis=0)
        self._yy = float(statistics.yy.sum())
        self.n_rows = float(statistics.rows.sum())

    def __call__(self, F: Array, ridge: Array, *, slopes: bool = True) -> Evaluation:
        """At a factor F of shape (p, p) and ridges k of shape (d,), 0 for none."""
        sums, d = self.statistics, self.statistics.d
        found = self.coupling.eliminate(sums.G, sums.c, self.personal, F)
        factor = linalg.cho_factor(
            self._G + np.diag(ridge) - found.inner[:d, :d], lower=True, check_finite=False
        )
        spread = linalg.cho_solve(factor, np.eye(d), check_finite=False)
        f = self._c - found.inner[:d, d]
        b = spread @ f
        on = ridge > 0
        free = self.n_rows - int((~on).sum())
        rest = self._yy - float(found.inner[d, d]) - float(f @ b)
        rest = max(rest, 0.0) + _ROUNDING * self._yy + _TINY
        s2 = rest / free if self.noise is None else self.noise
        log_M = 2.0 * float(np.log(factor[0].diagonal()).sum())
        size = free * np.log(rest) if self.noise is None else rest / self.noise
        deviance = size + found.log_det + log_M - float(np.log(ridge[on]).sum())
        u = found.Z[..., d] - found.Z[..., :d] @ b
        slope_F, slope_ridge = np.zeros_like(F), np.zeros(d)
        if slopes:
            F = np.ascontiguousarray(F)
            blocks, wide = found.blocks(), np.vstack([spread, np.zeros(d)])
            N = (found.Z.reshape(-1, d + 1) @ wide).reshape(*found.Z.shape[:2], d)
            add_slopes(sums.G, sums.c, self.personal, F, found.Z, blocks, b, N, s2, slope_F)
            slope_F *= -2.0
            slope_ridge[on] = (ridge * (spread.diagonal() + b**2 / s2) - 1.0)[on]
        return Evaluation(deviance, b, u @ F.T, s2, slope_F, slope_ridge, spread, found)
