"""What privacy costs in accuracy, before anybody pays: error against epsilon."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing

from nefele._checks import Array, check_count, check_number, is_frame
from nefele._draw.drawing import axes
from nefele.privacy.parameters import Privacy
from nefele.result import ConvergenceWarning, DataWarning

_CLEAR = 2.0  # standard errors from which a difference counts


@dataclass(frozen=True, eq=False)
class Price:
    """Errors at held-out rows, over repeated splits and draws of noise.

    They are computed from raw rows: look at them where the rows are.

    Attributes
    ----------
    epsilons : array of shape (k,)
        Ascending.
    private : array of shape (k, repeats)
        Errors with each epsilon: mean squared error, or share of wrong classes.
    own, without_noise : arrays of shape (repeats,)
        Errors of models of each node's own rows, which share nothing, and of the fit that shares
        without noise.
    delta : float

    Examples
    --------
    >>> errors = np.array([[4.0, 4.2], [1.0, 1.1]])
    >>> found = Price(np.array([0.1, 1.0]), errors, np.array([2.0, 2.1]), np.ones(2), 1e-6)
    >>> found.worth_from
    1.0
    """

    epsilons: Array
    private: Array
    own: Array
    without_noise: Array
    delta: float

    @property
    def worth_from(self) -> float | None:
        """The epsilon from which on sharing beats own data only; None when none of them does.

        It beats them when the error is smaller by two standard errors of the difference.
        """
        gain = self.own - self.private
        better = gain.mean(axis=1) > _CLEAR * _error(gain)
        if not better[-1]:
            return None
        worse = np.flatnonzero(~better)
        return float(self.epsilons[0 if not worse.size else worse[-1] + 1])

    def text(self) -> str:
        """The answer in a sentence."""
        own, free = float(self.own.mean()), float(self.without_noise.mean())
        start = self.worth_from
        if start is not None:
            k = int(np.flatnonzero(self.epsilons == start)[0])
            return (
                f"From epsilon = {start:g} on sharing is worth it: error "
                f"{self.private[k].mean():.4g} against {own:.4g} with own data only "
                f"({free:.4g} without noise)."
            )
        last = float(self.private[-1].mean())
        than = "own data only is better" if own < last else "own data only is not clearly worse"
        return (
            f"Sharing is not worth it up to epsilon = {self.epsilons[-1]:g}: {than}, error "
            f"{own:.4g} against {last:.4g} ({free:.4g} without noise)."
        )

    def table(self) -> list[dict[str, Any]]:
        """One row for each way to fit: its name, epsilon, mean error and standard error."""
        rows: list[tuple[str, float | None, Array]] = [("own data only", None, self.own)]
        rows += [
            ("private", float(e), errors)
            for e, errors in zip(self.epsilons, self.private, strict=True)
        ]
        rows.append(("without noise", None, self.without_noise))
        return [
            {
                "fit": name,
                "epsilon": epsilon,
                "error": float(errors.mean()),
                "standard_error": float(_error(errors)),
            }
            for name, epsilon, errors in rows
        ]

    def __str__(self) -> str:
        lines = [f"{'fit':<15}{'epsilon':>9}{'error':>11}{'± s.e.':>10}"]
        for row in self.table():
            epsilon = "" if row["epsilon"] is None else f"{row['epsilon']:g}"
            numbers = f"{row['error']:>11.4g}{row['standard_error']:>10.2g}"
            lines.append(f"{row['fit']:<15}{epsilon:>9}{numbers}")
        return "\n".join([*lines, self.text()])

    def plot(self, ax: Any = None) -> Any:
        """Error against epsilon, beside own data only and the fit without noise.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        ax = axes(ax)
        mean, error = self.private.mean(axis=1), _error(self.private)
        ax.errorbar(self.epsilons, mean, error, marker="o", label="private")
        ax.axhline(self.own.mean(), linestyle="--", color="C1", label="own data only")
        ax.axhline(self.without_noise.mean(), linestyle=":", color="C2", label="without noise")
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel(f"epsilon (delta {self.delta:g})")
        ax.set_ylabel("error at held-out rows")
        ax.legend()
        return ax


