"""p-values by single columns, for all pairs of nodes: Welch's t and Kolmogorov-Smirnov."""

from __future__ import annotations

import numpy as np
from scipy.special import comb
from scipy.stats import kstwo, ttest_ind_from_stats

from nefele._checks import Array
from nefele.graph import Index
from nefele.graph_learning._rows import NodeRows

_EXACT = 2_500  # product of two sample sizes up to which all orders are counted


def t_pvalues(nodes: NodeRows, column: Array, i: Index, j: Index) -> Array:
    """Welch's t-test of a column; constant nodes differ when their values do."""
    count = np.diff(nodes.ptr)
    mean = np.add.reduceat(column, nodes.ptr[:-1]) / count
    apart = (column - mean[nodes.owner]) ** 2
    spread = np.sqrt(np.add.reduceat(apart, nodes.ptr[:-1]) / (count - 1))
    still = (spread[i] <= 1e-12 * np.abs(mean[i])) & (spread[j] <= 1e-12 * np.abs(mean[j]))
    wide = np.where(spread > 0, spread, 1.0)  # replaced below where both are constant
    p = ttest_ind_from_stats(
        mean[i],
        np.where(still, wide[i], spread[i]),
        count[i],
        mean[j],
        np.where(still, wide[j], spread[j]),
        count[j],
        equal_var=False,
    ).pvalue
    size = np.maximum(np.abs(mean[i]), np.abs(mean[j]))
    return np.where(still, np.abs(mean[i] - mean[j]) <= 1e-12 * size, p)


def ks_pvalues(nodes: NodeRows, values: Array, i: Index, j: Index) -> Array:
    """Least p-value over the columns of the largest difference of two distribution functions.

    All columns of a pair have the same numbers of rows, so the largest difference has it.
    """
    from nefele._kernels.samples import largest_steps

    apart = np.zeros(len(i))
    for column in values.T:
        ordered = column[np.lexsort((column, nodes.owner))]  # the rows lie node by node
        np.maximum(apart, largest_steps(ordered, nodes.ptr, i, j), out=apart)
    count = np.diff(nodes.ptr)
    a, b = np.minimum(count[i], count[j]), np.maximum(count[i], count[j])
    step = np.round(apart * a * b).astype(np.int64)  # a whole number of 1 / (a b)
    p = np.empty(len(i))
    kinds, kind = np.unique(a * (count.max() + 1) + b, return_inverse=True)
    order = np.argsort(kind, kind="stable")
    for here in np.split(order, np.searchsorted(kind[order], np.arange(1, len(kinds)))):
        m, n = int(a[here[0]]), int(b[here[0]])
        steps, place = np.unique(step[here], return_inverse=True)  # few, and each takes a while
        p[here] = ks_survival(steps, m, n)[place]
    return p


def ks_survival(steps: Index, m: int, n: int) -> Array:
    """Probability that samples of m and n of one law differ by steps / (m n) or more.

    Of the C(m + n, m) orders of the two samples, lattice paths from (0, 0) to (m, n), those are
    counted that stay inside |i n - j m| < steps. Asymptotic for m n above _EXACT, as in SciPy.

    Examples
    --------
    >>> ks_survival(np.array([0, 2, 4]), 2, 2).round(6).tolist()
    [1.0, 1.0, 0.333333]
    """
    total = float(comb(m + n, m))
    least = 2.0 / total  # two orders separate the samples; a difference would round to 0
    if m * n > _EXACT:
        size = max(round(m * n / (m + n)), 1)
        return np.clip(kstwo.sf(steps / (m * n), size), least, 1.0)
    place = np.arange(n + 1) * m
    paths = np.zeros((len(steps), n + 1))
    paths[:, 0] = 1.0
    for i in range(m + 1):
        near = np.abs(i * n - place) < steps[:, None]
        paths = np.cumsum(paths * near, axis=1) * near
    return np.where(steps > 0, np.maximum(1.0 - paths[:, -1] / total, least), 1.0)
