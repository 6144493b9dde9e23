"""The cones of an interior-point method: t_e >= ||v_e|| per edge, or per entry for the l1 norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array
from nefele._systems.forest import diagonal_blocks, unrolled

_NEAR = 0.3  # share of the level from which a product counts as near it


class Cones:
    """Points x = (t, v) and z = (s, -u) strictly inside their cones, s = lam A_e.

    At an optimum v = D w - soft u and x^T z = 0; soft = delta / s for the Huber penalty, else 0.
    For the l1 norm every entry of an edge is a cone of its own.

    Parameters
    ----------
    scale : array of shape (n_edges,)
        s.
    v, u : arrays of shape (n_edges, k)
        Differences and flow of the coupled entries to start near.
    total : float
        Sum of x^T z at the start, which is central: equal in all cones.
    delta : float
        That of a Huber penalty; 0 for a norm.
    entrywise : bool
        Whether each entry is a cone of its own.

    Attributes
    ----------
    total, first : float
        Sum of x^T z now and at the start.
    longest : float
        Longest step inside the cones along the last direction.
    """

    name, kept = "edges", ("t", "v", "u", "off")

    def __init__(
        self,
        scale: Array,
        v: Array,
        u: Array,
        total: float,
        *,
        delta: float = 0.0,
        entrywise: bool = False,
    ) -> None:
        self.shape = v.shape
        entries = v.shape[1] if entrywise else 1
        length = v.shape[1] // entries
        self.dims = unrolled(length, len(v) * entries)
        s = np.repeat(scale, entries)
        self._begin(s, delta / s, v.reshape(-1, length), u.reshape(-1, length), total)

    def _begin(self, s: Array, soft: Array, v: Array, u: Array, total: float) -> None:
        length = v.shape[1]
        self.s, self.soft, self.count = s, soft, len(s)
        self.t, self.v, self.u = _central(self.s, v, u, total / max(self.count, 1), soft)
        self.off = v - self.v - self.soft[:, None] * self.u
        self.total = self.first = total
        self.longest, self._change = 0.0, [0.0, 0.0]
        self._y0, self._g, self._q0 = np.empty((3, len(self.t)))
        self._y1, self._q1, self._pull = np.empty((3, *self.v.shape))
        self._C = np.empty((len(self.t), length, length))
        self.dt, self.dv, self.du = np.zeros_like(self.t), *np.zeros((2, *self.v.shape))

    @property
    def flow(self) -> Array:
        """The flow u, shape (n_edges, d)."""
        return self.u.reshape(self.shape)

    def sizes(self) -> Array:
        """Length of v, and room that u leaves in its ball: (2, n_edges, cones of an edge)."""
        away, used = (np.sqrt(np.einsum("ij,ij->i", x, x)) for x in (self.v, self.u))
        return np.stack([away, (self.s - used) / self.s]).reshape(2, self.shape[0], -1)

    def ahead_flow(self, step: float) -> Array:
        """The flow after a step."""
        return (self.u + step * self.du).reshape(self.shape)

    def scale(self) -> Array:
        """Scale the cones to the present point; returns C, shape (n_edges, d, d)."""
        from nefele._kernels.cones import scale

        here = (self.t, self.v, self.s, self.u, self.soft)
        self.total = scale(self.dims, *here, self._y0, self._y1, self._g, self._C)
        self.dt[:], self.dv[:], self.du[:] = 0.0, 0.0, 0.0
        if self._C.shape[1] == self.shape[1]:
            return self._C
        return diagonal_blocks(self._C.reshape(self.shape), self.shape[1])

    def aim(self, level: float, rest: float, bend: float) -> Array:
        """Aim at x^T z = level and at the share `rest` less error in v = D w - soft u.

        Corrected by `bend` times the last direction's second-order term. Returns the pull
        C (off - q), shape (n_edges, d): the part of the flow's change that does not depend on dw.
        """
        from nefele._kernels.cones import aim

        here = (self.t, self.v, self.s, self.u, rest * self.off)
        scaled = (self._y0, self._y1, self._g, self._C)
        moves = (self.dt, self.dv, self.du)
        aim(self.dims, *here, *scaled, level, bend, *moves, self._q0, self._q1, self._pull)
        return self._pull.reshape(self.shape)

    def direct(self, change: Array, flow: Array, rest: float) -> None:
        """Directions of t, v and u, given D dw and C D dw, and the longest step along them."""
        from nefele._kernels.cones import direct

        self.dv[:] = change.reshape(self.v.shape)
        here = (self.t, self.v, self.s, self.u, rest * self.off, self.soft)
        aims = (self._y0, self._y1, self._q0, self._q1, self._pull)
        moves = (flow.reshape(self.v.shape), self.dv, self.du, self.dt)
        self.longest, *self._change = direct(self.dims, *here, *aims, *moves)

    def nudge(self, step: float, level: float) -> Array:
        """Change what is aimed at so that a longer step stays inside; returns the new pull.

        For cones of one entry, which are pairs of inequalities; longer ones stay as they are.
        """
        if self.v.shape[1] == 1:
            v, dv, u, du = (x[:, 0] for x in (self.v, self.dv, self.u, self.du))
            left = outlying(self.t - v, (self.s + u) / 2, self.dt - dv, du / 2, step, level)
            right = outlying(self.t + v, (self.s - u) / 2, self.dt + dv, -du / 2, step, level)
            left, right = 2 * left / (self.s + u), 2 * right / (self.s - u)
            self._q0 += (left + right) / 2
            self._q1[:, 0] += (right - left) / 2
            self._pull[:, 0] -= self._C[:, 0, 0] * (right - left) / 2
        return self._pull.reshape(self.shape)

    def save(self) -> tuple[Any, ...]:
        """The present direction, for `restore`."""
        return self.dt.copy(), self.dv.copy(), self.du.copy(), self.longest, self._change

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Back to a direction that was saved."""
        self.dt, self.dv, self.du, self.longest, self._change = saved

    def ahead(self, step: float) -> float:
        """Sum of x^T z after a step."""
        return self.total + step * (self._change[0] + step * self._change[1])

    def move(self, step: float, rest: float) -> None:
        """Take the step."""
        self.total = self.ahead(step)
        self.t += step * self.dt
        self.v += step * self.dv
        self.u += step * self.du
        self.off *= 1.0 - step * rest


