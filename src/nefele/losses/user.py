"""A user's own loss: an object with `value` and `prox`, or `value` and `grad`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count
from nefele.losses.base import BoundLoss

_STEPS = 200
_TOL = 1e-12
_PROBE_STEP = 1e-3
_PROBE_TOL = 1e-3


class UserLoss(BoundLoss):
    """Wraps an object whose methods take and return arrays with the nodes as first axis.

    `value(w) -> (n_nodes,)`, `grad(w) -> (n_nodes, d)`, `prox(v, step) -> (n_nodes, d)`; optional:
    `hess(w)`, `strong_convexity() -> (n_nodes,)`, `curvature() -> (n_nodes,)`. With a prox the
    value may be infinite outside the loss's domain, at zero too.
    """

    def __init__(self, user: Any, n_nodes: int, d: int) -> None:
        self.user, self.n_nodes, self.d = user, n_nodes, check_count(d, "d", low=1)
        labelled = self._shape(getattr(user, "labelled", np.ones(n_nodes)), (n_nodes,), "labelled")
        self.labelled = labelled.astype(bool)
        self.smooth = hasattr(user, "grad")
        self._probe()

    def _probe(self) -> None:
        """Try every method once, so that a mistake shows before the work."""
        zero = np.zeros((self.n_nodes, self.d))
        if self.smooth:
            self._probe_grad()
        found = {"value": self.value(zero), "prox": self.prox(zero, np.ones(self.n_nodes))}
        if hasattr(self.user, "prox") and np.isposinf(found["value"]).any():
            found["value"] = self.value(found["prox"])  # its domain may lie elsewhere
        found["strong_convexity"] = self.strong_convexity()
        found["curvature"] = self.curvature()
        if self.smooth:
            found["grad"] = self.grad(zero)
        for name, values in found.items():
            if not np.isfinite(values).all():
                where = " or at its prox" if name == "value" and hasattr(self.user, "prox") else ""
                raise ValueError(
                    f"{name} of {type(self.user).__name__} must be finite at w = 0{where}."
                )
        if (found["curvature"] < 0).any() or (found["strong_convexity"] < 0).any():
            raise ValueError(
                f"curvature and strong_convexity of {type(self.user).__name__} must be >= 0."
            )

    def _probe_grad(self) -> None:
        """Compare `grad` with differences of `value`, at zero and at a random point.

        The slope of a convex loss lies between its two one-sided differences, at kinks too.
        """
        rng = np.random.default_rng(0)
        point, move = rng.normal(size=(2, self.n_nodes, self.d))
        move /= np.linalg.norm(move, axis=1, keepdims=True)
        for name, w in (("w = 0", np.zeros_like(point)), ("a random w", point)):
            with np.errstate(all="ignore"):
                values = [self.value(w + t * _PROBE_STEP * move) for t in (-1, 0, 1)]
                sides = np.diff(values, axis=0) / _PROBE_STEP
                slope = (self.grad(w) * move).sum(axis=1)
                off = np.maximum(sides.min(axis=0) - slope, slope - sides.max(axis=0))
                size = np.maximum(np.abs(sides).max(axis=0), np.abs(slope))
                noise = self._rounding(w) * np.abs(values).max(axis=0) / _PROBE_STEP
                bad = np.isfinite(size) & (off > _PROBE_TOL * size + noise)
            if bad.any():
                i = int(np.argmax(bad))
                raise ValueError(
                    f"grad of {type(self.user).__name__} must be the gradient of value; along one "
                    f"direction at {name} it gives {slope[i]:.6g}, differences of value give "
                    f"{sides[:, i].mean():.6g}, at the node of position {i}. Check its sign and "
                    "factors."
                )

    def _rounding(self, w: Array) -> float:
        """Relative rounding error to allow in `value`, which may be of single precision."""
        kind = np.result_type(np.asarray(self.user.value(_locked(w))).dtype, np.float32)
        return 100 * float(np.finfo(kind).eps)

    def _shape(self, out: Any, shape: tuple[int, ...], name: str) -> Array:
        try:
            array = np.asarray(out, dtype=float)
        except (TypeError, ValueError):
            array = np.array(np.nan)
        if array.shape != shape:
            raise ValueError(
                f"{name} of {type(self.user).__name__} must return shape {shape}; "
                f"got {array.shape}."
            )
        return array

    def value(self, w: Array) -> Array:
        return self._shape(self.user.value(_locked(w)), (self.n_nodes,), "value")

    def grad(self, w: Array) -> Array:
        if not self.smooth:
            raise TypeError(f"{type(self.user).__name__} gives no grad.")
        return self._shape(self.user.grad(_locked(w)), w.shape, "grad")

    def prox(self, v: Array, step: Array, start: Array | None = None) -> Array:
        if hasattr(self.user, "prox"):
            return self._shape(self.user.prox(_locked(v), _locked(step)), v.shape, "prox")
        return _prox_by_gradients(self, v, step, v if start is None else start)

    def hess(self, w: Array) -> Array | None:
        if not hasattr(self.user, "hess"):
            return None
        return self._shape(self.user.hess(_locked(w)), (*w.shape, self.d), "hess")

    def restrict(self, nodes: NDArray[np.int64]) -> BoundLoss:
        if not hasattr(self.user, "restrict"):
            return super().restrict(nodes)
        return UserLoss(self.user.restrict(nodes), len(nodes), self.d)

    def strong_convexity(self) -> Array:
        ask = getattr(self.user, "strong_convexity", super().strong_convexity)
        return self._shape(ask(), (self.n_nodes,), "strong_convexity")

    def curvature(self) -> Array:
        ask = getattr(self.user, "curvature", super().curvature)
        return self._shape(ask(), (self.n_nodes,), "curvature")


def _locked(values: Array) -> Array:
    """A read-only view: a user's method that writes into its argument fails at once."""
    view = values.view()
    view.flags.writeable = False
    return view


