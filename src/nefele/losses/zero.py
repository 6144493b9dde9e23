"""The zero loss: nodes whose parameters are determined by their neighbours alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.data import LocalData
from nefele.losses.base import BoundLoss, DualPoint, Loss
from nefele.losses.escape import Escape


@dataclass(frozen=True)
class Zero(Loss):
    """L_i = 0: prox is the identity, the conjugate is 0 at 0 and inf elsewhere.

    Examples
    --------
    >>> from nefele import LocalData
    >>> bound = Zero().bind(LocalData.from_list([([[1.0]], [2.0])]))
    >>> bound.value(np.array([[5.0]]))
    array([0.])
    """

    def bind(self, data: LocalData) -> BoundLoss:
        return BoundZero(data.n_nodes, data.d)


class BoundZero(BoundLoss):
    """The zero loss for a number of nodes."""

    def __init__(self, n_nodes: int, d: int) -> None:
        self.n_nodes, self.d = n_nodes, d
        self.labelled = np.zeros(n_nodes, dtype=bool)

    def value(self, w: Array) -> Array:
        return np.zeros(len(w))

    def grad(self, w: Array) -> Array:
        return np.zeros_like(w)

    def hess(self, w: Array) -> Array:
        return np.zeros((*w.shape, w.shape[1]))

    def prox(self, v: Array, step: Array, start: Array | None = None) -> Array:
        return v.copy()

    def minimise(self) -> Array:
        return np.zeros((self.n_nodes, self.d))

    def escape_nodes(self, nodes: NDArray[np.bool_]) -> Escape:
        none = np.zeros((0, self.d))
        return Escape(none, none, none)

    def restrict(self, nodes: NDArray[np.int64]) -> BoundLoss:
        return BoundZero(len(nodes), self.d)

    def dual_point(self, w: Array, target: Array) -> DualPoint:
        return ZeroDual(self.n_nodes, self.d)


class ZeroDual(DualPoint):
    """Only s_i = 0 has a finite conjugate."""

    def __init__(self, n_nodes: int, d: int) -> None:
        self.shape = (n_nodes, d)

    def flow(self) -> Array:
        return np.zeros(self.shape)

    def size(self) -> Array:
        return np.zeros(self.shape)

    def metric(self) -> Array:
        return np.zeros((*self.shape, self.shape[1]))

    def move(self, x: Array, target: Array) -> None:
        return

    def settle(self, x: Array) -> None:
        return

    def domain_ratio(self) -> Array:
        return np.zeros(self.shape[0])

    def conjugate(self, theta: Array) -> Array:
        return np.zeros(self.shape[0])
