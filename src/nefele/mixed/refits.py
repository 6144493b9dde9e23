"""Own models of nodes, fitted again without each of their rows.

Where a node's classes can be separated, or its counts are all zero but for one row, the fit without
a row is far from the fit with it, and one step from there does not reach it.
"""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.mixed.fitting import Fit
from nefele.mixed.response import Response

_STEPS, _FAR, _SAME = 30, 4.0, 1e-3  # Newton's steps, how far a predictor may go in one, or not
_WORK = 4_000_000  # predictors in one step of all refits


def refitted(fitted: Fit, response: Response) -> Array:
    """Linear predictor of each row by its node's model without it, shape (n_rows,).

    Common coefficients stay as they are. NaN for rows of the largest nodes, where all refits would
    take too long: a row more or less matters least there.
    """
    ptr = fitted.data.ptr
    size = np.diff(ptr)
    order = np.argsort(size, kind="stable")
    out = np.full(fitted.data.n_rows, np.nan)
    for i in order[np.cumsum(size[order].astype(float) ** 2) <= _WORK]:
        out[ptr[i] : ptr[i + 1]] = _of_node(fitted, response, int(i))
    return out


def _of_node(fitted: Fit, response: Response, i: int) -> Array:
    """All refits of a node at once: row k of `U` is the model without row k."""
    data, found = fitted.data, fitted.found
    rows = slice(data.ptr[i], data.ptr[i + 1])
    A, y = data.X[rows][:, fitted.personal] @ found.F, fitted.target[rows]
    m, p = A.shape
    base, count = data.X[rows] @ found.model.b, fitted.count[rows]
    weight = np.tile(count, (m, 1)) - np.diag(np.minimum(count, 1.0))
    products = (A[:, :, None] * A[:, None, :]).reshape(m, p * p)
    U = np.tile(np.linalg.solve(found.F, found.model.r[i]), (m, 1))
    for _ in range(_STEPS):
        eta = base + U @ A.T
        z, w = (part.reshape(m, m) for part in response.linear(eta.ravel(), np.tile(y, m)))
        H = ((weight * w) @ products).reshape(m, p, p) + np.eye(p)
        step = np.linalg.solve(H, ((weight * w * (z - eta)) @ A - U)[..., None])[..., 0]
        move = np.abs(np.where(weight > 0, step @ A.T, 0.0)).max(axis=1, initial=0.0)
        U += step * np.minimum(1.0, _FAR / np.maximum(move, _FAR))[:, None]
        if (move <= _SAME * (1 + np.abs(eta).max(axis=1, initial=0.0))).all():
            break
    return np.asarray(base + np.einsum("rp,rp->r", U, A))
