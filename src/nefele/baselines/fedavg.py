"""FedAvg: local work at the clients, an unweighted mean at the server (lecture notes, Alg. 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array, check_count, check_number
from nefele.baselines._common import ROUNDS, TOL, Fit, bound, repeat, spread, star_books, step_size
from nefele.losses import BoundLoss


def fedavg(
    data: Any,
    loss: Any = "squared",
    *,
    steps: int | str = 1,
    lr: float | None = None,
    client_fraction: float = 1.0,
    rounds: int = ROUNDS,
    tol: float | None = TOL,
    seed: int = 0,
) -> Fit:
    """Each round, clients start at the server's model, work locally, and send their model back.

    With one full gradient step this is gradient descent on the pooled loss and converges to the
    pooled model. More local steps need fewer rounds and drift: the limit is another point, the
    farther the more the clients differ and the more steps they take. With "exact" local minimisers
    the first round ends it: the mean of the local models.

    Parameters
    ----------
    data : LocalData
        Nodes with rows are the clients.
    loss : str or Loss
    steps : int or "exact"
        Local gradient steps per round, or the local minimiser.
    lr : float, optional
        Length of a gradient step; default 1 over the largest curvature.
    client_fraction : float
        Share of the clients that take part in a round, drawn anew each time.
    rounds : int
        Most rounds.
    tol : float or None
        Relative change of the model that ends the method, if all clients take part.
    seed : int

    Returns
    -------
    Fit

    Examples
    --------
    >>> from nefele import LocalData
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[2.0]], [4.0])])
    >>> fedavg(data).w.round(6).tolist()  # the pooled model
    [[1.6], [1.6]]
    >>> fedavg(data, steps="exact").w.round(6).tolist()  # the mean of 0 and 2
    [[1.0], [1.0]]
    """
    losses = bound(data, loss)
    clients = np.flatnonzero(losses.labelled)
    if not 0 < check_number(client_fraction, "client_fraction") <= 1:
        raise ValueError(f"client_fraction must be in (0, 1]; got {client_fraction!r}.")
    if steps != "exact":
        steps = check_count(steps, "steps", low=1)
        lr = step_size(losses, lr)
    active = max(1, round(client_fraction * len(clients)))
    rng = np.random.default_rng(seed)
    server = np.zeros(losses.d)
    best = losses.minimise() if steps == "exact" else None

    def one_round(k: int) -> Array:
        nonlocal server
        taking = clients if active == len(clients) else rng.choice(clients, active, replace=False)
        found = local_work(losses, server, steps, lr) if best is None else best
        server = found[taking].mean(axis=0)
        return spread(server, losses.n_nodes)

    goal = tol if active == len(clients) else None  # a sample of clients never settles
    w, history, converged = repeat(one_round, losses, spread(server, losses.n_nodes), rounds, goal)
    books = star_books(len(history), active, losses.d, losses.d)
    return Fit("fedavg", w, len(history), books, history, converged)


def local_work(losses: BoundLoss, start: Array, steps: Any, lr: float | None) -> Array:
    """Gradient steps of every node from one common model, shape (n_nodes, d)."""
    assert lr is not None
    w = spread(start, losses.n_nodes)
    for _ in range(steps):
        w = w - lr * losses.grad(w)
    return w
