"""A part of a network: some nodes with their data, and the edges at them.

A whole problem is one part, a company owns its twelve shops, a hospital one node. The flow of an
edge between two parts is kept at both ends and updated from the same numbers by the same formula,
so that the two copies stay equal bit for bit.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, type_name
from nefele.graph import Graph
from nefele.losses.base import BoundLoss
from nefele.problem import Problem
from nefele.program import Exchange, Heard, Program
from nefele.solvers.primal_dual.fused import Fused, is_uniform

Index = NDArray[np.int64]


class Part:
    """Own nodes, the neighbours' nodes that they see, and all edges at own nodes.

    Nodes and edges keep the order of the whole graph, so that sums are those of one process.

    Parameters
    ----------
    name : hashable
    problem : Problem
        The whole; nothing of it is kept but what concerns this part.
    nodes : int array
        Positions of the own nodes, ascending.
    owner : int array of shape (n_nodes,)
        Number of the part of each node.
    names : list
        Names of all parts.
    rank : int array of shape (n_nodes,), optional
        Place of each node in an order of all nodes in which neighbours are near.

    Attributes
    ----------
    nodes, edges : int arrays
        Positions of the own nodes, and of the edges at them, in the whole graph.
    ends : int array of shape (2, n_edges)
        Positions of the edges' ends in the whole graph.
    ids : array
        Ids of the own nodes.
    graph : Graph
        Own nodes and those seen, with the edges at own nodes.
    own : int array
        Positions of the own nodes in `graph`.
    whole : bool
        Whether all nodes are its own.
    steady : bool
        Whether steps must be those of one process to the last bit; it takes larger sums.
    compiled, uniform : bool
        Whether the whole problem is one for compiled loops, and whether all its lam A_e are equal.
    order : int array or None
        The nodes of `graph` in an order in which neighbours are near, for compiled loops.
    loss : BoundLoss
        Of the own nodes.
    scale : array
        lam A_e of each edge.
    counted : bool array
        Edges that this part enters into sums over edges: those whose head it owns.
    parts, n_parts : int array, int
        Component of the whole graph that each node is in, and how many there are.
    says, hears : dicts of neighbour to int array
        Own nodes that a neighbouring part sees, and nodes of it that are seen here.
    w, u : arrays of shapes (n_own, d) and (n_edges, d)
        Where the algorithm is.
    w1, u1 : arrays
        The same before over-relaxation.
    rounds : int
        Rounds done.

    Examples
    --------
    >>> from nefele import LocalData, Problem
    >>> from nefele.graphs import chain
    >>> data = LocalData.from_list([([[1.0]], [float(i)]) for i in range(3)])
    >>> first = split(Problem(chain(3), data, lam=1.0))[0]
    >>> first.graph.n_nodes, first.own.tolist(), first.loss.n_nodes
    (2, [0], 1)
    """

    def __init__(
        self,
        name: Any,
        problem: Problem,
        nodes: Index,
        owner: Index,
        names: list[Any],
        rank: Index | None = None,
    ) -> None:
        whole = problem.graph
        mine = np.zeros(whole.n_nodes, dtype=bool)
        mine[nodes] = True
        edges = np.flatnonzero(mine[whole.head] | mine[whole.tail])
        head, tail = whole.head[edges], whole.tail[edges]
        local = np.union1d(nodes, np.concatenate([head, tail]))
        self.name, self.nodes, self.edges = name, nodes, edges
        self.ends, self.ids = np.stack([head, tail]), whole.ids[nodes]
        self.graph = Graph(
            whole.ids[local],
            np.searchsorted(local, head),
            np.searchsorted(local, tail),
            whole.weight[edges],
        )
        self.own = np.searchsorted(local, nodes)
        self.counted, self.steady = mine[head], False
        self.compiled, self.uniform = Fused.fits(problem), is_uniform(problem.scale)
        self.order = None if rank is None else np.argsort(rank[local])
        self.whole = len(nodes) == whole.n_nodes
        self.loss: BoundLoss = problem.loss if self.whole else problem.loss.restrict(nodes)
        self.penalty, self.lam, self.d = problem.penalty.at(edges), problem.lam, problem.d
        self.scale, self.coupled = problem.scale[edges], problem.coupled
        self.parts, self.n_parts = problem.parts[local], problem.n_parts
        self.says, self.hears = sight(whole, mine, local, self.own, owner, names)
        self._begin()

    def __getstate__(self) -> dict[str, Any]:
        """A part that has not begun goes without its zeros."""
        state = dict(self.__dict__)
        if not (self.rounds or self.w.any() or self.u.any()):
            for name in ("w", "u", "w1", "u1"):
                del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "u" not in state:
            self._begin()

    def _begin(self) -> None:
        """At zero."""
        zero = np.zeros((len(self.nodes), self.d)), np.zeros((len(self.edges), self.d))
        self.w, self.u = self.w1, self.u1 = zero
        self.rounds = 0

    def with_lam(self, lam: float) -> Part:
        """The same part of the problem with another lam > 0, where it stands; losses are shared.

        Parameters
        ----------
        lam : float
        """
        if not (lam > 0 and self.lam > 0):
            raise ValueError(f"lam must be > 0, before and after; got {self.lam!r} and {lam!r}.")
        part = copy.copy(self)
        part.lam, part.scale = lam, lam * self.graph.weight
        return part

    def fresh(self) -> Part:
        """The same part at zero, for another solve; losses are shared."""
        part = copy.copy(self)
        part._begin()
        return part

    def placed(self, rows: Array) -> Array:
        """Rows of the own nodes in the order of `graph`, zero elsewhere.

        Parameters
        ----------
        rows : array of shape (n_own, ...)
            Of the own nodes.
        """
        return self.together(rows, {})

    def seen(self, rows: Array, content: str) -> Program[Array]:
        """Rows of the own nodes, with those of the neighbours' nodes, shape (n_local, ...).

        Parameters
        ----------
        rows : array of shape (n_own, ...)
            Of the own nodes.
        content : str
            What they are, for the books of messages.
        """
        heard: Heard = yield Exchange(content, {at: rows[i] for at, i in self.says.items()})
        return self.together(rows, heard.rows)

    def fill(self, rows: Array) -> Program[None]:
        """Bring the neighbours' rows of an array of shape (n_local, ...) up to date.

        Parameters
        ----------
        rows : array of shape (n_local, ...)
        """
        says = {at: rows[self.own[i]] for at, i in self.says.items()}
        heard: Heard = yield Exchange("correction", says)
        for neighbour, theirs in heard.rows.items():
            rows[self.hears[neighbour]] = theirs

    def together(self, rows: Array, heard: dict[Any, Array]) -> Array:
        """Own rows and heard ones in the order of `graph`; zero where nothing was heard.

        Parameters
        ----------
        rows : array of shape (n_own, ...)
            Of the own nodes.
        heard : dict of arrays
            By the names of the neighbours.
        """
        out = np.zeros((self.graph.n_nodes, *rows.shape[1:]))
        out[self.own] = rows
        for neighbour, theirs in heard.items():
            out[self.hears[neighbour]] = theirs
        return out

    def outflow(self, u: Array) -> Array:
        """(D^T u)_i at the own nodes.

        Parameters
        ----------
        u : array of shape (n_edges, d)
            Flow over the edges of the part.
        """
        return self.graph.div(u)[self.own]

    def done(self, w: Array, u: Array, w1: Array, u1: Array) -> None:
        """A round ends here.

        Parameters
        ----------
        w, u, w1, u1 : arrays
            Parameters and flow to go on with, and both without over-relaxation.
        """
        self.w, self.u, self.w1, self.u1 = w, u, w1, u1
        self.rounds += 1


def sight(
    whole: Graph,
    mine: NDArray[np.bool_],
    local: Index,
    own: Index,
    owner: Index,
    names: list[Any],
) -> tuple[dict[Any, Index], dict[Any, Index]]:
    """Who sees which of the own nodes, and whose nodes are seen here, by neighbouring part."""
    cut = mine[whole.head] != mine[whole.tail]
    head, tail = whole.head[cut], whole.tail[cut]
    here, there = np.where(mine[head], head, tail), np.where(mine[head], tail, head)
    says, hears = {}, {}
    for number in dict.fromkeys(owner[there].tolist()):
        theirs = owner[there] == number
        at = np.searchsorted(local, np.unique(here[theirs]))
        says[names[number]] = np.searchsorted(own, at)
        hears[names[number]] = np.searchsorted(local, np.unique(there[theirs]))
    return says, hears


def split(problem: Problem, parts: Any = None) -> list[Part]:
    """The parts of a problem, in the order of their first nodes.

    Parameters
    ----------
    problem : Problem
    parts : dict of node id to name, or one name per node in the order of `graph.ids`, optional
        The part that each node belongs to; default: every node is one, with its id as name.

    Examples
    --------
    >>> from nefele import LocalData, Problem
    >>> from nefele.graphs import chain
    >>> data = LocalData.from_list([([[1.0]], [float(i)]) for i in range(4)])
    >>> left, right = split(Problem(chain(4), data, lam=1.0), ["l", "l", "r", "r"])
    >>> left.name, left.nodes.tolist(), left.says["r"].tolist(), left.hears["r"].tolist()
    ('l', [0, 1], [1], [2])
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem; got {type_name(problem)}.")
    problem.graph.check_plain("A network of parts")
    of_node = _named(problem.graph.ids.tolist(), parts)
    number = {name: k for k, name in enumerate(dict.fromkeys(of_node))}
    owner, names = np.array([number[name] for name in of_node], dtype=np.int64), list(number)
    return [
        Part(name, problem, np.flatnonzero(owner == k), owner, names) for name, k in number.items()
    ]


