"""Two-sample tests of all pairs of nodes; who is not found to differ is joined."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count, check_flag, check_name, check_number
from nefele._ids import describe
from nefele.graph import Graph, Index
from nefele.graph_learning._columns import ks_pvalues, t_pvalues
from nefele.graph_learning._finish import Finished
from nefele.graph_learning._permutations import permutation_pvalues
from nefele.graph_learning._rows import NodeRows, node_rows, tell_constant, within_units
from nefele.graph_learning.builders import TrainingRows
from nefele.graph_learning.refine import check_k, nearest

_TESTS = ("t", "ks", "mmd", "energy")


@dataclass(eq=False, repr=False)
class TestGraph(Finished):
    """Join nodes unless a two-sample test finds that their rows differ.

    Each pair of nodes is tested; Benjamini-Hochberg over all pairs keeps the expected share of
    wrong ones among the pairs found different at `level`. All other pairs are edges.

    Parameters
    ----------
    test : {"t", "ks", "mmd", "energy"}
        "t": Welch's t-test, "ks": Kolmogorov-Smirnov (exact up to 50 rows against 50), both column
        by column with Bonferroni's correction over the columns. "mmd" (Gaussian kernel) and
        "energy": one test for all columns together, by permutation of the rows of a pair.
    level : float in (0, 1)
        False discovery rate. A larger one leaves fewer edges.
    products : bool
        Whether the products of each feature and target are columns as well: their means differ
        when the relation between the two does.
    n_permutations : int
        Of "mmd" and "energy", for every pair. Pairs near the least p-value that these can give,
        1 / (n_permutations + 1), get more, up to what `level` needs to tell few pairs apart from
        many (see the notes).
    k : int, optional
        Keep only the k pairs of largest p-value at each node.
    weight : {"unit", "pvalue"}
    degree, connect, normalize
        See `graph_from_discrepancy`; short are edges of a large p-value. Links that connect get
        the least weight there is.
    random_state : int
        Of the permutations.

    Notes
    -----
    Rows of weight zero are left out; other weights play no part in the tests. A pair with few
    rows is rarely found different: more rows make this graph sparser.

    With a fixed number of permutations Benjamini-Hochberg could not reject one pair of a thousand.
    So pairs with fewer than 4 draws as large as the observed value get twice as many draws, again
    and again (Besag and Clifford 1991), until all that are left are rejected, up to a million
    draws of a pair, and in all to as many as at the start, or 2 million, in one round.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 1)) + np.repeat([0.0, 0.0, 3.0], 20)[:, None]
    >>> rows = TrainingRows(X, X, np.repeat(["a", "b", "c"], 20), np.ones(60))
    >>> TestGraph("t").fit_graph(rows).neighbors("a")
    ['b']
    """

    __test__ = False  # no test case of pytest, in spite of its name

    test: str = "t"
    level: float = 0.05
    _: KW_ONLY
    products: bool = True
    n_permutations: int = 199
    k: int | None = None
    weight: str = "unit"
    random_state: int = 0

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph of the pairs not found to differ, see the class.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        check_name(self.test, _TESTS, "test")
        check_name(self.weight, ("unit", "pvalue"), "weight")
        level = check_number(self.level, "level", low=0.0, strict=True)
        if level >= 1:
            raise ValueError(f"level must lie in (0, 1); got {self.level!r}.")
        self._check_finish()
        nodes = node_rows(rows)
        n = len(nodes.ids)
        if n == 1:
            return Graph(nodes.ids, [], [])
        tell_constant(rows)
        k = None if self.k is None else check_k(self.k, n)
        i, j, p = pair_pvalues(
            nodes, self.test, self.products, self.n_permutations, self.random_state, level
        )
        alike = ~benjamini_hochberg(p, level)
        far = np.zeros((n, n))
        far[i, j] = far[j, i] = 1.0 - p
        if k is not None:
            open_ = np.full((n, n), np.inf)
            open_[i[alike], j[alike]] = open_[j[alike], i[alike]] = 1.0 - p[alike]
            close = np.zeros((n, n), dtype=bool)
            close[nearest(open_, k)] = True
            alike &= close[i, j]
        weight = None if self.weight == "unit" else p[alike]
        return self._finish(Graph(nodes.ids, i[alike], j[alike], weight), far)


def benjamini_hochberg(p: Array, level: float) -> NDArray[np.bool_]:
    """Which hypotheses are rejected at this false discovery rate, shape of p.

    Examples
    --------
    >>> benjamini_hochberg(np.array([0.01, 0.5, 0.02, 0.9]), 0.05).tolist()
    [True, False, True, False]
    """
    from scipy.stats import false_discovery_control

    return np.asarray(false_discovery_control(p) <= level)


def pair_pvalues(
    nodes: NodeRows,
    test: str,
    products: bool,
    n_permutations: Any,
    random_state: Any,
    level: float = 0.05,
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
    if check_flag(products, "products"):
        centred = values - values.mean(axis=0)
        d = nodes.X.shape[1]
        pairs = centred[:, :d, None] * centred[:, None, d:]
        values = np.hstack([values, pairs.reshape(len(values), -1)])
    if test in ("mmd", "energy"):
        count = check_count(n_permutations, "n_permutations", low=1)
        p = permutation_pvalues(nodes, values, i, j, test, count, level, random_state)
        return i, j, p
    if test == "ks":
        least = ks_pvalues(nodes, values, i, j)
    else:
        least = np.min([t_pvalues(nodes, column, i, j) for column in values.T], axis=0)
    return i, j, np.minimum(1.0, values.shape[1] * least)
