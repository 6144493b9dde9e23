"""What nodes release of their rows, noisy moments of each fold, and the rows that stand for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.estimators.design import Rows
from nefele.privacy import Privacy
from nefele.privacy.bounds import Box
from nefele.privacy.statistics import deviation, drawn_together, release, repaired

Index = NDArray[np.int64]
Split = tuple[Index, Index]


@dataclass(frozen=True, eq=False)
class Released:
    """Noisy moments of each node and fold, and the rows that stand for them.

    Attributes
    ----------
    names : array of shape (n_cells,)
        Node id of each.
    fold, count : int arrays of shape (n_cells,)
    noise : array of shape (n_cells, d + 2, d + 2)
    box : Box
    spread : array of shape (n_cells,), optional
        Deviation of the noise; with it the moments of all nodes are drawn to their mean.
    """

    names: NDArray[Any]
    fold: Index
    count: Index
    noise: Array
    box: Box
    spread: Array | None = None

    def rows(self, cells: NDArray[np.bool_], *, judged: bool = False) -> Rows:
        """Rows with the moments of these cells, those of a node taken together.

        What others are `judged` by stays as it was released.
        """
        chosen = np.flatnonzero(cells)
        names = self.names[chosen]
        _, first = np.unique(names, return_index=True)
        order = np.sort(first)
        groups = [chosen[names == names[k]] for k in order.tolist()]
        share = [self.count[own] / self.count[own].sum() for own in groups]
        noise = np.stack(
            [np.tensordot(s, self.noise[own], 1) for s, own in zip(share, groups, strict=True)]
        )
        if self.spread is not None and not judged:
            pairs = zip(share, groups, strict=True)
            spread = np.array([np.linalg.norm(s * self.spread[own]) for s, own in pairs])
            noise = drawn_together(noise, spread)
        parts = [
            repaired(mean, self.box, int(self.count[own].sum())).rows_alike()
            for mean, own in zip(noise, groups, strict=True)
        ]
        X, y, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Rows(X, y, np.repeat(names[order], len(parts[0][1])), weight)

    def folds(self) -> tuple[Rows, list[Split]]:
        """Rows for all training and held-out parts, and which of them each fold has."""
        bank: Rows | None = None
        splits = []
        for k in np.unique(self.fold).tolist():
            at = 0 if bank is None else len(bank.y)
            train, held = self.rows(self.fold != k), self.rows(self.fold == k, judged=True)
            both = train.then(held)
            bank = both if bank is None else bank.then(both)
            here = at + np.arange(len(both.y))
            splits.append((here[: len(train.y)], here[len(train.y) :]))
        assert bank is not None
        return bank, splits


def times(privacy: Privacy, rows: Rows, fold: Index) -> int:
    """How often one unit is told of: a record stands in one fold, a node in several."""
    if privacy.unit == "record":
        return 1
    _, place = np.unique(rows.node_ids, return_inverse=True)
    cells = np.unique(np.column_stack([place, fold]), axis=0)
    return int(np.bincount(cells[:, 0]).max())


def release_cells(
    privacy: Privacy, box: Box, rows: Rows, fold: Index, multiplier: float
) -> Released:
    """What leaves the nodes: noisy moments of each node and fold; see `times` for the cost."""
    names, place = np.unique(rows.node_ids, return_inverse=True)
    cells = np.unique(np.column_stack([place, fold]), axis=0)
    noise, count = [], []
    for i, k in cells.tolist():
        own = (place == i) & (fold == k)
        terms = (box, multiplier, privacy.unit, privacy.source(i, k + 1))
        noise.append(release(rows.X[own], rows.y[own], *terms))
        count.append(int(own.sum()))
    spread = np.array([deviation(multiplier, m, privacy.unit) for m in count])
    parts = (names[cells[:, 0]], cells[:, 1], np.array(count), np.stack(noise))
    return Released(*parts, box, spread)
