"""The cones of an interior-point method: t_e >= ||v_e|| per edge, or per entry for the l1 norm."""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.forest import diagonal_blocks, unrolled
from nefele.penalties import Huber, L1Norm, L2Norm
from nefele.problem import Problem


class Cones:
    """Points x = (t, v) and z = (s, -u) strictly inside their cones, s = lam A_e.

    At an optimum v = D w - soft u and x^T z = 0; soft = delta / s for the Huber penalty, else 0.
    For the l1 norm every entry of an edge is a cone of its own.

    Parameters
    ----------
    problem : Problem
    v, u : arrays of shape (n_edges, d)
        Differences and flow to start near.
    total : float
        Sum of x^T z at the start, which is central: equal in all cones.

    Attributes
    ----------
    total, first : float
        Sum of x^T z now and at the start.
    longest : float
        Longest step inside the cones along the last direction.
    """

    def __init__(self, problem: Problem, v: Array, u: Array, total: float) -> None:
        self.shape = v.shape
        entries = v.shape[1] if isinstance(problem.penalty, L1Norm) else 1
        length = v.shape[1] // entries
        self.dims = unrolled(length, problem.graph.n_nodes * entries)
        self.s = np.repeat(problem.scale, entries)
        delta = problem.penalty.delta if isinstance(problem.penalty, Huber) else 0.0
        self.soft = delta / self.s
        v, u = v.reshape(-1, length), u.reshape(-1, length)
        self.t, self.v, self.u = _central(self.s, v, u, total / len(self.s))
        self.off = v - self.v - self.soft[:, None] * self.u
        self.total = self.first = total
        self.longest, self._change = 0.0, [0.0, 0.0]
        self._y0, self._g, self._q0 = np.empty((3, len(self.t)))
        self._y1, self._q1, self._pull = np.empty((3, *self.v.shape))
        self._C = np.empty((len(self.t), length, length))
        self.dt, self.dv, self.du = np.zeros_like(self.t), *np.zeros((2, *self.v.shape))

    @staticmethod
    def fit(problem: Problem) -> bool:
        """Whether the penalty can be written with such cones."""
        return type(problem.penalty) in (L2Norm, L1Norm, Huber)

    @property
    def flow(self) -> Array:
        """The flow u, shape (n_edges, d)."""
        return self.u.reshape(self.shape)

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


def _central(s: Array, v: Array, u: Array, level: float) -> tuple[Array, Array, Array]:
    """The central point (t, v', u') at this level with v' + k u' = v + k u.

    Central: v' = level u' / (s^2 - ||u'||^2), t = level s / (s^2 - ||u'||^2). As the level falls,
    v' and u' tend to v and u where these are optimal, whatever k > 0 is.
    """
    length = np.sqrt(np.einsum("ij,ij->i", v, v))
    k = (float(length.mean()) + level / s) / s
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
