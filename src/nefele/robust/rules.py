"""What a guarded node makes of its neighbours' vectors: small rules over the aggregations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nefele._checks import Array, check_count, check_number
from nefele.robust.aggregation import (
    between,
    centred_clipping,
    clipped,
    coordinate_median,
    fltrust,
    geometric_median,
    krum,
    trimmed_mean,
)


class Last(NamedTuple):
    """What there was in the round before.

    Attributes
    ----------
    rows : array of shape (k, d)
        The neighbours' vectors.
    own : array of shape (d,)

    Examples
    --------
    >>> Last(np.zeros((2, 1)), np.zeros(1)).rows.shape
    (2, 1)
    """

    rows: Array
    own: Array


class Rule(ABC):
    """Takes the neighbours' vectors, shape (k, d), and the own one; gives k vectors to go on with.

    A rule that combines gives the same vector k times: a node that moves towards the mean of its
    neighbours then moves towards the combination.
    """

    @abstractmethod
    def heard(self, rows: Array, own: Array, last: Last | None = None) -> Array:
        """What the node hears instead of `rows`, of the same shape.

        `last` is what they and the node said one round before; None: all began at zero.

        Parameters
        ----------
        rows : array of shape (k, d)
            What the neighbours said.
        own : array of shape (d,)
            The node's own parameters.
        last : Last, optional
        """


class _Combining(Rule):
    def heard(self, rows: Array, own: Array, last: Last | None = None) -> Array:
        return np.broadcast_to(self.combine(rows, own), rows.shape).copy()

    @abstractmethod
    def combine(self, rows: Array, own: Array) -> Array:
        """One vector of shape (d,).

        Parameters
        ----------
        rows : array of shape (k, d)
            What the neighbours said.
        own : array of shape (d,)
        """


@dataclass(frozen=True)
class Clip(Rule):
    """Each neighbour's vector is at most `radius` from the own one.

    Parameters
    ----------
    radius : float
        > 0.

    Examples
    --------
    >>> Clip(1.0).heard(np.array([[1e200], [0.5]]), np.array([0.0])).tolist()
    [[1.0], [0.5]]
    """

    radius: float

    def __post_init__(self) -> None:
        check_number(self.radius, "radius", low=0.0, strict=True)

    def heard(self, rows: Array, own: Array, last: Last | None = None) -> Array:
        return own + clipped(between(rows, own), self.radius)


@dataclass(frozen=True)
class TrimmedMean(_Combining):
    """The mean without the `trim` smallest and largest entries of each coordinate.

    At a node with few neighbours as many are left out as leave one.

    Parameters
    ----------
    trim : int
        How many entries are left out at each end.

    Examples
    --------
    >>> rows = np.array([[1.0], [2.0], [1e9]])
    >>> TrimmedMean(1).heard(rows, np.zeros(1)).tolist()
    [[2.0], [2.0], [2.0]]
    """

    trim: int = 1

    def __post_init__(self) -> None:
        check_count(self.trim, "trim")

    def combine(self, rows: Array, own: Array) -> Array:
        return trimmed_mean(rows, min(self.trim, (len(rows) - 1) // 2))


@dataclass(frozen=True)
class Median(_Combining):
    """The median of each coordinate.

    Examples
    --------
    >>> Median().combine(np.array([[1.0], [2.0], [1e9]]), np.zeros(1)).tolist()
    [2.0]
    """

    def combine(self, rows: Array, own: Array) -> Array:
        return coordinate_median(rows)


@dataclass(frozen=True)
class GeometricMedian(_Combining):
    """The point with the least sum of distances.

    Examples
    --------
    >>> GeometricMedian().combine(np.array([[1.0], [2.0], [1e9]]), np.zeros(1)).round(6).tolist()
    [2.0]
    """

    def combine(self, rows: Array, own: Array) -> Array:
        return geometric_median(rows)


@dataclass(frozen=True)
class Krum(_Combining):
    """The vector that is nearest to most others, of `attackers` bad ones at most.

    The own vector is one of those it chooses from. At a node with few neighbours as many are
    taken to be bad as Krum can bear; with fewer than two neighbours, the own vector stays.

    Parameters
    ----------
    attackers : int
        How many neighbours may be bad.

    Examples
    --------
    >>> rows = np.array([[1.0], [1.1], [1e9]])
    >>> Krum(1).combine(rows, np.array([1.0])).tolist()
    [1.0]
    """

    attackers: int = 1

    def __post_init__(self) -> None:
        check_count(self.attackers, "attackers")

    def combine(self, rows: Array, own: Array) -> Array:
        all_rows = np.vstack([own, rows])
        bad = min(self.attackers, len(all_rows) - 3)
        return own if bad < 0 else krum(all_rows, bad)


@dataclass(frozen=True)
class CentredClip(_Combining):
    """The own vector, moved by the mean of the clipped differences.

    Parameters
    ----------
    radius : float
        Length, > 0, to which differences from the own vector are cut.
    steps : int
        How often this is repeated from the point reached.

    Examples
    --------
    >>> CentredClip(1.0, steps=1).combine(np.array([[1.0], [1e9]]), np.zeros(1)).tolist()
    [1.0]
    """

    radius: float
    steps: int = 3

    def __post_init__(self) -> None:
        check_number(self.radius, "radius", low=0.0, strict=True)
        check_count(self.steps, "steps", low=1)

    def combine(self, rows: Array, own: Array) -> Array:
        return centred_clipping(rows, own, self.radius, self.steps)


@dataclass(frozen=True)
class FLTrust(Rule):
    """The own vector of the last round, moved by the updates that point the way of the own one.

    As in Cao et al. 2021: an update is what changed since the last round, its weight is
    ReLU(cosine) with the own update, and each is scaled to the own one's length. Where nobody
    moves the own way the node hears itself. So it is never led away from where its own rows
    pull: a run that comes to rest ends at the node's own fit.

    Examples
    --------
    >>> rows, own = np.array([[2.0, 0.0], [-9.0, 0.0]]), np.array([1.0, 0.0])
    >>> FLTrust().heard(rows, own).tolist()  # the second moved the other way
    [[1.0, 0.0], [1.0, 0.0]]
    >>> FLTrust().heard(rows, own, Last(rows, own)).tolist()  # nobody moved
    [[1.0, 0.0], [1.0, 0.0]]
    """

    def heard(self, rows: Array, own: Array, last: Last | None = None) -> Array:
        before = Last(np.zeros_like(rows), np.zeros_like(own)) if last is None else last
        moved = fltrust(between(rows, before.rows), own - before.own)
        return np.broadcast_to(before.own + moved, rows.shape).copy()
