"""The optimum to rounding, from a fit that is near it.

The tolerance of a fit leaves its models about its square root from the optimum. Explanations are of
the optimum itself: norms are solved again with a small gap, which shows what they hold equal, and
Newton's method on what is left free does the rest.
"""

from __future__ import annotations

import warnings

import numpy as np

from nefele._checks import Array
from nefele.accountable.system import System
from nefele.paths.follow import whole_solve
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, DataWarning

TOL = 1e-10  # relative gap of solves where there is no formula
_STEPS, _HALVINGS = 50, 30
_SMALL = 1e-13  # of a step, in units of the models, that changes nothing
_NEAR = 1e-6  # of a step that needs no check by the objective, which has fewer digits


def settled(problem: Problem, w: Array, u: Array, at: int) -> System:
    """The system of a problem at the optimum of the component of a node."""
    system = System(problem, w, u, at)
    if problem.coupled and problem.penalty.is_norm:
        found = near(problem, w, u)
        system = System(problem, *found, at)
    best, value = system, problem.objective(system.w)
    for _ in range(_STEPS):
        w = held(system, system.w)
        system = System(problem, w, system.u, at)
        step = system.step()
        size = np.abs(step).max(initial=0.0) / max(np.abs(w).max(initial=0.0), 1e-300)
        if not np.isfinite(size):
            break
        moved = _moved(problem, w, step, size)
        if moved is None:
            break
        system = System(problem, moved, system.u, at)
        if size <= _SMALL:
            break
    w = held(system, system.w)
    if problem.objective(w) <= value + 1e-12 * abs(value):
        best = System(problem, system.classes.centred(w, at), system.u, at)
    return best


def near(problem: Problem, w: Array, u: Array) -> tuple[Array, Array]:
    """Parameters and duals with a small gap."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        found = whole_solve(problem, tol=TOL, w0=w, u0=u)
    return found.w, found.u


def held(system: System, w: Array) -> Array:
    """The nearest models that are equal where a norm holds them."""
    if not (system.fused.any() or system.largest.any()):
        return w
    T = system.ties
    gram = np.asarray((T.T @ T).diagonal())  # ties are groups, or orthonormal
    return np.asarray((T @ ((T.T @ w.ravel()) / gram)).reshape(w.shape))


def _moved(problem: Problem, w: Array, step: Array, size: float) -> Array | None:
    """The models after a step that does not raise the objective; None if there is none."""
    if size <= _NEAR:
        return w + step
    before, length = problem.objective(w), 1.0
    for _ in range(_HALVINGS):
        moved = w + length * step
        if problem.objective(moved) <= before:
            return np.asarray(moved)
        length /= 2
    return None
