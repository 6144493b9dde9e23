"""What a private attribute can still be predicted by: held-out scores, k-anonymity, l-diversity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nefele._checks import Array, check_count, check_name
from nefele._draw.drawing import BLUE, ORANGE, axes
from nefele.privacy.maps.attribute import is_numeric
from nefele.privacy.maps.tables import Column, learn_columns, read_columns

_DRAWS = 200  # bootstrap samples of the held-out rows
_FEWEST = 20  # rows from which a score means something


@dataclass(frozen=True)
class Score:
    """A held-out score and its standard error.

    Examples
    --------
    >>> print(Score(0.5, 0.01))
    0.500 (se 0.010)
    """

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3f} (se {self.error:.3f})"


@dataclass(frozen=True, eq=False)
class Remains:
    """What is still predictable of a private attribute.

    Attributes
    ----------
    metric : {"R2", "AUC"}
        R2 for numbers: 0 is as good as the mean, 1 is perfect. AUC for classes: 0.5 is a coin.
    linear, forest : Score
        Of a linear model and of a random forest, at held-out rows.
    k : int
        Rows that are equal in all features, at the fewest: the table is k-anonymous.
    l : int
        Different values of the attribute among equal rows, at the fewest: it is l-diverse.
    n_test : int
        Held-out rows.
    before : Remains, optional
        The same of the features before the map.

    Examples
    --------
    >>> remains = Remains("R2", Score(0.0, 0.01), Score(0.6, 0.02), k=1, l=1, n_test=500)
    >>> print(remains)
    Of the attribute a linear model predicts R2 0.000 (se 0.010), a forest R2 0.600 (se 0.020), at
    500 held-out rows; the table is 1-anonymous and 1-diverse.
    """

    metric: str
    linear: Score
    forest: Score
    k: int
    l: int
    n_test: int
    before: Remains | None = field(default=None, repr=False)

    def __str__(self) -> str:
        text = (
            f"Of the attribute a linear model predicts {self.metric} {self.linear}, a forest "
            f"{self.metric} {self.forest}, at {self.n_test} held-out rows; the table is "
            f"{self.k}-anonymous and {self.l}-diverse."
        )
        if self.before is None:
            return text
        old = self.before
        return f"{text} Before the map: {old.linear} and {old.forest}, {old.k}-anonymous."

    def plot(self, ax: Any = None) -> Any:
        """The scores as bars with two standard errors, before the map beside them.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Examples
        --------
        >>> import matplotlib; matplotlib.use("agg")
        >>> score = Score(0.5, 0.1)
        >>> Remains("R2", score, score, k=1, l=1, n_test=10).plot().get_ylabel()
        'R2 of the attribute, held out'
        """
        ax = axes(ax)
        shown = [("after the map", self, BLUE, 0.2)]
        if self.before is not None:
            shown.insert(0, ("before", self.before, ORANGE, -0.2))
        for label, one, colour, shift in shown:
            scores = (one.linear, one.forest)
            ax.bar(
                np.arange(2) + (shift if len(shown) > 1 else 0.0),
                [score.value for score in scores],
                yerr=[2 * score.error for score in scores],
                width=0.38, color=colour, capsize=3, label=label,
            )  # fmt: skip
        ax.set_xticks([0, 1], ["linear model", "forest"])
        ax.axhline(0.0 if self.metric == "R2" else 0.5, color="0.3", linewidth=0.8)
        ax.set_ylabel(f"{self.metric} of the attribute, held out")
        ax.legend(frameon=False)
        return ax


def what_remains(
    Z: Any, attribute: Any, *, before: Any = None, kind: str = "auto", seed: int = 0
) -> Remains:
    """How well a private attribute is predicted from features, and how many rows look alike.

    Half of the rows teach a linear model and a random forest, the other half judge them. That these
    two fail is no proof that nothing can be learnt.

    Parameters
    ----------
    Z : array or table of shape (n_rows, d)
        The features that others get, numbers or categories.
    attribute : array of shape (n_rows,)
        What they must not learn: numbers or classes.
    before : array or table, optional
        The features before the map, for comparison.
    kind : {"auto", "numbers", "classes"}
        What the attribute is; "auto" takes numbers for numbers.
    seed : int
        Of the split and the forest.

    Returns
    -------
    Remains

    Examples
    --------
    >>> import numpy as np
    >>> from nefele.privacy.maps import RemoveAttribute, what_remains
    >>> rng = np.random.default_rng(0)
    >>> secret = rng.normal(size=2000)
    >>> X = np.column_stack([secret + rng.normal(size=2000), rng.normal(size=2000)])
    >>> found = what_remains(RemoveAttribute().fit_transform(X, secret), secret, before=X)
    >>> found.before.linear.value > 0.4, abs(found.linear.value) < 0.02
    (True, True)
    """
    check_name(kind, ("auto", "numbers", "classes"), "kind of attribute")
    seed = check_count(seed, "seed")
    secret = np.asarray(attribute)
    values, names = read_columns(Z)
    if secret.shape != (len(values[0]),):
        raise ValueError(
            f"attribute must have one value per row, shape ({len(values[0])},); got shape "
            f"{secret.shape}."
        )
    if len(secret) < _FEWEST:
        raise ValueError(f"what_remains needs at least {_FEWEST} rows; got {len(secret)}.")
    classes = kind == "classes" or (kind == "auto" and not is_numeric(secret))
    secret = np.array([str(x) for x in secret]) if classes else secret.astype(float)
    old = None if before is None else what_remains(before, attribute, kind=kind, seed=seed)
    columns = learn_columns(values, names)
    codes = np.column_stack([c.codes(v) for c, v in zip(columns, values, strict=True)])
    scores = _scores(_features(columns, codes), secret, classes, seed)
    k, l = diversity(codes, secret)
    return Remains("AUC" if classes else "R2", *scores, k, l, len(secret) - len(secret) // 2, old)


def diversity(codes: Array, secret: NDArray[Any]) -> tuple[int, int]:
    """Fewest rows, and fewest different secrets, among rows that are equal.

    Examples
    --------
    >>> diversity(np.array([[1.0], [1.0], [2.0], [2.0]]), np.array(list("abcc")))
    (2, 1)
    """
    group = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
    value = np.unique(secret, return_inverse=True)[1]
    pairs = np.unique(np.column_stack([group, value]), axis=0)
    return int(np.bincount(group).min()), int(np.bincount(pairs[:, 0]).min())


def _features(columns: list[Column], codes: Array) -> Array:
    """Numbers as they are, categories one column each."""
    parts = []
    for j, column in enumerate(columns):
        own = codes[:, j]
        parts.append(own[:, None] if column.levels is None else _dummies(own))
    return np.column_stack(parts)


def _dummies(codes: Array) -> Array:
    return (codes[:, None] == np.unique(codes)).astype(float)


def _scores(X: Array, secret: NDArray[Any], classes: bool, seed: int) -> tuple[Score, Score]:
    count = np.unique(secret, return_counts=True)[1]
    if classes and (len(count) < 2 or np.sort(count)[-2] < 2):
        raise ValueError(
            "The attribute must have at least 2 classes with 2 rows or more: one half of the rows "
            f"teaches, the other judges; got classes of {count.tolist()} rows."
        )
    own, rest = train_test_split(
        np.arange(len(secret)),
        train_size=len(secret) // 2,
        random_state=seed,
        stratify=secret if classes and count.min() > 1 else None,
    )
    forest: Any = RandomForestClassifier if classes else RandomForestRegressor
    linear: Any = LogisticRegression(max_iter=1000) if classes else LinearRegression()
    models = (
        make_pipeline(StandardScaler(), linear),
        forest(n_estimators=100, min_samples_leaf=5, random_state=seed),
    )
    found = []
    for model in models:
        model.fit(X[own], secret[own])
        if classes:
            labels = np.unique(secret[own])
            found.append(_score(_auc(labels), secret[rest], model.predict_proba(X[rest]), seed))
        else:
            found.append(_score(_r2, secret[rest], model.predict(X[rest]), seed))
    return found[0], found[1]


def _score(judge: Callable[..., float], truth: NDArray[Any], guess: Array, seed: int) -> Score:
    """The score, and its standard error by drawing held-out rows with replacement."""
    rng = np.random.default_rng(seed)
    draws = []
    for _ in range(_DRAWS):
        rows = rng.integers(len(truth), size=len(truth))
        draws.append(judge(truth[rows], guess[rows]))
    return Score(judge(truth, guess), float(np.nanstd(draws)))


def _r2(truth: Array, guess: Array) -> float:
    spread = float(((truth - truth.mean()) ** 2).sum())
    return 0.0 if spread == 0 else 1 - float(((truth - guess) ** 2).sum()) / spread


def _auc(labels: NDArray[Any]) -> Callable[[NDArray[Any], Array], float]:
    """Mean over the classes of the area under the curve of one against all others."""

    def judge(truth: NDArray[Any], guess: Array) -> float:
        areas = []
        for j, label in enumerate(labels):
            hit = truth == label
            if 0 < hit.sum() < len(hit):
                areas.append(roc_auc_score(hit, guess[:, j]))
        return float(np.mean(areas)) if areas else float("nan")

    return judge
