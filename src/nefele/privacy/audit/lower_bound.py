"""A lower bound on epsilon: release two neighbouring datasets often, and try to tell them apart.

Jagielski, Ullman, Oprea, "Auditing differentially private machine learning" (2020); for Gaussian
mechanisms Nasr et al., "Tight auditing of differentially private machine learning" (2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri

from nefele._checks import Array, check_count, check_name, check_number
from nefele._draw.drawing import BLUE, DASHED, ORANGE, axes
from nefele.privacy.audit.gaussian import gaussian_epsilon

Release = Callable[[Any, np.random.Generator], Any]

_CANDIDATES = 400  # thresholds that are tried
_ROUNDING = 1e-12  # of a number's size
_FEWEST = 20  # runs of each dataset


@dataclass(frozen=True, eq=False)
class LowerBound:
    """What a canary proves.

    Attributes
    ----------
    epsilon : float
        With the confidence given, the mechanism is not (epsilon', delta)-private for any epsilon'
        below this; 0 says that nothing is proven.
    delta, confidence : float
    false_positive, false_negative : float
        Upper bounds (Clopper-Pearson) of how often the attack errs, each at half of the error that
        the confidence allows.
    runs : int
        Releases of each dataset: half to choose the attack, half to count its errors.
    family : {"any", "gaussian"}
    claimed : float or None
    scores : pair of arrays
        Of the counted releases with and without the canary.
    threshold : float

    Examples
    --------
    >>> with_it, without = np.array([2.0, 3.0]), np.array([0.0, 1.0])
    >>> print(LowerBound(1.2, 1e-5, 0.95, 0.1, 0.3, 100, "any", 1.0, (with_it, without), 1.5))
    With 95% confidence epsilon is at least 1.200 at delta 1e-05: of 100 releases of each dataset
    the attack took at most 10.0% of those without the canary for some with it, and missed at most
    30.0%. The claimed epsilon 1 is refuted.
    """

    epsilon: float
    delta: float
    confidence: float
    false_positive: float
    false_negative: float
    runs: int
    family: str
    claimed: float | None
    scores: tuple[Array, Array] = field(repr=False)
    threshold: float = field(repr=False)

    @property
    def refuted(self) -> bool:
        """Whether the claimed epsilon cannot be true."""
        return self.claimed is not None and self.epsilon > self.claimed

    def __str__(self) -> str:
        text = (
            f"With {self.confidence:.0%} confidence epsilon is at least {self.epsilon:.3f} at "
            f"delta {self.delta:g}: of {self.runs} releases of each dataset the attack took at "
            f"most {self.false_positive:.1%} of those without the canary for some with it, and "
            f"missed at most {self.false_negative:.1%}."
        )
        if self.claimed is None:
            return text
        verdict = "refuted" if self.refuted else "not refuted, which proves nothing"
        return f"{text} The claimed epsilon {self.claimed:g} is {verdict}."

    def plot(self, ax: Any = None) -> Any:
        """The attack's scores of both datasets, and where it draws the line.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Examples
        --------
        >>> import matplotlib; matplotlib.use("agg")
        >>> found = canary(lambda x, rng: x + rng.normal(), 1.0, 0.0, runs=100)
        >>> found.plot().get_xlabel()
        'score of the attack'
        """
        ax = axes(ax)
        edges = np.histogram_bin_edges(np.concatenate(self.scores), bins=40)
        names = ("with the canary", "without")
        for scores, name, colour in zip(self.scores, names, (ORANGE, BLUE), strict=True):
            ax.hist(scores, bins=edges, color=colour, alpha=0.55, label=name)
        ax.axvline(self.threshold, **DASHED)
        ax.set_xlabel("score of the attack")
        ax.set_ylabel("releases")
        ax.set_title(f"epsilon at least {self.epsilon:.2f}")
        ax.legend(frameon=False)
        return ax


def canary(
    release: Release,
    data: Any,
    neighbour: Any,
    *,
    score: Callable[[Any], float] | None = None,
    delta: float = 1e-5,
    runs: int = 1000,
    confidence: float = 0.95,
    family: str = "any",
    claimed: float | None = None,
    seed: int = 0,
) -> LowerBound:
    """A lower bound on the epsilon of a mechanism, from releases of two neighbouring datasets.

    An attack guesses from what was released which dataset it was. (epsilon, delta)-privacy bounds
    its errors: e^epsilon >= (1 - delta - P2) / P1 with the rates P1 of false alarms and P2 of
    misses. One half of the releases chooses score, side and threshold, the other half counts the
    errors, so the confidence is as stated. The bound says how much leaks at least; that it is small
    is no proof of privacy.

    Parameters
    ----------
    release : callable
        `release(data, rng)` gives all that an observer sees: a number, an array, or a list of
        them. It must draw its noise from `rng`, or from the system.
    data, neighbour
        Two datasets that differ in one record (or in whatever is protected), as far apart as the
        mechanism allows: the bound is about this pair.
    score : callable, optional
        A number for what was released, large for `data`. Default: the linear score that separates
        the two best in the first half of the releases.
    delta : float
    runs : int
        Releases of each dataset. Without an assumption no more than about ln(runs / 7.4) can be
        proven.
    confidence : float
    family : {"any", "gaussian"}
        "gaussian" holds for mechanisms whose claim is one of Gaussian noise, composed or not: then
        Phi^-1(1 - P1) - Phi^-1(P2) bounds mu, which needs far fewer releases.
    claimed : float, optional
        The epsilon that was promised, to compare.
    seed : int

    Returns
    -------
    LowerBound

    Examples
    --------
    >>> from nefele.privacy.audit import canary
    >>> def release(x, rng):
    ...     return x + rng.normal(scale=0.5)
    >>> found = canary(release, 1.0, 0.0, runs=2000, claimed=1.0)
    >>> 1.5 < found.epsilon < 10, found.refuted
    (True, True)
    """
    runs = check_count(runs, "runs", low=_FEWEST)
    check_name(family, ("any", "gaussian"), "family")
    check_number(delta, "delta", low=0.0, strict=family == "gaussian")
    check_number(confidence, "confidence", low=0.0, strict=True)
    if not (delta < 1 and confidence < 1):
        raise ValueError(f"delta and confidence must be below 1; got {delta!r}, {confidence!r}.")
    if claimed is not None:
        check_number(claimed, "claimed", low=0.0)
    rng = np.random.default_rng(check_count(seed, "seed"))
    seen = [[release(one, rng) for _ in range(runs)] for one in (data, neighbour)]
    half = runs // 2
    judge = score if score is not None else _linear(seen[0][:half], seen[1][:half])
    scores = [np.array([float(judge(one)) for one in sent]) for sent in seen]
    for values in scores:
        if not np.isfinite(values).all():
            raise ValueError("Scores must be finite; got NaN or inf. Mend score, or the release.")
    return _bound(scores, half, delta, confidence, family, claimed)


def _bound(
    scores: list[Array], half: int, delta: float, confidence: float, family: str, claimed: Any
) -> LowerBound:
    """Side and threshold from the first half, errors from the second."""
    with_it, without = scores
    n, error = len(with_it) - half, (1 - confidence) / 2
    best, chosen = -np.inf, (1.0, 0.0)
    for side in (1.0, -1.0):  # the other way round both datasets change their roles
        yes, no = (with_it, without) if side > 0 else (-without, -with_it)
        for at in _thresholds(yes[:half], no[:half]):
            alarms, misses = _expected(yes[:half], no[:half], at, family)
            found = _worth(upper(alarms, half, error), upper(misses, half, error), delta, family)
            if found > best:
                best, chosen = found, (side, float(at))
    side, at = chosen
    yes, no = (with_it[half:], without[half:]) if side > 0 else (-without[half:], -with_it[half:])
    p1 = upper(int((no > at).sum()), n, error)
    p2 = upper(int((yes <= at).sum()), n, error)
    epsilon = max(_epsilon(p1, p2, delta, family), 0.0)
    if side < 0:
        p1, p2 = p2, p1
    kept = (with_it[half:], without[half:])
    return LowerBound(
        epsilon, delta, confidence, p1, p2, len(with_it), family, claimed, kept, side * at
    )


def _expected(yes: Array, no: Array, at: float, family: str) -> tuple[float, float]:
    """False alarms and misses at a threshold, to choose one by: counted, or of normal scores.

    Counts favour thresholds far out, where luck looks like skill: of 200 Gaussian mechanisms with
    half of the noise up to 3% were missed by it. Normal scores may be wrong, which costs power and
    no confidence: the errors that count are counted in the other half.
    """
    spread = float(yes.std()), float(no.std())
    size = max(float(np.abs(yes).max()), float(np.abs(no).max()))
    if family == "any" or min(spread) <= _ROUNDING * size:  # without noise
        return float((no > at).sum()), float((yes <= at).sum())
    alarms = ndtr((no.mean() - at) / spread[1])
    misses = ndtr((at - yes.mean()) / spread[0])
    return float(len(no) * alarms), float(len(yes) * misses)


def upper(errors: float, n: int, chance: float) -> float:
    """Clopper-Pearson: the rate is above this with at most the chance given.

    Examples
    --------
    >>> round(upper(0, 100, 0.025), 4), upper(100, 100, 0.025)
    (0.0362, 1.0)
    """
    return 1.0 if errors >= n else float(betaincinv(errors + 1, n - errors, 1 - chance))


def _epsilon(p1: float, p2: float, delta: float, family: str) -> float:
    """What the two rates prove, -inf for nothing."""
    found = _worth(p1, p2, delta, family)
    if family == "gaussian":
        return gaussian_epsilon(found, delta) if found > 0 else -math.inf
    return found


def _worth(p1: float, p2: float, delta: float, family: str) -> float:
    """Epsilon, or for Gaussian mechanisms mu, with which it grows."""
    if family == "gaussian":
        return float(ndtri(1 - p1) - ndtri(p2)) if max(p1, p2) < 1 else -math.inf
    sure = 1 - delta - p2
    return math.log(sure / p1) if sure > 0 else -math.inf


def _thresholds(yes: Array, no: Array) -> Array:
    values = np.unique(np.concatenate([yes, no]))
    if len(values) <= _CANDIDATES:
        return values
    # Close to the ends rates change most in relative terms: take all of the outer ones.
    outer = _CANDIDATES // 4
    inner = np.linspace(outer, len(values) - outer - 1, _CANDIDATES // 2).astype(int)
    places = np.unique(np.r_[0:outer, inner, len(values) - outer : len(values)])
    return np.asarray(values[places])


def flat(sent: Any) -> Array:
    """All numbers of a release in one row.

    Examples
    --------
    >>> flat([1.0, np.zeros((2, 2))]).tolist()
    [1.0, 0.0, 0.0, 0.0, 0.0]
    """
    if isinstance(sent, list | tuple):
        return np.concatenate([flat(one) for one in sent]) if sent else np.zeros(0)
    return np.asarray(sent, dtype=float).ravel()


def _linear(yes: list[Any], no: list[Any]) -> Callable[[Any], float]:
    """The linear score with the largest ratio of distance to spread, shrunk where runs are few."""
    tables = [np.stack([flat(one) for one in sent]) for sent in (yes, no)]
    middle = [table.mean(axis=0) for table in tables]
    inner = np.concatenate([table - mean for table, mean in zip(tables, middle, strict=True)])
    unit = inner.std(axis=0)
    size = np.maximum(*(np.abs(table).max(axis=0) for table in tables))
    exact = unit <= _ROUNDING * size  # without noise
    telling = exact & (np.abs(middle[0] - middle[1]) > _ROUNDING * size)
    if telling.any():  # one such number tells all
        j = int(np.argmax(telling))
        middles, side = (middle[0][j] + middle[1][j]) / 2, np.sign(middle[0][j] - middle[1][j])
        return lambda sent: float(side * (flat(sent)[j] - middles))
    unit = np.where(exact, 1.0, unit)
    n, d = inner.shape
    spread = (inner / unit).T @ (inner / unit) / n
    shrink = min(1.0, d / n)
    spread = (1 - shrink) * spread + shrink * np.eye(d) * max(np.trace(spread) / d, 1e-12)
    way = np.linalg.solve(spread + 1e-9 * np.eye(d), (middle[0] - middle[1]) / unit) / unit
    centre = (middle[0] + middle[1]) / 2
    return lambda sent: float((flat(sent) - centre) @ way)
