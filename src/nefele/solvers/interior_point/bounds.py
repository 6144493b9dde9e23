"""Bounds on parameters in an interior-point method, for losses within a box.

Each bound is an inequality with a room s > 0 and a multiplier z > 0, s = w - low or high - w, and
at an optimum s z = 0. The point is strictly inside from the start, so that s follows w.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.problem import Problem
from nefele.solvers.interior_point import kinks
from nefele.solvers.interior_point.cones import outlying

Mask = NDArray[np.bool_]

_CENTRE = 0.5  # most of the way between two bounds at which an entry starts
_HIGHER, _TRIES = 4.0, 30  # loss at a start, relative to that at `origin`, and starts to try
_DIRECTION = ("ds", "dz", "longest", "_change")


class Bounds:
    """The finite bounds at nodes that are `on`; the interface of `RowCones`.

    Parameters
    ----------
    problem : Problem
    w : array of shape (n_nodes, d)
        Parameters to start at, strictly inside.
    on : array of bool, shape (n_nodes,)
    level : float
        s z of each bound at the start; half the level of a cone of two barriers.
    """

    name, kept = "bounds", ("s", "z")

    def __init__(self, problem: Problem, w: Array, on: Mask, level: float) -> None:
        self.problem, self.shape = problem, w.shape
        low, high = ends(problem)
        places = [np.nonzero(np.isfinite(end) & on[:, None]) for end in (low, high)]
        self.i, self.j = (np.concatenate(both) for both in zip(*places, strict=True))
        self.sign = np.repeat([1.0, -1.0], [len(place[0]) for place in places])
        self.end = np.concatenate([low[places[0]], high[places[1]]])
        self.s = self._room(w)
        self.z = level / self.s
        self.count = len(self.s) / 2
        self.total = float(self.s @ self.z)
        self.longest, self._change = 0.0, [0.0, 0.0]
        self.ds, self.dz = np.zeros((2, len(self.s)))

    def _room(self, w: Array) -> Array:
        return np.asarray(self.sign * (w[self.i, self.j] - self.end))

    @property
    def u(self) -> Array:
        """Slopes in the room, shape (n_bounds,)."""
        return -self.z

    @property
    def du(self) -> Array:
        """Direction of u."""
        return -self.dz

    def change(self, dw: Array) -> Array:
        """Changes of the room, shape (n_bounds,)."""
        return np.asarray(self.sign * dw[self.i, self.j])

    def to_nodes(self, values: Array) -> Array:
        """The adjoint of `change`, shape (n_nodes, d)."""
        out = np.zeros(self.shape)
        np.add.at(out, (self.i, self.j), self.sign * values)
        return out

    def gram(self, w: Array) -> Array:
        """Scale to the present point; returns diagonal matrices, shape (n_nodes, d, d)."""
        self._C = self.z / self.s
        self.ds, self.dz = np.zeros((2, len(self.s)))
        out = np.zeros((*self.shape, self.shape[1]))
        np.add.at(out, (self.i, self.j, self.j), self._C)
        return out

    def give(self, change: Array) -> Array:
        """C times changes of the room."""
        return self._C * change

    def aim(self, level: float, rest: float, bend: float) -> Array:
        """Aim at s z = level / 2, corrected to second order by the last direction."""
        self._aimed = 0.5 * level - bend * self.ds * self.dz - self.s * self.z
        return self._pulled()

    def _pulled(self) -> Array:
        self._pull = -self._aimed / self.s
        return self._pull

    def nudge(self, step: float, level: float) -> Array:
        """Change what is aimed at so that a longer step stays inside; returns the new pull."""
        self._aimed = self._aimed + outlying(self.s, self.z, self.ds, self.dz, step, level)
        return self._pulled()

    def direct(self, change: Array, flow: Array, rest: float) -> None:
        """Directions, given changes of the room and C times these."""
        self.ds, self.dz = change, -(flow + self._pull)
        falls = max(
            float((-move / here).max(initial=0.0))
            for here, move in ((self.s, self.ds), (self.z, self.dz))
        )
        self.longest = 1 / falls if falls > 0 else np.inf
        first = self.s @ self.dz + self.z @ self.ds
        self._change = [float(first), float(self.ds @ self.dz)]

    def save(self) -> tuple[Any, ...]:
        """The present direction, for `restore`."""
        return tuple(getattr(self, name) for name in _DIRECTION)

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Back to a direction that was saved."""
        for name, value in zip(_DIRECTION, saved, strict=True):
            setattr(self, name, value)

    def ahead(self, step: float) -> float:
        """Sum of x^T z after a step."""
        return self.total + step * (self._change[0] + step * self._change[1])

    def move(self, step: float, rest: float) -> None:
        """Take the step."""
        self.s = self.s + step * self.ds
        self.z = self.z + step * self.dz
        self.total = float(self.s @ self.z)

    def residual(self, w: Array) -> float:
        """Fenchel-Young residuals at w."""
        return float(self._room(w) @ self.z)

    def met(self, w: Array, unit: Array) -> Array:
        """The parameters w, those at a bound whose multiplier is larger than their room.

        Both in units of their column, shape (d,).
        """
        at = self.s < self.z * unit[self.j] ** 2
        out = w.copy()
        out[self.i[at], self.j[at]] = self.end[at]
        return out

    def duals(self) -> list[tuple[Any, Array]]:
        """Of each loss within a box what its bounds push, for all of its nodes."""
        push = self.to_nodes(self.u)
        return [(part.inner, push[nodes]) for nodes, part in kinks.sets(self.problem)]


def ends(problem: Problem) -> tuple[Array, Array]:
    """Least and largest values of all parameters, shape (n_nodes, d) each."""
    shape = problem.graph.n_nodes, problem.d
    low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
    for nodes, part in kinks.sets(problem):
        low[nodes], high[nodes] = part.within.ends  # type: ignore[attr-defined]
    return low, high


def interior(problem: Problem) -> Array:
    """Where steps start: `start`, or strictly inside the sets, about as far as losses are wide."""
    w = np.where(problem.undetermined[:, None], problem.origin, problem.start)
    for nodes, part in kinks.sets(problem):
        inner, (low, high) = part.inner, part.within.ends  # type: ignore[attr-defined]
        square = kinks.squares(inner)
        square = np.where(square > 0, square, square.max(initial=0.0) or 1.0)
        value = float(np.abs(inner.value(w[nodes])).sum()) or 1.0
        width, w = np.sqrt(value / square), w.copy()
        on, near = ~problem.undetermined[nodes], w[nodes]
        for _ in range(_TRIES):
            room = np.minimum(width, _CENTRE * (high - low))
            w[nodes[on]] = np.clip(near, low + room, high - room)[on]
            if inner.value(w[nodes]).sum() <= _HIGHER * value:  # not where counts overflow
                break
            width = width / 4
    return w
