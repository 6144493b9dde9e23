"""One loss per node: parts of the network with different losses, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.losses.base import BoundLoss, DualPoint, Duals
from nefele.losses.escape import Escape, joined

Part = tuple[NDArray[np.int64], BoundLoss]


class BoundMixed(BoundLoss):
    """Losses bound to disjoint sets of nodes that together are all nodes."""

    def __init__(self, n_nodes: int, parts: Sequence[Part]) -> None:
        self.n_nodes, self.parts = n_nodes, list(parts)
        sizes = {part.d for _, part in parts}
        if len(sizes) != 1:
            raise ValueError(f"All nodes must have equally many parameters; got {sorted(sizes)}.")
        self.d = sizes.pop()
        self.smooth = all(part.smooth for _, part in parts)
        self.labelled = self._gather(lambda part, _: part.labelled).astype(bool)

    def _gather(self, ask: Callable[[Any, NDArray[np.int64]], Array]) -> Array:
        first = [(nodes, ask(part, nodes)) for nodes, part in self.parts]
        out = np.zeros((self.n_nodes, *first[0][1].shape[1:]))
        for nodes, values in first:
            out[nodes] = values
        return out

    def value(self, w: Array) -> Array:
        return self._gather(lambda part, nodes: part.value(w[nodes]))

    def grad(self, w: Array) -> Array:
        return self._gather(lambda part, nodes: part.grad(w[nodes]))

    def prox(self, v: Array, step: Array, start: Array | None = None) -> Array:
        first = v if start is None else start
        return self._gather(lambda part, i: part.prox(v[i], step[i], start=first[i]))

    def hess(self, w: Array) -> Array | None:
        if any(part.hess(w[nodes]) is None for nodes, part in self.parts):
            return None
        return self._gather(lambda part, nodes: part.hess(w[nodes]))

    def strong_convexity(self) -> Array:
        return self._gather(lambda part, _: part.strong_convexity())

    def curvature(self) -> Array:
        return self._gather(lambda part, _: part.curvature())

    def minimise(self) -> Array:
        return self._gather(lambda part, _: part.minimise())

    def start(self) -> Array:
        return self._gather(lambda part, _: part.start())

    def forget(self) -> None:
        for _, part in self.parts:
            part.forget()

    def memory(self) -> dict[str, Array]:
        found = enumerate(part.memory() for _, part in self.parts)
        return {f"{i}_{name}": array for i, own in found for name, array in own.items()}

    def recall(self, memory: dict[str, Array]) -> None:
        for i, (_, part) in enumerate(self.parts):
            own = {name: memory[f"{i}_{name}"] for name in part.memory()}
            part.recall(own)

    def escape_nodes(self, nodes: NDArray[np.bool_]) -> Escape:
        return joined([part.escape_nodes(nodes[members]) for members, part in self.parts])

    def bends(self) -> Array:
        return self._gather(lambda part, _: part.bends())

    def held(self, ridge: Array) -> BoundLoss | None:
        parts = [(nodes, part.held(ridge[nodes])) for nodes, part in self.parts]
        # a loss that cannot be held needs not be, unless it is asked for
        kept = [
            (nodes, part if new is None else new)
            for (nodes, part), (_, new) in zip(self.parts, parts, strict=True)
        ]
        if any(new is None and ridge[nodes].any() for nodes, new in parts):
            return None
        return BoundMixed(self.n_nodes, kept)

    def restrict(self, nodes: NDArray[np.int64]) -> BoundLoss:
        parts = []
        for members, part in self.parts:
            inside = np.isin(members, nodes)
            if inside.any():
                places = np.searchsorted(nodes, members[inside])
                parts.append((places, part.restrict(np.flatnonzero(inside))))
        return BoundMixed(len(nodes), parts)

    def dual_point(self, w: Array, target: Array) -> DualPoint | None:
        duals = [(nodes, part.dual_point(w[nodes], target[nodes])) for nodes, part in self.parts]
        if any(dual is None for _, dual in duals):
            return None
        return MixedDual(self, duals)  # type: ignore[arg-type]


class MixedDual(DualPoint):
    """The dual points of the parts."""

    def __init__(
        self, loss: BoundMixed, duals: Sequence[tuple[NDArray[np.int64], DualPoint]]
    ) -> None:
        self.loss, self.duals = loss, list(duals)

    def __copy__(self) -> MixedDual:
        import copy

        return MixedDual(self.loss, [(nodes, copy.copy(dual)) for nodes, dual in self.duals])

    def _gather(self, ask: Callable[[DualPoint, NDArray[np.int64]], Array]) -> Array:
        parts = [(nodes, ask(dual, nodes)) for nodes, dual in self.duals]
        out = np.zeros((self.loss.n_nodes, *parts[0][1].shape[1:]))
        for nodes, values in parts:
            out[nodes] = values
        return out

    def flow(self) -> Array:
        return self._gather(lambda dual, _: dual.flow())

    def size(self) -> Array:
        return self._gather(lambda dual, _: dual.size())

    def metric(self) -> Array:
        return self._gather(lambda dual, _: dual.metric())

    def move(self, x: Array, target: Array) -> None:
        for nodes, dual in self.duals:
            dual.move(x[nodes], target[nodes])

    def settle(self, x: Array) -> None:
        for nodes, dual in self.duals:
            dual.settle(x[nodes])

    def tidy(self) -> None:
        for _, dual in self.duals:
            dual.tidy()

    def adopt(self, duals: Sequence[Duals], w: Array) -> None:
        for pair, (nodes, dual) in zip(duals, self.duals, strict=True):
            dual.adopt([pair], w[nodes])

    def domain_ratio(self) -> Array:
        return self._gather(lambda dual, _: dual.domain_ratio())

    def conjugate(self, theta: Array) -> Array:
        return self._gather(lambda dual, nodes: dual.conjugate(theta[nodes]))
