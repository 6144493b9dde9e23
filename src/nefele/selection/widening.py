"""A grid of alphas goes on where the best one is its last."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nefele._checks import Array
from nefele.selection.choice import choose
from nefele.selection.folds import Fold

_TIMES = 3  # at most, so that a search for no coupling at all ends
_FACTOR = 10.0  # how far the grid goes on each time
_GAIN = 1e-4  # of the score, relative: less is the limit of weak or strong coupling

More = Callable[[Array, bool], Array]


def widen(alphas: Array, scores: Array, more: More, *, upward: bool = False) -> Array:
    """The alphas of a grid that was made, with those by which it had to go on.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
        Descending.
    scores : array of shape (n_folds, n_alphas)
    more : callable
        Given further alphas, and whether they go in front of the others, solves for them and
        returns the scores of all.
    upward : bool
        Whether stronger coupling than that of the first alpha gives other models: not for norms,
        where the grid begins with one model per component.

    Examples
    --------
    >>> def more(new, front):
    ...     return -np.log10(np.append(1.0, new / 0.03))[None] ** 2
    >>> widen(np.array([1.0, 0.1]), np.array([[-2.3, -0.3]]), more).round(4).tolist()
    [1.0, 0.1, 0.01]
    """
    if len(alphas) < 2 or not alphas[-1] > 0 or not scores.size:
        return alphas
    step = float((alphas[-1] / alphas[0]) ** (1 / (len(alphas) - 1)))
    count = min(len(alphas), math.ceil(math.log(_FACTOR) / -math.log(step) - 1e-9))
    for _ in range(_TIMES):
        best, worth = _best(scores)
        front = best == 0
        if best != len(alphas) - 1 and not (front and upward):
            break
        powers = step ** np.arange(1.0, count + 1)
        new = alphas[0] / powers[::-1] if front else alphas[-1] * powers
        scores = more(new, front)
        alphas = np.concatenate([new, alphas] if front else [alphas, new])
        if not _best(scores)[1] - worth > _GAIN * abs(worth):
            break
    return alphas


def _best(scores: Array) -> tuple[int, float]:
    best = choose(scores)[0]
    return best, float(scores[:, best].mean())


def joined(fold: Fold, more: Fold, front: bool) -> Fold:
    """One fold of which more alphas were tried, in front of the others or after them."""

    def both(one: Array, other: Array) -> Array:
        return np.concatenate([other, one] if front else [one, other])

    errors = fold.errors
    if errors is not None and more.errors is not None:
        wrong = errors.wrong
        if wrong:
            along = wrong[1:-1], more.errors.wrong[1:-1]
            parts = (*along[::-1],) if front else along
            wrong = [wrong[0], *parts[0], *parts[1], wrong[-1]]
        errors = replace(errors, coupled=both(errors.coupled, more.errors.coupled), wrong=wrong)
    scores, missed = both(fold.scores, more.scores), fold.n_missed + more.n_missed
    return replace(fold, scores=scores, n_missed=missed, errors=errors)
