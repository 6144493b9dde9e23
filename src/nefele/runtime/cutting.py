"""A problem cut into parts that are equally large and have few edges between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nefele._checks import check_count, type_name
from nefele.graph import Graph
from nefele.problem import Problem
from nefele.runtime.optional import need
from nefele.runtime.part import Index, Part
from nefele.solvers.primal_dual.fused import good_order


def cut(problem: Problem, parts: Any) -> list[Part]:
    """The parts of a problem for a solve by parts; their steps are those of one process.

    Parameters
    ----------
    problem : Problem
    parts : int or int array of shape (n_nodes,)
        How many, cut by METIS, or the number of each node's part.

    Returns
    -------
    list of Part
        Numbered from 0 in the order of their first nodes; fewer where METIS leaves some empty.

    Examples
    --------
    >>> from nefele import LocalData, Problem
    >>> from nefele.graphs import chain
    >>> data = LocalData.from_list([([[1.0]], [float(i)]) for i in range(8)])
    >>> [len(part.nodes) for part in cut(Problem(chain(8), data, lam=1.0), parts=2)]
    [4, 4]
    """
    return list(pieces(problem, parts))


def pieces(problem: Problem, parts: Any) -> Iterator[Part]:
    """The same one after the other: whoever packs them need not hold all."""
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem; got {type_name(problem)}.")
    problem.graph.check_plain("A network of parts")
    owner = owners(problem.graph, parts)
    order, rank = good_order(problem.graph), None
    if order is not None:
        rank = np.empty(problem.graph.n_nodes, dtype=np.int64)
        rank[order] = np.arange(problem.graph.n_nodes)
    names = list(range(int(owner.max()) + 1))
    for k in names:
        try:
            part = Part(k, problem, np.flatnonzero(owner == k), owner, names, rank)
        except TypeError as error:
            raise ValueError(
                f"The loss must be one that can be cut into parts; {error} Solve without an engine."
            ) from None
        part.steady = True
        yield part


def owners(graph: Graph, parts: Any) -> Index:
    """The number of each node's part, from 0 in the order of their first nodes."""
    if isinstance(parts, int | np.integer) and not isinstance(parts, bool):
        owner = _metis(graph, check_count(parts, "parts", low=1))
    else:
        owner = np.asarray(parts)
        if owner.shape != (graph.n_nodes,) or owner.dtype.kind not in "iu":
            raise ValueError(
                "parts must be a number of parts, or the number of each node's part, shape "
                f"({graph.n_nodes},); got {type_name(parts)} of shape {owner.shape}."
            )
    _, first, number = np.unique(owner, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[number]


def _metis(graph: Graph, count: int) -> Index:
    """METIS parts of nearly equal numbers of nodes and edges."""
    if count > graph.n_nodes:
        raise ValueError(
            f"parts must be at most the number of nodes, {graph.n_nodes}; got {count}. "
            "A part needs a node."
        )
    if count == 1:
        return np.zeros(graph.n_nodes, dtype=np.int64)
    pymetis = need("pymetis", "parts", "METIS, which cuts graphs into parts")
    near = graph.adjacency
    found = pymetis.part_graph(count, pymetis.CSRAdjacency(near.indptr, near.indices))
    return np.asarray(found[1], dtype=np.int64)
