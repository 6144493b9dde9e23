"""FedProx: regularised local updates, then the mean (lecture notes, Alg. 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array, check_number
from nefele.baselines._common import ROUNDS, TOL, Fit, bound, repeat, spread, star_books


def fedprox(
    data: Any,
    loss: Any = "squared",
    *,
    rho: float = 1.0,
    rounds: int = ROUNDS,
    tol: float = TOL,
) -> Fit:
    """v_i = argmin L_i(v) + rho ||v - w||^2 at each client, then w = mean of the v_i.

    The limit is the centre of GTVMin on a star with the penalty rho ||w_i - w_0||^2 (`SquaredL2`
    with lam = 2 rho, a centre without data), not the pooled model, which it nears as rho grows.
    Papers write the same update with 1/eta or 1/(2 eta) in the place of rho.

    Parameters
    ----------
    data : LocalData
        Nodes with rows are the clients.
    loss : str or Loss
    rho : float
        Weight of the squared distance from the server's model, > 0.
    rounds, tol : int, float
        Most rounds; relative change of the model that ends the method.

    Returns
    -------
    Fit
        Every node gets the server's model.

    Examples
    --------
    >>> from nefele import LocalData
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[2.0]], [4.0])])
    >>> fedprox(data, rho=1.0).w[0].round(3), fedprox(data, rho=100.0).w[0].round(3)  # pooled: 1.6
    (array([1.231]), array([1.591]))
    """
    losses = bound(data, loss)
    rho = check_number(rho, "rho", low=0.0, strict=True)
    known, n = losses.labelled, losses.n_nodes
    step = np.full(n, 1 / (2 * rho))
    w = np.zeros((n, losses.d))

    def one_round(k: int) -> Array:
        nonlocal w
        w = spread(losses.prox(w, step, start=w)[known].mean(axis=0), n)
        return w

    w, history, converged = repeat(one_round, losses, w, rounds, tol)
    books = star_books(len(history), int(known.sum()), losses.d, losses.d)
    return Fit("fedprox", w, len(history), books, history, converged)
