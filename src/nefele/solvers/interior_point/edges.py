"""The terms of all edges in an interior-point method: cones or springs for each kind of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.problem import Problem
from nefele.solvers.interior_point.cones import Cones
from nefele.solvers.interior_point.faces import Faces, Springs
from nefele.solvers.interior_point.forms import Form, forms
from nefele.solvers.interior_point.powers import Powers


class Edges:
    """Each kind of edges has a core of its own, which knows its edges and coupled entries only.

    Other entries have no flow. What concerns all cones alike is asked of the `cores` one by one.

    Parameters
    ----------
    problem : Problem
    w, u : arrays
        Parameters and flow to start near.
    level : float
        Value of x^T z of each cone at the start.
    strength : array of shape (n_edges,)
        Sizes of balls and springs.
    """

    def __init__(self, problem: Problem, w: Array, u: Array, level: float, strength: Array) -> None:
        v = problem.graph.diff(w)
        self.shape, self.forms = v.shape, forms(problem)
        self.whole = len(self.forms) == 1 and len(self.forms[0].on) == v.shape[1]
        self._places = [(form.place, form.blocks) for form in self.forms]
        self.cores = [
            _core(form, self._of(v, k), self._of(u, k), level, strength)
            for k, form in enumerate(self.forms)
        ]
        for k, core in enumerate(self.cores if len(self.cores) > 1 else []):
            core.name = f"edges{k}"

    def _of(self, x: Array, k: int) -> Array:
        """Entries of a kind."""
        return x if self.whole else np.ascontiguousarray(x[self._places[k][0]])

    def _all(self, ask: Callable[[Any], Array]) -> Array:
        """The answers of all kinds in their places, shape (n_edges, d) or (n_edges, d, d)."""
        if self.whole:
            return ask(self.cores[0])
        found = [ask(core) for core in self.cores]
        which = found[0].ndim - 2
        out = np.zeros((*self.shape, self.shape[1])[: found[0].ndim])
        for values, place in zip(found, self._places, strict=True):
            out[place[which]] = values
        return out

    @property
    def flow(self) -> Array:
        """The flow u, shape (n_edges, d)."""
        return self._all(lambda core: core.flow)

    def ahead_flow(self, step: float) -> Array:
        """The flow after a step."""
        return self._all(lambda core: core.ahead_flow(step))

    def scale(self) -> Array:
        """C, shape (n_edges, d, d)."""
        return self._all(lambda core: core.scale())

    def aim(self, level: float, rest: float, bend: float) -> Array:
        """The pull, shape (n_edges, d)."""
        return self._all(lambda core: core.aim(level, rest, bend))

    def nudge(self, step: float, level: float) -> Array:
        """The new pull."""
        return self._all(lambda core: core.nudge(step, level))

    def direct(self, change: Array, flow: Array, rest: float) -> None:
        """Directions, given D dw and C D dw."""
        for k, core in enumerate(self.cores):
            core.direct(self._of(change, k), self._of(flow, k), rest)


def _core(form: Form, v: Array, u: Array, level: float, strength: Array) -> Any:
    """The cones of one kind of edges, or springs."""
    scale, total = strength[form.edges], level * form.cones
    if form.kind == "cones":
        delta, entrywise = getattr(form.penalty, "delta", 0.0), form.penalty.entrywise
        return Cones(scale, v, u, total, delta=delta, entrywise=entrywise)
    if form.kind == "faces":
        return Faces(scale, v, total)
    if form.kind == "powers":
        return Powers(form.penalty.p, scale, v, total)  # type: ignore[attr-defined]
    return Springs(form.stiffness, scale, v)
