"""What an interior-point method adds up: smooth losses, the cones of edges and those of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.problem import Problem
from nefele.solvers.interior_point.cones import Cones, edge_kind, kinked
from nefele.solvers.interior_point.faces import Faces, Springs
from nefele.solvers.interior_point.rows import RowCones

_ENOUGH = 10.0  # strength of an edge, in units of what all losses together can pull
_START = 10.0  # factor of the first sum of x^T z for losses with kinks, which saves steps


class Terms:
    """The cones of edges and rows as one, and the smooth part of the losses.

    They start at w, and near the flow u, which is only a hint; all cones share the value of x^T z
    there equally. The rows of nodes that are `alone`, solved already, need no cones.
    """

    def __init__(
        self, problem: Problem, w: Array, u: Array, value: float, alone: NDArray[np.bool_]
    ) -> None:
        self.problem, self.graph, loss = problem, problem.graph, kinked(problem)
        kind, v = edge_kind(problem), problem.graph.diff(w)
        rows = 0 if loss is None else RowCones.number(loss, ~alone)
        edges = _number(problem)
        level = value * (1.0 if loss is None else _START) / max(rows + edges, 1)
        self.strength = problem.scale if loss is None else _strength(problem)
        self.edges: Cones | Faces | Springs
        if kind == "cones":
            self.edges = Cones(problem, v, u, level * edges, self.strength)
        elif kind == "faces":
            self.edges = Faces(self.strength, v, level * edges)
        else:
            self.edges = Springs(problem, v)
        self.rows = None if loss is None else RowCones(loss, w, level, ~alone)
        self.parts: list[Any] = [self.edges] if self.rows is None else [self.edges, self.rows]
        self.count, self.first = rows + edges, level * (rows + edges)
        self.linear = loss is not None or (kind == "faces" and problem.loss.affine_grad)

    @staticmethod
    def fit(problem: Problem) -> bool:
        """Whether all can be written with such cones, given Hessians of smooth losses."""
        kind = edge_kind(problem)
        return kind in ("cones", "faces") or (kind == "springs" and kinked(problem) is not None)

    @property
    def total(self) -> float:
        """Sum of x^T z."""
        return sum(part.total for part in self.parts)

    @property
    def longest(self) -> float:
        """Longest step inside all cones along the last direction."""
        return min(part.longest for part in self.parts)

    @property
    def flow(self) -> Array:
        """The flow u, shape (n_edges, d)."""
        return self.edges.flow

    def slope(self, w: Array, step: float = 0.0) -> Array:
        """The gradient of all terms at w, after a step of the cones, shape (n_nodes, d)."""
        u = self.edges.ahead_flow(step) if step else self.edges.flow
        if self.rows is None:
            return self.problem.loss.grad(w) + self.graph.div(u)
        rows = self.rows.u + step * self.rows.du
        smooth = _times(self.rows.ridge, w) + self.rows.linear
        return smooth + self.rows.to_nodes(rows) + self.graph.div(u)

    def scale(self, w: Array) -> tuple[Array, Array]:
        """Blocks of the Newton system: M, shape (n_nodes, d, d), and C, shape (n_edges, d, d)."""
        if self.rows is None:
            self._smooth = np.asarray(self.problem.loss.hess(w))
            return self._smooth, self.edges.scale()
        self._smooth = self.rows.ridge
        return self._smooth + self.rows.gram(), self.edges.scale()

    def aim(self, level: float, rest: float, bend: float) -> Array:
        """Aim at this x^T z; returns the pull on the nodes, shape (n_nodes, d)."""
        pull = self.graph.div(self.edges.aim(level, rest, bend))
        if self.rows is not None:
            pull = pull + self.rows.to_nodes(self.rows.aim(level, rest, bend))
        return pull

    def nudge(self, step: float, level: float) -> Array:
        """Aim so that a longer step stays inside; returns the pull on the nodes."""
        pull = self.graph.div(self.edges.nudge(step, level))
        if self.rows is not None:
            pull = pull + self.rows.to_nodes(self.rows.nudge(step, level))
        return pull

    def save(self) -> list[Any]:
        """The present direction, for `restore`."""
        return [part.save() for part in self.parts]

    def restore(self, saved: list[Any]) -> None:
        """Back to a direction that was saved."""
        for part, direction in zip(self.parts, saved, strict=True):
            part.restore(direction)

    def keep(self) -> dict[str, Array]:
        """All that steps change, by name, for `take`."""
        found = {f"{part.name}_{x}": getattr(part, x) for part in self.parts for x in part.kept}
        return {**found, "totals": np.array([part.total for part in self.parts])}

    def take(self, arrays: dict[str, Array]) -> None:
        """Back to where `keep` was called."""
        for part, total in zip(self.parts, arrays["totals"].tolist(), strict=True):
            part.total = total
            for x in part.kept:
                found = arrays[f"{part.name}_{x}"]
                if found.shape != getattr(part, x).shape:  # compiled loops do not look
                    raise ValueError(f"{x} must have shape {getattr(part, x).shape}")
                setattr(part, x, found)

    def head(self, factor: Any, right: Array, rest: float) -> Array:
        """Solve the Newton system for dw, shape (n_nodes, d), and direct all cones by it.

        Where rows or faces are nearly met, C is huge and rounding errors of D dw and X dw count:
        the equation is solved once more for what these leave of the right side.
        """
        dw, change, flow = factor.solve(right)
        rows = self._row_change(dw)
        if self.linear:
            more = factor.solve(right - self._product(dw, flow, rows))
            dw, change, flow = dw + more[0], change + more[1], flow + more[2]
            rows = rows + self._row_change(more[0])
        self.edges.direct(change, flow, rest)
        if self.rows is not None:
            self.rows.direct(rows, self.rows.give(rows), rest)
        return np.asarray(dw)

    def _row_change(self, dw: Array) -> Array:
        return np.zeros((0, 1)) if self.rows is None else self.rows.change(dw)

    def _product(self, dw: Array, flow: Array, rows: Array) -> Array:
        """The Newton system's left side, given C D dw and X dw."""
        out = self.graph.div(flow) + _times(self._smooth, dw)
        return out if self.rows is None else out + self.rows.to_nodes(self.rows.give(rows))

    def ahead(self, step: float) -> float:
        """Sum of x^T z after a step."""
        return sum(part.ahead(step) for part in self.parts)

    def move(self, step: float, rest: float) -> None:
        """Take the step."""
        for part in self.parts:
            part.move(step, rest)

    def row_residual(self, w: Array) -> float:
        """Fenchel-Young residuals of the rows at w."""
        if self.rows is None:
            return 0.0
        v = self.rows.off_labels(w)
        return float(self.rows.s @ np.abs(v[:, 0]) - np.vdot(self.rows.u, v))


def _number(problem: Problem) -> int:
    """Cones of the edges."""
    kind = edge_kind(problem)
    single = kind == "faces" or problem.penalty.entrywise
    width = problem.graph.width(problem.d) if single else 1
    return 0 if kind == "springs" else problem.graph.n_edges * width


def _strength(problem: Problem) -> Array:
    """The scale lam A_e, or as much of it as the slopes of all rows together can use.

    No optimal flow needs more than their sum, times two for a ridge: beyond it neighbours are
    equal anyway, and a ball much larger than the flow only brings rounding errors.
    """
    loss = kinked(problem)
    if loss is None or not (problem.penalty.is_norm and problem.graph.plain):
        return problem.scale
    steepest = np.maximum(-loss.low, loss.high) * np.abs(loss.data.X).sum(axis=1)
    force = float(loss.data.row_weight @ steepest)
    return np.minimum(problem.scale, _ENOUGH * force) if force > 0 else problem.scale


def _times(blocks: Array, x: Array) -> Array:
    """blocks_i x_i for each node."""
    return np.asarray((blocks @ x[..., None])[..., 0])
