"""`nefele demo`: scores over the seeds, and what can honestly be said about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.cli._demo_fits import OWN, POOLED, DemoFit, DemoOptions, Method


@dataclass(frozen=True, eq=False)
class Score:
    """A method over all seeds; `errors` are test errors, shape (n_seeds, n_states)."""

    method: Method
    errors: Array
    n_models: list[int]
    gaps: list[float]

    @property
    def mse(self) -> float:
        """Mean test error over states and seeds."""
        return float(self.errors.mean())

    @property
    def gap(self) -> float | None:
        """The worst relative gap over the seeds; None for a closed-form fit."""
        return float(np.max(self.gaps)) if self.gaps else None


def score_fits(fits: Sequence[DemoFit]) -> list[Score]:
    """Gather the fits of each method, in order of appearance.

    Examples
    --------
    >>> fits = [DemoFit(OWN, seed, np.array([1.0, 2.0 + seed]), 2) for seed in (0, 1)]
    >>> [(score.mse, score.errors.tolist()) for score in score_fits(fits)]
    [(1.75, [[1.0, 2.0], [1.0, 3.0]])]
    """
    scores = []
    for method in dict.fromkeys(fit.method for fit in fits):
        mine = [fit for fit in fits if fit.method == method]
        errors = np.array([fit.state_mse for fit in mine])
        gaps = [fit.gap for fit in mine if fit.gap is not None]
        scores.append(Score(method, errors, [fit.n_models for fit in mine], gaps))
    return scores


def find(scores: Sequence[Score], method: Method) -> Score:
    """The score of a method.

    Examples
    --------
    >>> find(score_fits([DemoFit(OWN, 0, np.array([1.0]), 1)]), OWN).mse
    1.0
    """
    return next(score for score in scores if score.method == method)


def states_worse(score: Score, own: Score) -> list[int]:
    """For each seed, the number of states with a larger test error than with own data only.

    Examples
    --------
    >>> pooled = DemoFit(POOLED, 0, np.array([0.5, 3.0]), 1)
    >>> fits = [DemoFit(OWN, 0, np.array([1.0, 2.0]), 2), pooled]
    >>> own, pooled = score_fits(fits)
    >>> states_worse(pooled, own)
    [1]
    """
    return (score.errors > own.errors).sum(axis=1).tolist()


def borders_and_control(scores: Sequence[Score]) -> tuple[Score, Score]:
    """The fits over the true borders and over shuffled borders, with the same penalty.

    Examples
    --------
    >>> pair = [Method("nefele l1", "l1"), Method("l1, shuffled borders", "l1", shuffled=True)]
    >>> scores = score_fits([DemoFit(method, 0, np.array([1.0]), 1) for method in pair])
    >>> [score.method.label for score in borders_and_control(scores)]
    ['nefele l1', 'l1, shuffled borders']
    """
    control = next(score for score in scores if score.method.shuffled)
    name = control.method.penalty
    borders = next(s for s in scores if s.method.penalty == name and not s.method.shuffled)
    return borders, control


def gain_shares(scores: Sequence[Score]) -> dict[str, float] | None:
    """Split the gain over own data only into what the control keeps and what it loses.

    With the mean errors e_own, e_control and e_borders, shrinkage is
    (e_own - e_control) / (e_own - e_borders) and geography the rest; None without a gain.

    Examples
    --------
    >>> control = Method("l2, shuffled borders", "l2", shuffled=True)
    >>> errors = {OWN: 10.0, Method("nefele l2", "l2"): 1.0, control: 2.8}
    >>> fits = [DemoFit(method, 0, np.array([error]), 1) for method, error in errors.items()]
    >>> {name: round(share, 3) for name, share in gain_shares(score_fits(fits)).items()}
    {'shrinkage': 0.8, 'geography': 0.2}
    """
    own = find(scores, OWN).mse
    borders, control = borders_and_control(scores)
    if not borders.mse < own:
        return None
    shrinkage = (own - control.mse) / (own - borders.mse)
    return {"shrinkage": shrinkage, "geography": 1.0 - shrinkage}


def conclusions(
    scores: Sequence[Score], options: DemoOptions, failed: Sequence[DemoFit]
) -> list[str]:
    """A few sentences on the size of the gain, where it comes from, and what to trust.

    Examples
    --------
    >>> control = Method("l2, shuffled borders", "l2", shuffled=True)
    >>> errors = {OWN: 10.0, POOLED: 5.0, Method("nefele l2", "l2"): 1.0, control: 2.8}
    >>> fits = [DemoFit(method, 0, np.array([e]), 1, gap=0.0) for method, e in errors.items()]
    >>> options = DemoOptions.checked(["l2"], seeds=1, lam=1e-3, tol=1e-6)
    >>> print(conclusions(score_fits(fits), options, failed=[])[1])
    With shuffled borders the error is still 2.80000: 80.0% of the gain is shrinkage, ...
    """
    return [
        _on_gain(scores),
        _on_shrinkage(scores),
        _on_geography(scores, options.seeds),
        _on_losers(scores),
        _on_trust(scores, options, failed),
    ]


def _on_gain(scores: Sequence[Score]) -> str:
    own, pooled = find(scores, OWN), find(scores, POOLED)
    borders, _ = borders_and_control(scores)
    before, after = (float(np.median(score.errors)) for score in (own, borders))
    text = (
        f"Coupled over the borders ({borders.method.label}), the mean test error is "
        f"{_compared(borders.mse, own.mse)} own data only and "
        f"{_compared(borders.mse, pooled.mse)} one pooled model; "
        f"the median one is {_compared(after, before)} own data only."
    )
    if own.mse > 2.0 * before:
        text += " Alone, a few states do very badly and weigh much in the mean."
    return text


def _on_shrinkage(scores: Sequence[Score]) -> str:
    shares = gain_shares(scores)
    _, control = borders_and_control(scores)
    if shares is None:
        return "There is no gain over own data only to explain; try another --lam."
    start = f"With shuffled borders the error is still {control.mse:.5f}: "
    if shares["shrinkage"] <= 0:
        return (
            f"With shuffled borders the error is {control.mse:.5f}: all of the gain is geography."
        )
    if shares["shrinkage"] >= 1:
        return start + "all of the gain is shrinkage, any coupling of the states would do."
    return start + (
        f"{shares['shrinkage']:.1%} of the gain is shrinkage, the states' models being pulled "
        "together whoever their neighbours are."
    )


def _on_geography(scores: Sequence[Score], seeds: int) -> str:
    borders, control = borders_and_control(scores)
    wins = int((borders.errors.mean(axis=1) < control.errors.mean(axis=1)).sum())
    times = f"better in {wins} of {seeds} split{'s' if seeds > 1 else ''}"
    change = 1.0 - borders.mse / control.mse
    if change <= 0:
        return f"Geography adds nothing: true borders are no better than shuffled ones ({times})."
    return (
        f"The rest is geography: true borders lower the error by {change:.0%} against shuffled "
        f"ones ({times})."
    )


def _on_losers(scores: Sequence[Score]) -> str:
    own = find(scores, OWN)
    borders, _ = borders_and_control(scores)
    n_states = own.errors.shape[1]
    counts = states_worse(borders, own)
    if not any(counts):
        return "No state does worse than alone."
    text = f"Not every state gains: in one split, {span(counts)} of {n_states} do worse than alone"
    if len(counts) > 1:
        lasting = int((borders.errors.mean(axis=0) > own.errors.mean(axis=0)).sum())
        text += f"; averaged over the splits, {lasting} of {n_states}"
    return text + "."


def _on_trust(scores: Sequence[Score], options: DemoOptions, failed: Sequence[DemoFit]) -> str:
    if failed:
        return (
            f"Not trustworthy: {len(failed)} fit(s) did not reach a relative gap of "
            f"{options.tol:g}; see the warnings."
        )
    worst = max(score.gap for score in scores if score.gap is not None)
    return (
        f"Each coupled fit is certified: its objective is within {worst:.1e} (relative) of the "
        f"optimum."
    )


def _compared(value: float, base: float) -> str:
    """How an error compares with another, in words."""
    if value < base:
        return f"{base / value:.1f} times smaller than with"
    return f"{value / base:.1f} times that with"


def span(counts: Sequence[int]) -> str:
    """Smallest to largest, as one number when they agree.

    Examples
    --------
    >>> span([7, 5, 11]), span([48, 48])
    ('5-11', '48')
    """
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low}-{high}"


def as_dict(
    scores: Sequence[Score], options: DemoOptions, failed: Sequence[DemoFit]
) -> dict[str, Any]:
    """The demo's result for JSON; numbers that are not finite become None.

    Examples
    --------
    >>> control = Method("l2, shuffled borders", "l2", shuffled=True)
    >>> methods = [OWN, POOLED, Method("nefele l2", "l2"), control]
    >>> fits = [DemoFit(method, 0, np.array([1.0]), 1, gap=0.0) for method in methods]
    >>> options = DemoOptions.checked(["l2"], seeds=1, lam=1e-3, tol=1e-6)
    >>> as_dict(score_fits(fits), options, failed=[])["methods"][1]["ratio"]
    1.0
    """
    own, shares = find(scores, OWN), gain_shares(scores)
    return {
        "version": version("nefele"),
        "seeds": options.seeds,
        "lam": options.lam,
        "tol": options.tol,
        "converged": not failed,
        "methods": [
            {
                "method": score.method.label,
                "penalty": score.method.penalty,
                "shuffled": score.method.shuffled,
                "mse": _finite(score.mse),
                "mse_per_seed": [_finite(mse) for mse in score.errors.mean(axis=1)],
                "ratio": _finite(score.mse / own.mse),
                "gap": _finite(score.gap),
                "n_models": score.n_models,
                "states_worse": states_worse(score, own),
            }
            for score in scores
        ],
        "gain_shares": shares and {name: _finite(share) for name, share in shares.items()},
        "conclusions": conclusions(scores, options, failed),
    }


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None
