"""`nefele demo`: incomes of 48 US states, where the borders matter.

Each state's income against the mean of all is a curve over the years. 36 states have 6 of 81
years to learn from, 12 have none. The fits compared: own data only, one model, a mixed model
(every state is drawn to a common centre, whoever its neighbours are), nefele (borders and centre,
chosen from the training rows), and, as control, nefele with shuffled borders.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count
from nefele.cli._demo_fits import shuffle_nodes
from nefele.datasets import IncomesData, split_incomes
from nefele.graph import Graph

OWN, ONE, MIXED = "own data only", "one model", "mixed model"
NEFELE, CONTROL = "nefele", "shuffled borders"
METHODS = (OWN, ONE, MIXED, NEFELE, CONTROL)


@dataclass(frozen=True)
class IncomesFit:
    """One method on one split: errors where there were rows and where there were none.

    `without` is NaN for a method that has no model there; `problem` is empty when the fit
    converged.
    """

    method: str
    seed: int
    seen: float
    without: float
    coupling: str = ""
    gap: float | None = None
    problem: str = ""


@dataclass(frozen=True, eq=False)
class IncomesScore:
    """A method over all splits."""

    method: str
    seen: Array
    without: Array
    couplings: tuple[str, ...]
    gap: float | None


def fit_incomes(
    incomes: IncomesData, seeds: int, tick: Callable[[str], object]
) -> list[IncomesFit]:
    """All fits of the demo, split by split; `tick(text)` is called before each.

    Examples
    --------
    >>> from nefele.datasets import load_incomes
    >>> fits = fit_incomes(load_incomes(), seeds=1, tick=lambda text: None)
    >>> errors = {fit.method: fit.without for fit in fits}
    >>> errors["nefele"] < 0.8 * errors["mixed model"]
    True
    """
    found = []
    for seed in range(check_count(seeds, "--seeds", low=1)):
        train = split_incomes(incomes, seed)
        for method in METHODS:
            tick(f"{method}, seed {seed}")
            found.append(_fit(method, incomes, train, seed))
    return found


def _fit(method: str, incomes: IncomesData, train: NDArray[np.bool_], seed: int) -> IncomesFit:
    bare = ~np.isin(incomes.node_ids, incomes.node_ids[train])
    facts: dict[str, Any] = {}
    if method == OWN:
        predicted = _alone(incomes, train)
    else:
        graphs: dict[str, Graph | None] = {
            NEFELE: incomes.graph,
            CONTROL: shuffle_nodes(incomes.graph, seed),
        }
        predicted, facts = _estimated(incomes, train, graphs.get(method), pooled=method == ONE)
    errors = (predicted - incomes.y) ** 2
    seen, without = errors[~train & ~bare].mean(), errors[bare].mean()
    return IncomesFit(method, seed, float(seen), float(without), **facts)


def _alone(incomes: IncomesData, train: NDArray[np.bool_]) -> Array:
    """Predictions of each state by least squares on its own rows; NaN without any."""
    X = np.column_stack([incomes.X, np.ones(len(incomes.y))])
    found = np.full(len(incomes.y), np.nan)
    for state in np.unique(incomes.node_ids[train]):
        rows = incomes.node_ids == state
        w = np.linalg.lstsq(X[rows & train], incomes.y[rows & train], rcond=None)[0]
        found[rows] = X[rows] @ w
    return found


def _estimated(
    incomes: IncomesData, train: NDArray[np.bool_], graph: Graph | None, *, pooled: bool
) -> tuple[Array, dict[str, Any]]:
    """Predictions for all rows and the facts of a fit; without a graph by a centre."""
    if pooled:
        from sklearn.linear_model import LinearRegression

        line = LinearRegression().fit(incomes.X[train], incomes.y[train])
        return line.predict(incomes.X), {}
    from nefele import GTVRegressorCV
    from nefele.result import ConvergenceWarning, Status

    model = GTVRegressorCV(graph, features="linear", unseen="centre")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # told by IncomesFit.problem
        model.fit(incomes.X[train], incomes.y[train], node_ids=incomes.node_ids[train])
    status = Status(model.status_)
    facts = {
        "coupling": model.coupling_,
        "gap": float(model.dual_gap_),
        "problem": "" if status.reached else f"{status}: {status.advice}",
    }
    return model.predict(incomes.X, node_ids=incomes.node_ids), facts


def score_incomes(fits: Sequence[IncomesFit]) -> list[IncomesScore]:
    """Gather the fits of each method, in order of appearance.

    Examples
    --------
    >>> fits = [IncomesFit("one model", seed, 1.0 + seed, 3.0) for seed in (0, 1)]
    >>> [score.seen.tolist() for score in score_incomes(fits)]
    [[1.0, 2.0]]
    """
    found = []
    for method in dict.fromkeys(fit.method for fit in fits):
        mine = [fit for fit in fits if fit.method == method]
        gaps = [fit.gap for fit in mine if fit.gap is not None]
        found.append(
            IncomesScore(
                method,
                np.array([fit.seen for fit in mine]),
                np.array([fit.without for fit in mine]),
                tuple(dict.fromkeys(fit.coupling for fit in mine if fit.coupling)),
                max(gaps) if gaps else None,
            )
        )
    return found


def find(scores: Sequence[IncomesScore], method: str) -> IncomesScore:
    """The score of a method."""
    return next(score for score in scores if score.method == method)


def incomes_conclusions(scores: Sequence[IncomesScore], failed: Sequence[IncomesFit]) -> list[str]:
    """A few sentences on what the borders are worth, and what to trust.

    Examples
    --------
    >>> errors = {OWN: (9.0, np.nan), ONE: (8.0, 4.0), MIXED: (2.0, 4.0), NEFELE: (1.5, 3.0)}
    >>> fits = [IncomesFit(name, 0, *pair, gap=1e-9) for name, pair in errors.items()]
    >>> fits.append(IncomesFit(CONTROL, 0, 2.0, 4.0, gap=1e-9))
    >>> print(incomes_conclusions(score_incomes(fits), [])[0])
    Borders are worth 25% of a mixed model's error where a state has 6 years ...
    """
    mixed, ours, control = (find(scores, name) for name in (MIXED, NEFELE, CONTROL))
    n = len(ours.seen)
    wins = int((ours.seen < mixed.seen).sum()), int((ours.without < mixed.without).sum())
    said = [
        f"Borders are worth {_less(ours.seen, mixed.seen)} of a mixed model's error where a state "
        f"has 6 years (better in {wins[0]} of {n} splits) and {_less(ours.without, mixed.without)} "
        f"where it has none (better in {wins[1]} of {n}): its neighbours stand in, a mixed model "
        "has only its centre.",
        f"With shuffled borders this is gone ({control.seen.mean():.5f} and "
        f"{control.without.mean():.4f}): nefele then trusts them little or not at all.",
    ]
    if failed:
        return [*said, f"Not trustworthy: {len(failed)} fit(s) did not converge; see the warnings."]
    worst = max(score.gap for score in scores if score.gap is not None)
    return [*said, f"Each coupled fit is certified to {worst:.1e} (relative) of the optimum."]


def _less(ours: Array, theirs: Array) -> str:
    return f"{1.0 - ours.mean() / theirs.mean():.0%}"


def incomes_as_dict(scores: Sequence[IncomesScore], failed: Sequence[IncomesFit]) -> dict[str, Any]:
    """The demo's result for JSON; an error that does not exist is None.

    Examples
    --------
    >>> errors = dict.fromkeys(METHODS, (1.0, 2.0)) | {OWN: (1.0, np.nan)}
    >>> fits = [IncomesFit(name, 0, *pair, gap=0.0) for name, pair in errors.items()]
    >>> incomes_as_dict(score_incomes(fits), [])["methods"][0]["mse_without_rows"] is None
    True
    """
    mixed = find(scores, MIXED)
    return {
        "version": version("nefele"),
        "seeds": len(mixed.seen),
        "converged": not failed,
        "methods": [
            {
                "method": score.method,
                "mse": float(score.seen.mean()),
                "mse_per_seed": score.seen.tolist(),
                "mse_without_rows": None if np.isnan(score.without).any() else score.without.mean(),
                "ratio": float(score.seen.mean() / mixed.seen.mean()),
                "couplings": list(score.couplings),
                "gap": score.gap,
            }
            for score in scores
        ],
        "conclusions": incomes_conclusions(scores, failed),
    }
