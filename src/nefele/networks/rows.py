"""The rows of all nodes, as tensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nefele._torch.base import DTYPES, Tensor, tensor, torch
from nefele.data import LocalData


@dataclass(frozen=True, eq=False)
class Padded:
    """Rows of all nodes, padded to equal length m by rows of weight zero.

    X has shape (n_nodes, m, d), y and the weights (n_nodes, m). The weights sum to 1 at each node
    with rows.
    """

    X: Tensor
    y: Tensor
    weight: Tensor


class Source:
    """The rows of all nodes: all of them at once, or a random batch of each node.

    With `labels`, y holds class numbers.
    """

    def __init__(self, data: LocalData, labels: bool, dtype: str) -> None:
        self.X = tensor(data.X, dtype)
        self.y = torch.tensor(data.y.astype(np.int64)) if labels else tensor(data.y, dtype)
        self.first = torch.tensor(data.ptr[:-1])
        self.counts = torch.tensor(np.diff(data.ptr))
        self.share = tensor(data.row_weight, dtype)
        self.zero = torch.zeros((), dtype=DTYPES[dtype])

    def everything(self) -> Padded:
        """All rows."""
        step = torch.arange(max(int(self.counts.max()), 1))
        there = step < self.counts[:, None]
        return self._take(torch.where(there, self.first[:, None] + step, 0), there)

    def batch(self, size: int) -> Padded:
        """Rows of each node drawn with replacement; the mean over draws of L_i is L_i."""
        drawn = torch.rand(len(self.counts), size)
        at = (drawn * self.counts[:, None]).long().clamp(max=self.counts[:, None] - 1)
        there = (self.counts > 0)[:, None].expand(-1, size)
        rows = self._take(torch.where(there, self.first[:, None] + at, 0), there)
        return Padded(rows.X, rows.y, rows.weight * (self.counts[:, None] / size))

    def _take(self, at: Tensor, there: Tensor) -> Padded:
        return Padded(self.X[at], self.y[at], torch.where(there, self.share[at], self.zero))
