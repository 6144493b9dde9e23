"""A penalty of its own for each edge: two kinds of ties in one network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._ids import as_ids, describe
from nefele.graph import Graph
from nefele.penalties.base import Penalty

Index = NDArray[np.int64]


class ByEdge(Penalty):
    """phi_e: one of several penalties for each edge, in the order of the edges of a graph.

    Its conjugate and prox are those of the penalties, edge by edge. A problem takes a dict by
    pairs of node ids as well, see `Problem`.

    Parameters
    ----------
    penalties : sequence of Penalty
        The kinds.
    kind : int array of shape (n_edges,)
        Which of them each edge has.

    Examples
    --------
    >>> from nefele.penalties import L1Norm, SquaredL2
    >>> ByEdge([L1Norm(), SquaredL2()], [0, 1]).value(np.array([[3.0, -4.0], [3.0, -4.0]]))
    array([ 7. , 12.5])
    """

    def __init__(self, penalties: Sequence[Penalty], kind: Any) -> None:
        listed = isinstance(penalties, Sequence) and not isinstance(penalties, str)
        self.penalties, self.kind = tuple(penalties if listed else ()), np.asarray(kind)
        wrong = [p for p in self.penalties if not isinstance(p, Penalty) or p.edges is not None]
        if wrong or not self.penalties:
            raise ValueError(f"penalties must be Penalty objects, at least one; got {penalties!r}.")
        if self.kind.ndim != 1 or self.kind.dtype.kind not in "iu":
            raise ValueError(f"kind must be one integer per edge; got {kind!r}.")
        if len(self.kind) and not 0 <= self.kind.min() <= self.kind.max() < len(self.penalties):
            raise ValueError(f"kind must be in 0..{len(self.penalties) - 1}; got {kind!r}.")
        self.groups = [
            (penalty, np.flatnonzero(self.kind == k)) for k, penalty in enumerate(self.penalties)
        ]

    def __repr__(self) -> str:
        parts = (f"{penalty!r}: {len(on)} edges" for penalty, on in self.groups)
        return f"ByEdge({', '.join(parts)})"

    @property
    def edges(self) -> int:  # type: ignore[override]
        """Number of edges that it is for."""
        return len(self.kind)

    @property
    def whole(self) -> bool:  # type: ignore[override]
        """As all of the penalties."""
        return all(penalty.whole for penalty in self.penalties)

    @property
    def twice(self) -> bool:  # type: ignore[override]
        """Only without kinks: reduced solves take one kind of norm."""
        return all(penalty.twice and not penalty.is_norm for penalty in self.penalties)

    def at(self, edges: Any) -> Penalty:
        return ByEdge(self.penalties, self.kind[edges])

    def personal(self, d: int) -> Array:
        """What no edge couples: the kernel of the sum of projections on what they couple.

        Parameters
        ----------
        d : int
            Number of parameters of a node.
        """
        free = [penalty.personal(d) for penalty, on in self.groups if len(on)]
        coupled = sum((np.eye(d) - basis @ basis.T for basis in free), np.zeros((d, d)))
        values, vectors = np.linalg.eigh(coupled)
        return np.asarray(vectors[:, values < 1e-9])

    def value(self, v: Array) -> Array:
        return self._gather(lambda penalty, on: penalty.value(v[on]), v, ())

    def prox(self, v: Array, step: Array) -> Array:
        return self._gather(lambda penalty, on: penalty.prox(v[on], step[on]), v)

    def prox_conjugate(self, v: Array, scale: Array, step: Array) -> Array:
        return self._gather(
            lambda penalty, on: penalty.prox_conjugate(v[on], scale[on], step[on]), v
        )

    def conjugate(self, u: Array, scale: Array) -> Array:
        return self._gather(lambda penalty, on: penalty.conjugate(u[on], scale[on]), u, ())

    def domain_ratio(self, u: Array, scale: Array) -> Array:
        return self._gather(lambda penalty, on: penalty.domain_ratio(u[on], scale[on]), u, ())

    def give(self, u: Array, scale: Array, unit: float, least: float) -> Array:
        return self._gather(lambda penalty, on: penalty.give(u[on], scale[on], unit, least), u)

    def mix(self, v: Array) -> Array:
        return self._gather(lambda penalty, on: penalty.mix(v[on]), v)

    def within(self, u: Array) -> Array:
        return self._gather(lambda penalty, on: penalty.within(u[on]), u)

    @property
    def mixing(self) -> dict[str, Any]:
        return {"mix": self.mix} if any(penalty.mixing for penalty in self.penalties) else {}

    def gradient(self, v: Array) -> Array:
        if not self.twice:
            return super().gradient(v)
        return self._gather(lambda penalty, on: penalty.gradient(v[on]), v)

    def curvature(self, v: Array) -> Array:
        if not self.twice:
            return super().curvature(v)
        d = v.shape[1]
        return self._gather(lambda penalty, on: penalty.curvature(v[on]), v, (d, d))

    def probe(self, d: int) -> None:
        for penalty in self.penalties:
            penalty.probe(d)

    def check_dimension(self, d: int) -> None:
        for penalty in self.penalties:
            penalty.check_dimension(d)

    @classmethod
    def of(cls, named: dict[Any, Penalty], graph: Graph) -> ByEdge:
        """The penalties of a dict by pairs of node ids; the key None is for all other edges.

        Parameters
        ----------
        named : dict of Penalty
            By pairs of node ids in either order, and perhaps None.
        graph : Graph

        Examples
        --------
        >>> from nefele import Graph
        >>> from nefele.penalties import L1Norm, L2Norm
        >>> graph = Graph.from_edges([("a", "b"), ("b", "c")])
        >>> ByEdge.of({("c", "b"): L1Norm(), None: L2Norm()}, graph).kind.tolist()
        [0, 1]
        """
        rest = named.get(None)
        pairs = [pair for pair in named if pair is not None]
        for pair in pairs:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ValueError(f"penalty must name edges by pairs of node ids; got {pair!r}.")
        kinds: list[Penalty] = [] if rest is None else [rest]
        kind = np.full(graph.n_edges, -1 if rest is None else 0)
        ends = np.array([graph.positions(as_ids(list(pair))) for pair in pairs]).reshape(-1, 2)
        place = {
            pair: e for e, pair in enumerate(map(tuple, np.c_[graph.head, graph.tail].tolist()))
        }
        seen: set[int] = set()
        for pair, two in zip(pairs, ends.tolist(), strict=True):
            e = place.get((min(two), max(two)))
            if e is None:
                raise ValueError(
                    f"penalty names the edge {pair!r}, which the graph does not have. "
                    f"Ids: {describe(graph.ids)}."
                )
            if e in seen:
                raise ValueError(f"penalty names the edge {pair!r} in both orders. Drop one.")
            seen.add(e)
            slot = next(
                (k for k, other in enumerate(kinds) if _same(other, named[pair])), len(kinds)
            )
            if slot == len(kinds):
                kinds.append(named[pair])
            kind[e] = slot
        if (kind < 0).any():
            missing = graph.describe_edge(int(np.argmin(kind)))
            raise ValueError(
                f"penalty must name every edge; {missing} is missing. Give the others one by "
                "the key None."
            )
        return cls(kinds, kind)

    def _gather(
        self,
        ask: Callable[[Penalty, Index], Array],
        v: Array,
        shape: tuple[int, ...] | None = None,
    ) -> Array:
        if len(v) != self.edges:
            raise ValueError(f"A penalty by edge is for {self.edges} edges; got {len(v)}.")
        out = np.zeros((len(v), *(v.shape[1:] if shape is None else shape)))
        for penalty, on in self.groups:
            if len(on):
                out[on] = ask(penalty, on)
        return out


def _same(a: Penalty, b: Penalty) -> bool:
    return a is b or (type(a) is type(b) and a == b)
