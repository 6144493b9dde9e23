"""The graph of prescribed degrees with the least total discrepancy: a linear programme."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog
from sklearn.base import clone

from nefele._checks import Array, check_count, check_number
from nefele.graph import Graph, Index
from nefele.graph_learning.builders import GraphBuilder, TrainingRows
from nefele.graph_learning.models import LossGraph
from nefele.graph_learning.pairwise import PairwiseGraph
from nefele.graph_learning.refine import nearest, square_matrix

_LEAST = 1e-9  # smaller weights are zeros of the solver


@dataclass(eq=False, repr=False)
class DegreeGraph(GraphBuilder):
    """The graph in which every node has the same weighted degree, nearest pairs joined.

    Minimises sum_{i<j} D_ij A_ij over 0 <= A_ij <= 1 with sum_j A_ij = degree. Unlike the k
    nearest neighbours it has no hubs.

    Parameters
    ----------
    degree : float
        Weighted degree of every node, > 0 and below the number of nodes.
    similarity : PairwiseGraph, optional
        The builder that gives the discrepancy D; default `LossGraph()`.
    n_candidates : int, optional
        Only pairs of which one is among that many nearest of the other take part; doubled while
        there is no solution. Default: all pairs up to 200 nodes, else 4 * degree + 4.

    Examples
    --------
    >>> X = np.tile([0.0, 1.0, 2.0], 4)[:, None]
    >>> y = X * np.repeat([1.0, 1.1, -1.0, -1.1], 3)[:, None]
    >>> rows = TrainingRows(X, y, np.repeat(["a", "b", "c", "d"], 3), np.ones(12))
    >>> graph = DegreeGraph(degree=1).fit_graph(rows)
    >>> graph.neighbors("a"), graph.weighted_degree.tolist()
    (['b'], [1.0, 1.0, 1.0, 1.0])
    """

    degree: float = 3.0
    _: KW_ONLY
    similarity: Any = None
    n_candidates: int | None = None

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph of the linear programme, see the class.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        degree = check_number(self.degree, "degree", low=0.0, strict=True)
        base = LossGraph() if self.similarity is None else self.similarity
        if not isinstance(base, PairwiseGraph):
            raise ValueError(
                f"similarity must be a builder with a discrepancy, such as LossGraph(); got "
                f"{base!r}."
            )
        ids, matrix = clone(base).discrepancy(rows)
        n = len(ids)
        if n == 1:
            return Graph(ids, [], [])
        if self.n_candidates is None:
            most = n - 1 if n <= 200 else int(np.ceil(4 * degree)) + 4
        else:
            most = check_count(self.n_candidates, "n_candidates", low=1)
        head, tail, weight = solve_degrees(matrix, degree, min(most, n - 1))
        return Graph(ids, head, tail, weight)


def solve_degrees(
    discrepancy: Any, degree: float, n_candidates: int | None = None
) -> tuple[Index, Index, Array]:
    """Edges of the least total discrepancy with all weighted degrees equal.

    Parameters
    ----------
    discrepancy : array of shape (n, n)
        Symmetric, >= 0; infinite: no candidate.
    degree : float
        At most n - 1.
    n_candidates : int, optional
        See `DegreeGraph`; default all pairs.

    Returns
    -------
    head, tail, weight : arrays of shape (n_edges,)

    Examples
    --------
    >>> D = np.array([[0, 1, 9.0], [1, 0, 1], [9, 1, 0]])
    >>> solve_degrees(D, 1.0)[2].tolist()
    [0.5, 0.5, 0.5]
    """
    matrix = square_matrix(discrepancy)
    n = len(matrix)
    if degree > n - 1:
        raise ValueError(
            f"degree must be at most the number of other nodes ({n - 1}); got {degree:g}."
        )
    most = n - 1 if n_candidates is None else n_candidates
    while True:
        head, tail = nearest(matrix, most)
        found = _programme(matrix[head, tail], head, tail, n, degree)
        if found is not None:
            break
        if most == n - 1:
            raise ValueError(
                f"No graph has degree {degree:g} at every node: too many pairs have an infinite "
                "discrepancy. Use a smaller degree."
            )
        most = min(2 * most, n - 1)
    on = found > _LEAST
    return head[on], tail[on], found[on]


def _programme(cost: Array, head: Index, tail: Index, n: int, degree: float) -> Array | None:
    """The optimal weights, or None when the degrees cannot be met."""
    edge = np.arange(len(head))
    incidence = sparse.csr_array(
        (np.ones(2 * len(head)), (np.append(head, tail), np.append(edge, edge))),
        shape=(n, len(head)),
    )
    size = float(np.abs(cost).max(initial=0.0)) or 1.0
    found: Any = linprog(
        cost / size, A_eq=incidence, b_eq=np.full(n, degree), bounds=(0.0, 1.0), method="highs"
    )
    if found.status == 2:
        return None
    if found.status != 0:
        raise ValueError(f"The linear programme was not solved: {found.message}")
    weight: NDArray[np.float64] = np.asarray(found.x)
    return weight
