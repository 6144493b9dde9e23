"""Coordinate descent on the box-constrained dual of a node's prox, for piecewise linear losses.

The prox of sum_r c_r f(x_r^T z) at v with f*(a) = a y on [low, high] is z = v - t sum_r c_r a_r x_r
where a maximises a concave quadratic over the box; one coordinate at a time is exact.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array

# Row duals are inside the box after any number of sweeps, so a certificate stays valid.
_SWEEPS = 500
_TOL = 1e-12


def box_prox(
    X: Array,
    y: Array,
    ptr: NDArray[np.int64],
    c: Array,
    low: Array,
    high: Array,
    v: Array,
    t: Array,
    a: Array,
) -> tuple[Array, Array]:
    """Prox points (n, d) and row duals (n_rows,), starting from the row duals `a`."""
    return _solve(X, y, ptr, c, low, high, v.copy(), t, a.copy())


@numba.njit(cache=True)
def _solve(X, y, ptr, c, low, high, z, t, a):  # type: ignore[no-untyped-def]
    n, d = z.shape
    for i in range(n):
        for r in range(ptr[i], ptr[i + 1]):
            for j in range(d):
                z[i, j] -= t[i] * c[r] * a[r] * X[r, j]
        for _ in range(_SWEEPS):
            worst = 0.0
            for r in range(ptr[i], ptr[i + 1]):
                size, error = 0.0, -y[r]
                for j in range(d):
                    size += X[r, j] * X[r, j]
                    error += X[r, j] * z[i, j]
                if size == 0.0 or c[r] == 0.0:
                    a[r] = high[r] if error > 0.0 else low[r]
                    continue
                new = min(max(a[r] + error / (t[i] * c[r] * size), low[r]), high[r])
                shift = t[i] * c[r] * (new - a[r])
                worst = max(worst, abs(new - a[r]))
                a[r] = new
                for j in range(d):
                    z[i, j] -= shift * X[r, j]
            if worst <= _TOL:
                break
    return z, a
