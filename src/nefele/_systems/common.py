"""What all nodes of a component have in common: where D is zero, and factors lose digits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._kernels.groups import group_sums

_RANK = 1e-13  # eigenvalues, relative to a unit diagonal, that count as zero


def common_part(metric: Array, right: Array, groups: NDArray[np.int64]) -> Array:
    """X, equal over each group, with sum_i M_i x = sum_i right_i: shape (n_nodes, d).

    Equal parameters are not seen by D^T C D. Where C is huge beside M, the factors of M + D^T C D
    know nothing of them but rounding errors.

    Examples
    --------
    >>> metric = np.array([[[1.0]], [[3.0]]])
    >>> common_part(metric, np.array([[2.0], [6.0]]), np.array([0, 0])).ravel().tolist()
    [2.0, 2.0]
    """
    total, b = group_sums(groups, metric), group_sums(groups, right)
    diagonal = np.einsum("ijj->ij", total)
    root = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    scaled = total / root[:, :, None] / root[:, None, :]
    inverse = np.linalg.pinv(scaled, rcond=_RANK, hermitian=True)
    x = (inverse @ (b / root)[..., None])[..., 0] / root
    return np.asarray(x[groups])
