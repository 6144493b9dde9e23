"""Two-sample tests of all pairs of nodes; who is not found to differ is joined."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.stats import kstwo, ttest_ind_from_stats

from nefele._checks import Array, check_count, check_name, check_number
from nefele._ids import describe
from nefele.estimators.builders import GraphBuilder, TrainingRows
from nefele.graph import Graph, Index
from nefele.graph_learning._rows import NodeRows, node_rows, within_units
from nefele.graph_learning.refine import check_k, nearest, normalize_weights, sparsify_graph

__all__ = ["TestGraph", "benjamini_hochberg", "pair_pvalues"]

_TESTS = ("t", "ks", "mmd", "energy")
_BLOCK = 4_000_000  # numbers of the largest temporary array


class TestGraph(GraphBuilder):
    """Join nodes unless a two-sample test finds that their rows differ.

    Each pair of nodes is tested; Benjamini-Hochberg over all pairs keeps the expected share of
    wrong ones among the pairs found different at `level`. All other pairs are edges.

    Parameters
    ----------
    test : {"t", "ks", "mmd", "energy"}
        "t": Welch's t-test, "ks": Kolmogorov-Smirnov, both column by column with Bonferroni's
        correction over the columns. "mmd" (Gaussian kernel) and "energy": one test for all
        columns together, by permutation of the rows of a pair.
    level : float in (0, 1)
        False discovery rate. A larger one leaves fewer edges.
    products : bool
        Whether the products of each feature and target are columns as well: their means differ
        when the relation between the two does.
    n_permutations : int
        Of "mmd" and "energy"; the least p-value is 1 / (n_permutations + 1).
    k : int, optional
        Keep only the k pairs of largest p-value at each node.
    weight : {"unit", "pvalue"}
    degree, normalize
        See `graph_from_discrepancy`.
    random_state : int
        Of the permutations.

    Notes
    -----
    Rows of weight zero are left out; other weights play no part in the tests. A pair with few
    rows is rarely found different: more rows make this graph sparser.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 1)) + np.repeat([0.0, 0.0, 3.0], 20)[:, None]
    >>> rows = TrainingRows(X, X, np.repeat(["a", "b", "c"], 20), np.ones(60))
    >>> TestGraph("t").fit_graph(rows).neighbors("a")
    ['b']
    """

    __test__ = False  # no test case of pytest, in spite of its name

    def __init__(
        self,
        test: str = "t",
        level: float = 0.05,
        *,
        products: bool = True,
        n_permutations: int = 199,
        k: int | None = None,
        weight: str = "unit",
        degree: float | None = None,
        normalize: str = "none",
        random_state: int = 0,
    ) -> None:
        self.test = test
        self.level = level
        self.products = products
        self.n_permutations = n_permutations
        self.k = k
        self.weight = weight
        self.degree = degree
        self.normalize = normalize
        self.random_state = random_state

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph of the pairs not found to differ, see the class."""
        check_name(self.test, _TESTS, "test")
        check_name(self.weight, ("unit", "pvalue"), "weight")
        level = check_number(self.level, "level", low=0.0, strict=True)
        if level >= 1:
            raise ValueError(f"level must lie in (0, 1); got {self.level!r}.")
        nodes = node_rows(rows)
        n = len(nodes.ids)
        if n == 1:
            return Graph(nodes.ids, [], [])
        k = None if self.k is None else check_k(self.k, n)
        i, j, p = pair_pvalues(
            nodes, self.test, self.products, self.n_permutations, self.random_state
        )
        alike = ~benjamini_hochberg(p, level)
        if k is not None:
            far = np.full((n, n), np.inf)
            far[i, j] = far[j, i] = np.where(alike, -p, np.inf)
            close = np.zeros((n, n), dtype=bool)
            close[nearest(far, k)] = True
            alike &= close[i, j]
        weight = None if self.weight == "unit" else p[alike]
        graph = Graph(nodes.ids, i[alike], j[alike], weight)
        if self.degree is not None:
            graph = sparsify_graph(graph, self.degree)
        return normalize_weights(graph, self.normalize)


def benjamini_hochberg(p: Array, level: float) -> NDArray[np.bool_]:
    """Which hypotheses are rejected at this false discovery rate, shape of p.

    The largest r with p_(r) <= level r / m; rejected are the r smallest.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.5, 0.02, 0.9]), 0.05).tolist()
    [True, False, True, False]
    """
    order = np.sort(p)
    good = np.flatnonzero(order <= level * np.arange(1, len(p) + 1) / len(p))
    return p <= (order[good[-1]] if good.size else -1.0)


