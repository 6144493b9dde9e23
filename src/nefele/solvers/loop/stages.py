"""When a solve examines where it is, and when it gets nowhere."""

from __future__ import annotations

import numpy as np

from nefele.result import Record

_FIRST_STAGES = (50, 50, 50)
_GROWTH = 1.5
_LOOK_BACK = 4  # examined points over which progress is judged
_PATIENCE = 12  # certified points without progress before a solve counts as stalled
# Guessed gap, in units of the tolerance, from which so many certificates in a row are spared.
# It is only a guess, but proven gaps are hardly ever less than half of it.
_HOPELESS = ((2.2, 8), (1.1, 3))


def stage_length(stage: int) -> int:
    """Iterations of a stage, from 0, at whose end a point is examined.

    Examples
    --------
    >>> [stage_length(stage) for stage in range(5)]
    [50, 50, 50, 75, 112]
    """
    if stage < len(_FIRST_STAGES):
        return _FIRST_STAGES[stage]
    return int(_FIRST_STAGES[-1] * _GROWTH ** min(stage - len(_FIRST_STAGES) + 1, 8))


def sparing(spared: int, guess: float, tol: float, last: bool) -> int:
    """Certificates in a row that a guess has replaced, with this one; 0: this one is computed.

    Proven gaps are seldom smaller than guessed ones, and often larger.

    Examples
    --------
    >>> sparing(3, 5e-3, 1e-3, False), sparing(3, 2e-3, 1e-3, False), sparing(1, 1e-3, 1e-3, False)
    (4, 0, 0)
    """
    most = next((most for times, most in _HOPELESS if guess > times * tol), 0)
    return 0 if last or spared >= most else spared + 1


def stalled(history: list[Record], proof: bool) -> bool:
    """No progress for long, and so near the optimum that rounding errors explain it."""
    if len(history) <= _PATIENCE:
        return False
    now, before = (r.gap if proof else r.guess for r in (history[-1], history[-1 - _PATIENCE]))
    return bool(now > 0.9 * before and now < 1e-4)


def slow(history: list[Record], proof: bool) -> bool:
    """Less than a third of the gap gone in the last stages, or nothing proven at all."""
    now, before = (r.gap if proof else r.guess for r in (history[-1], history[-_LOOK_BACK:][0]))
    return bool(now > 0.67 * before or np.isposinf(now))


def fallen(history: list[Record], guess: float, seconds: float) -> float:
    """Powers of ten by which the guess of the gap fell per second since the last record.

    Examples
    --------
    >>> fallen([Record(50, 3.5, 1e-2, seconds=1.0, guess=1e-2)], guess=1e-4, seconds=2.0)
    2.0
    """
    if not history or not 0 < guess < float("inf") or history[-1].guess == float("inf"):
        return 0.0
    last = history[-1]
    return float(np.log10(last.guess / guess)) / max(seconds - last.seconds, 1e-9)