def _prox_by_gradients(loss: BoundLoss, v: Array, step: Array, z: Array) -> Array:
    """Batched BFGS for L_i(z) + ||z - v_i||^2 / (2 step_i), with backtracking per node."""
    n, d = v.shape
    eye = np.eye(d)

    def excess(z: Array) -> Array:
        return loss.value(z) + ((z - v) ** 2).sum(axis=1) / (2 * step)

    def slope(z: Array) -> Array:
        return loss.grad(z) + (z - v) / step[:, None]

    inverse = step[:, None, None] * eye
    f, g = excess(z), slope(z)
    for _ in range(_STEPS):
        move = -(inverse @ g[..., None])[..., 0]
        descent = (g * move).sum(axis=1)
        if not np.isfinite(f + descent).all():
            return np.full_like(v, np.nan)
        if np.all(np.abs(move).max(axis=1) <= _TOL * (1 + np.abs(z).max(axis=1))):
            break
        length = np.ones(n)
        for _ in range(50):
            trial = z + length[:, None] * move
            new = excess(trial)
            ok = new <= f + 1e-4 * length * descent + 1e-15 * np.abs(f)
            if ok.all():
                break
            length = np.where(ok, length, 0.5 * length)
        if not ok.any():
            break
        trial = np.where(ok[:, None], trial, z)
        after = slope(trial)
        s, y = trial - z, after - g
        inverse = _bfgs_update(inverse, s, y, eye)
        z, f, g = trial, np.where(ok, new, f), after
    return z


def _bfgs_update(inverse: Array, s: Array, y: Array, eye: Array) -> Array:
    """The inverse BFGS formula at the nodes where the curvature is positive."""
    bend = (s * y).sum(axis=1)
    good = bend > 1e-14 * np.sqrt((s * s).sum(axis=1) * (y * y).sum(axis=1))
    good &= bend > 0
    rho = np.where(good, 1 / np.where(good, bend, 1.0), 0.0)[:, None, None]
    left = eye - rho * s[:, :, None] * y[:, None, :]
    return left @ inverse @ np.swapaxes(left, 1, 2) + rho * s[:, :, None] * s[:, None, :]
