"""What an interior-point method adds up: smooth losses, cones of edges and rows, and bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._systems.common import common_part
from nefele.graphs.mapped import MappedGraph
from nefele.problem import Problem
from nefele.solvers.interior_point import kinks
from nefele.solvers.interior_point.bounds import Bounds, ends
from nefele.solvers.interior_point.chances import Chances
from nefele.solvers.interior_point.edges import Edges
from nefele.solvers.interior_point.forms import forms, norms
from nefele.solvers.interior_point.rows import RowCones

_ENOUGH = 10.0  # strength of an edge, in units of what all losses together can pull
_ANCHOR = 1e-11  # share of its first curvature that holds a parameter nothing else holds
_REFINED, _ACCURATE = 40, 1e-9  # most solves for what is left, and how little is left to the last
_PRECISE = 1e-10  # what is left of the right side that needs no solve
_ROUNDING = 1e-4  # share of the right side that rounding errors may leave
_UNEVEN = 300.0  # ratio of units from which each column counts by itself
_START = 10.0  # factor of the first sum of x^T z for losses with kinks, which saves steps


class Terms:
    """The cones of edges and rows as one, and the smooth part of the losses.

    They start at w, and near the flow u, which is only a hint; all cones share the value of x^T z
    there equally. The rows of nodes that are `alone`, solved already, need no cones. With `duals`
    the rows of some smooth losses have duals of their own (`chances`).
    """

    def __init__(
        self,
        problem: Problem,
        w: Array,
        u: Array,
        value: float,
        alone: NDArray[np.bool_],
        cap: float = np.inf,
        duals: bool = False,
    ) -> None:
        self.problem, self.graph, self.smooth = problem, problem.graph, kinks.Smooth(problem, duals)
        sources = kinks.sources(problem, ~alone)
        curved = kinks.curved_parts(problem) if duals else []
        kinds = forms(problem)
        edges, count = (
            sum(form.cones for form in kinds),
            float(sum(len(source.s) for source in sources)),
        )
        count += sum(kinks.chances(part, nodes, ~alone) for nodes, part in curved) / 2
        held = ~alone & ~problem.undetermined
        count += sum(float(np.isfinite(end[held]).sum()) for end in ends(problem)) / 2
        level = value * (_START if sources else 1.0) / max(count + edges, 1)
        self.unit = kinks.units(problem)
        self.strength = np.minimum(_strength(problem), np.where(norms(problem), cap, np.inf))
        self.edges = Edges(problem, w, u, level, self.strength)
        self.rows = RowCones(sources, w, level) if sources else None
        self.inner: list[Any] = [] if self.rows is None else [self.rows]
        self.inner += [
            Chances(part, nodes, w, ~alone, level / 2, f"chances{k}")
            for k, (nodes, part) in enumerate(curved)
        ]
        self.bounds: Bounds | None = None
        if kinks.sets(problem):
            self.bounds = Bounds(problem, w, held, level / 2)
            self.inner.append(self.bounds)
        self.parts: list[Any] = [*self.edges.cores, *self.inner]
        self._anchor: Array | None = None
        self._precise: Any = None  # factors whose solutions need no second solve
        self.count, self.first = count + edges, level * (count + edges)
        faces = any(form.kind == "faces" for form in kinds)
        self.bent = all(form.kind != "powers" for form in kinds)  # these have no second-order term
        self.linear = self.smooth.affine and (bool(self.inner) or faces)
        self.loose = any(form.singular for form in kinds)
        self.uneven = problem.graph.plain and uneven(self.unit)
        self.again = bool(self.inner) or (faces and self.smooth.affine)  # rounding errors count

    def anchored(self, hess: Array) -> Array:
        """The Hessian with a little more where nothing at all determines a parameter.

        Rounding errors would send it anywhere: rows are fewer than parameters, which no edge
        couples. What is added is tiny beside the node's curvature at the first step.
        """
        if self._anchor is None:
            size = np.einsum("ijj->ij", hess) * self.unit**2
            most = size.max(axis=1, keepdims=True)
            loose = most == 0 if self.loose else np.zeros_like(most, dtype=bool)
            size = np.maximum(size, np.where(loose, 1e-3 * most.max(initial=0.0), 1e-6 * most))
            size = size / self.unit**2
            idle = _uncoupled(self.problem) & (most == 0)  # at a node without data
            self._anchor = np.where(idle, 1.0, _ANCHOR * size)
        out = np.array(hess)
        diagonals = np.einsum("ijj->ij", out)
        diagonals += self._anchor
        return out

    @staticmethod
    def fit(problem: Problem) -> bool:
        """Whether the penalty can be written with such cones."""
        return all(form.kind for form in forms(problem))

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

    def reach(self, slope: Array) -> float:
        """The sum of the slopes' sizes, each in the unit of its parameter."""
        return float((np.abs(slope) * self.unit).sum())

    def slope(self, w: Array, step: float = 0.0) -> Array:
        """The gradient of all terms at w, after a step of the cones, shape (n_nodes, d)."""
        u = self.edges.ahead_flow(step) if step else self.edges.flow
        out = self.smooth.grad(w) + self.graph.div(u)
        for part in self.inner:
            out = out + part.to_nodes(part.u + step * part.du)
        return out

    def scale(self, w: Array) -> tuple[Array, Array]:
        """Blocks of the Newton system: M, shape (n_nodes, d, d), and C, shape (n_edges, d, d)."""
        self._precise = None
        self._smooth = hess = self.smooth.hess(w)
        for part in self.inner:
            hess = hess + part.gram(w)
        self._metric = hess
        return hess, self.edges.scale()

    def aim(self, level: float, rest: float, bend: float) -> Array:
        """Aim at this x^T z; returns the pull on the nodes, shape (n_nodes, d)."""
        pull = self.graph.div(self.edges.aim(level, rest, bend))
        for part in self.inner:
            pull = pull + part.to_nodes(part.aim(level, rest, bend))
        return pull

    def nudge(self, step: float, level: float) -> Array:
        """Aim so that a longer step stays inside; returns the pull on the nodes."""
        pull = self.graph.div(self.edges.nudge(step, level))
        for part in self.inner:
            pull = pull + part.to_nodes(part.nudge(step, level))
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
        if self._anchor is not None:
            found["anchor"] = self._anchor
        return {**found, "totals": np.array([part.total for part in self.parts])}

    def take(self, arrays: dict[str, Array]) -> None:
        """Back to where `keep` was called."""
        if "anchor" in arrays:
            self._anchor = arrays["anchor"].reshape(self.problem.graph.n_nodes, self.problem.d)
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
        the equation is solved again for what these leave of the right side, as long as that
        shrinks. Once only where much is left: that is not by rounding errors alone.
        """
        dw, change, flow = factor.solve(right)
        if self.uneven:
            return self._even_head(factor, right, rest, dw, change, flow)
        rows = [part.change(dw) for part in self.inner]
        size, before = np.abs(right).max(), np.inf
        for _ in range(_REFINED if self.again and factor is not self._precise else 0):
            left = right - self._product(dw, flow, rows)
            error = np.abs(left).max()
            if error <= _PRECISE * size:
                self._precise = factor  # so it is for other right sides
                break
            if not error < before:
                break
            more, before = factor.solve(left), error
            dw, change, flow = dw + more[0], change + more[1], flow + more[2]
            rows = [x + p.change(more[0]) for x, p in zip(rows, self.inner, strict=True)]
            if not _ACCURATE * size < error < _ROUNDING * size:
                break
        self.edges.direct(change, flow, rest)
        for change_of, part in zip(rows, self.inner, strict=True):
            part.direct(change_of, part.give(change_of), rest)
        return np.asarray(dw)

    def _even_head(
        self, factor: Any, right: Array, rest: float, dw: Array, change: Array, flow: Array
    ) -> Array:
        """The same where columns have very different units: each is refined in its own.

        What all nodes have in common is solved for itself: C may be so huge beside the curvature
        of some column that the factors do not know it.
        """
        size, before = self.reach(right), np.inf
        best = dw, change, flow, [part.change(dw) for part in self.inner]
        for _ in range(_REFINED):
            dw, change, flow, rows = best
            left = right - self._product(dw, flow, rows)
            common = common_part(self._metric, left, self.problem.parts)
            left = left - _times(self._metric, common)
            more = factor.solve(left)
            common = common + more[0]
            rows = [x + p.change(common) for x, p in zip(rows, self.inner, strict=True)]
            after = dw + common, change + more[1], flow + more[2], rows
            error = self.reach(right - self._product(after[0], after[2], rows))
            if not error < before:
                break
            best, before = after, error
            if error <= _ACCURATE * size:
                break
        dw, change, flow, rows = best
        self.edges.direct(change, flow, rest)
        for change_of, part in zip(rows, self.inner, strict=True):
            part.direct(change_of, part.give(change_of), rest)
        return np.asarray(dw)

    def _product(self, dw: Array, flow: Array, rows: list[Array]) -> Array:
        """The Newton system's left side, given C D dw and X dw."""
        out = self.graph.div(flow) + _times(self._smooth, dw)
        for change, part in zip(rows, self.inner, strict=True):
            out = out + part.to_nodes(part.give(change))
        return out

    def ahead(self, step: float) -> float:
        """Sum of x^T z after a step."""
        return sum(part.ahead(step) for part in self.parts)

    def move(self, step: float, rest: float) -> None:
        """Take the step."""
        for part in self.parts:
            part.move(step, rest)

    def duals(self) -> list[tuple[Any, Any]]:
        """What the cones know of the duals of rows and l1 terms, for each kind of loss."""
        known: dict[int, tuple[Any, Any]] = {}
        if self.rows is not None:
            for source, place in zip(self.rows.sources, self.rows._places, strict=True):
                part, rows, entries = source.as_duals(self.rows.u[place, 0])
                before = known.get(id(part), (None, None))
                known[id(part)] = (
                    before[0] if rows is None else rows,
                    before[1] if entries is None else entries,
                )
        for part in self.inner:
            if isinstance(part, Chances):
                known[id(part.loss)] = (part.duals(), known.get(id(part.loss), (None, None))[1])
        for loss, push in [] if self.bounds is None else self.bounds.duals():
            rows, entries = known.get(id(loss), (None, None))
            known[id(loss)] = rows, push if entries is None else entries + push
        return [known.get(id(part), (None, None)) for _, part in kinks.parts_of(self.problem)]

    def met(self, w: Array) -> Array:
        """The parameters w, exactly at the bounds that they tend to."""
        return w if self.bounds is None else self.bounds.met(w, self.unit)

    def row_residual(self, w: Array) -> float:
        """Fenchel-Young residuals of the rows at w."""
        return sum(part.residual(w) for part in self.inner)