def outlying(x: Array, z: Array, dx: Array, dz: Array, step: float, level: float) -> Array:
    """What the products x z miss, after a step, of being near level / 2 (Gondzio 1996)."""
    after = (x + step * dx) * (z + step * dz)
    low, high = 0.5 * level * _NEAR, 0.5 * level / _NEAR
    return np.maximum(np.clip(after, low, high) - after, -high)


def _central(
    s: Array, v: Array, u: Array, level: float, soft: Array | float = 0.0
) -> tuple[Array, Array, Array]:
    """The central point (t, v', u') at this level with v' + k u' = v + k u.

    Central: v' = level u' / (s^2 - ||u'||^2), t = level s / (s^2 - ||u'||^2). As the level falls,
    v' and u' tend to v and u where these are optimal, whatever k > 0 is. With k = soft and u = 0
    the point meets v = v' + soft u' at once.
    """
    length = np.sqrt(np.einsum("ij,ij->i", v, v))
    k = np.maximum((float(length.sum()) / max(len(s), 1) + level / s) / s, soft)
    p = v + k[:, None] * u
    size = np.sqrt(np.einsum("ij,ij->i", p, p))
    low, high = np.full_like(s, 1e-30), np.ones_like(s)
    for _ in range(45 if size.any() else 0):  # for q = 1 - ||u'|| / s, which may be tiny
        q = np.sqrt(low * high)
        above = (1 - q) * (level / (s * q * (2 - q)) + k * s) > size
        low, high = np.where(above, q, low), np.where(above, high, q)
    share, room = 1 - high, s * high * (2 - high)
    unit = p / np.where(size > 0, size, 1.0)[:, None]
    return level / room, (level * share / room)[:, None] * unit, (s * share)[:, None] * unit
