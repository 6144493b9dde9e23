"""Pairs of samples: the largest difference of two empirical distribution functions."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array

Index = NDArray[np.int64]


@numba.njit(cache=True)
def largest_steps(values: Array, ptr: Index, first: Index, second: Index) -> Array:
    """Kolmogorov-Smirnov statistics of the pairs (first, second) of nodes, shape (n_pairs,).

    The values, shape (n_rows,), are sorted within each node; `ptr` has shape (n_nodes + 1,).
    """
    out = np.empty(len(first))
    for k in range(len(first)):
        a, a_end = ptr[first[k]], ptr[first[k] + 1]
        b, b_end = ptr[second[k]], ptr[second[k] + 1]
        step_a, step_b = 1.0 / (a_end - a), 1.0 / (b_end - b)
        start_a, start_b, most = a, b, 0.0
        while a < a_end and b < b_end:
            at = min(values[a], values[b])
            while a < a_end and values[a] == at:
                a += 1
            while b < b_end and values[b] == at:
                b += 1
            most = max(most, abs((a - start_a) * step_a - (b - start_b) * step_b))
        out[k] = most
    return out