def uneven(unit: Array) -> bool:
    """Whether units of parameters are so different that rounding errors of one drown another."""
    return float(unit.max()) > _UNEVEN * float(unit.min())


def _uncoupled(problem: Problem) -> NDArray[np.bool_]:
    """Parameters that no edge compares, shape (n_nodes, d)."""
    graph = problem.graph
    compared = np.zeros((graph.n_edges, graph.width(problem.d)))
    for form in forms(problem):
        compared[form.place] = 1.0
    at = graph.sizes if isinstance(graph, MappedGraph) else graph.at_ends
    return np.asarray(at(compared) == 0)


def _strength(problem: Problem) -> Array:
    """The scale lam A_e, or as much of it as all losses together can use.

    Hardly any optimal flow needs more: beyond it neighbours are equal anyway, and a ball much
    larger than the flow only brings rounding errors.
    """
    limited = norms(problem)
    if not (limited.any() and problem.graph.plain):
        return problem.scale
    force = kinks.force(problem)
    most = _ENOUGH * force if 0 < force < np.inf else np.inf
    return np.where(limited, np.minimum(problem.scale, most), problem.scale)


def _times(blocks: Array, x: Array) -> Array:
    """blocks_i x_i for each node."""
    return np.asarray((blocks @ x[..., None])[..., 0])
