"""Mutual information between a private number and what was sent, I = E log p(x, y)/(p(x) p(y)).

Kraskov, Stoegbauer, Grassberger, "Estimating mutual information" (2004), first estimator, of the
private number and the best linear guess of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import digamma, ndtri

from nefele._checks import Array, as_float_array, check_count, check_finite
from nefele._draw.drawing import BLUE, DASHED, axes

_FOLDS = 2  # the attack is learnt on the one half and judged on the other
_PARTS = 10  # of the jackknife
_FEWEST = 30  # trials
_NEAREST = 3


@dataclass(frozen=True, eq=False)
class Information:
    """Mutual information per round, in nats.

    Attributes
    ----------
    values, errors : arrays of shape (n_rounds,)
        Estimates, which may be a little below zero, and their standard errors.
    p_values : array of shape (n_rounds,)
        Share of permutations of the secrets (and 1) with an estimate as large.
    null : array of shape (n_rounds,)
        What 95% of the permutations stay below.
    n_trials, permutations : int

    Examples
    --------
    >>> one = np.array
    >>> print(Information(one([0.4]), one([0.05]), one([0.01]), one([0.06]), 500, 99))
    What was sent holds 0.400 nats (se 0.050) about the secret, p = 0.01: it leaks. 500 trials, 99
    permutations, which reach 0.060 in one case of 20.
    """

    values: Array
    errors: Array
    p_values: Array
    null: Array
    n_trials: int
    permutations: int

    @property
    def p_value(self) -> float:
        """Of the whole: the least p value, times the number of rounds."""
        return float(min(1.0, self.p_values.min() * len(self.p_values)))

    @property
    def leaks(self) -> bool:
        """Whether independence is refused at a level of 5%."""
        return self.p_value <= 0.05

    def __str__(self) -> str:
        k = int(np.argmax(self.values))
        what = "What was sent" if len(self.values) == 1 else f"Round {k + 1} tells most: it"
        verdict = "it leaks" if self.leaks else "not distinguishable from nothing"
        if len(self.values) > 1:
            verdict += f" (over {len(self.values)} rounds)"
        return (
            f"{what} holds {self.values[k]:.3f} nats (se {self.errors[k]:.3f}) about the secret, "
            f"p = {self.p_value:.2g}: {verdict}. {self.n_trials} trials, {self.permutations} "
            f"permutations, which reach {self.null[k]:.3f} in one case of 20."
        )

    def plot(self, ax: Any = None) -> Any:
        """The information of each round with two standard errors, and the permutations' level.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Examples
        --------
        >>> import matplotlib; matplotlib.use("agg")
        >>> one = np.array
        >>> found = Information(one([0.4]), one([0.05]), one([0.01]), one([0.06]), 500, 99)
        >>> found.plot().get_xlabel()
        'round'
        """
        ax = axes(ax)
        rounds = np.arange(1, len(self.values) + 1)
        style = {"color": BLUE, "fmt": "o-", "capsize": 3, "label": "estimate"}
        ax.errorbar(rounds, self.values, yerr=2 * self.errors, **style)
        ax.plot(rounds, self.null, **DASHED, marker="_", label="95% of permutations")
        ax.set_xticks(rounds if len(rounds) <= 20 else rounds[:: len(rounds) // 10])
        ax.set_xlabel("round")
        ax.set_ylabel("mutual information (nats)")
        ax.legend(frameon=False)
        return ax


def mutual_information(
    secret: Any, sent: Any, *, permutations: int = 99, seed: int = 0
) -> Information:
    """How much what was sent tells about a private number, with a permutation test.

    Each row is one trial: the secret was drawn, the mechanism ran, and something was sent. An
    attack learns on one half of the trials to guess the secret linearly from what was sent, and
    guesses on the other half; the information is that between guess and secret, so the least that
    leaks. The permutations repeat all of it with secrets that belong to other trials: where there
    is nothing to find, p is below 5% in one case of 20.

    Parameters
    ----------
    secret : array of shape (n_trials,)
        Such as the private feature of a row, another value in each trial.
    sent : array of shape (n_trials,), (n_trials, p) or (n_rounds, n_trials, p)
        Numbers sent in one round, or in several, which are judged one by one.
    permutations : int
    seed : int

    Returns
    -------
    Information

    Examples
    --------
    >>> from nefele.privacy.audit import mutual_information
    >>> rng = np.random.default_rng(0)
    >>> secret = rng.normal(size=200)
    >>> mutual_information(secret, secret + rng.normal(size=200)).leaks
    True
    """
    hidden = as_float_array(secret, "secret", 1)
    seen = np.asarray(sent, dtype=float)
    if seen.ndim == 1:
        seen = seen[:, None]
    rounds = seen[None] if seen.ndim == 2 else seen
    n = len(hidden)
    if n < _FEWEST:
        raise ValueError(f"secret must have at least {_FEWEST} trials; got {n}. Repeat the run.")
    if rounds.ndim != 3 or rounds.shape[1] != n or not rounds.size:
        raise ValueError(
            f"sent must have shape ({n},), ({n}, p) or (n_rounds, {n}, p); got {np.shape(sent)}."
        )
    check_finite(hidden, lambda at: f"secret, trial {at[0]},")
    check_finite(rounds, lambda at: f"sent, round {at[0]}, trial {at[1]},")
    count = check_count(permutations, "permutations", low=19)
    rng = np.random.default_rng(check_count(seed, "seed"))
    ranks = _ranked(hidden) + 1e-9 * rng.standard_normal(n)  # no ties: the estimator has no word
    found = [_one_round(ranks, one, count, rng) for one in rounds]
    values, errors, p_values, null = (np.array(column) for column in zip(*found, strict=True))
    return Information(values, errors, p_values, null, n, count)


def _one_round(
    hidden: Array, seen: Array, permutations: int, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    seen = np.column_stack([_ranked(column) for column in seen.T])
    half = rng.permutation(len(hidden)) % _FOLDS
    bases = [_basis(seen, half == fold) for fold in range(_FOLDS)]
    guess = _guesses(bases, half, hidden)
    value = ksg(hidden, guess)
    draws = []
    for _ in range(permutations):
        mixed = rng.permutation(hidden)
        draws.append(ksg(mixed, _guesses(bases, half, mixed)))
    p = (1 + sum(draw >= value for draw in draws)) / (1 + permutations)
    part = rng.permutation(len(hidden)) % _PARTS
    left = np.array([ksg(hidden[part != k], guess[part != k]) for k in range(_PARTS)])
    error = np.sqrt((_PARTS - 1) / _PARTS * ((left - left.mean()) ** 2).sum())
    return value, float(error), float(p), float(np.quantile(draws, 0.95))


def _ranked(values: Array) -> Array:
    """Normal scores of the ranks: information does not change, and no value stands out."""
    if np.ptp(values) == 0:
        return np.zeros(len(values))
    order = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    # Equal values keep a common score, so that ties carry nothing that is not in the data.
    _, place = np.unique(values, return_inverse=True)
    mean = np.bincount(place, order) / np.bincount(place)
    return np.asarray(ndtri((mean[place] + 0.5) / len(values)))


def _basis(seen: Array, test: Any) -> tuple[Array, Array]:
    """What maps the secrets of the other half to guesses for this one: ridge regression."""
    train = np.column_stack([seen[~test], np.ones(int((~test).sum()))])
    rows = np.column_stack([seen[test], np.ones(int(test.sum()))])
    gram = train.T @ train + 1e-2 * len(train) * np.diag([*np.ones(seen.shape[1]), 1e-9])
    return np.linalg.solve(gram, train.T), rows


def _guesses(bases: list[tuple[Array, Array]], half: Any, hidden: Array) -> Array:
    out = np.empty(len(hidden))
    for fold, (learn, rows) in enumerate(bases):
        out[half == fold] = rows @ (learn @ hidden[half != fold])
        # Each half has its own attack: what remains is comparable within and across.
        spread = out[half == fold].std()
        out[half == fold] = (out[half == fold] - out[half == fold].mean()) / (spread or 1.0)
    return out


def ksg(x: Array, y: Array, k: int = _NEAREST) -> float:
    """Mutual information of two columns in nats, by the k nearest neighbours in the largest norm.

    psi(k) + psi(n) - mean[psi(n_x + 1) + psi(n_y + 1)] (KSG, Eq. (8)).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=2000)
    >>> y = 0.8 * x + 0.6 * rng.normal(size=2000)
    >>> bool(abs(ksg(x, y) + 0.5 * np.log(1 - 0.8**2)) < 0.05)
    True
    """
    n = len(x)
    near = cKDTree(np.column_stack([x, y])).query(np.column_stack([x, y]), k=k + 1, p=np.inf)[0]
    reach = near[:, -1]
    counts = [_within(column, reach) for column in (x, y)]
    return float(digamma(k) + digamma(n) - sum(digamma(c + 1).mean() for c in counts))


def _within(values: Array, reach: Array) -> Array:
    """Others strictly nearer than the reach of each value, in one dimension."""
    order = np.sort(values)
    low = np.searchsorted(order, values - reach, "right")
    high = np.searchsorted(order, values + reach, "left")
    return np.maximum(high - low - 1, 0)
