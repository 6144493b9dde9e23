"""Generalised linear losses: a new one gives a scalar function and its first two derivatives."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_numbers
from nefele.data import LocalData
from nefele.losses.base import BoundLoss, DualPoint, Loss
from nefele.losses.constraints import Constraint
from nefele.losses.rows import BoundRows

_COMPILED = 1000  # numbers in X from which compiled loops pay off
_LARGE = 20_000  # numbers in X from which sums over rows take long beside loading compiled ones
_FEW = 16  # parameters up to which products of few rows do


@dataclass(frozen=True)
class PointwiseLoss(Loss):
    """L_i(w) = sum_r c_r f(x_r^T w, y_r) + l2 ||w||^2 + l1 ||w||_1.

    The two terms leave out the columns that the data spare, see `shrink` of `LocalData`.

    A subclass gives `f`, `slope` and `bend`. With `conjugate` (and `domain_ratio`, if its domain
    is not the whole line) certificates are proven; without it they rest on an estimated radius.

    Parameters
    ----------
    l2, l1 : float or sequence of floats
        Weights of the local regularisers (NFL, Eq. (71)-(72)), or one for each parameter: then
        the terms are sum_j l2_j w_j^2 and sum_j l1_j |w_j|. None at nodes without data.
    """

    l2: float | tuple[float, ...] = 0.0
    l1: float | tuple[float, ...] = 0.0

    #: True when f depends on z - y alone: an offset is then a shift of the labels.
    shifts = False

    def __post_init__(self) -> None:
        for name in ("l2", "l1"):
            object.__setattr__(self, name, check_numbers(getattr(self, name), name, low=0.0))

    @abstractmethod
    def f(self, z: Array, y: Array) -> Array:
        """The loss of predictions z for labels y.

        Parameters
        ----------
        z, y : arrays of shape (n_rows,)
            Predictions and labels.
        """

    @abstractmethod
    def slope(self, z: Array, y: Array) -> Array:
        """df/dz.

        Parameters
        ----------
        z, y : arrays of shape (n_rows,)
            Predictions and labels.
        """

    @abstractmethod
    def bend(self, z: Array, y: Array) -> Array:
        """d2f/dz2, >= 0.

        Parameters
        ----------
        z, y : arrays of shape (n_rows,)
            Predictions and labels.
        """

    def conjugate(self, a: Array, y: Array) -> Array:
        """f*(a) = sup_z a z - f(z, y), inf outside its domain.

        Parameters
        ----------
        a, y : arrays of shape (n_rows,)
            Duals and labels.
        """
        raise TypeError(f"{type(self).__name__} gives no conjugate.")

    def domain_ratio(self, a: Array, y: Array) -> Array:
        """Smallest r with a / r in the domain of f*; 0 where the domain is the whole line.

        Parameters
        ----------
        a, y : arrays of shape (n_rows,)
            Duals and labels.
        """
        return np.zeros(len(a))

    def check(self, data: LocalData) -> None:
        """Raise when a label is outside the loss's domain.

        Parameters
        ----------
        data : LocalData
        """

    def kernel(self) -> tuple[str, float] | None:
        """Name and parameter of the compiled Newton prox, if there is one."""
        return None

    def escapes(self, y: Array) -> tuple[NDArray[np.bool_], Array] | None:
        """How predictions may run to infinity without cost, for losses that allow it.

        Returns (pinned, sign): rows whose prediction may not change at all, and for the others
        the sign of the direction that costs nothing. None when every infimum is attained.

        Parameters
        ----------
        y : array of shape (n_rows,)
        """
        return None

    def bind(self, data: LocalData) -> BoundLoss:
        self.check(data)
        return self._bound(data.shifted() if self.shifts else data)

    def _bound(self, data: LocalData) -> BoundLoss:
        """The loss bound to checked data; offsets are left only where they shift no labels."""
        return BoundPointwise(self, data)


class BoundPointwise(BoundRows):
    """A pointwise loss bound to local datasets."""

    def __init__(self, loss: PointwiseLoss, data: LocalData) -> None:
        super().__init__(data, data.d, loss.l2, loss.l1)
        self.loss = loss
        self.offset = np.zeros(data.n_rows) if data.offset is None else data.offset

    def restrict(self, nodes: NDArray[np.int64]) -> BoundLoss:
        part = self.loss.bind(self.data.subset(nodes))
        assert isinstance(part, BoundPointwise)
        part._compiled, part._many_rows = self._compiled, self._many_rows
        self._keep_ridge(part, nodes)
        return part

    @cached_property
    def _compiled(self) -> bool:
        return self.data.X.size >= _COMPILED

    @cached_property
    def _many_rows(self) -> bool:
        return self.data.X.size >= _LARGE

    def sized(self, n_nodes: int, n_rows: int) -> None:
        self._compiled = n_rows * self.data.d >= _COMPILED
        self._many_rows = n_rows * self.data.d >= _LARGE

    def prox(self, v: Array, step: Array, start: Array | None = None) -> Array:
        kernel = self.loss.kernel()
        if kernel is None or not self.smooth or not self._compiled:
            return super().prox(v, step, start)
        from nefele._kernels import newton
        from nefele._kernels.logistic import logistic_prox

        data, z = self.data, (v if start is None else start).copy()
        rows = data.X, data.y, self.offset, data.ptr, data.row_weight
        terms = self.labelled, self.ridge, v, step, z
        if kernel[0] == "LOGISTIC":
            return np.asarray(logistic_prox(*rows, *terms))
        return np.asarray(newton.newton_prox(getattr(newton, kernel[0]), kernel[1], *rows, *terms))

    def start_within(self, within: Constraint, w: Array) -> Array:
        """Points of a set where the loss is not huge, as far as that is known, from w on.

        Parameters
        ----------
        within : Constraint
        w : array of shape (n_nodes, d)
            Points of the set.
        """
        return w

    def predict(self, w: Array) -> Array:
        if not self._many_rows:
            return np.einsum("rj,rj->r", self.data.X, w[self.data.row_node])
        from nefele._kernels.certificate import predictions

        out = np.empty(self.data.n_rows)
        predictions(self.data.X, self.data.ptr, np.ascontiguousarray(w), out)
        return out

    def pull(self, a: Array) -> Array:
        return self.to_nodes(self.data.row_weight * a)

    def to_nodes(self, a: Array) -> Array:
        """sum_r x_r a_r over each node, shape (n_nodes, d)."""
        if not self._many_rows:
            return self.data.node_sum(a[:, None] * self.data.X)
        from nefele._kernels.certificate import pulls

        out = np.zeros((self.n_nodes, self.d))
        pulls(self.data.X, a, self.data.ptr, out)
        return out

    def _whole(self, z: Array) -> Array:
        """Predictions with their offsets."""
        return z if self.data.offset is None else z + self.offset

    def row_value(self, z: Array) -> Array:
        return self.loss.f(self._whole(z), self.data.y)

    def row_slope(self, z: Array) -> Array:
        return self.loss.slope(self._whole(z), self.data.y)

    def row_bend(self, z: Array, t: Array) -> Array:
        return self.loss.bend(self._whole(z), self.data.y) * t

    def gram(self, z: Array) -> Array:
        bend = self.loss.bend(self._whole(z), self.data.y)
        return self._weighted_gram(self.data.row_weight * bend)

    def _weighted_gram(self, weight: Array) -> Array:
        out = np.zeros((self.n_nodes, self.d, self.d))
        if self.d <= _FEW and self._many_rows:
            from nefele._kernels.certificate import grams

            grams(self.data.X, weight, self.data.ptr, out)
            return out
        for nodes, rows in self._blocks:
            X = self.data.X[rows]
            out[nodes] = np.swapaxes(X * weight[rows][..., None], 1, 2) @ X
        return out

    @cached_property
    def _blocks(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        return list(self.data.blocks())

    def dual_point(self, w: Array, target: Array) -> DualPoint | None:
        if type(self.loss).conjugate is PointwiseLoss.conjugate:
            return None
        return super().dual_point(w, target)

    def row_conjugate(self, a: Array) -> Array:
        """f*(a) - a o: the offset o moves f along z."""
        found = self.loss.conjugate(a, self.data.y)
        return found if self.data.offset is None else found - a * self.offset

    def row_ratio(self, a: Array) -> Array:
        return self.loss.domain_ratio(a, self.data.y)

    def unbounded(
        self, groups: NDArray[np.int64], w: Array | None = None, basis: Array | None = None
    ) -> NDArray[np.bool_]:
        if type(self.loss).escapes is PointwiseLoss.escapes:  # without a copy of all rows
            return np.zeros(int(groups.max(initial=-1)) + 1, dtype=bool)
        return super().unbounded(groups, w, basis)

    def escape_rows(self, rows: NDArray[np.bool_]) -> tuple[Array, Array] | None:
        X, escapes = self.data.X[rows], self.loss.escapes(self.data.y[rows])
        if escapes is None:
            return np.zeros((0, self.d)), X
        pinned, sign = escapes
        return sign[~pinned, None] * X[~pinned], X[pinned]
