"""Multinomial logistic loss for more than two classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax, xlogy

from nefele._checks import Array, check_count, check_numbers
from nefele.data import LocalData
from nefele.losses.base import BoundLoss, Loss, check_labels
from nefele.losses.rows import TINY, BoundRows, Weights

_MANY = 100  # classes that need as many rows, if not asked for
_COMPILED = 50  # numbers in X from which compiled loops pay off, up to
_MOST_UNKNOWNS = 100  # parameters per node, beyond which a library's Cholesky is as fast


@dataclass(frozen=True)
class Multinomial(Loss):
    """f(z, y) = log sum_k exp(z_k) - z_y for classes y in {0, ..., n_classes - 1}.

    A node's parameter vector has length n_classes * d: the weights of class 0, of class 1, ...

    Parameters
    ----------
    n_classes : int, optional
        Number of classes; default: the largest label plus one.
    l2, l1 : float or sequence of floats
        Weights of the local regularisers, or one for each column, alike in all classes, or one
        for each parameter; none at nodes without data.

    Examples
    --------
    >>> data = LocalData.from_list([([[1.0], [1.0]], [0, 2])])
    >>> Multinomial().bind(data).value(np.zeros((1, 3))).round(4)
    array([1.0986])
    """

    n_classes: int | None = None
    l2: float | tuple[float, ...] = 0.0
    l1: float | tuple[float, ...] = 0.0

    def __post_init__(self) -> None:
        if self.n_classes is not None:
            classes = check_count(self.n_classes, "n_classes", low=2)
            object.__setattr__(self, "n_classes", classes)
        for name in ("l2", "l1"):
            object.__setattr__(self, name, check_numbers(getattr(self, name), name, low=0.0))

    def bind(self, data: LocalData) -> BoundLoss:
        if data.offset is not None:
            raise ValueError("Multinomial takes no offset: a row has one prediction per class.")
        classes = self.classes_of(float(data.y.max(initial=0)), data.n_rows)
        whole = (data.y == np.floor(data.y)) & (data.y >= 0) & (data.y < classes)
        check_labels(whole, data, f"Labels must be whole numbers 0..{classes - 1}")
        return BoundMultinomial(data, classes, self.l2, self.l1)

    def classes_of(self, top: float, n_rows: int) -> int:
        """Number of classes of data with this largest label.

        Parameters
        ----------
        top : float
        n_rows : int

        Examples
        --------
        >>> Multinomial().classes_of(2.0, 10), Multinomial(n_classes=5).classes_of(2.0, 10)
        (3, 5)
        """
        classes = self.n_classes or max(int(top) + 1, 2)
        if self.n_classes is None and classes > max(n_rows, _MANY):
            raise ValueError(
                f"Classes must be numbered 0, 1, ...; got a label {classes - 1} for "
                f"{n_rows} rows. Renumber them, or pass n_classes."
            )
        return classes


class BoundMultinomial(BoundRows):
    """The multinomial loss bound to data; predictions have shape (n_rows, n_classes)."""

    def __init__(self, data: LocalData, n_classes: int, l2: Weights, l1: Weights) -> None:
        super().__init__(data, n_classes * data.d, l2, l1)
        self.n_classes, self._l2, self._l1 = n_classes, l2, l1
        self.label = data.y.astype(np.int64)
        self.hot = np.eye(n_classes)[self.label]

    def restrict(self, nodes: NDArray[np.int64]) -> BoundLoss:
        part = BoundMultinomial(self.data.subset(nodes), self.n_classes, self._l2, self._l1)
        part._compiled = self._compiled
        self._keep_ridge(part, nodes)
        return part

    @cached_property
    def _compiled(self) -> bool:
        return self.data.X.size >= _COMPILED

    def prox(self, v: Array, step: Array, start: Array | None = None) -> Array:
        data = self.data
        if not self.smooth or not self._compiled or self.d > _MOST_UNKNOWNS:
            return super().prox(v, step, start)
        from nefele._kernels.multinomial import multinomial_prox

        z = (v if start is None else start).copy()
        rows = data.X, self.label, data.ptr, data.row_weight
        terms = self.labelled, self.ridge
        return np.asarray(multinomial_prox(self.n_classes, *rows, *terms, v, step, z))

    def minimise(self) -> Array:
        """As for all losses; what is alike in all classes and costs nothing is zero."""
        blocks = super().minimise().reshape(self.n_nodes, self.n_classes, self.data.d)
        free = ((self.ridge == 0) & (self.lasso == 0)).reshape(blocks.shape).all(axis=1)
        common = np.where(free, blocks.mean(axis=1), 0.0)
        return np.asarray((blocks - common[:, None, :]).reshape(self.n_nodes, self.d))

    def sized(self, n_nodes: int, n_rows: int) -> None:
        self._compiled = n_rows * self.data.d >= _COMPILED

    def predict(self, w: Array) -> Array:
        if self._compiled:
            from nefele._kernels.multinomial import class_predictions

            out = np.empty((self.data.n_rows, self.n_classes))
            class_predictions(self.data.X, self.data.ptr, np.ascontiguousarray(w), out)
            return out
        weights = w.reshape(self.n_nodes, self.n_classes, self.data.d)[self.data.row_node]
        return np.einsum("rj,rkj->rk", self.data.X, weights)

    def pull(self, a: Array) -> Array:
        if self._compiled:
            from nefele._kernels.multinomial import class_pulls

            out, rows = np.zeros((self.n_nodes, self.d)), np.ascontiguousarray(a)
            class_pulls(self.data.X, self.data.row_weight, rows, self.data.ptr, out)
            return out
        weighted = (self.data.row_weight[:, None] * a)[:, :, None] * self.data.X[:, None, :]
        return self.data.node_sum(weighted).reshape(self.n_nodes, self.d)

    def row_value(self, z: Array) -> Array:
        if self._compiled:
            from nefele._kernels.multinomial import class_losses

            out = np.empty(len(z))
            class_losses(np.ascontiguousarray(z), self.label, out)
            return out
        return -np.take_along_axis(log_softmax(z, axis=1), self.label[:, None], axis=1)[:, 0]

    def _chances(self, z: Array) -> Array:
        """The chances of all classes, shape (n_rows, n_classes)."""
        if not self._compiled:
            return np.asarray(softmax(z, axis=1))
        from nefele._kernels.multinomial import chances

        out = np.array(z)
        chances(out)
        return out

    def row_slope(self, z: Array) -> Array:
        return self._chances(z) - self.hot

    def row_bend(self, z: Array, t: Array) -> Array:
        p = self._chances(z)
        return p * (t - (p * t).sum(axis=1, keepdims=True))

    def gram(self, z: Array) -> Array:
        if self._compiled and self.d <= _MOST_UNKNOWNS:
            from nefele._kernels.multinomial import multinomial_grams

            out = np.zeros((self.n_nodes, self.d, self.d))
            multinomial_grams(self.data.X, self.data.ptr, self.data.row_weight, z, out)
            return out
        p = self._chances(z)
        bend = p[:, :, None] * (np.eye(self.n_classes) - p[:, None, :])
        return self.blocks_of(bend * self.data.row_weight[:, None, None])

    def blocks_of(self, bend: Array) -> Array:
        """sum_r bend_r x_r x_r^T over each node for matrices of the classes, as in `gram`."""
        out = np.zeros((self.n_nodes, self.d, self.d))
        for nodes, rows in self.data.blocks():
            X = self.data.X[rows]
            blocks = np.einsum("nmab,nmi,nmj->naibj", bend[rows], X, X, optimize=True)
            out[nodes] = blocks.reshape(len(nodes), self.d, self.d)
        return out

    def row_conjugate(self, a: Array) -> Array:
        p = a + self.hot
        inside = (p >= 0).all(axis=1) & (np.abs(a.sum(axis=1)) <= 1e-12)
        p = np.maximum(p, 0.0)
        return np.where(inside, xlogy(p, p).sum(axis=1), np.inf)

    def row_ratio(self, a: Array) -> Array:
        others = np.where(self.hot > 0, 0.0, a).min(axis=1)
        own = -np.take_along_axis(a, self.label[:, None], axis=1)[:, 0]
        return np.where(others >= 0, own, np.inf)

    def row_inside(self, a: Array) -> Array:
        """The duals with zero for tiny negative ones of other classes; rows still sum to zero."""
        other = self.hot == 0
        negative = other & (a < 0) & (np.abs(a) <= TINY * np.abs(a).max(initial=0.0))
        a = np.where(negative, 0.0, a)
        own = -np.where(other, a, 0.0).sum(axis=1, keepdims=True)
        changed = negative.any(axis=1, keepdims=True)
        return np.where(changed & ~other, own, a)

    def escape_rows(self, rows: NDArray[np.bool_]) -> tuple[Array, Array]:
        """x^T (t_y - t_k) >= 0 for every row and class k: directions that cost nothing."""
        X, hot = self.data.X[rows], self.hot[rows]
        pairs = hot[:, None, :] - np.eye(self.n_classes)[None]
        free = (pairs[..., None] * X[:, None, None, :]).reshape(-1, self.d)
        return free[np.abs(free).max(axis=1, initial=0.0) > 0], np.zeros((0, self.d))
