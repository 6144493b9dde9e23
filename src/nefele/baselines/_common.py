"""What the baselines share: their result, the checks, step sizes, books of a star."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count, check_number
from nefele.data import LocalData
from nefele.losses import BoundLoss, Loss, as_loss
from nefele.runtime.messages import Ledger

ROUNDS = 1000  # most rounds, if not said otherwise
_WORSE = 10.0  # growth of the loss that no method survives
TOL = 1e-10  # change of the parameters, relative to their size, that ends a method


@dataclass(frozen=True, eq=False)
class Fit:
    """What a method of this package learnt.

    Attributes
    ----------
    name : str
    w : array of shape (n_nodes, d)
        The model that each node uses.
    rounds : int
        Rounds of communication.
    ledger : Ledger
        What was sent.
    history : array of shape (rounds,)
        Sum of the local losses after each round, at the models that the nodes then use; for
        methods without rounds the last one only, for `gtv` the objective at examined points.
    converged : bool
        Whether the models stopped changing before the last round.
    clusters : int array of shape (n_nodes,), optional
        Group of each node, for methods that find groups; -1 for nodes without data.

    Examples
    --------
    >>> from nefele.baselines import fedavg
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> fit = fedavg(data)
    >>> fit.converged, fit.ledger.messages == 4 * fit.rounds
    (True, True)
    """

    name: str
    w: Array = field(repr=False)
    rounds: int
    ledger: Ledger = field(repr=False)
    history: Array = field(repr=False)
    converged: bool
    clusters: NDArray[np.int64] | None = field(default=None, repr=False)


def bound(data: Any, loss: Any) -> BoundLoss:
    """The loss bound to the data, after a check that there are any."""
    if not isinstance(data, LocalData):
        raise ValueError(f"data must be a LocalData; got {type(data).__name__}.")
    if not data.labelled.any():
        raise ValueError("data must have rows; every node is empty.")
    chosen: Loss = as_loss(loss)
    return chosen.bind(data)


def step_size(loss: BoundLoss, lr: float | None, extra: Array | float = 0.0) -> float:
    """The given step, or 1 over the largest curvature of a node, plus `extra`.

    The curvature is that at zero or at the local fits, whichever is larger.
    """
    if lr is not None:
        return check_number(lr, "lr", low=0.0, strict=True)
    most = 0.0
    for w in (np.zeros((loss.n_nodes, loss.d)), loss.minimise()):
        hess = loss.hess(w)
        if hess is None:
            raise ValueError(f"{type(loss).__name__} has no Hessian to choose lr from; give it.")
        top = np.linalg.eigvalsh(np.nan_to_num(hess))[:, -1]
        most = max(most, float((top + extra).max()))
    return 1.0 / most if most > 0 else 1.0


def repeat(
    step: Callable[[int], Array],
    loss: BoundLoss,
    w: Array,
    rounds: Any,
    tol: float | None,
) -> tuple[Array, Array, bool]:
    """Call step(k) until the models, shape (n_nodes, d), change by less than tol; the history.

    Without a tolerance all rounds are done.
    """
    rounds = check_count(rounds, "rounds", low=1)
    tol = None if tol is None else check_number(tol, "tol", low=0.0)
    history, converged = [], False
    first = float(np.abs(loss.value(w)).sum())
    for k in range(rounds):
        with np.errstate(over="ignore", invalid="ignore"):
            new = step(k)
            history.append(float(loss.value(new).sum()))
        if not history[-1] <= _WORSE * first + np.abs(history).min():
            raise ValueError(
                f"The loss grew from {first:.3g} to {history[-1]:.3g} by round {k + 1}: the step "
                "is too long. Lower lr."
            )
        still = tol is not None and np.abs(new - w).max() <= tol * np.abs(new).max()
        w = new
        if still:
            converged = True
            break
    return w, np.array(history), converged


def spread(model: Array, n_nodes: int) -> Array:
    """One model for every node, shape (n_nodes, d)."""
    return np.repeat(model[None, :], n_nodes, axis=0)


def star_books(rounds: int, clients: int, floats_down: int, floats_up: int) -> Ledger:
    """The books of a server that sends to its clients and hears from them in every round."""
    ledger = Ledger(rounds=rounds)
    ledger.tally("parameters", rounds * clients, floats_down)
    ledger.tally("parameters", rounds * clients, floats_up)
    return ledger