def price(
    model: Any,
    X: Any,
    y: Any,
    epsilons: Sequence[float] = (0.3, 1.0, 3.0, 10.0),
    *,
    node_ids: Any = None,
    held_out: float = 0.25,
    repeats: int = 5,
    random_state: int = 0,
) -> Price:
    """What privacy would cost: errors at held-out rows for several epsilons.

    Nothing is released, and no budget is charged. The numbers come from raw rows: use them where
    the rows are, or on public data that are alike.

    Parameters
    ----------
    model : estimator with `privacy`
        `GTVRegressor`, `GTVClassifier`, their CV forms or FedRelax; its epsilon does not matter.
    X, y, node_ids
        As for its `fit`.
    epsilons : sequence of float
    held_out : float
        Share of each node's rows that is held out.
    repeats : int
        Splits, each with its own noise.
    random_state : int
        Of the splits. The noise is the system's.

    Returns
    -------
    Price

    Examples
    --------
    >>> import nefele
    >>> from nefele.privacy import Bounds, Privacy, price
    >>> rng = np.random.default_rng(0)
    >>> X, ids = rng.uniform(-1, 1, (80, 1)), np.repeat(["a", "b"], 40)
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(80)
    >>> pair = nefele.Graph.from_edges([("a", "b")])
    >>> promise = Privacy(1.0, 1e-6, bounds=Bounds(x=1.0, y=1.5))
    >>> model = nefele.GTVRegressor(pair, alpha=1.0, privacy=promise)
    >>> found = price(model, X, y, [0.1], node_ids=ids, repeats=2)
    >>> found.worth_from is None, found.text()[:24]
    (True, 'Sharing is not worth it ')
    """
    privacy = getattr(model, "privacy", None)
    if not isinstance(privacy, Privacy):
        raise ValueError("model must have privacy: model.set_params(privacy=Privacy(...)).")
    asked = np.unique([check_number(e, "epsilon", low=0.0, strict=True) for e in epsilons])
    if not asked.size:
        raise ValueError("epsilons must hold at least one number.")
    share = check_number(held_out, "held_out", low=0.0, strict=True)
    if share >= 1:
        raise ValueError(f"held_out must be a share below 1; got {held_out!r}.")
    ids, count = _ids(model, X, node_ids), check_count(repeats, "repeats", low=2)
    promises = [replace(privacy, epsilon=float(e), budget=None) for e in asked]
    private, own, free = np.empty((len(asked), count)), np.empty(count), np.empty(count)
    for k in range(count):
        split = _split(ids, share, np.random.default_rng([random_state, k]))
        trial = _Trial(model, X, y, node_ids, split)
        own[k] = trial.error(_alone(model))
        free[k] = trial.error(clone(model).set_params(privacy=None))
        for j, promise in enumerate(promises):
            again = promise if promise.seed is None else replace(promise, seed=promise.seed + k)
            private[j, k] = trial.error(clone(model).set_params(privacy=again))
    return Price(asked, private, own, free, float(privacy.delta))


@dataclass(frozen=True, eq=False)
class _Trial:
    """One split of the rows."""

    model: Any
    X: Any
    y: Any
    node_ids: Any
    split: tuple[NDArray[np.int64], NDArray[np.int64]]

    def error(self, model: Any) -> float:
        """Mean squared error, or share of wrong classes, at the held-out rows."""
        (X, y, ids), (held, truth, there) = (self._take(part) for part in self.split)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", DataWarning)
            model.fit(X, y, node_ids=ids)
        found = model.predict(held, node_ids=there)
        if is_classifier(self.model):
            return float(np.mean(found != np.asarray(truth)))
        return float(np.mean((found - np.asarray(truth, dtype=np.float64)) ** 2))

    def _take(self, rows: NDArray[np.int64]) -> tuple[Any, Any, Any]:
        ids = None if self.node_ids is None else np.asarray(self.node_ids)[rows]
        return _safe_indexing(self.X, rows), _safe_indexing(self.y, rows), ids


def _alone(model: Any) -> Any:
    """The same model without coupling: nothing is shared, so nothing needs noise."""
    alone = clone(model).set_params(privacy=None)
    if "alphas" not in alone.get_params(deep=False):
        return alone.set_params(alpha=0.0)
    if isinstance(alone.penalty, str) and alone.penalty == "auto":
        alone.set_params(penalty="l2")
    return alone.set_params(alphas=[0.0])


def _ids(model: Any, X: Any, node_ids: Any) -> NDArray[Any]:
    if node_ids is not None:
        return np.asarray(node_ids)
    node = getattr(model, "node", None)
    if node is None:
        return np.zeros(np.shape(X)[0], dtype=np.int64)
    return np.asarray(X[node] if is_frame(X) and isinstance(node, str) else np.asarray(X)[:, node])


def _split(
    ids: NDArray[Any], share: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to fit to and rows held out, of each node; a node with one row keeps it."""
    held = np.zeros(len(ids), dtype=bool)
    _, place = np.unique(ids, return_inverse=True)
    for i in range(int(place.max(initial=-1)) + 1):
        own = rng.permutation(np.flatnonzero(place == i))
        held[own[: min(max(round(share * len(own)), 1), len(own) - 1)]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def _error(values: Array) -> Any:
    """Standard error of the mean over the last axis."""
    return values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1])
