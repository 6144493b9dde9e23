"""Squared error with optional ridge and lasso terms (NFL, Appendix B)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.data import LocalData
from nefele.losses.base import BoundLoss, DualPoint, block_product, shifted_solve
from nefele.losses.pointwise import BoundPointwise, PointwiseLoss
from nefele.losses.quadratic import Eigen, QuadraticDual, affine_prox, eigen, least_norm
from nefele.losses.rows import RowDual

_MANY = 20  # parameters from which few rows make a difference
_LARGE = 20_000  # parameters of all nodes from which sums over rows take long


@dataclass(frozen=True)
class Squared(PointwiseLoss):
    """L_i(w) = (1/m_i) sum_r (y_r - x_r^T w)^2 + l2 ||w||^2 + l1 ||w||_1, without a half.

    The two terms leave out the columns that the data spare, see `shrink` of `LocalData`.

    Examples
    --------
    >>> from nefele import LocalData
    >>> data = LocalData.from_list([([[1.0], [1.0]], [1.0, 3.0])])
    >>> bound = Squared().bind(data)
    >>> bound.value(np.array([[2.0]])), bound.minimise()
    (array([1.]), array([[2.]]))
    """

    shifts = True

    def f(self, z: Array, y: Array) -> Array:
        return (z - y) ** 2

    def slope(self, z: Array, y: Array) -> Array:
        return 2 * (z - y)

    def bend(self, z: Array, y: Array) -> Array:
        return np.full(len(z), 2.0)

    def conjugate(self, a: Array, y: Array) -> Array:
        return a * (a / 4 + y)

    def _bound(self, data: LocalData) -> BoundLoss:
        return BoundSquared(self, data)


class BoundSquared(BoundPointwise):
    """Quadratic losses 1/2 w^T H_i w - b_i^T w + c_i with H_i = 2 X^T X / m_i + 2 l2 P^2.

    Keeps the eigenbasis of every H_i, so that a prox with any step costs two small products;
    where rows are few and parameters many, Woodbury's identity on the rows instead.
    """

    affine_grad = True

    def held(self, ridge: Array) -> BoundLoss | None:
        found = super().held(ridge)
        for name in ("H", "_eigen", "_traces"):  # computed with the other ridge
            vars(found).pop(name, None)
        return found

    def restrict(self, nodes: NDArray[np.int64]) -> BoundLoss:
        part = super().restrict(nodes)
        assert isinstance(part, BoundSquared)
        part._many_nodes, part._wide = self._many_nodes, self._wide
        return part

    @cached_property
    def H(self) -> Array:
        """Hessians, shape (n_nodes, d, d)."""
        with np.errstate(over="ignore", invalid="ignore"):
            H = self.ridged(self._weighted_gram(2 * self.data.row_weight))
        if not np.isfinite(H).all():
            raise ValueError("X^T X must be finite; its entries overflow. Rescale the features.")
        return H

    @cached_property
    def b(self) -> Array:
        """Linear terms b_i = 2 X^T y / m_i, shape (n_nodes, d)."""
        return self.pull(2 * self.data.y)

    @cached_property
    def _eigen(self) -> Eigen:
        return eigen(self.H)

    def gram(self, z: Array) -> Array:
        return self.ridged(self.H.copy(), -1.0)

    def value(self, w: Array) -> Array:
        if not self._many_nodes:
            return super().value(w)
        from nefele._kernels.certificate import squared_errors

        out, data = np.empty(self.n_nodes), self.data
        squared_errors(data.X, data.y, data.ptr, data.row_weight, self.ridge, w, out)
        return out

    def hess(self, w: Array) -> Array:
        return self.H

    def grad(self, w: Array) -> Array:
        if not self._many_nodes:
            return super().grad(w)
        out = block_product(self.H, w, True)
        out -= self.b
        return out

    def dual_point(self, w: Array, target: Array) -> DualPoint:
        return SquaredDual(self, w) if self._many_nodes else RowDual(self, w, target)

    def curvature(self) -> Array:
        return self._traces

    @cached_property
    def _traces(self) -> Array:
        found = np.einsum("ijj->i", self.H) / self.d
        found.flags.writeable = False
        return found

    def strong_convexity(self) -> Array:
        return self._eigen[0][:, 0]

    def prox(self, v: Array, step: Array, start: Array | None = None) -> Array:
        """(I + step H_i)^-1 (v + step b_i) in the eigenbasis; with l1, coordinate descent."""
        if not self.smooth:
            return self._lasso_prox(v, step, v if start is None else start)
        right = v + step[:, None] * self.b
        if self._wide:
            return self._woodbury(step, right)
        if self._many_nodes:
            return shifted_solve(self.H, step, right, True)
        values, vectors = self._eigen
        along = (right[:, None, :] @ vectors)[:, 0, :] / (1 + step[:, None] * values)
        return (vectors @ along[..., None])[..., 0]

    def affine_prox(self, step: Array) -> tuple[Array, Array]:
        """A_i and c_i of the prox A_i v + c_i, shapes (n_nodes, d, d) and (n_nodes, d)."""
        if self._wide:
            A = self._woodbury(step, np.broadcast_to(np.eye(self.d), self.H.shape))
            return A, (A @ (step[:, None] * self.b)[..., None])[..., 0]
        return affine_prox(self._eigen, self.b, step)

    @cached_property
    def _many_nodes(self) -> bool:
        """Whether to save time by H_i w - b_i, a little less accurate than a sum over rows."""
        return self.smooth and not self._wide and self.n_nodes * self.d >= _LARGE

    def sized(self, n_nodes: int, n_rows: int) -> None:
        super().sized(n_nodes, n_rows)
        self._many_nodes = self.smooth and not self._wide and n_nodes * self.d >= _LARGE

    @cached_property
    def _wide(self) -> bool:
        return self.d >= _MANY and 2 * int(self.data.counts.max(initial=0)) <= self.d

    def _woodbury(self, step: Array, right: Array) -> Array:
        """(I + step H_i)^-1 right_i for vectors (n_nodes, d) or matrices (n_nodes, d, k).

        With H = Z^T Z + R and the diagonal S = (I + step R)^-1 the inverse is
        S - step S Z^T (I + step Z S Z^T)^-1 Z S.
        """
        single = right.ndim == 2
        columns = right[..., None] if single else right
        shrunk = 1 / (1 + 2 * self.ridge * step[:, None])
        out = shrunk[:, :, None] * columns
        for nodes, rows in self._blocks:
            Z = np.sqrt(2 * self.data.row_weight[rows])[..., None] * self.data.X[rows]
            back = (step[:, None] * shrunk)[nodes, :, None] * np.swapaxes(Z, 1, 2)
            inner = np.linalg.solve(np.eye(rows.shape[1]) + Z @ back, Z @ out[nodes])
            out[nodes] -= back @ inner
        return out[..., 0] if single else out

    def _lasso_prox(self, v: Array, step: Array, start: Array) -> Array:
        from nefele._kernels.lasso import lasso_quadratic

        model = self.H + np.eye(self.d) / step[:, None, None]
        return lasso_quadratic(model, self.b + v / step[:, None], self.lasso, start)

    def minimise(self) -> Array:
        """Least-squares solutions of least norm (ridge: the unique ones).

        Without ridge from X itself, since X^T X squares its condition number.
        """
        if not self.smooth:
            return super().minimise()
        if not self.ridge.any():
            w = np.zeros((self.n_nodes, self.d))
            for nodes, rows in self._blocks:
                root = np.sqrt(self.data.row_weight[rows])
                X, y = root[..., None] * self.data.X[rows], root * self.data.y[rows]
                inverse = np.linalg.pinv(X, rcond=max(X.shape[1:]) * np.finfo(float).eps)
                w[nodes] = (inverse @ y[..., None])[..., 0]
            return w
        return self.least_norm(self.b)

    def least_norm(self, right: Array) -> Array:
        """H_i^+ right_i of each node, shape (n_nodes, d)."""
        return least_norm(self._eigen, right)


class SquaredDual(QuadraticDual):
    """s_i = H_i p_i - b_i at a point p that moves; rows are only needed for the conjugate."""

    def size(self) -> Array:
        """|H_jk| <= sqrt(H_jj H_kk) bounds the terms of H p."""
        from nefele._kernels.certificate import squared_sizes

        out = np.empty_like(self.point)
        squared_sizes(self.loss.H, self.loss.b, self.point, out)
        return out

    def conjugate(self, theta: Array) -> Array:
        """By the row duals a_r = 2 (x_r^T p_i - y_r): f*(theta a) = theta a (theta a / 4 + y)."""
        from nefele._kernels.certificate import squared_conjugates

        loss, data, out = self.loss, self.loss.data, np.empty(self.loss.n_nodes)
        rows = data.X, data.y, data.ptr, data.row_weight
        squared_conjugates(*rows, loss.ridge, self.point, theta, out)
        return out
