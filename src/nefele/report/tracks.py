"""Clusters followed along the path, so that a cluster keeps its number and its colour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

COLOURS = 10  # clusters with a colour of their own at one alpha
SMALL, SINGLE = 254, 255  # marks of a cluster without a colour, and of a node on its own


@dataclass(frozen=True, eq=False)
class Tracks:
    """Clusters with names that last along the path, at K points for n nodes.

    `number` is that of each node's cluster, from 1, the most prominent first; 0 for a node on its
    own. `mark` is its colour, 0 to 9, or SMALL, or SINGLE. `counts` has the number of clusters at
    each point, single nodes included.
    """

    number: Ints
    mark: Ints
    counts: Ints

    def legend(self, k: int) -> list[list[int]]:
        """Coloured clusters at place k as [mark, number, size], the largest first."""
        coloured = self.mark[k] < SMALL
        number, first, size = np.unique(
            self.number[k][coloured], return_index=True, return_counts=True
        )
        mark = self.mark[k][coloured][first]
        order = np.lexsort((number, -size))
        return np.column_stack([mark, number, size])[order].tolist()


def follow(clusters: Ints, start: int) -> Tracks:
    """Match the clusters of neighbouring alphas by overlap, outwards from place `start`.

    Examples
    --------
    >>> tracks = follow(np.array([[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]]), start=2)
    >>> tracks.number.tolist()
    [[1, 1, 1, 1], [0, 1, 1, 1], [2, 2, 1, 1]]
    """
    track = np.empty_like(clusters)
    labels = np.unique(clusters[start], return_inverse=True)[1]
    track[start] = labels
    fresh = int(labels.max(initial=-1)) + 1
    for places in (range(start + 1, len(clusters)), range(start - 1, -1, -1)):
        before = track[start]
        for k in places:
            before, fresh = _inherit(before, clusters[k], fresh)
            track[k] = before
    size = _sizes(track, fresh)
    order = np.lexsort((np.arange(fresh), -np.where(size > 1, size, 0).sum(axis=0)))
    rank = np.empty(fresh, dtype=np.int64)
    rank[order] = np.arange(fresh)
    track, size = rank[track], size[:, order]
    colour = _colours(size)
    single = size[np.arange(len(track))[:, None], track] == 1
    mark = np.where(single, SINGLE, colour[track])
    return Tracks(np.where(single, 0, track + 1), mark, (size > 0).sum(axis=1))


def _inherit(before: Ints, now: Ints, fresh: int) -> tuple[Ints, int]:
    """Names of the clusters `now`, by overlap, the largest first; new names for the rest."""
    labels = np.unique(now, return_inverse=True)[1]
    width = int(labels.max(initial=-1)) + 1
    pairs, overlap = np.unique(before * width + labels, return_counts=True)
    name = np.full(width, -1, dtype=np.int64)
    taken: set[int] = set()
    for pair in pairs[np.argsort(-overlap, kind="stable")].tolist():
        old, new = divmod(pair, width)
        if name[new] < 0 and old not in taken:
            name[new] = old
            taken.add(old)
    missing = np.flatnonzero(name < 0)
    name[missing] = fresh + np.arange(len(missing))
    return name[labels], fresh + len(missing)


def _sizes(track: Ints, count: int) -> Ints:
    return np.array([np.bincount(row, minlength=count) for row in track])


def _colours(size: Ints) -> Ints:
    """Colour of each track, prominent ones first; tracks that meet at an alpha never share one."""
    used = np.zeros((COLOURS, len(size)), dtype=bool)
    colour = np.full(size.shape[1], SMALL, dtype=np.int64)
    for track in range(size.shape[1]):
        shown = size[:, track] > 1
        if not shown.any():
            break  # in order of prominence: the rest are single nodes
        free = np.flatnonzero(~used[:, shown].any(axis=1))
        if len(free):
            # the least used colour, so that a colour seldom changes its meaning
            best = free[np.argmin(used[free].sum(axis=1))]
            colour[track] = best
            used[best] |= shown
    return colour
