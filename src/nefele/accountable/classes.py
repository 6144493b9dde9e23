"""Scores of three classes and more: what is alike in all of them says nothing.

Adding a vector to the parameters of all classes changes no probability. Where no ridge term decides
it, the explained node has classes with mean zero, and the others are moved with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.losses.multinomial import BoundMultinomial
from nefele.problem import Problem

_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Classes:
    """Columns of which a part that is alike in all classes costs nothing.

    Attributes
    ----------
    count : int
        Number of parameter vectors of a node, 1 for numbers and two classes.
    loose : int array
        These columns.
    coupled : bool array of the length of `loose`
        Those that the graph couples; what it does not couple is free at every node.
    """

    count: int
    loose: NDArray[np.int64]
    coupled: NDArray[np.bool_]

    @classmethod
    def of(cls, problem: Problem) -> Classes:
        """Those of a problem; none for numbers and two classes."""
        loss = problem.loss
        if not isinstance(loss, BoundMultinomial):
            return cls(1, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool))
        count, width = loss.n_classes, loss.data.d
        held = (loss.ridge.reshape(-1, count, width) > 0).any(axis=(0, 1))
        free = problem.penalty.personal(problem.d) if problem.coupled else np.eye(problem.d)
        apart = (np.abs(free).sum(axis=1) > 0).reshape(count, width).any(axis=0)
        loose = np.flatnonzero(~held)
        return cls(count, loose, ~apart[loose])

    def curvature(self, H: Array, at: int) -> Array:
        """What holds it, shape of H (n_nodes, p, p): at one node, or at all if not coupled."""
        out = np.zeros_like(H)
        if not len(self.loose):
            return out
        n, p, _ = H.shape
        size = max(float(np.einsum("ijj->", H)) / (n * p), _LEAST)
        blocks = out.reshape(n, self.count, p // self.count, self.count, p // self.count)
        for j, coupled in zip(self.loose, self.coupled, strict=True):
            nodes = slice(at, at + 1) if coupled else slice(None)
            blocks[nodes, :, j, :, j] += size / self.count
        return out

    def told(self, rows: Array) -> Array:
        """Vectors of parameters (n, p) less their mean over the classes in these columns."""
        if not len(self.loose):
            return rows
        blocks = rows.reshape(len(rows), self.count, -1).copy()
        blocks[:, :, self.loose] -= blocks[:, :, self.loose].mean(axis=1, keepdims=True)
        return np.asarray(blocks.reshape(rows.shape))

    def centred(self, w: Array, at: int) -> Array:
        """Models (n_nodes, p) without it."""
        if not len(self.loose):
            return w
        blocks = w.reshape(len(w), self.count, -1).copy()
        for j, coupled in zip(self.loose, self.coupled, strict=True):
            mean = blocks[:, :, j].mean(axis=1, keepdims=True)
            blocks[:, :, j] -= mean[at] if coupled else mean
        return np.asarray(blocks.reshape(w.shape))
