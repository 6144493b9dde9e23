"""Quadratic losses given by their coefficients: what summed squared losses become."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.losses.base import BoundLoss, DualPoint, shifted_solve

_COMPILED = 20_000  # numbers from which compiled loops pay off


class BoundQuadratic(BoundLoss):
    """L_i(w) = 1/2 w^T H_i w - b_i^T w + c_i with H_i psd and b_i in its range."""

    def __init__(self, H: Array, b: Array, c: Array) -> None:
        self.H, self.b, self.c = H, b, c
        self.n_nodes, self.d = b.shape
        self.labelled = np.einsum("ijj->i", H) > 0

    affine_grad = True

    @cached_property
    def _compiled(self) -> bool:
        return self.b.size >= _COMPILED

    @cached_property
    def _eigen(self) -> Eigen:
        return eigen(self.H)

    def value(self, w: Array) -> Array:
        return ((0.5 * (self.H @ w[..., None])[..., 0] - self.b) * w).sum(axis=1) + self.c

    def grad(self, w: Array) -> Array:
        return (self.H @ w[..., None])[..., 0] - self.b

    def hess(self, w: Array) -> Array:
        return self.H

    def strong_convexity(self) -> Array:
        return self._eigen[0][:, 0]

    def curvature(self) -> Array:
        return np.einsum("ijj->i", self.H) / self.d

    def prox(self, v: Array, step: Array, start: Array | None = None) -> Array:
        return shifted_solve(self.H, step, v + step[:, None] * self.b, self._compiled)

    def affine_prox(self, step: Array) -> tuple[Array, Array]:
        """A_i and c_i of the prox A_i v + c_i, shapes (n_nodes, d, d) and (n_nodes, d)."""
        return affine_prox(self._eigen, self.b, step)

    def minimise(self) -> Array:
        return self.least_norm(self.b)

    def least_norm(self, right: Array) -> Array:
        """H_i^+ right_i of each node, shape (n_nodes, d)."""
        return least_norm(self._eigen, right)

    def restrict(self, nodes: NDArray[np.int64]) -> BoundLoss:
        part = BoundQuadratic(self.H[nodes], self.b[nodes], self.c[nodes])
        part._compiled = self._compiled
        return part

    def dual_point(self, w: Array, target: Array) -> DualPoint:
        return QuadraticDual(self, w)


Eigen = tuple[Array, Array]


def eigen(H: Array) -> Eigen:
    """Eigenvalues and eigenvectors of each H_i, what is left of rounding set to zero."""
    values, vectors = np.linalg.eigh(H)
    return np.where(values > 1e-14 * values[:, -1:] * H.shape[1], values, 0.0), vectors


def affine_prox(parts: Eigen, b: Array, step: Array) -> tuple[Array, Array]:
    """A_i and c_i of the prox A_i v + c_i of a quadratic loss."""
    values, vectors = parts
    A = (vectors / (1 + step[:, None] * values)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return A, (A @ (step[:, None] * b)[..., None])[..., 0]


def least_norm(parts: Eigen, b: Array) -> Array:
    """Minimisers H_i^+ b_i, shape (n_nodes, d)."""
    values, vectors = parts
    along = (b[:, None, :] @ vectors)[:, 0, :]
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
    return np.asarray((vectors @ (along * inverse)[..., None])[..., 0], dtype=float)


class QuadraticDual(DualPoint):
    """s_i = H_i p_i - b_i at a point p: L_i*(s_i) = 1/2 p_i^T H_i p_i - c_i for p in H's range."""

    def __init__(self, loss: Any, w: Array) -> None:
        self.loss, self.point = loss, w.copy()

    def flow(self) -> Array:
        return self.loss.grad(self.point)

    def size(self) -> Array:
        terms = np.abs(self.loss.H) @ np.abs(self.point)[..., None]
        return terms[..., 0] + np.abs(self.loss.b)

    def metric(self) -> Array:
        return self.loss.H

    def move(self, x: Array, target: Array) -> None:
        self.point -= x

    def settle(self, x: Array) -> None:
        self.point = self.point - x

    def domain_ratio(self) -> Array:
        return np.zeros(self.loss.n_nodes)

    def conjugate(self, theta: Array) -> Array:
        """L*(theta s) = 1/2 q^T H q - c with H q = theta H p + (1 - theta) b."""
        offset = self.loss.minimise()  # H offset = b
        q = theta[:, None] * self.point + (1 - theta)[:, None] * offset
        return 0.5 * (q * (self.loss.H @ q[..., None])[..., 0]).sum(axis=1) - self.loss.c
