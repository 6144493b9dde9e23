"""Which alpha predicts held-out rows best, and what the choice is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._ids import IdIndex, distinct
from nefele.selection.folds import Fold, NodeErrors
from nefele.selection.verdict import Verdict

_KINDS = ("own", "pooled", "coupled")


def choose(scores: Array, one_se: bool = False) -> tuple[int, int]:
    """Places of the best alpha and of the one to use, for scores of shape (n_folds, n_alphas).

    The best has the largest mean score; of equals, the largest alpha: the simplest model. With
    `one_se` the one to use is the largest alpha within one standard error of the best.

    Parameters
    ----------
    scores : array of shape (n_folds, n_alphas)
        Greater is better; alphas descend.
    one_se : bool

    Examples
    --------
    >>> choose(np.array([[1.0, 2.0, 2.1], [1.0, 2.0, 1.8]]))
    (1, 1)
    """
    mean = scores.mean(axis=0)
    best = int(np.argmax(mean))
    if not one_se:
        return best, best
    spread = scores[:, best].std(ddof=1 if len(scores) > 1 else 0)
    return best, int(np.argmax(mean >= mean[best] - spread / np.sqrt(len(scores))))


def choose_by_others(scores: Array, one_se: bool = False) -> NDArray[np.int64]:
    """Place of the alpha that the other folds choose, for each fold; one fold chooses itself.

    So no row judges an alpha that it helped to choose: otherwise trying many alphas would look
    like a gain.

    Parameters
    ----------
    scores : array of shape (n_folds, n_alphas)
        Greater is better; alphas descend.
    one_se : bool
        As of `choose`.

    Examples
    --------
    >>> choose_by_others(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.5]])).tolist()
    [0, 1, 0]
    """
    if len(scores) == 1:
        return np.array([choose(scores, one_se)[1]])
    rest = (np.delete(scores, k, axis=0) for k in range(len(scores)))
    return np.array([choose(part, one_se)[1] for part in rest])


def judged(folds: Sequence[Fold], one_se: bool = False) -> Verdict:
    """The verdict over all folds, each with the alpha that the others choose.

    Own data only must be possible where it is compared: nodes without training rows in a fold are
    left out of it, and of the choice, unless all are.
    """
    with_own = any(fold.n_own for fold in folds)
    kept = [fold for fold in folds if fold.n_own or not with_own]
    if any(fold.errors is None for fold in kept):  # a score of the user's: its parts are the folds
        scores = np.stack([fold.scores for fold in kept])
        own = [-fold.own if with_own else np.nan for fold in kept]
        coupled = -scores[np.arange(len(kept)), choose_by_others(scores, one_se)]
        pooled = np.array([-fold.pooled for fold in kept])
        return Verdict(np.array(own), pooled, coupled, np.ones(len(kept)), part="fold")
    parts = [_kept(fold.errors, with_own) for fold in kept if fold.errors is not None]
    scores = np.stack([-np.average(e.coupled, axis=1, weights=e.weight) for e in parts])
    tables = [
        np.stack([e.weight, e.own, e.pooled, e.coupled[k]])
        for e, k in zip(parts, choose_by_others(scores, one_se), strict=True)
    ]
    weights, *errors = np.concatenate(tables, axis=1)
    names = np.concatenate([e.nodes for e in parts])
    nodes = distinct(names)
    owner = IdIndex(nodes).positions(names)
    total = np.bincount(owner, weights)
    own_error, one_error, error = (np.bincount(owner, weights * row) / total for row in errors)
    return Verdict(own_error, one_error, error, total, nodes.tolist())


def _kept(errors: NodeErrors, with_own: bool) -> NodeErrors:
    """The errors of nodes with training rows; without any such node all, and no own ones."""
    if not with_own:
        return replace(errors, own=np.full(len(errors.own), np.nan))
    on = errors.with_rows
    rows = {name: getattr(errors, name)[..., on] for name in ("nodes", "weight", *_KINDS)}
    return replace(errors, **rows)