def pair_pvalues(
    nodes: NodeRows, test: str, products: bool, n_permutations: Any, random_state: Any
) -> tuple[Index, Index, Array]:
    """p-values of all pairs i < j."""
    i, j = np.triu_indices(len(nodes.ids), 1)
    few = np.diff(nodes.ptr) < 2
    if few.any():
        raise ValueError(
            f"A test needs at least 2 rows per node; too few at {int(few.sum())} of {len(few)} "
            f"nodes: {describe(nodes.ids[few])}. Drop them, or use a builder with shrinkage=, "
            "such as WassersteinGraph."
        )
    values = nodes.values(True)
    values = values / within_units(nodes, values)
    if products:
        centred = values - values.mean(axis=0)
        d = nodes.X.shape[1]
        pairs = centred[:, :d, None] * centred[:, None, d:]
        values = np.hstack([values, pairs.reshape(len(values), -1)])
    if test in ("mmd", "energy"):
        count = check_count(n_permutations, "n_permutations", low=1)
        return i, j, _by_permutation(nodes, values, i, j, test, count, random_state)
    single = _t_pvalues if test == "t" else _ks_pvalues
    least = np.min([single(nodes, column, i, j) for column in values.T], axis=0)
    return i, j, np.minimum(1.0, values.shape[1] * least)


def _t_pvalues(nodes: NodeRows, column: Array, i: Index, j: Index) -> Array:
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


def _ks_pvalues(nodes: NodeRows, column: Array, i: Index, j: Index) -> Array:
    """Asymptotic p-values of the largest difference of two empirical distribution functions."""
    from nefele._kernels.samples import largest_steps

    count = np.diff(nodes.ptr)
    # the rows lie node by node
    values = column[np.lexsort((column, nodes.owner))]
    apart = largest_steps(values, nodes.ptr, i, j).round(12)
    both = np.maximum(np.round(count[i] * count[j] / (count[i] + count[j])), 1.0)
    # few distinct values, and a slow function
    _, known, place = np.unique(2 * both + apart, return_index=True, return_inverse=True)
    return np.clip(kstwo.sf(apart[known], both[known]), 0.0, 1.0)[place]


def _by_permutation(
    nodes: NodeRows, values: Array, i: Index, j: Index, test: str, count: int, random_state: Any
) -> Array:
    """Permutation p-values of a^T K a, a = 1 / m_i on one sample and -1 / m_j on the other.

    K is a Gaussian kernel of median width (squared mean discrepancy), or minus the distance
    (energy distance). Pairs of equal sizes share their permutations and run side by side.
    """
    rng = np.random.default_rng(random_state)
    unit = values.std(axis=0)
    points = values / np.where(unit > 0, unit, 1.0)
    size = np.diff(nodes.ptr)
    width = _median_distance(points, rng) if test == "mmd" else 1.0
    p = np.empty(len(i))
    kinds, kind = np.unique(np.stack([size[i], size[j]]), axis=1, return_inverse=True)
    for number, (a, b) in enumerate(kinds.T):
        chosen = np.flatnonzero(kind.ravel() == number)
        signs = np.concatenate([np.full(a, 1 / a), np.full(b, -1 / b)])
        draws = rng.permuted(np.tile(signs, (count, 1)), axis=1)
        signs = np.vstack([signs, draws])
        step = max(1, _BLOCK // ((a + b) * max(a + b, count + 1, points.shape[1])))
        for start in range(0, len(chosen), step):
            part = chosen[start : start + step]
            index = np.hstack(
                [nodes.ptr[i[part], None] + np.arange(a), nodes.ptr[j[part], None] + np.arange(b)]
            )
            kernel = _kernel(points[index], test, width)
            found = ((signs @ kernel) * signs).sum(axis=2)
            more = (found[:, 1:] >= found[:, :1] * (1 - 1e-12)).sum(axis=1)
            p[part] = (1 + more) / (count + 1)
    return p


def _kernel(points: Array, test: str, width: float) -> Array:
    square = (points**2).sum(axis=2)
    apart = square[:, :, None] + square[:, None, :] - 2 * points @ points.swapaxes(1, 2)
    apart = np.maximum(apart, 0.0)
    return np.exp(-apart / (2 * width**2)) if test == "mmd" else -np.sqrt(apart)


def _median_distance(points: Array, rng: np.random.Generator) -> float:
    some = points[rng.choice(len(points), min(len(points), 500), replace=False)]
    found = float(np.median(cdist(some, some)[np.triu_indices(len(some), 1)]))
    return found if found > 0 else 1.0
