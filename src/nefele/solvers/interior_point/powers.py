"""Edges with a p-norm in an interior-point method: power cones, which have no symmetric scaling.

||v||_p <= t if and only if there are r_j with

    |v_j| <= r_j^(1/p) t^(1 - 1/p),    sum_j r_j <= t.                                        (1)

The points x = (v, r, t) of (1) have the barrier (Nesterov 2012, for each power cone)

    F(x) = sum_j [-log(phi_j - v_j^2) - (1 - a) log r_j - a log t] - log(t - sum_j r_j)

with a = 1/p and phi_j = r_j^(2a) t^(2 - 2a), of degree 3 d + 1. The dual point z = (-u, 0, s) is
inside its cone where ||u||_q < s. Near the central path z = -mu grad F(x), so that dual directions
follow from primal ones by mu times the Hessian of F; steps stay where this is a good model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array

_NEAR = 5.0  # how far from the central path a step may end, in the norm of its Hessian
_NEARER = 0.95  # a cone that is farther away already must come nearer by so much
_RIDGES = (0.0, 1e-14, 1e-10)  # relative to a unit diagonal
_SHRINK, _TRIES = 0.8, 40
_DIRECTION = ("dv", "dh", "du", "longest", "_change")


class Powers:
    """Points of (1) with flows strictly inside their balls; the interface of `Cones`.

    They start at v = 0 with no flow, on the central path, where the sum of x^T z = s t - <u, v>
    is `total`.
    """

    name, kept = "edges", ("v", "h", "u", "off")

    def __init__(self, p: float, scale: Array, v: Array, total: float) -> None:
        m, d = v.shape
        self.a, self.q, self.s, self.degree = 1 / p, p / (p - 1), scale, 3 * d + 1
        self.count = m * self.degree / 2
        t = total / (m * self.s)
        share = (1 + self.a) / (1 + d * (1 + self.a))
        self.h = np.concatenate([np.repeat(share * t[:, None], d, axis=1), t[:, None]], axis=1)
        self.v, self.off, self.u = np.zeros_like(v), v.copy(), np.zeros_like(v)
        self.total = self.first = total
        self.longest, self._change = 0.0, [0.0, 0.0]
        self.dv, self.du, self.dh = np.zeros_like(v), np.zeros_like(v), np.zeros_like(self.h)

    @property
    def t(self) -> Array:
        """Bounds on the norms, shape (n_edges,)."""
        return self.h[:, -1]

    @property
    def flow(self) -> Array:
        """The flow u, shape (n_edges, d)."""
        return self.u

    def ahead_flow(self, step: float) -> Array:
        """The flow after a step."""
        return self.u + step * self.du

    def scale(self) -> Array:
        """C, shape (n_edges, d, d): mu times the Hessian without what r and t explain."""
        d = self.v.shape[1]
        self._slope, H = self._gradient(self.v, self.h), self._hessian(self.v, self.h)
        products = self.s * self.t - (self.u * self.v).sum(axis=1)
        self.total, self._mu = float(products.sum()), products / self.degree
        self._away = self._distance(self.v, self.h, self.u)
        hidden, cross = H[:, d:, d:], H[:, d:, :d]
        right = np.concatenate([cross, np.broadcast_to(np.eye(d + 1), hidden.shape)], axis=2)
        solved = _solve(hidden, right)
        self._lift, self._inverse = solved[:, :, :d], solved[:, :, d:]
        C = H[:, :d, :d] - np.swapaxes(cross, 1, 2) @ self._lift
        self._C: Array = self._mu[:, None, None] * (C + np.swapaxes(C, 1, 2)) / 2
        return self._C

    def aim(self, level: float, rest: float, bend: float) -> Array:
        """Aim at z = -(level / 2) grad F(x); returns the part of the flow's change without D dw."""
        d, self._level = self.v.shape[1], level
        hidden = -0.5 * level * self._slope[:, d:]
        hidden[:, -1] -= self.s
        self._still = hidden / self._mu[:, None]
        moved = (np.swapaxes(self._lift, 1, 2) @ hidden[..., None])[..., 0]
        pull = 0.5 * level * self._slope[:, :d] - self.u + moved
        self._pull: Array = pull + (self._C @ (rest * self.off)[..., None])[..., 0]
        return self._pull

    def nudge(self, step: float, level: float) -> Array:
        """No other pull."""
        return self._pull

    def direct(self, change: Array, flow: Array, rest: float) -> None:
        """Directions, given D dw, and a step along them that stays near the central path."""
        self.dv = change + rest * self.off
        self.du = flow + self._pull
        still = (self._inverse @ self._still[..., None])[..., 0]
        self.dh = still - (self._lift @ self.dv[..., None])[..., 0]
        self.longest = self._reach()
        slope = self.s @ self.dh[:, -1] - np.vdot(self.u, self.dv) - np.vdot(self.v, self.du)
        self._change = [float(slope), -float(np.vdot(self.du, self.dv))]

    def _reach(self) -> float:
        step = 1.0
        for _ in range(_TRIES):
            if self._good(step):
                return step
            step *= _SHRINK
        return 0.0

    def _good(self, step: float) -> bool:
        """Whether a step ends inside all cones and, unless it only predicts, near their centre."""
        v, h, u = self.v + step * self.dv, self.h + step * self.dh, self.u + step * self.du
        if not ((h > 0).all() and (h[:, -1] > h[:, :-1].sum(axis=1)).all()):
            return False
        if not (_norm(u, self.q) < self.s).all() or not (np.abs(v) < self._bounds(h)).all():
            return False
        if self._level == 0:
            return True
        away = self._distance(v, h, u)
        return bool((away <= np.maximum(_NEAR**2, _NEARER * self._away)).all())

    def _distance(self, v: Array, h: Array, u: Array) -> Array:
        """Square of how far z / mu + grad F is from zero in each cone, by the Hessian's inverse."""
        mu = (self.s * h[:, -1] - (u * v).sum(axis=1)) / self.degree
        off = self._gradient(v, h)
        off[:, : v.shape[1]] -= u / mu[:, None]
        off[:, -1] += self.s / mu
        return self._inverse_norm(v, h, off)

    def _inverse_norm(self, v: Array, h: Array, y: Array) -> Array:
        """y^T H^-1 y for the Hessian H of F, shape (n_edges,).

        Without -log(t - sum r) a power cone knows of others by t alone: v and r are eliminated
        cone by cone, in closed form, then t; the last logarithm is one more product.
        """
        a, d = self.a, v.shape[1]
        r, t, room, phi = self._parts(v, h)
        x, k, m = v / np.sqrt(room), 4 * phi - 2, phi * (phi - 1) / (2 * phi - 1)
        rest = t[:, 0] - r.sum(axis=1)
        low, high = 2 * a, 2 - 2 * a  # the powers of r and t in phi
        rr = low * phi - low**2 * m + (1 - a)
        rt = -low * high * m
        tt = low * high * phi**2 / (2 * phi - 1) + phi * (low * a + high * (1 - a)) + a * (1 - a)
        tt = ((tt - m * (low**2 * a + high**2 * (1 - a))) / rr).sum(axis=1)

        first = y[:, :d] * np.sqrt(room)
        moved = 2 * x * phi * first / k
        on_r = y[:, d:-1] * r + low * moved
        on_t = y[:, -1] * t[:, 0] + (high * moved - rt / rr * on_r).sum(axis=1)
        g_r = r / rest[:, None]
        g_t = -t[:, 0] / rest - (rt / rr * g_r).sum(axis=1)
        both = (g_r * on_r / rr).sum(axis=1) + g_t * on_t / tt
        last = (g_r * g_r / rr).sum(axis=1) + g_t * g_t / tt
        whole = (first**2 / k + on_r**2 / rr).sum(axis=1) + on_t**2 / tt
        return np.asarray(whole - both**2 / (1 + last))

    def _bounds(self, h: Array) -> Array:
        return h[:, :-1] ** self.a * h[:, -1:] ** (1 - self.a)

    def _parts(self, v: Array, h: Array) -> tuple[Array, Array, Array, Array]:
        """R, t, how far v^2 is from its bound phi, and phi in units of that."""
        g, size = self._bounds(h), np.abs(v)
        room = (g - size) * (g + size)
        return h[:, :-1], h[:, -1:], room, g * g / room

    def _gradient(self, v: Array, h: Array) -> Array:
        """Gradient of F in (v, r, t), shape (n_edges, 2 d + 1)."""
        a, (m, d) = self.a, v.shape
        r, t, room, phi = self._parts(v, h)
        rest = t[:, 0] - r.sum(axis=1)
        slope = np.empty((m, 2 * d + 1))
        slope[:, :d] = 2 * v / room
        slope[:, d:-1] = -2 * a * phi / r - (1 - a) / r + 1 / rest[:, None]
        slope[:, -1] = -(2 * (1 - a) * phi / t + a / t).sum(axis=1) - 1 / rest
        return slope

    def _hessian(self, v: Array, h: Array) -> Array:
        """Hessian of F in (v, r, t), shape (n_edges, 2 d + 1, 2 d + 1)."""
        a, (m, d) = self.a, v.shape
        r, t, room, phi = self._parts(v, h)
        slope_r, slope_t = 2 * a * phi / r, 2 * (1 - a) * phi / t  # of log(phi - v^2)
        rest = t[:, 0] - r.sum(axis=1)
        H = np.zeros((m, 2 * d + 1, 2 * d + 1))
        k = np.arange(d)
        slope_v = -2 * v / room
        H[:, k, k] = slope_v**2 + 2 / room
        H[:, k, d + k] = H[:, d + k, k] = slope_v * slope_r
        H[:, k, -1] = H[:, -1, k] = slope_v * slope_t
        H[:, d:-1, d:-1] = (1 / rest**2)[:, None, None]
        H[:, d + k, d + k] += slope_r**2 - 2 * a * (2 * a - 1) * phi / r**2 + (1 - a) / r**2
        both = slope_r * slope_t - 4 * a * (1 - a) * phi / (r * t) - (1 / rest**2)[:, None]
        H[:, d + k, -1] = H[:, -1, d + k] = both
        bend = slope_t**2 - 2 * (1 - a) * (1 - 2 * a) * phi / t**2 + a / t**2
        H[:, -1, -1] = bend.sum(axis=1) + 1 / rest**2
        return H

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
        self.total = self.ahead(step)
        self.v = self.v + step * self.dv
        self.h = self.h + step * self.dh
        self.u = self.u + step * self.du
        self.off = self.off * (1.0 - step * rest)


def _solve(blocks: Array, right: Array) -> Array:
    """Solutions for positive definite blocks, scaled to a unit diagonal first."""
    root = np.sqrt(np.einsum("ejj->ej", blocks))[:, :, None]
    scaled = blocks / root / np.swapaxes(root, 1, 2)
    eye = np.eye(blocks.shape[1])
    for ridge in _RIDGES:
        try:
            return np.asarray(np.linalg.solve(scaled + ridge * eye, right / root) / root)
        except np.linalg.LinAlgError:
            continue
    return np.full(right.shape, np.nan)  # overflowed: no step is good


def _norm(u: Array, q: float) -> Array:
    largest = np.abs(u).max(axis=1)
    safe = np.where(largest > 0, largest, 1.0)
    return largest * ((np.abs(u) / safe[:, None]) ** q).sum(axis=1) ** (1 / q)
