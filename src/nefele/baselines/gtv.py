"""GTV minimisation with the message-passing method, counted like the baselines."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from nefele.baselines._common import Fit, bound
from nefele.graph import Graph
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, DataWarning
from nefele.runtime.messages import Ledger
from nefele.solvers import PrimalDual, solve

_ROUNDS = 20_000


def gtv(
    data: Any,
    graph: Any,
    loss: Any = "squared",
    *,
    lam: float = 0.1,
    penalty: Any = "l2",
    tol: float = 1e-4,
    rounds: int = _ROUNDS,
) -> Fit:
    """GTVMin by primal-dual iterations alone, which nodes and edges can do by messages.

    `nefele.solve` is faster: it adds reduced solves that see all nodes at once.

    Parameters
    ----------
    data : LocalData
    graph : Graph
    loss : str or Loss
    lam : float
        Strength of the coupling.
    penalty : str or Penalty
    tol : float
        Certified relative gap to reach.
    rounds : int
        Most rounds.

    Returns
    -------
    Fit
        In each round one vector goes over every edge in each direction.

    Examples
    --------
    >>> from nefele import Graph, LocalData
    >>> data = LocalData.from_list([([[1.0]], [0.0]), None, ([[1.0]], [4.0])])
    >>> fit = gtv(data, Graph.from_edges([(0, 1), (1, 2)]), lam=1.0)
    >>> fit.w[[0, 2], 0].round(2).tolist(), fit.ledger.floats == 4 * fit.rounds
    ([0.5, 3.5], True)
    """
    if not isinstance(graph, Graph):
        raise ValueError(f"graph must be a Graph; got {type(graph).__name__}. Use as_graph.")
    bound(data, loss)
    problem = Problem(graph, data, loss=loss, penalty=penalty, lam=lam)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # `converged` says it
        warnings.simplefilter("ignore", DataWarning)
        method = PrimalDual(polish=False) if problem.coupled else "auto"
        result = solve(problem, method, tol=tol, max_iter=rounds if problem.coupled else None)
    ledger, taken = Ledger(rounds=result.n_iter), result.n_iter if problem.coupled else 0
    ledger.tally("parameters", 2 * graph.n_edges * taken, problem.d)  # 2 w+ - w to each neighbour
    history = np.array([record.objective for record in result.history])
    return Fit("gtv", result.w, result.n_iter, ledger, history, result.converged, result.clusters())
