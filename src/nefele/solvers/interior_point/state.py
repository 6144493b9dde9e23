"""What the interior-point method remembers from one step to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.certificate import Certificate
from nefele.problem import Problem
from nefele.solvers.base import State
from nefele.solvers.interior_point import kinks
from nefele.solvers.interior_point.terms import Terms
from nefele.solvers.primal_dual import PrimalDual, PrimalDualState

_SCALARS = (
    "length",
    "size",
    "damp",
    "steps",
    "failures",
    "asked",
    "cap",
    "missed",
    "tries",
    "mark",
    "careful",
    "again",
)
_RESCUE = "rescue_"  # arrays of the primal-dual method that goes on where steps failed


@dataclass
class NewtonState(State):
    """Cones, the system, and how the steps went."""

    alone: NDArray[np.bool_]  # nodes without edges, which are at their minimisers
    terms: Terms | None = None  # cones of edges and rows; None without coupling
    system: Any = None  # what factorises the Newton system: a Forest or a SmallGraph
    slope: Array = field(default_factory=lambda: np.empty(0))  # gradient of all terms at w
    move: Array | None = None  # the last successful direction
    length: float = 0.0  # what a slope counts in units of the objective
    size: float = 0.0  # of the objective
    damp: float = 0.0  # added to the Hessian after steps that failed
    steps: float = 0.0
    failures: float = 0.0  # steps that failed; inf: no further one can be computed
    cap: float = np.inf  # most that the flow of an edge is allowed
    asked: float = np.inf  # sum of x^T z at the last certificate
    missed: float = 0.0  # bounds that were too weak
    mark: float = np.inf  # what was left to do when progress was last looked at
    careful: float = 0.0  # whether factors have proved too inexact to be used once
    again: float = 0.0  # times the cones were put around a point where steps had failed
    duals: bool = False  # whether rows of smooth losses have duals of their own
    exact: bool = False  # whether the exact optimum is looked for
    tries: float = 0.0  # searches for the exact optimum
    before: Array | None = None  # sizes of the cones before the last step
    end: tuple[Array, Certificate] | None = None  # the exact optimum, once it is found
    start: tuple[Array, Array] | None = None  # a given start, before the first step
    rescue: tuple[PrimalDual, PrimalDualState] | None = None  # what goes on where steps failed

    def by_duals(self, problem: Problem) -> None:
        """Rows of smooth losses have duals of their own, those of nodes without edges included."""
        self.duals, self.alone = True, self.alone.copy()
        for nodes, part in kinks.curved_parts(problem):
            self.alone[nodes[part.labelled]] = False

    def slow(self, every: int, factor: float) -> bool:
        """Whether as many steps have left more than this share of what there was to do."""
        if self.terms is None or self.steps % every:
            return False
        before, self.mark = self.mark, self.left()
        return self.mark > factor * before

    def left(self) -> float:
        """Sum of x^T z and of the slopes' sizes."""
        assert self.terms is not None
        return self.terms.total + self.length * self.terms.reach(self.slope)

    def scalars(self) -> dict[str, Any]:
        """Numbers for a checkpoint; nothing before the first step, since the start tells all."""
        if self.rescue is not None:
            solver, inner = self.rescue
            return {"rescue": solver.scalars(inner)}
        if self.start is not None or self.terms is None:
            return {}
        kept = {name: getattr(self, name) for name in _SCALARS}
        return {**kept, "first": self.terms.first, "duals": int(self.duals)}

    def arrays(self) -> dict[str, Array]:
        """Arrays beside w and u for a checkpoint."""
        if self.rescue is not None:
            solver, inner = self.rescue
            return {_RESCUE + name: array for name, array in solver.arrays(inner).items()}
        if self.start is not None or self.terms is None:
            return {}
        fields = {"move": self.move, "before": self.before}
        known = {name: array for name, array in fields.items() if array is not None}
        return {"slope": self.slope, **known, **self.terms.keep()}

    def take(self, problem: Problem, scalars: dict[str, Any], arrays: dict[str, Array]) -> None:
        """Go on where a checkpoint was written."""
        if "rescue" in scalars:
            solver, size = PrimalDual(), len(_RESCUE)
            own = {name[size:]: array for name, array in arrays.items() if name.startswith(_RESCUE)}
            point = {"w": arrays["w"], "u": arrays["u"]}
            inner = solver.init(problem, **{f"{name}0": array for name, array in point.items()})
            solver.resume(problem, inner, scalars["rescue"], {**own, **point})
            self.rescue = solver, inner
        elif "first" in scalars and self.terms is not None:
            self.start, self.w, self.cap = None, arrays["w"], float(scalars["cap"])
            if self.cap < np.inf or scalars["duals"] != self.duals:
                zero = np.zeros_like(self.w), np.zeros_like(self.u)
                if scalars["duals"]:
                    self.by_duals(problem)
                self.terms = Terms(problem, *zero, 1.0, self.alone, self.cap, self.duals)
            self.terms.take(arrays)
            self.terms.first, self.u = float(scalars["first"]), self.terms.flow
            for name in _SCALARS:
                setattr(self, name, float(scalars[name]))
            self.terms.uneven = self.terms.uneven or self.careful > 0
            self.slope = arrays["slope"].reshape(self.w.shape)
            if "move" in arrays:
                self.move = arrays["move"].reshape(self.w.shape)
            if "before" in arrays:
                self.before = arrays["before"].reshape(2, len(self.u), -1)
        elif self.terms is None:
            self.w, self.u = arrays["w"], arrays["u"]
