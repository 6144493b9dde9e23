"""Membership inference by a likelihood ratio: to which rows was a model fitted.

Carlini et al., "Membership inference attacks from first principles" (2022): LiRA.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score, roc_curve

from nefele._checks import Array, check_count, check_number
from nefele._draw.drawing import BLUE, ORANGE, axes

Losses = Callable[[NDArray[np.int64]], Any]


@dataclass(frozen=True, eq=False)
class Membership:
    """How well members are told from other rows.

    Attributes
    ----------
    auc, auc_error : float
        Area under the curve, 0.5 for a coin, and its standard error over the models attacked.
    caught, caught_error : float
        Share of the members that are found when only `alarms` of the others are taken for members.
    alarms : float
    n_rows, n_models : int
    truth, scores : arrays
        Of all attacks, for the picture.

    Examples
    --------
    >>> truth, scores = np.array([True, False]), np.array([1.0, 0.0])
    >>> print(Membership(0.61, 0.02, 0.04, 0.01, 0.01, 200, 32, truth, scores))
    Members are told from other rows with AUC 0.610 (se 0.020; 0.5 is a coin): at 1% false alarms
    4.0% (se 1.0%) of the members are found. 32 models of 200 rows were attacked.
    """

    auc: float
    auc_error: float
    caught: float
    caught_error: float
    alarms: float
    n_rows: int
    n_models: int
    truth: NDArray[np.bool_] = field(repr=False)
    scores: Array = field(repr=False)

    @property
    def leaks(self) -> bool:
        """Whether the AUC is more than three standard errors above a coin's."""
        return self.auc - 0.5 > 3 * self.auc_error

    def __str__(self) -> str:
        return (
            f"Members are told from other rows with AUC {self.auc:.3f} (se {self.auc_error:.3f}; "
            f"0.5 is a coin): at {self.alarms:.0%} false alarms {self.caught:.1%} (se "
            f"{self.caught_error:.1%}) of the members are found. {self.n_models} models of "
            f"{self.n_rows} rows were attacked."
        )

    def plot(self, ax: Any = None) -> Any:
        """Members found against false alarms, both on a logarithmic scale.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Examples
        --------
        >>> import matplotlib; matplotlib.use("agg")
        >>> truth, scores = np.array([True, False]), np.array([1.0, 0.0])
        >>> Membership(1.0, 0.0, 1.0, 0.0, 0.01, 2, 1, truth, scores).plot().get_xlabel()
        'false alarms'
        """
        ax = axes(ax)
        alarms, found, _ = roc_curve(self.truth, self.scores)
        low = 1 / max(int((~self.truth).sum()), 10)
        line = np.geomspace(low, 1, 50)
        ax.plot(line, line, color="0.6", linestyle=(0, (4, 2)), label="a coin")
        ax.plot(np.maximum(alarms, low), np.maximum(found, low), color=BLUE, linewidth=2.0)
        ax.scatter([self.alarms], [max(self.caught, low)], color=ORANGE, zorder=3)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("false alarms")
        ax.set_ylabel("members found")
        ax.set_title(f"AUC {self.auc:.3f}")
        ax.legend(frameon=False)
        return ax


def membership(
    losses: Losses,
    n_rows: int,
    *,
    models: int = 32,
    alarms: float = 0.01,
    groups: Any = None,
    seed: int = 0,
) -> Membership:
    """Attack models that were fitted to half of the rows each: find the half.

    For every model in turn the others say how the loss of a row is distributed when it is a member
    and when it is not; the attack is the ratio of the two likelihoods (normal in log loss).

    Parameters
    ----------
    losses : callable
        `losses(rows)` fits a model to the rows of these numbers and gives the loss of all `n_rows`
        rows under it.
    n_rows : int
    models : int
        Fits; at least 8, and 32 or more for a sharp attack.
    alarms : float
        Share of false alarms at which members found are counted.
    groups : array of shape (n_rows,), optional
        Halves are drawn within each group, such as the rows of a node.
    seed : int

    Returns
    -------
    Membership

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    >>> def losses(rows):
    ...     tree = DecisionTreeRegressor(random_state=0).fit(X[rows], y[rows])
    ...     return (tree.predict(X) - y) ** 2
    >>> membership(losses, 60, models=8).auc > 0.9
    True
    """
    n_rows = check_count(n_rows, "n_rows", low=10)
    models = check_count(models, "models", low=8)
    check_number(alarms, "alarms", low=0.0, strict=True)
    rng = np.random.default_rng(check_count(seed, "seed"))
    group = np.zeros(n_rows, dtype=int) if groups is None else np.asarray(groups)
    if group.shape != (n_rows,):
        raise ValueError(f"groups must have shape ({n_rows},); got {group.shape}.")
    inside, stat = np.zeros((models, n_rows), dtype=bool), np.empty((models, n_rows))
    for m in range(models):
        # Models come in pairs of complementary halves, so that each row is in half of them.
        inside[m] = ~inside[m - 1] if m % 2 else _half(group, rng)
        found = np.asarray(losses(np.flatnonzero(inside[m])), dtype=float)
        if found.shape != (n_rows,) or not np.isfinite(found).all():
            raise ValueError(
                f"losses must give {n_rows} finite numbers, one per row; got shape {found.shape}."
            )
        stat[m] = found
    return _attacked(inside, _logs(stat), alarms)


