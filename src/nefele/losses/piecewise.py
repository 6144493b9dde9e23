"""Piecewise linear losses: absolute, quantile, hinge (LN, Sec. 2.3). Kinks have no gradient.

For all f*(a) = a y on a box, so the prox is a box-constrained quadratic programme per node.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_number
from nefele.data import LocalData
from nefele.losses.base import BoundLoss, DualPoint, Duals, check_signs
from nefele.losses.pointwise import BoundPointwise, PointwiseLoss
from nefele.losses.rows import RowDual

_UNEVEN = 10.0  # ratio of columns' sizes from which each counts in its own unit
_LEAST_SPREAD = 1e-6  # relative to the labels' size: less counts as constant labels


@dataclass(frozen=True)
class _Piecewise(PointwiseLoss):
    def __post_init__(self) -> None:
        super().__post_init__()
        if np.any(self.l1):
            raise ValueError(f"{type(self).__name__} takes no l1; got {self.l1}. Use l2.")

    def bend(self, z: Array, y: Array) -> Array:
        return np.zeros(len(z))

    def box(self, y: Array) -> tuple[Array, Array]:
        """Smallest and largest slope for each label.

        Parameters
        ----------
        y : array of shape (n_rows,)
        """
        raise TypeError(f"{type(self).__name__} must give box.")

    def conjugate(self, a: Array, y: Array) -> Array:
        return np.where(self.domain_ratio(a, y) <= 1 + 1e-12, a * y, np.inf)

    def _bound(self, data: LocalData) -> BoundLoss:
        if data.offset is not None:
            raise ValueError(f"{type(self).__name__} takes no offset. Use SquaredHinge.")
        return BoundPiecewise(self, data)


@dataclass(frozen=True)
class Absolute(_Piecewise):
    """f(z, y) = |z - y|: the conditional median.

    Examples
    --------
    >>> Absolute().f(np.array([0.5]), np.array([2.0]))
    array([1.5])
    """

    shifts = True

    def f(self, z: Array, y: Array) -> Array:
        return np.abs(z - y)

    def slope(self, z: Array, y: Array) -> Array:
        return np.sign(z - y)

    def box(self, y: Array) -> tuple[Array, Array]:
        return -np.ones(len(y)), np.ones(len(y))

    def domain_ratio(self, a: Array, y: Array) -> Array:
        return np.abs(a)


@dataclass(frozen=True)
class Quantile(_Piecewise):
    """f(z, y) = max(q (y - z), (1 - q)(z - y)): the conditional q-quantile (pinball loss).

    With q = 1/2 it is half the absolute loss.

    Parameters
    ----------
    q : float
        Which quantile, in (0, 1).

    Examples
    --------
    >>> Quantile(q=0.9).f(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    array([0.9, 0.1])
    """

    q: float = 0.5
    shifts = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < check_number(self.q, "q") < 1:
            raise ValueError(f"q must be between 0 and 1; got {self.q!r}.")

    def f(self, z: Array, y: Array) -> Array:
        return np.maximum(self.q * (y - z), (1 - self.q) * (z - y))

    def slope(self, z: Array, y: Array) -> Array:
        return np.where(z < y, -self.q, np.where(z > y, 1 - self.q, 0.0))

    def box(self, y: Array) -> tuple[Array, Array]:
        return np.full(len(y), -self.q), np.full(len(y), 1 - self.q)

    def domain_ratio(self, a: Array, y: Array) -> Array:
        return np.maximum(-a / self.q, a / (1 - self.q))


@dataclass(frozen=True)
class Hinge(_Piecewise):
    """f(z, y) = max(0, 1 - y z) for labels y in {-1, 1}: the support vector machine.

    Examples
    --------
    >>> Hinge().f(np.array([0.5]), np.array([-1.0]))
    array([1.5])
    """

    def f(self, z: Array, y: Array) -> Array:
        return np.maximum(0.0, 1 - y * z)

    def slope(self, z: Array, y: Array) -> Array:
        return np.where(y * z < 1, -y, 0.0)

    def box(self, y: Array) -> tuple[Array, Array]:
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def domain_ratio(self, a: Array, y: Array) -> Array:
        b = -y * a
        return np.where(b >= 0, b, np.where(b > -1e-14, 0.0, np.inf))

    def check(self, data: LocalData) -> None:
        check_signs(data, "hinge")


class BoundPiecewise(BoundPointwise):
    """A piecewise linear loss bound to data; `grad` is one of its subgradients."""

    loss: _Piecewise

    def __init__(self, loss: _Piecewise, data: LocalData) -> None:
        super().__init__(loss, data)
        self.smooth = False
        self.low, self.high = loss.box(data.y)
        self.forget()

    def forget(self) -> None:
        self._warm = np.zeros(self.data.n_rows)

    def restrict(self, nodes: NDArray[np.int64]) -> BoundLoss:
        """The losses of some nodes, with the scale of all labels."""
        part = super().restrict(nodes)
        assert isinstance(part, BoundPiecewise)
        part.spread, part._unit = self.spread, self._unit
        return part

    def held(self, ridge: Array) -> BoundLoss | None:
        found = super().held(ridge)
        vars(found).pop("even", None)  # it has the ridge of before
        return found

    @cached_property
    def _unit(self) -> Array | None:
        """What a parameter of each column is worth, where columns are of very different sizes."""
        square = self.data.row_weight @ self.data.X**2
        unit = 1 / np.sqrt(np.where(square > 0, square, square.max(initial=0.0) or 1.0))
        return unit if unit.max() > _UNEVEN * unit.min() else None

    @cached_property
    def even(self) -> BoundPiecewise:
        """The same losses of columns of about equal size: parameters are in their units."""
        data, unit = self.data, 1.0 if self._unit is None else self._unit
        found = copy.copy(self)
        found.data = LocalData(
            data.X * unit,
            data.y,
            data.ptr,
            data.ids,
            sample_weight=data.sample_weight,
            node_weight=data.node_weight,
        )
        found.ridge, found._unit = self.ridge * unit**2, None
        found._warm = np.zeros(data.n_rows)
        return found

    def minimise(self) -> Array:
        if self._unit is None:
            return super().minimise()
        return np.asarray(self._unit * self.even.minimise())

    def memory(self) -> dict[str, Array]:
        return {"rows": self._warm}

    def recall(self, memory: dict[str, Array]) -> None:
        self._warm = memory["rows"]

    def curvature(self) -> Array:
        """Slopes change by about one over the spread of the labels."""
        size = self.data.node_sum(self.data.row_weight * (self.data.X**2).mean(axis=1))
        return size / self.spread + 2 * self.ridge.mean(axis=1)

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the labels, or their size when they are all equal."""
        largest = float(np.abs(self.data.y).max(initial=0.0))
        if largest == 0.0:
            return 1.0
        spread = float(np.std(self.data.y / largest))
        return largest * (spread if spread > _LEAST_SPREAD else 1.0)

    def hess(self, w: Array) -> Array | None:
        return None

    def prox(self, v: Array, step: Array, start: Array | None = None) -> Array:
        z, self._warm = self.prox_with_dual(v, step, self._warm)
        return z

    def prox_with_dual(self, v: Array, step: Array, start: Array) -> tuple[Array, Array]:
        """Prox points and the row duals that prove them, shapes (n_nodes, d) and (n_rows,).

        `start` is a first guess of the row duals.
        """
        from nefele._kernels.box import box_prox

        data, X = self.data, self.data.X
        # With z = root t the ridge is gone: it only shortens the columns of each node.
        root = 1 / np.sqrt(1 + 2 * step[:, None] * self.ridge)
        if self.ridge.any():
            X = X * root[data.row_node]
        rows = X, data.y, data.ptr, data.row_weight, self.low, self.high
        t, a = box_prox(*rows, v * root, step, start)
        return root * t, a

    def dual_point(self, w: Array, target: Array) -> DualPoint:
        return BoxDual(self, w, target)


class BoxDual(RowDual):
    """Row duals in a box, from one exact prox step; they give way by the room left in the box.

    The step begins at the slopes at w, not where the last one ended: a bound must be the same
    whenever it is computed from the same point.
    """

    loss: BoundPiecewise

    def __init__(self, loss: BoundPiecewise, w: Array, target: Array) -> None:
        self.loss = loss
        start = np.clip(loss.row_slope(loss.predict(w)), loss.low, loss.high)
        even = loss if loss._unit is None else loss.even
        unit = 1.0 if loss._unit is None else loss._unit
        step = even.steps()
        near = w / unit + step[:, None] * (unit * target)
        self.point, self.a = even.prox_with_dual(near, step, start)
        self.point = unit * self.point
        self.zeta = 2 * loss.ridge * self.point
        self.nu = np.zeros_like(w)
        self._weigh()

    def adopt(self, duals: Sequence[Duals], w: Array) -> None:
        super().adopt(duals, w)
        self.point, self.zeta = w.copy(), 2 * self.loss.ridge * w
        self._weigh()

    def _weigh(self) -> None:
        low, high = self.loss.low, self.loss.high
        room = np.minimum(self.a - low, high - self.a)
        # Scaling towards zero brings a dual back into its box only if zero is inside the box.
        least = np.where((low < 0) & (high > 0), 1e-3, 0.0)
        self.give = np.where(room > 1e-12, np.maximum(room, least), least) / self.loss.spread

    def metric(self) -> Array:
        weight = self.loss.data.row_weight * self.give
        return self.loss.ridged(self.loss._weighted_gram(weight))

    def move(self, x: Array, target: Array) -> None:
        self.settle(x)
        self.a = np.clip(self.a, self.loss.low, self.loss.high)
        self._weigh()

    def settle(self, x: Array) -> None:
        self.a = self.a - self.give * self.loss.predict(x)
        self.zeta = self.zeta - 2 * self.loss.ridge * x
