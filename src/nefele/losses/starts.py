"""Where a solve with a Poisson loss begins: near the data where counts are large.

From zero a Newton step overshoots log(y) by as much as y, where the exponential overflows. The
least squares fit to log(y), with the counts as weights, is near the optimum, also that of all nodes
together, which is the better start of the two where edges pull: there they have nothing to undo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.losses.rows import solve_blocks

if TYPE_CHECKING:
    from nefele.losses.constraints import Constraint
    from nefele.losses.pointwise import BoundPointwise

_FAR = 3.0  # logarithm of a node's counts over their predictions from which a start is far away
_LEAST = 0.5  # what stands for a count of zero
_STEPS, _HALVINGS = 30, 50
_ROUNDS, _OVER = 30, 5.0  # of weighing rows anew whose predictions are above by so much
_GAIN = 1e-3  # fall of the loss, relative to it, that is worth another step
_RIDGE = 1e-10  # share of a diagonal that is added to it


def counts_start(loss: BoundPointwise) -> Array:
    """Zero where that is near all counts, else a common fit, or own ones; shape (n_nodes, d)."""
    zero = np.zeros((loss.n_nodes, loss.d))
    if not _far(loss, zero).any():
        return zero
    blocks, right = _logarithms(loss)
    blocks, right = blocks.sum(axis=0, keepdims=True), right.sum(axis=0)[None]
    common = solve_blocks(blocks + _little(blocks), right)
    out = np.repeat(np.nan_to_num(common), loss.n_nodes, axis=0)
    far = np.flatnonzero(_far(loss, out))
    if far.size:
        out[far] = _near_fits(loss.restrict(far))  # type: ignore[arg-type]
    return out


def counts_within(loss: BoundPointwise, within: Constraint, w: Array) -> Array:
    """Points of a set where no prediction is far above its count, if that can be, from w on.

    Least squares fits to the logarithms, in which rows that stick out weigh more and more.
    """
    mean = np.maximum(loss.data.y, _LEAST)
    aim, more = np.log(mean) - loss.offset, mean
    for _ in range(_ROUNDS):
        blocks = loss.ridged(loss._weighted_gram(loss.data.row_weight * more))
        w = within.minimise(blocks + _little(blocks), loss.pull(more * aim), loss.lasso, w)
        over = loss.predict(w) - aim > _OVER
        if not over.any():
            break
        more = np.where(over, 10 * more, more)
    return w


def _far(loss: BoundPointwise, w: Array) -> NDArray[np.bool_]:
    """Nodes whose mean predictions are far from their mean counts."""
    with np.errstate(over="ignore", divide="ignore"):
        found = np.log(loss.node_mean(np.exp(loss._whole(loss.predict(w)))))
        there = np.log(loss.node_mean(np.maximum(loss.data.y, _LEAST)))
        return loss.labelled & ~(np.abs(found - there) <= _FAR)


def _logarithms(loss: BoundPointwise) -> tuple[Array, Array]:
    """The normal equations of each node's least squares fit to log(y)."""
    mean = np.maximum(loss.data.y, _LEAST)
    blocks = loss.ridged(loss._weighted_gram(loss.data.row_weight * mean))
    return blocks, loss.pull(mean * (np.log(mean) - loss.offset))


def _near_fits(loss: BoundPointwise) -> Array:
    """A least squares fit to the logarithms, no farther than the loss falls, and Newton steps."""
    blocks, right = _logarithms(loss)
    little = _little(blocks)
    w = np.zeros((loss.n_nodes, loss.d))
    with np.errstate(over="ignore", invalid="ignore"):
        w, value = _fallen(loss, w, solve_blocks(blocks + little, right), loss.value(w))
        for _ in range(_STEPS):
            move = -solve_blocks(np.asarray(loss.hess(w)) + little, loss.grad(w))
            w, after = _fallen(loss, w, move, value)
            done, value = value - after <= _GAIN * np.abs(after), after
            if done.all():
                break
    return w


def _little(blocks: Array) -> Array:
    """A tiny share of the blocks' diagonals, added so that they can be inverted."""
    diagonals = np.einsum("ijj->ij", blocks)
    return _RIDGE * np.where(diagonals > 0, diagonals, 1.0)[..., None] * np.eye(blocks.shape[1])


def _fallen(loss: BoundPointwise, w: Array, move: Array, value: Array) -> tuple[Array, Array]:
    """The parameters moved as far as halving makes each loss fall, and the losses there."""
    step, move = np.ones(len(w)), np.nan_to_num(move, posinf=0.0, neginf=0.0)
    for _ in range(_HALVINGS):
        trial = w + step[:, None] * move
        new = loss.value(trial)
        ok = new <= value
        if ok.all():
            return trial, new
        step = np.where(ok, step, 0.5 * step)
    return np.where(ok[:, None], trial, w), np.where(ok, new, value)
