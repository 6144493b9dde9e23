"""Predicted and observed recovery of the clusters of a block model (NFL, Sec. V and VI-A)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count, check_number
from nefele.data import LocalData
from nefele.graphs import sbm
from nefele.problem import Problem
from nefele.result import DataWarning
from nefele.solvers import solve
from nefele.theory.clusters import error_bound

_SAME = 1e-4  # spread inside a cluster, relative to the distance of the true models


@dataclass(frozen=True, eq=False)
class PhaseDiagram:
    """Shares of runs over a grid, arrays of shape (len(p_out), len(fraction)).

    Attributes
    ----------
    p_out : array
        Probability of an edge between the clusters.
    fraction : array
        Share of nodes that have data.
    predicted : array
        Share of runs in which recovery is certain: both clusters are well-connected and their
        error bounds keep their models apart.
    observed : array
        Share of runs in which the solution is constant on each cluster and differs between them.
    mse : array
        Mean over runs of (1/n) sum_i ||w_i - true_i||^2 (NFL, Eq. (40)).

    Examples
    --------
    >>> from nefele.theory import phase_diagram
    >>> bool(phase_diagram([0.0], [1.0], n=12, runs=1).mse[0, 0] < 1e-6)
    True
    """

    p_out: Array = field(repr=False)
    fraction: Array = field(repr=False)
    predicted: Array
    observed: Array
    mse: Array


def phase_diagram(
    p_out: Any = (0.0, 0.002, 0.01, 0.05),
    fraction: Any = (0.2, 0.6, 1.0),
    *,
    n: int = 60,
    p_in: float = 0.5,
    m: int = 5,
    noise: float = 0.0,
    lam: float = 0.05,
    penalty: Any = "l2",
    runs: int = 3,
    seed: int = 0,
) -> PhaseDiagram:
    """How often the clusters of a two-block model are recovered, in theory and in fact.

    Two equal clusters with the true parameters (2, 2) and (-2, 2), m rows per node with data,
    standard normal features, as in NFL, Sec. VI-A. Predicted: Definition 1 holds and the error
    bounds (37) keep the two models apart. Observed: the solution has one model per cluster, and not
    the same. The first implies the second, not the other way round.

    Parameters
    ----------
    p_out : sequence of float in [0, 1]
        Rows of the grid.
    fraction : sequence of float in (0, 1]
        Columns of the grid; at least one node has data, however small the share.
    n : int
        Nodes in all, even.
    p_in : float
        Probability of an edge inside a cluster.
    m : int
        Rows per node with data.
    noise : float
        Standard deviation of the label noise.
    lam : float
    penalty : str or Penalty
        A norm.
    runs, seed : int
        Repetitions per grid point; the same seed gives the same diagram.

    Returns
    -------
    PhaseDiagram

    Examples
    --------
    >>> from nefele.theory import phase_diagram
    >>> found = phase_diagram([0.0, 0.3], [1.0], n=20, runs=1)
    >>> found.predicted.ravel().tolist(), found.observed.ravel().tolist()
    ([1.0, 0.0], [1.0, 0.0])
    """
    rows, columns = _shares(p_out, "p_out"), _shares(fraction, "fraction")
    if not columns.all():
        raise ValueError(f"fraction must be > 0: without data nothing is learnt; got {fraction!r}.")
    n, m, seed = check_count(n, "n", low=4), check_count(m, "m", low=1), check_count(seed, "seed")
    noise = check_number(noise, "noise", low=0.0)
    if n % 2:
        raise ValueError(f"n must be even: two clusters of equal size; got {n}.")
    runs = check_count(runs, "runs", low=1)
    out = np.zeros((3, len(rows), len(columns)))
    label = np.repeat([0, 1], n // 2)
    true = np.array([[2.0, 2.0], [-2.0, 2.0]])[label]
    for i, across in enumerate(rows):
        for j, share in enumerate(columns):
            for run in range(runs):
                rng = np.random.default_rng([seed, i, j, run])
                graph = sbm([n // 2, n // 2], p_in, across, seed=rng)
                data = _data(rng, true, round(share * n), m, noise)
                problem = Problem(graph, data, "squared", penalty, lam=lam)
                out[:, i, j] += _outcome(problem, label, true)
    out /= runs
    return PhaseDiagram(rows, columns, *out)


def _outcome(problem: Problem, label: NDArray[np.int64], true: Array) -> list[float]:
    """Predicted, observed and MSE of one run."""
    bound = error_bound(problem, label)
    distance = problem.penalty.value(bound.optimum[:1] - bound.optimum[1:])[0]
    reached = not problem.undetermined.any()
    predicted = bool(reached and bound.proven.all() and bound.value.sum() < distance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # nodes that no data reach count as missed
        w = solve(problem, tol=1e-9).w
    spread = max(float(np.ptp(w[label == c], axis=0).max()) for c in (0, 1))
    unit = float(np.sqrt(((true[0] - true[-1]) ** 2).sum()))
    observed = reached and spread <= _SAME * unit < float(np.abs(w[0] - w[-1]).max())
    return [predicted, observed, float(((w - true) ** 2).sum(axis=1).mean())]


def _data(rng: np.random.Generator, true: Array, known: int, m: int, noise: float) -> LocalData:
    X = rng.standard_normal((len(true), m, true.shape[1]))
    y = np.einsum("imj,ij->im", X, true) + noise * rng.standard_normal(X.shape[:2])
    labelled = np.zeros(len(true), dtype=bool)
    labelled[rng.permutation(len(true))[: max(known, 1)]] = True
    return LocalData.from_list([(X[i], y[i]) if labelled[i] else None for i in range(len(true))])


def _shares(values: Any, name: str) -> Array:
    array = np.atleast_1d(np.asarray(values, dtype=float))
    if array.ndim != 1 or not len(array) or not ((array >= 0) & (array <= 1)).all():
        raise ValueError(f"{name} must hold numbers in [0, 1]; got {values!r}.")
    return array
