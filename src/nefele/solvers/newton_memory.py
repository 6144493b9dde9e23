"""What the interior-point method remembers from one step to the next, for checkpoints."""

from __future__ import annotations

from typing import Any

from nefele._checks import Array
from nefele.problem import Problem
from nefele.solvers.base import State
from nefele.solvers.primal_dual import PrimalDual

_SCALARS = ("length", "size", "damp", "steps", "failures", "asked")
_RESCUE = "rescue_"  # arrays of the primal-dual method that goes on where steps failed


def scalars(state: State) -> dict[str, Any]:
    """Numbers; nothing before the first step, since the start tells all."""
    extra = state.extra
    if "rescue" in extra:
        solver, inner = extra["rescue"]
        return {"rescue": solver.scalars(inner)}
    if "start" in extra or "terms" not in extra:
        return {}
    found = {name: float(extra[name]) for name in _SCALARS if name in extra}
    return {**found, "steps": extra["steps"], "first": extra["terms"].first}


def arrays(state: State) -> dict[str, Array]:
    """Arrays beside w and u."""
    extra = state.extra
    if "rescue" in extra:
        solver, inner = extra["rescue"]
        return {_RESCUE + name: array for name, array in solver.arrays(inner).items()}
    if "start" in extra or "terms" not in extra:
        return {}
    found = {name: extra[name] for name in ("slope", "move") if name in extra}
    return {**found, **extra["terms"].keep()}


def resume(
    problem: Problem, state: State, scalars: dict[str, Any], arrays: dict[str, Array]
) -> None:
    """Make a state that was begun anew from w and u the one of before."""
    extra = state.extra
    if "rescue" in scalars:
        solver = PrimalDual()
        inner = solver.init(problem, arrays["w"], arrays["u"])
        size = len(_RESCUE)
        own = {name[size:]: array for name, array in arrays.items() if name.startswith(_RESCUE)}
        solver.resume(
            problem, inner, scalars["rescue"], {**own, "w": arrays["w"], "u": arrays["u"]}
        )
        extra["rescue"] = solver, inner
    elif "first" in scalars:
        extra.pop("start", None)
        state.w = arrays["w"]
        extra["terms"].take(arrays)
        extra["terms"].first = scalars["first"]
        state.u = extra["terms"].flow
        extra.update({name: scalars[name] for name in _SCALARS if name in scalars})
        for name in ("slope", "move"):
            if name in arrays:
                extra[name] = arrays[name].reshape(state.w.shape)
    elif "terms" not in extra:
        state.w, state.u = arrays["w"], arrays["u"]