def _named(ids: list[Any], parts: Any) -> list[Any]:
    """The name of each node's part."""
    if parts is None:
        return ids
    if hasattr(parts, "items"):
        by_id = dict(parts.items())
        lost = [i for i in ids if i not in by_id]
        if lost:
            raise ValueError(f"parts must name the part of every node; {lost[0]!r} has none.")
        names = [by_id[i] for i in ids]
    elif isinstance(parts, Iterable) and not isinstance(parts, str):
        names = list(parts)
    else:
        raise ValueError(f"parts must be a dict or one name per node; got {type_name(parts)}.")
    if len(names) != len(ids):
        raise ValueError(f"parts must name the part of {len(ids)} nodes; got {len(names)}.")
    bad = [name for name in names if name is None or name != name or not isinstance(name, Hashable)]
    if bad:
        raise ValueError(f"Parts must have names such as strings or numbers; got {bad[0]!r}.")
    return names


def join(problem: Problem, parts: list[Part]) -> tuple[Array, Array]:
    """W and u of the whole, from the last rounds of its parts.

    Parameters
    ----------
    problem : Problem
        The whole.
    parts : list of Part
        As of `split`, all of them.

    Examples
    --------
    >>> from nefele import LocalData, Problem
    >>> from nefele.graphs import chain
    >>> data = LocalData.from_list([([[1.0]], [float(i)]) for i in range(3)])
    >>> problem = Problem(chain(3), data, lam=1.0)
    >>> w, u = join(problem, split(problem))
    >>> w.shape, u.shape
    ((3, 1), (2, 1))
    """
    there = np.concatenate([part.nodes for part in parts] or [np.zeros(0, dtype=np.int64)])
    if not np.array_equal(np.sort(there), np.arange(problem.graph.n_nodes)):
        raise ValueError("parts must be all the parts of this problem: each node in one of them.")
    w = np.zeros((problem.graph.n_nodes, problem.d))
    u = np.zeros((problem.graph.n_edges, problem.d))
    for part in parts:
        w[part.nodes] = part.w1
        u[part.edges[part.counted]] = part.u1[part.counted]
    return w, u
