"""Which alpha predicts held-out rows best, and what the choice is worth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._ids import IdIndex, distinct
from nefele.selection.folds import Fold, NodeErrors
from nefele.selection.verdict import Verdict


def choose(scores: Array, one_se: bool = False) -> tuple[int, int]:
    """Places of the best alpha and of the one to use, for scores of shape (n_folds, n_alphas).

    The best has the largest mean score; of equals, the largest alpha: the simplest model. With
    `one_se` the one to use is the largest alpha within one standard error of the best.

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

    Examples
    --------
    >>> choose_by_others(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.5]])).tolist()
    [0, 1, 1]
    """
    if len(scores) == 1:
        return np.array([choose(scores, one_se)[1]])
    rest = (np.delete(scores, k, axis=0) for k in range(len(scores)))
    return np.array([choose(part, one_se)[1] for part in rest])


def judged(folds: Sequence[Fold], chosen: Sequence[int] | NDArray[np.int64]) -> Verdict:
    """The verdict over all folds, each with the alpha at its place in `chosen`.

    Own data only must be possible where it is compared: nodes without training rows in a fold are
    left out of it, unless all are.
    """
    many = [fold.errors for fold in folds if fold.errors is not None]
    own_rows = sum(fold.n_own for fold in folds)
    if len(many) < len(folds):  # a score of the user's: its parts are the folds
        own = np.array([-fold.own if own_rows else np.nan for fold in folds])
        pooled = np.array([-fold.pooled for fold in folds])
        coupled = np.array([-fold.scores[k] for fold, k in zip(folds, chosen, strict=True)])
        return Verdict(own, pooled, coupled, np.ones(len(folds)), part="fold")
    table = np.concatenate(
        [_kept(one, int(k), own_rows > 0) for one, k in zip(many, chosen, strict=True)], axis=1
    )
    names = np.concatenate([one.nodes[one.with_rows | (own_rows == 0)] for one in many])
    nodes = distinct(names)
    owner = IdIndex(nodes).positions(names)
    weight = np.bincount(owner, table[0])
    own, pooled, coupled = (np.bincount(owner, table[0] * row) / weight for row in table[1:])
    return Verdict(own, pooled, coupled, weight, nodes.tolist())


def _kept(errors: NodeErrors, k: int, with_own: bool) -> Array:
    """Weights and errors (own, pooled, coupled) of one fold, shape (4, n)."""
    own = errors.own if with_own else np.full(len(errors.own), np.nan)
    table = np.stack([errors.weight, own, errors.pooled, errors.coupled[k]])
    return table[:, errors.with_rows] if with_own else table
