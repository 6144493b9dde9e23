"""Errors at rows that were left out one by one, without fitting again.

For squared errors and given variances this is exact: the error of row r without itself is
e_r / (1 - h_r), h_r being how much its own prediction follows its label.
"""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.data import LocalData
from nefele.mixed.components import Estimate
from nefele.mixed.coupling import Index

_PINNED = 1e-8  # 1 - h of a row that nothing else predicts


def leverages(data: LocalData, personal: Index, found: Estimate, unit: Array) -> Array:
    """H_r of every row, shape (n_rows,), rows in the order of `data`.

    `unit` is what a row leaves with: its weight, but for a row of weight k, which stands for k
    equal ones, that of one.
    """
    X, model = data.X, found.model
    d = X.shape[1]
    inner = X[:, personal] @ found.F
    Z, blocks = model.personal.Z[..., :d], model.personal.blocks()
    rest, own = X.copy(), np.zeros(len(X))
    for i, (a, b) in enumerate(zip(data.ptr[:-1], data.ptr[1:], strict=True)):
        rest[a:b] -= inner[a:b] @ Z[i]
        own[a:b] = np.einsum("rp,rp->r", inner[a:b] @ blocks[i], inner[a:b])
    return np.asarray(unit * (own + np.einsum("rj,rj->r", rest @ model.spread, rest)))


def predictions(data: LocalData, personal: Index, found: Estimate) -> Array:
    """X_i (b + r_i) of every row, shape (n_rows,)."""
    model = found.model
    own = np.einsum("rp,rp->r", data.X[:, personal], model.r[data.row_node])
    return np.asarray(data.X @ model.b + own)


def left_out(data: LocalData, personal: Index, found: Estimate, unit: Array) -> Array:
    """Prediction of every row by a fit without it, with the same variances, shape (n_rows,)."""
    fitted, h = predictions(data, personal, found), leverages(data, personal, found, unit)
    return np.asarray(data.y - (data.y - fitted) / np.maximum(1.0 - h, _PINNED))
