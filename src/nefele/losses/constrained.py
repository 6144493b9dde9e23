"""A loss whose parameters stay in a convex set: prox steps are projected Newton steps.

L_i(w) + I_C(w) has the conjugate min over nu of L_i*(s - nu) + sigma_C(nu), sigma_C the support
function of C: any nu gives a bound, and the one in the normal cone at the optimum an exact one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.data import LocalData
from nefele.losses.base import BoundLoss, DualPoint, Loss
from nefele.losses.constraints import Constraint, as_constraint
from nefele.losses.escape import Escape, joined
from nefele.losses.piecewise import BoundPiecewise
from nefele.losses.pointwise import BoundPointwise
from nefele.losses.rows import BoundRows, RowDual, _line_search

_NEWTON_STEPS, _NEWTON_TOL = 100, 1e-14


@dataclass(frozen=True)
class Constrained(Loss):
    """A loss with parameters in a set: `Nonnegative()`, `Box(low, high)` or `Simplex()`.

    The set is for all nodes, those without data included; all parameters are in it at once.

    Parameters
    ----------
    loss : Loss
        Any loss with a gradient, with `l2` and `l1` terms if it has them.
    within : str or Constraint
        "nonnegative", "simplex", or an object.

    Examples
    --------
    >>> from nefele.losses import Squared
    >>> data = LocalData.from_list([([[1.0, 0.0], [0.0, 1.0]], [2.0, -2.0])])
    >>> Constrained(Squared(), "nonnegative").bind(data).minimise().round(6).tolist()
    [[2.0, 0.0]]
    """

    loss: Loss
    within: Any = "nonnegative"

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss) or isinstance(self.loss, Constrained):
            raise ValueError(f"loss must be a Loss, such as Squared(); got {self.loss!r}.")
        object.__setattr__(self, "within", as_constraint(self.within))

    def bind(self, data: LocalData) -> BoundLoss:
        inner = self.loss.bind(data)
        if not isinstance(inner, BoundRows) or isinstance(inner, BoundPiecewise):
            raise ValueError(
                f"Constrained needs a loss with a gradient; got {type(self.loss).__name__}. Use "
                "HuberLoss for Absolute, SquaredHinge for Hinge."
            )
        return BoundConstrained(inner, self.within)


class BoundConstrained(BoundLoss):
    """A loss bound to data, infinite outside the set."""

    smooth = False

    def __init__(self, inner: BoundRows, within: Constraint) -> None:
        self.inner, self.within = inner, within
        self.n_nodes, self.d, self.labelled = inner.n_nodes, inner.d, inner.labelled
        within.check_dimension(self.d)

    def value(self, w: Array) -> Array:
        return np.where(self.within.inside(w), self.inner.value(w), np.inf)

    def grad(self, w: Array) -> Array:
        """Gradient of the loss itself, without its l1 term."""
        return self.inner.grad(w)

    def strong_convexity(self) -> Array:
        return self.inner.strong_convexity()

    def curvature(self) -> Array:
        return self.inner.curvature()

    def restrict(self, nodes: NDArray[np.int64]) -> BoundLoss:
        part = self.inner.restrict(nodes)
        assert isinstance(part, BoundRows)
        return BoundConstrained(part, self.within)

    def sized(self, n_nodes: int, n_rows: int) -> None:
        self.inner.sized(n_nodes, n_rows)

    def bends(self) -> Array:
        return self.inner.bends()

    def escape_nodes(self, nodes: NDArray[np.bool_]) -> Escape:
        """As of the loss itself, along directions that the set leaves open."""
        pinned, room = self.within.recession(self.d)
        none, some = np.zeros((0, self.d)), int(nodes.any())
        sets = Escape(none, pinned[: some * len(pinned)], room[: some * len(room)])
        return joined([self.inner.escape_nodes(nodes), sets])

    def held(self, ridge: Array) -> BoundLoss | None:
        inner = self.inner.held(ridge)
        return BoundConstrained(inner, self.within) if isinstance(inner, BoundRows) else None

    def _flat(self, groups: NDArray[np.int64], w: Array | None, basis: Array) -> NDArray[np.bool_]:
        return self.inner._flat(groups, w, basis)

    def prox(self, v: Array, step: Array, start: Array | None = None) -> Array:
        """Newton steps, each to the minimiser of a quadratic model within the set."""
        inner, eye = self.inner, np.eye(self.d)
        back = 1 / step

        def excess(z: Array) -> Array:
            return inner.value(z) + 0.5 * back * ((z - v) ** 2).sum(axis=1)

        z = self._nearest(v if start is None else start)
        active, current = np.ones(self.n_nodes, dtype=bool), excess(z)
        if not np.isfinite(current).all():
            z = np.where(np.isfinite(current)[:, None], z, self._refuge)
            current = excess(z)
        for _ in range(_NEWTON_STEPS):
            slope = inner.grad(z) + back[:, None] * (z - v)
            hess = np.asarray(inner.hess(z)) + back[:, None, None] * eye
            linear = np.einsum("ijk,ik->ij", hess, z) - slope
            move = self.within.minimise(hess, linear, inner.lasso, z) - z
            scale = np.maximum(np.abs(z + move), np.abs(v)).max(axis=1)
            active &= np.abs(move).max(axis=1) > _NEWTON_TOL * scale
            if not active.any():
                break
            before = current
            z, current = _line_search(excess, z, np.where(active[:, None], move, 0.0), current)
            if inner.affine_grad:  # the model is the loss
                break
            active &= current < before
        return z

    def origin(self) -> Array:
        """Zero where that is inside, else a point of the set near the data or near zero."""
        zero = np.zeros((self.n_nodes, self.d))
        inside = self.within.inside(zero)
        if inside.all():
            return zero
        with np.errstate(over="ignore", invalid="ignore"):
            near = self.prox(zero, self.steps())
            lower = self.value(self._refuge) < self.value(near)
        return np.where(inside[:, None], zero, np.where(lower[:, None], self._refuge, near))

    @cached_property
    def _refuge(self) -> Array:
        """Points of the set where the loss is finite, if that is known."""
        nearest = self._nearest(np.zeros((self.n_nodes, self.d)))
        if not isinstance(self.inner, BoundPointwise):
            return nearest
        return self.inner.start_within(self.within, nearest)

    def _nearest(self, v: Array) -> Array:
        """The projection on the set."""
        eye = np.repeat(np.eye(self.d)[None], len(v), axis=0)
        return self.within.minimise(eye, v, np.zeros_like(v), v)

    @property
    def lasso(self) -> Array:
        """Weights of |w_j|, shape (n_nodes, d)."""
        return self.inner.lasso

    def dual_point(self, w: Array, target: Array) -> DualPoint | None:
        if self.inner.dual_point(w, target) is None:
            return None
        return ConstrainedDual(self, w, target)


class ConstrainedDual(RowDual):
    """Row duals at a point that moves, with nu in the normal cone of the set where w was."""

    def __init__(self, loss: BoundConstrained, w: Array, target: Array) -> None:
        self.within, self.base = loss.within, w
        super().__init__(loss.inner, w, target)

    def _refresh(self, target: Array) -> None:
        super()._refresh(target)
        rest = target - self.loss.pull(self.a) - self.zeta
        self.nu = self.within.normal(self.base, rest, self.loss.lasso)

    def conjugate(self, theta: Array) -> Array:
        nu = theta[:, None] * self.nu
        return super().conjugate(theta) + self.within.support(nu, self.loss.lasso)
