"""IFCA (Ghosh et al. 2020): clients choose among k models, the server averages by choice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, as_float_array, check_count
from nefele.baselines._common import ROUNDS, TOL, Fit, bound, repeat, step_size
from nefele.baselines.pooled import group_models
from nefele.losses import BoundLoss
from nefele.runtime.messages import Ledger


def ifca(
    data: Any,
    loss: Any = "squared",
    *,
    k: int = 2,
    init: Any = None,
    exact: bool = False,
    lr: float | None = None,
    rounds: int = ROUNDS,
    tol: float = TOL,
    seed: int = 0,
) -> Fit:
    """Each round: every client takes the model with its least loss; each model learns from those.

    Good starts matter: from a poor one the clients may all choose the same model for ever.

    Parameters
    ----------
    data : LocalData
        Nodes with rows are the clients.
    loss : str or Loss
    k : int
        Number of models.
    init : array of shape (k, d), optional
        First models. Default: local fits of k clients that are far apart, the first drawn by seed.
    exact : bool
        Pool the rows of each group; default one averaged gradient step per round.
    lr : float, optional
        Length of a gradient step; default 1 over the largest curvature.
    rounds, tol : int, float
        Most rounds; relative change of the models that ends the method.
    seed : int

    Returns
    -------
    Fit
        `clusters` is the choice of each node; nodes without data get the mean model and -1.

    Examples
    --------
    >>> from nefele import LocalData
    >>> rows = [([[1.0]], [y]) for y in (0.0, 0.2, 4.0, 4.2)]
    >>> fit = ifca(LocalData.from_list(rows), k=2, init=[[1.0], [3.0]])
    >>> fit.clusters.tolist(), fit.w.round(3).ravel().tolist()
    ([0, 0, 1, 1], [0.1, 0.1, 4.1, 4.1])
    """
    losses = bound(data, loss)
    k = check_count(k, "k", low=1)
    models = _first(losses, k, init, np.random.default_rng(seed))
    step = None if exact else step_size(losses, lr)
    known = losses.labelled
    choice = np.full(losses.n_nodes, -1)

    def one_round(_: int) -> Array:
        nonlocal models, choice
        choice = _choose(losses, models)
        if step is None:
            own = group_models(data, loss, np.where(known, choice, k))
        else:
            here = models[np.maximum(choice, 0)]
            own = here - step * losses.grad(here)
        for c in range(k):
            if (choice == c).any():  # a model that nobody chose stays as it is
                models[c] = own[choice == c].mean(axis=0)
        return _used(models, choice)

    w, history, converged = repeat(one_round, losses, _used(models, choice), rounds, tol)
    ledger, clients = Ledger(rounds=len(history)), int(known.sum())
    ledger.tally("parameters", len(history) * clients, k * losses.d)  # all models go down
    ledger.tally("parameters", len(history) * clients, losses.d)
    choice = _choose(losses, models)
    w = _used(models, choice)
    return Fit("ifca", w, len(history), ledger, history, converged, choice)


def _first(losses: BoundLoss, k: int, init: Any, rng: np.random.Generator) -> Array:
    if init is not None:
        models = as_float_array(init, "init", 2).copy()
        if models.shape != (k, losses.d):
            raise ValueError(f"init must have shape {(k, losses.d)}; got {models.shape}.")
        return models
    known = np.flatnonzero(losses.labelled)
    if k > len(known):
        raise ValueError(f"k must be at most {len(known)}, the nodes with data; got {k}.")
    fits = losses.minimise()[known]
    taken = [int(rng.integers(len(known)))]
    while len(taken) < k:
        away = np.linalg.norm(fits[:, None] - fits[taken], axis=2).min(axis=1)
        taken.append(int(np.argmax(away)))
    return fits[taken].copy()


def _choose(losses: BoundLoss, models: Array) -> NDArray[np.int64]:
    """The model with the least loss for each node, -1 for nodes without data."""
    values = [losses.value(np.repeat(m[None], losses.n_nodes, axis=0)) for m in models]
    return np.where(losses.labelled, np.argmin(values, axis=0), -1)


def _used(models: Array, choice: NDArray[np.int64]) -> Array:
    return np.where((choice >= 0)[:, None], models[np.maximum(choice, 0)], models.mean(axis=0))
