"""Longer steps from the same factors: a direction is corrected again as long as that pays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.solvers.interior_point.state import NewtonState
from nefele.solvers.interior_point.terms import Terms

Head = Callable[[Array, float], Array]  # pull and share of the slopes -> direction of w

INSIDE = 0.99  # share of the way to the cones' boundary that a step may go
_LONG, _FARTHER, _GAIN = 0.9, 0.3, 1.01  # when steps are made longer, how much, and the least gain
_NUDGES, _AGAIN = 2, 1.5  # corrections for that, and the gain of one that is worth another
_BENDS, _STRAIGHT = 2, 0.97  # those to second order, and the step that needs none
_FOLLOWED = 0.9  # least share of their linear fall that slopes of curved losses must show


def lengthen(terms: Terms, head: Head, dw: Array, level: float, rest: float) -> Array:
    """Correct the direction towards equal x^T z where that makes the step longer (Gondzio 1996).

    Twice at most: a correction takes a third of a step's time, so the first must have gained a lot.
    """
    for _ in range(_NUDGES):
        reached = terms.longest
        if reached >= _LONG:
            break
        saved = terms.save()
        other = head(terms.nudge(min(1.0, reached + _FARTHER), level), rest)
        if terms.longest < _GAIN * reached:
            terms.restore(saved)
            break
        dw = other
        if terms.longest < _AGAIN * reached:
            break
    return dw


def straighten(state: NewtonState, head: Head, dw: Array, level: float, rest: float) -> Array:
    """Take the second-order term anew from the direction that it has led to, where that helps.

    The predictor's is only a first guess of it. A correction costs one solve with the factors at
    hand, and two of them save a quarter to a third of all steps; but not where slopes of curved
    losses do not follow so far: cones that are ahead of them are slow to wait for them.
    """
    terms = state.terms
    assert terms is not None
    for _ in range(_BENDS):
        reached = terms.longest
        if reached >= _STRAIGHT:
            break
        saved = terms.save()
        other = head(terms.aim(level, rest, 1.0), rest)
        if not (terms.longest >= _GAIN * reached and _followed(state, other, rest)):
            terms.restore(saved)
            break
        dw = other
    return dw


def _followed(state: NewtonState, dw: Array, rest: float) -> bool:
    """Whether slopes fall nearly as much over the step as they would without curvature."""
    terms = state.terms
    assert terms is not None
    step = min(1.0, INSIDE * terms.longest)
    after = terms.reach(slope_at(terms, state.w + step * dw, state.alone, step))
    return after <= (1.0 - _FOLLOWED * step * rest) * terms.reach(state.slope)


def slope_at(terms: Terms, w: Array, alone: NDArray[np.bool_], step: float = 0.0) -> Array:
    """The gradient of all terms; zero at nodes without edges, which are at their minimisers."""
    slope = terms.slope(w, step)
    slope[alone] = 0.0
    return slope
