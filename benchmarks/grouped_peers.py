"""The other methods of benchmarks/grouped.py: each learns from rows and returns how to predict.

A method may warn that it did not converge; `grouped_worker` records that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from grouped_sources import CLASSES, COUNTS, REGRESSION, Dataset
from grouped_splits import Part
from scipy import sparse
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.preprocessing import OrdinalEncoder, TargetEncoder

Predict = Callable[[Part], np.ndarray]
CATEGORIES = 255  # the most that HistGradientBoosting takes of a column
LARGE = 20_000  # rows, or numbers, from which some methods take minutes
SLOPES = 4  # random slopes at most: their covariances are a dense matrix


def linear(part: Part):
    """A plain linear model of scikit-learn for the task.

    Classes have the default C = 1; counts the same prior, which is alpha = 1 / rows there.
    """
    if part.task == CLASSES:
        return LogisticRegression(max_iter=1000)
    if part.task == COUNTS:
        return PoissonRegressor(alpha=1 / len(part.y), max_iter=1000)
    return LinearRegression()


def output(model, X, task: str) -> np.ndarray:
    """Probability of the class 1, rate, or value."""
    return model.predict_proba(X)[:, 1] if task == CLASSES else model.predict(X)


def own(part: Part) -> Predict:
    """Each group from its own rows: GroupedPredictor of scikit-lego as it is."""
    from sklego.meta import GroupedPredictor

    model = GroupedPredictor(linear(part), groups=["group"]).fit(_with_group(part), part.y)
    return lambda new: output(model, _with_group(new), part.task)


def one(part: Part) -> Predict:
    """One model for all rows."""
    model = linear(part).fit(part.X, part.y)
    return lambda new: output(model, new.X, part.task)


def dummies(part: Part) -> Predict:
    """One model with an intercept for each group."""
    model = linear(part).fit(_with_dummies(part), part.y)
    return lambda new: output(model, _with_dummies(new), part.task)


def boosting(part: Part) -> Predict:
    """Boosted trees with the group as a category, and with the coordinates of the rows.

    With more groups than categories are possible, the group's target encoding.
    """
    encoder = None
    if part.n_groups > CATEGORIES:
        kind = "binary" if part.task == CLASSES else "continuous"
        encoder = TargetEncoder(target_type=kind, random_state=0)
        group = encoder.fit_transform(part.codes[:, None], part.y)[:, 0]
    else:
        group = part.codes
    text = [column for column in part.table if part.table[column].dtype.kind not in "biuf"]
    levels = OrdinalEncoder().fit(part.data.table[text]) if text else None
    table = _for_trees(part, group, text, levels)
    categories = text if encoder else [*text, "group"]
    options = {"categorical_features": categories or None, "random_state": 0}
    if part.task == CLASSES:
        model = HistGradientBoostingClassifier(**options)
    else:
        loss = "poisson" if part.task == COUNTS else "squared_error"
        model = HistGradientBoostingRegressor(loss=loss, **options)
    model.fit(table, part.y)

    def predict(new: Part) -> np.ndarray:
        group = encoder.transform(new.codes[:, None])[:, 0] if encoder else new.codes
        return output(model, _for_trees(new, group, text, levels), part.task)

    return predict


def mixed_intercept(part: Part) -> Predict:
    """MixedLM of statsmodels, a random intercept for each group."""
    return _mixed(part, np.zeros(0, dtype=int))


def mixed_slope(part: Part) -> Predict:
    """MixedLM, a random intercept and a random slope of the main column."""
    return _mixed(part, np.flatnonzero(part.slope))


def mixed_slopes(part: Part) -> Predict:
    """MixedLM, a random intercept and random slopes, up to four, of columns that vary."""
    return _mixed(part, _varying(part)[:SLOPES])


def bayes_intercept(part: Part) -> Predict:
    """BayesMixedGLM of statsmodels, a random intercept for each group."""
    return _bayes(part, np.zeros(0, dtype=int))


def bayes_slope(part: Part) -> Predict:
    """BayesMixedGLM, a random intercept and a random slope of the main column."""
    return _bayes(part, np.flatnonzero(part.slope))


def weighted(part: Part) -> Predict:
    """A regression at every place, near rows weighing more: GWR of mgwr, bandwidth by AICc."""
    from mgwr.gwr import GWR
    from mgwr.sel_bw import Sel_BW

    places, y = part.coords[:, ::-1], part.y[:, None]  # longitude first
    options = {"spherical": True, "n_jobs": 1}
    width = Sel_BW(places, y, part.X, **options).search()
    model = GWR(places, y, part.X, width, **options)
    fitted = model.fit()

    def predict(new: Part) -> np.ndarray:
        at = new.coords[:, ::-1]
        return model.predict(at, new.X, fitted.scale, fitted.resid_response).predictions[:, 0]

    return predict


def _mixed(part: Part, columns: np.ndarray) -> Predict:
    from statsmodels.regression.mixed_linear_model import MixedLM

    def random(new: Part) -> np.ndarray:
        return _with_ones(new.X[:, columns])

    result = MixedLM(part.y, _with_ones(part.X), part.codes, exog_re=random(part)).fit()
    effects = np.zeros((part.n_groups, 1 + len(columns)))
    for code, effect in result.random_effects.items():
        effects[code] = effect

    def predict(new: Part) -> np.ndarray:
        common = _with_ones(new.X) @ result.fe_params
        return common + (random(new) * effects[new.codes]).sum(axis=1)

    return predict


def _bayes(part: Part, columns: np.ndarray) -> Predict:
    """By variational Bayes, as in the package's examples, but better: it starts and ends well.

    From its own start, zeros, large counts overflow; its own optimiser, BFGS, stops early on
    melanoma, takes several times as long elsewhere, and keeps a dense matrix.
    """
    from statsmodels.genmod import bayes_mixed_glm as bayes

    family = bayes.BinomialBayesMixedGLM if part.task == CLASSES else bayes.PoissonBayesMixedGLM
    kinds = np.repeat(np.arange(1 + len(columns)), part.n_groups)

    def random(new: Part) -> sparse.csr_matrix:
        own = _indicators(new)
        slopes = [own.multiply(new.X[:, [c]]) for c in columns]
        return sparse.csr_matrix(sparse.hstack([own, *slopes]))

    common = linear(part).fit(part.X, part.y)
    rest = np.zeros(1 + len(columns) + len(kinds))
    start = np.concatenate([np.ravel(common.intercept_), np.ravel(common.coef_), rest])
    model = family(part.y, _with_ones(part.X), random(part), kinds)
    result = model.fit_vb(mean=start, fit_method="L-BFGS-B", rng=0)

    def predict(new: Part) -> np.ndarray:
        raw = _with_ones(new.X) @ result.fe_mean + random(new) @ result.vc_mean
        return expit(raw) if part.task == CLASSES else np.exp(raw)

    return predict


def _varying(part: Part) -> np.ndarray:
    """The columns that differ within groups."""
    means = np.zeros((part.n_groups, part.X.shape[1]))
    np.add.at(means, part.codes, part.X)
    means /= np.bincount(part.codes, minlength=part.n_groups)[:, None]
    return np.flatnonzero(np.abs(part.X - means[part.codes]).max(axis=0) > 1e-9)


def _with_ones(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), X])


def _with_group(part: Part) -> pd.DataFrame:
    return pd.DataFrame(part.X).add_prefix("x").assign(group=part.codes)


def _with_dummies(part: Part) -> sparse.csr_array:
    return sparse.hstack([sparse.csr_array(part.X), _indicators(part)]).tocsr()


def _indicators(part: Part) -> sparse.csr_array:
    rows = np.arange(len(part.codes))
    shape = (len(rows), part.n_groups)
    return sparse.csr_array((np.ones(len(rows)), (rows, part.codes)), shape=shape)


def _for_trees(part: Part, group: np.ndarray, text: list[str], levels) -> pd.DataFrame:
    table = part.table.assign(group=group)
    if text:
        table[text] = levels.transform(part.table[text])
    if part.coords is not None:
        table[["latitude", "longitude"]] = part.coords
    return table


def suits(name: str, data: Dataset) -> bool:
    """Whether a method can be used on a dataset."""
    if name == "mgwr" and data.coords is None:
        return False
    if name == "MixedLM slopes":
        levels = data.table.groupby(data.group)[list(data.columns)].nunique().max()
        if (levels > 1).sum() == 1:
            return False  # the same as one slope
    return data.task in METHODS[name][1]


def takes_minutes(name: str, data: Dataset) -> bool:
    """Whether a method is too slow for a quick look, by the size of the table."""
    rows = len(data.table)
    if name == "mgwr":
        return rows * len(data.columns) > LARGE
    return name in ("MixedLM slopes", "Bayes intercept", "Bayes slope") and rows > LARGE


EVERY = (REGRESSION, CLASSES, COUNTS)
METHODS: dict[str, tuple[Callable[[Part], Predict], tuple[str, ...]]] = {
    "own data": (own, EVERY),
    "one model": (one, EVERY),
    "dummies": (dummies, EVERY),
    "MixedLM intercept": (mixed_intercept, (REGRESSION,)),
    "MixedLM slope": (mixed_slope, (REGRESSION,)),
    "MixedLM slopes": (mixed_slopes, (REGRESSION,)),
    "Bayes intercept": (bayes_intercept, (CLASSES, COUNTS)),
    "Bayes slope": (bayes_slope, (CLASSES, COUNTS)),
    "boosting": (boosting, EVERY),
    "mgwr": (weighted, (REGRESSION,)),
}
