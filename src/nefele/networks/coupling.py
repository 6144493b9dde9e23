"""Which parameters are coupled, and the arithmetic of edges on tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nefele._checks import Array, check_name, type_name
from nefele._torch.base import Tensor, torch
from nefele.graph import Graph
from nefele.networks.stack import Stack
from nefele.penalties import Penalty
from nefele.solvers.updates import dual

WHAT = ("all", "body", "head")
_AT_ONCE = 2**18  # numbers that are worked on at once: they stay in the cache


def is_coupled(couple: Any, names: Sequence[str]) -> list[bool]:
    """For each parameter, by name, whether the graph couples it.

    "head" is the last layer that has parameters, "body" all others; a list has the beginnings of
    names, such as "0" or "encoder.layers.1"; a function takes a name.

    Examples
    --------
    >>> is_coupled("body", ["0.weight", "0.bias", "2.weight", "2.bias"])
    [True, True, False, False]
    >>> is_coupled(["2"], ["0.weight", "2.weight", "20.weight"])
    [False, True, False]
    """
    if callable(couple):
        return [_flag(couple(name), name) for name in names]
    if isinstance(couple, str):
        check_name(couple, WHAT, "couple")
        if couple == "all":
            return [True] * len(names)
        last = names[-1].rpartition(".")[0]
        head = [name.rpartition(".")[0] == last for name in names]
        if all(head):
            raise ValueError(
                f'couple="{couple}" needs two layers with parameters; the network has one. Use '
                '"all", or alpha=0 for personal networks.'
            )
        return head if couple == "head" else [not one for one in head]
    if not isinstance(couple, list | tuple) or not all(isinstance(one, str) for one in couple):
        raise ValueError(
            'couple must be "all", "body", "head", a list of beginnings of parameter names, or a '
            f"function of a name; got {type_name(couple)}."
        )
    for prefix in couple:
        if not any(_begins(name, prefix) for name in names):
            raise ValueError(
                f"couple names {prefix!r}, with which no parameter begins. Parameters: "
                f"{', '.join(names)}."
            )
    return [any(_begins(name, prefix) for prefix in couple) for name in names]


def _begins(name: str, prefix: str) -> bool:
    return f"{name}.".startswith(prefix if prefix.endswith(".") else f"{prefix}.")


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"couple must give True or False for {name!r}; got {type_name(value)}.")
    return bool(value)


class Columns:
    """The coupled ones among the P parameters."""

    def __init__(self, on: NDArray[np.bool_]) -> None:
        self.on = on
        self.count = int(on.sum())
        self.everything = bool(on.all())
        runs = np.flatnonzero(np.diff(np.concatenate([[0], on.astype(np.int8), [0]])))
        self._slice = slice(int(runs[0]), int(runs[1])) if len(runs) == 2 else None
        self._at = torch.from_numpy(np.flatnonzero(on))

    @classmethod
    def of(cls, couple: Any, stack: Stack) -> Columns:
        """Those that `couple` names."""
        flags = is_coupled(couple, stack.names)
        return cls(np.repeat(np.array(flags, dtype=bool), stack.sizes))

    @property
    def index(self) -> slice | Tensor:
        """For the last axis of a tensor."""
        return self._slice if self._slice is not None else self._at

    @property
    def is_view(self) -> bool:
        """Whether `take` gives a view."""
        return self._slice is not None

    def take(self, w: Tensor) -> Tensor:
        """The coupled columns; a view where that is possible."""
        return w[..., self.index]

    def blocks(self, height: int) -> list[slice | Tensor]:
        """The columns piece by piece, so that `height` rows of a piece stay in the cache."""
        size = max(256, _AT_ONCE // max(height, 1))
        if self._slice is None:
            return list(self._at.split(size))
        ends = range(self._slice.start, self._slice.stop, size)
        return [slice(s, min(s + size, self._slice.stop)) for s in ends]


class Edges:
    """The edges of a graph: differences, sums of flows at nodes and dual updates of tensors.

    Sums at a node go by the order of the edges, whoever else is in the graph.
    """

    def __init__(self, graph: Graph, penalty: Penalty, scale: Array, own: Any = None) -> None:
        self.graph, self.penalty, self.scale = graph, penalty, scale
        self.head, self.tail = torch.tensor(graph.head), torch.tensor(graph.tail)
        matrix = sparse.csr_array(graph.incidence_t)
        matrix.sort_indices()
        self._sums = matrix if own is None else matrix[own]

    def outflow(self, u: Tensor) -> Tensor:
        """(D^T u)_i: flows that leave each node minus those that reach it."""
        values = u.numpy()
        return torch.from_numpy(np.asarray(self._sums.astype(values.dtype) @ values))

    def pieces(self, width: int) -> list[slice]:
        """Edges that are worked on at once, so that memory stays bounded."""
        size = max(1, _AT_ONCE // max(width, 1))
        return [slice(s, s + size) for s in range(0, self.graph.n_edges, size)]

    def turn(self, u: Tensor, said: Tensor, sigma: Array) -> None:
        """u+ = DU(u + sigma D said), in place (NFL, Eq. (33))."""
        flow = u.numpy()
        scale, sigma = self.scale.astype(flow.dtype), sigma.astype(flow.dtype)
        for part in self.pieces(u.shape[1]):
            diff = self._differences(said, part)
            flow[part] = dual(self.penalty, flow[part], diff, scale[part], sigma[part])

    def _differences(self, w: Tensor, part: slice) -> Array:
        """w_i - w_j of some edges."""
        head, tail = self.head[part], self.tail[part]
        if len(head) == 1:  # without copies of long rows
            return (w[int(head)] - w[int(tail)])[None].numpy()
        return (w[head] - w[tail]).numpy()

    def value(self, w: Tensor) -> float:
        """sum_e scale_e phi(w_i - w_j)."""
        total = 0.0
        for part in self.pieces(w.shape[1]):
            diff = self._differences(w, part)
            total += float(self.scale[part] @ self.penalty.value(diff))
        return total
