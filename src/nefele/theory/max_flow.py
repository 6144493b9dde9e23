"""Maximum flows with real capacities, by Dinic's method; SciPy's are for integers only."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from nefele._checks import Array


class MaxFlow:
    """A network of undirected edges on which flows are pushed one after the other.

    What is pushed stays: later flows see the capacities that are left. An edge has the same
    capacity in both directions; one left over that is `negligible` counts as zero, a rounding
    error.

    Examples
    --------
    >>> import numpy as np
    >>> network = MaxFlow(3, [0, 1], [1, 2], np.array([2.0, 0.5]), negligible=1e-12)
    >>> network.push(0, {2}), sorted(network.reached)
    (0.5, [0, 1])
    """

    def __init__(
        self,
        n_nodes: int,
        head: Iterable[int],
        tail: Iterable[int],
        capacity: Array,
        *,
        negligible: float,
    ) -> None:
        # Arc 2e goes from head to tail, arc 2e + 1 back: `arc ^ 1` is the other direction.
        self.to: list[int] = []
        self.room: list[float] = []
        self.arcs: list[list[int]] = [[] for _ in range(n_nodes)]
        self.negligible = negligible
        for i, j, c in zip(head, tail, capacity.tolist(), strict=True):
            self._add(i, j, c, c)
        self.reached: list[int] = []

    def _add(self, i: int, j: int, there: float, back: float) -> None:
        self.arcs[i].append(len(self.to))
        self.arcs[j].append(len(self.to) + 1)
        self.to += [j, i]
        self.room += [there, back]

    def add_source(self, supply: Array) -> int:
        """A new node with an arc of this capacity to each node; returns its number."""
        source = len(self.arcs)
        self.arcs.append([])
        for i, c in enumerate(supply.tolist()):
            if c > 0:
                self._add(source, i, c, 0.0)
        return source

    def push(self, source: int, sinks: set[int], limit: float = float("inf")) -> float:
        """Push as much as possible, at most `limit`, from the source to any of the sinks.

        When the limit was not reached, `reached` is the source's side of a least cut.
        """
        total = 0.0
        while total < limit:
            level = self._levels(source, sinks)
            if level is None:
                break
            total += self._blocking(source, sinks, level, limit - total)
        return total

    def _levels(self, source: int, sinks: set[int]) -> list[int] | None:
        """Distances from the source along arcs with room; None when no sink is reached."""
        level = [-1] * len(self.arcs)
        level[source] = 0
        queue, seen, found = deque([source]), [source], False
        to, room, least = self.to, self.room, self.negligible
        while queue and not found:
            i = queue.popleft()
            for arc in self.arcs[i]:
                j = to[arc]
                if level[j] < 0 and room[arc] > least:
                    level[j] = level[i] + 1
                    seen.append(j)
                    queue.append(j)
                    found = found or j in sinks
        if not found:
            self.reached = seen
            return None
        return level

    def _blocking(self, source: int, sinks: set[int], level: list[int], limit: float) -> float:
        """Augment along shortest paths until none is left, depth first with arcs remembered."""
        to, room, least = self.to, self.room, self.negligible
        next_arc = [0] * len(self.arcs)
        total, i = 0.0, source
        path: list[int] = []
        while True:
            if i in sinks:
                amount = min(min(room[arc] for arc in path), limit - total)
                for arc in path:
                    room[arc] -= amount
                    room[arc ^ 1] += amount
                total += amount
                if total >= limit:
                    return total
                path, i = [], source
                continue
            arcs = self.arcs[i]
            while next_arc[i] < len(arcs):
                arc = arcs[next_arc[i]]
                if room[arc] > least and level[to[arc]] == level[i] + 1:
                    break
                next_arc[i] += 1
            if next_arc[i] < len(arcs):
                path.append(arcs[next_arc[i]])
                i = to[path[-1]]
            elif i == source:
                return total
            else:  # a dead end
                i = to[path.pop() ^ 1]
                next_arc[i] += 1
