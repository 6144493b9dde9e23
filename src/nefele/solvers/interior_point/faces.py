"""Edge terms of an interior-point method that are no second-order cones: linf, and quadratic ones.

The linf norm is the least t with -t <= v_j <= t for all j. With multipliers p, q >= 0 of the two
sides the flow of an edge is u = p - q, and sum_j p_j + q_j = s keeps it inside its l1 ball.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.solvers.interior_point.cones import outlying

_DIRECTION = ("dt", "dv", "du", "da", "db", "dp", "dq", "longest", "_change")


class Faces:
    """Points t > |v_j| and p, q > 0 with sum_j p_j + q_j = s: the linf norm of each edge.

    The interface of `Cones`. The scale s bounds the flow, which is zero at the start, where v = D w
    has shape (n_edges, d), the sum of x^T z = s t - <u, v> is `total`, and all products (t - v_j)
    p_j and (t + v_j) q_j are equal.
    """

    name, kept = "edges", ("t", "v", "p", "q", "off")

    def __init__(self, scale: Array, v: Array, total: float) -> None:
        self.s, self.count = scale, v.size
        self.t = total / (len(v) * self.s)
        self.v, self.off = np.zeros_like(v), v.copy()
        self.p = np.repeat(self.s[:, None] / (2 * v.shape[1]), v.shape[1], axis=1)
        self.q = self.p.copy()
        self.total = self.first = total
        self.longest, self._change = 0.0, [0.0, 0.0]

    @property
    def flow(self) -> Array:
        """The flow u, shape (n_edges, d)."""
        return self.p - self.q

    def ahead_flow(self, step: float) -> Array:
        """The flow after a step."""
        return self.flow + step * self.du

    def scale(self) -> Array:
        """C, shape (n_edges, d, d): diag(h + k) less a matrix of rank one that t explains.

        h = p / (t - v), k = q / (t + v). The diagonal is summed without cancellation.
        """
        self.a, self.b = self.t[:, None] - self.v, self.t[:, None] + self.v
        self.h, self.k = self.p / self.a, self.q / self.b
        both, self.skew = self.h + self.k, self.h - self.k
        self.sum = both.sum(axis=1, keepdims=True)
        self.total = float(np.vdot(self.a, self.p) + np.vdot(self.b, self.q))
        self.da, self.db, self.dp, self.dq = np.zeros((4, *self.v.shape))
        C: Array = -self.skew[:, :, None] * (self.skew / self.sum)[:, None, :]
        rest = _sum_of_others(both)
        np.einsum("ejj->ej", C)[...] = (both * rest + 4 * self.h * self.k) / self.sum
        self._C = C
        return C

    def aim(self, level: float, rest: float, bend: float) -> Array:
        """Aim at products level / 2; returns the part of the flow's change without D dw."""
        self.left = (0.5 * level - bend * self.da * self.dp) / self.a - self.p
        self.right = (0.5 * level - bend * self.db * self.dq) / self.b - self.q
        self._still = (self._C @ (rest * self.off)[..., None])[..., 0]
        return self._pull()

    def nudge(self, step: float, level: float) -> Array:
        """Change what is aimed at so that a longer step stays inside; returns the new pull."""
        self.left = self.left + outlying(self.a, self.p, self.da, self.dp, step, level) / self.a
        self.right = self.right + outlying(self.b, self.q, self.db, self.dq, step, level) / self.b
        return self._pull()

    def _pull(self) -> Array:
        self.lift = (self.left + self.right).sum(axis=1)
        pull = self.left - self.right - self.skew * (self.lift[:, None] / self.sum)
        self._pulled: Array = pull + self._still
        return self._pulled

    def direct(self, change: Array, flow: Array, rest: float) -> None:
        """Directions, given D dw, and the longest step along them."""
        from nefele._kernels.faces import direct

        self.dt, moves = np.empty(len(self.v)), np.empty((6, *self.v.shape))
        self.dv, self.du, self.da, self.db, self.dp, self.dq = moves
        sides = (self.a, self.b, self.p, self.q, self.h, self.k, self.skew, self.sum)
        aims = (self.left, self.right, self.lift, self._pulled, self.off)
        self.longest, *self._change = direct(*sides, *aims, change, flow, rest, (self.dt, *moves))

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
        self.t = self.t + step * self.dt
        self.v += step * self.dv
        self.p += step * self.dp
        self.q += step * self.dq
        again = (self.s / (self.p + self.q).sum(axis=1))[:, None]  # 1 but for rounding errors
        self.p *= again
        self.q *= again
        self.off *= 1.0 - step * rest


class Springs:
    """Quadratic edge terms, whose flow u = s Q D w follows w: no cones at all."""

    count, total, first, longest = 0, 0.0, 0.0, np.inf
    name, kept = "edges", ("flow",)

    def __init__(self, Q: Array, scale: Array, v: Array) -> None:
        self._C = scale[:, None, None] * Q
        self.flow: Array = (self._C @ v[..., None])[..., 0]

    def ahead_flow(self, step: float) -> Array:
        """The flow after a step."""
        return self.flow + step * self._du

    def scale(self) -> Array:
        """C = s Q, shape (n_edges, d, d)."""
        return self._C

    def aim(self, level: float, rest: float, bend: float) -> Array:
        """No pull."""
        return np.zeros_like(self.flow)

    def nudge(self, step: float, level: float) -> Array:
        """No pull."""
        return np.zeros_like(self.flow)

    def direct(self, change: Array, flow: Array, rest: float) -> None:
        """The flow's direction is C D dw."""
        self._du = flow

    def save(self) -> Array:
        """The present direction, for `restore`."""
        return self._du

    def restore(self, saved: Array) -> None:
        """Back to a direction that was saved."""
        self._du = saved

    def ahead(self, step: float) -> float:
        """Always zero."""
        return 0.0

    def move(self, step: float, rest: float) -> None:
        """Take the step."""
        self.flow = self.ahead_flow(step)


def _sum_of_others(values: Array) -> Array:
    """Sum over each row but for one entry, shape as `values`, all of them positive."""
    out = np.zeros_like(values)
    out[:, 1:] = np.cumsum(values[:, :-1], axis=1)
    out[:, :-1] += np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return out
