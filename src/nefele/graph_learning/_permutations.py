"""Permutation tests of pairs of samples, with more draws where they decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from nefele._checks import Array
from nefele.graph import Index
from nefele.graph_learning._rows import NodeRows

_BLOCK = 4_000_000  # numbers of the largest temporary array
_ENOUGH = 4  # draws as large as the observed value, from which a p-value is settled
_GROWTH = 2  # of the number of draws per round
_DRAWS = 2_000_000  # of all pairs in one round, or as many as in the first
_MOST = 1_000_000  # of one pair


def permutation_pvalues(
    nodes: NodeRows,
    values: Array,
    i: Index,
    j: Index,
    test: str,
    count: int,
    level: float,
    random_state: Any,
) -> Array:
    """p-values (1 + g) / (1 + n) of a^T K a, a = 1 / m_i on one sample and -1 / m_j on the other.

    K is a Gaussian kernel of median width (squared mean discrepancy), or minus the distance
    (energy distance); g of n permutations give as much or more. All pairs get `count` draws. Those
    with g below 4 get twice as many, and so on: p-values by sequential sampling (Besag and
    Clifford 1991). It ends when Benjamini-Hochberg at this level rejects all pairs that are
    open, at a million draws, or when a round would take more draws of all pairs than the first
    one (at least 2 million).
    """
    rng = np.random.default_rng(random_state)
    unit = values.std(axis=0)
    points = (values - values.mean(axis=0)) / np.where(unit > 0, unit, 1.0)
    width = _median_distance(points, rng) if test == "mmd" else 1.0
    more, drawn = np.zeros(len(i), dtype=np.int64), np.zeros(len(i), dtype=np.int64)
    open_, total = np.arange(len(i)), count
    while True:
        new = total - int(drawn[open_[0]])
        more[open_] += _exceed(nodes, points, i[open_], j[open_], test, width, new, rng)
        drawn[open_] = total
        open_ = open_[more[open_] < _ENOUGH]
        if not open_.size or _ENOUGH / (total + 1) <= level * len(open_) / len(i):
            break
        total *= _GROWTH
        if total > _MOST or total * len(open_) > max(_DRAWS, count * len(i)):
            break
    return (1 + more) / (1 + drawn)


def _exceed(
    nodes: NodeRows,
    points: Array,
    i: Index,
    j: Index,
    test: str,
    width: float,
    count: int,
    rng: np.random.Generator,
) -> Index:
    """How many of `count` permutations give the observed value or more, shape (n_pairs,).

    Pairs of equal sizes share their permutations and run side by side.
    """
    size = np.diff(nodes.ptr)
    out = np.zeros(len(i), dtype=np.int64)
    kinds, kind = np.unique(np.stack([size[i], size[j]]), axis=1, return_inverse=True)
    for number, (a, b) in enumerate(kinds.T):
        chosen = np.flatnonzero(kind.ravel() == number)
        signs = np.concatenate([np.full(a, 1 / a), np.full(b, -1 / b)])
        most = max(1, min(count, _BLOCK // (a + b)))  # draws at once
        step = max(1, _BLOCK // ((a + b) * max(a + b, most + 1, points.shape[1])))
        for done in range(0, count, most):
            draws = rng.permuted(np.tile(signs, (min(most, count - done), 1)), axis=1)
            both = np.vstack([signs, draws])
            for start in range(0, len(chosen), step):
                part = chosen[start : start + step]
                first = nodes.ptr[i[part], None] + np.arange(a)
                index = np.hstack([first, nodes.ptr[j[part], None] + np.arange(b)])
                found = ((both @ kernel(points[index], test, width)) * both).sum(axis=2)
                out[part] += (found[:, 1:] >= found[:, :1] * (1 - 1e-12)).sum(axis=1)
    return out


def kernel(points: Array, test: str, width: float) -> Array:
    """Kernel matrices of sets of points, shape (n_sets, n, n)."""
    square = (points**2).sum(axis=2)
    apart = square[:, :, None] + square[:, None, :] - 2 * points @ points.swapaxes(1, 2)
    apart = np.maximum(apart, 0.0)
    return np.exp(-apart / (2 * width**2)) if test == "mmd" else -np.sqrt(apart)


def _median_distance(points: Array, rng: np.random.Generator) -> float:
    some = points[rng.choice(len(points), min(len(points), 500), replace=False)]
    found = float(np.median(cdist(some, some)[np.triu_indices(len(some), 1)]))
    return found if found > 0 else 1.0