def loss_attack(members: Any, others: Any) -> tuple[float, float]:
    """AUC of taking rows of small loss for members, and its standard error (Hanley and McNeil).

    Parameters
    ----------
    members, others : arrays of shape (n,) and (m,)
        Losses of rows that the model was fitted to, and of rows that it was not.

    Examples
    --------
    >>> loss_attack([0.1, 0.2, 0.3, 0.6], [0.4, 0.5, 0.7, 0.8])[0]
    0.875
    """
    inside, outside = np.asarray(members, dtype=float), np.asarray(others, dtype=float)
    n, m = len(inside), len(outside)
    if not (n and m):
        raise ValueError(f"There must be losses of both kinds; got {n} and {m}.")
    truth = np.r_[np.ones(n), np.zeros(m)]
    auc = float(roc_auc_score(truth, -np.r_[inside, outside]))
    far, near = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    spread = auc * (1 - auc) + (n - 1) * (far - auc**2) + (m - 1) * (near - auc**2)
    return auc, float(np.sqrt(max(spread, 0.0) / (n * m)))


def _half(group: NDArray[Any], rng: np.random.Generator) -> NDArray[np.bool_]:
    """A random half of the rows of each group; of an odd one the middle row goes either way."""
    chosen = np.zeros(len(group), dtype=bool)
    for name in np.unique(group):
        rows = rng.permutation(np.flatnonzero(group == name))
        chosen[rows[: (len(rows) + int(rng.integers(2))) // 2]] = True
    return chosen


def _logs(losses: Array) -> Array:
    """Minus the logarithm of the losses, which must not be negative beyond rounding."""
    low = float(losses.min())
    if low < 0:
        losses = losses - low
    size = float(np.median(losses)) or float(losses.mean()) or 1.0
    return np.asarray(-np.log(losses / size + 1e-9))


def _attacked(inside: NDArray[np.bool_], stat: Array, alarms: float) -> Membership:
    models, n_rows = stat.shape
    scores, areas, caught = np.empty_like(stat), [], []
    for m in range(models):
        others = np.arange(models) != m
        scores[m] = _ratio(stat[m], stat[others], inside[others])
        areas.append(roc_auc_score(inside[m], scores[m]))
        caught.append(_found(inside[m], scores[m], alarms))
    pairs = models // 2  # complementary models are no two witnesses
    error = [float(np.std(x, ddof=1) / np.sqrt(pairs)) for x in (areas, caught)]
    return Membership(
        float(np.mean(areas)), error[0], float(np.mean(caught)), error[1], alarms, n_rows, models,
        inside.ravel(), scores.ravel(),
    )  # fmt: skip


def _ratio(seen: Array, others: Array, inside: NDArray[np.bool_]) -> Array:
    """Log likelihood ratios: means by row, one spread for all members and one for the others."""
    n_in, n_out = inside.sum(axis=0), (~inside).sum(axis=0)
    mean_in = np.where(inside, others, 0.0).sum(axis=0) / np.maximum(n_in, 1)
    mean_out = np.where(~inside, others, 0.0).sum(axis=0) / np.maximum(n_out, 1)
    var_in = max(float(((others - mean_in)[inside] ** 2).mean()), 1e-12)
    var_out = max(float(((others - mean_out)[~inside] ** 2).mean()), 1e-12)
    ratio = (seen - mean_out) ** 2 / (2 * var_out) - (seen - mean_in) ** 2 / (2 * var_in)
    return np.asarray(np.where((n_in > 0) & (n_out > 0), ratio, 0.0))


def _found(truth: NDArray[np.bool_], scores: Array, alarms: float) -> float:
    """Share of members above the threshold that so many of the others exceed at most."""
    others = np.sort(scores[~truth])[::-1]
    at = others[min(int(alarms * len(others)), len(others) - 1)]
    return float((scores[truth] > at).mean())
