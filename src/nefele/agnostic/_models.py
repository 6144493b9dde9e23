"""How one local model is fitted to weighted rows, whatever kind of model it is."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import has_fit_parameter

from nefele._checks import Array, type_name

_MOST = 20  # resampled rows, in units of the rows there are
# Since then forests draw their bags by weight; before they drew all rows alike and weighed them.
_DRAWN = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) >= (1, 9)


def model_of(estimator: Any, node: Any, default: Any) -> Any:
    """The estimator of a node: the same for all, by a dict, or by a function of the id.

    Keys of a dict are node ids; the key None is for all others.
    """
    if estimator is None:
        return default
    if isinstance(estimator, dict):
        found = estimator.get(node, estimator.get(None))
        if found is None:
            raise ValueError(
                f"estimator must have every node of the graph, or the key None for the others; "
                f"no model for {node!r}. Keys: {list(estimator)}."
            )
        return found
    if inspect.isclass(estimator):
        raise ValueError(f"estimator must be an object; got a class. Use {estimator.__name__}().")
    return estimator(node) if callable(estimator) else estimator


def fresh(estimator: Any, node: Any, classifier: bool, seed: int | None) -> Any:
    """An unfitted copy, its open random states set from the seed if there is one."""
    for method in ("fit", "predict"):
        if not hasattr(estimator, method):
            raise ValueError(
                f"The model of node {node!r} must have fit and predict; got "
                f"{type_name(estimator)} without {method}."
            )
    if not hasattr(estimator, "get_params"):
        return copy.deepcopy(estimator)
    if hasattr(estimator, "__sklearn_tags__") and is_classifier(estimator) != classifier:
        kinds = ("a regressor", "a classifier")
        raise ValueError(
            f"The model of node {node!r} must be {kinds[classifier]}; got {type_name(estimator)}. "
            f"Use {('FedRelaxClassifier', 'FedRelaxRegressor')[classifier]} for it."
        )
    model = clone(estimator)
    if seed is not None:
        open_ = [
            name
            for name, value in sorted(model.get_params(deep=True).items())
            if (name == "random_state" or name.endswith("__random_state")) and value is None
        ]
        model.set_params(**dict.fromkeys(open_, seed))
    return model


def train(
    model: Any, X: Array, y: NDArray[Any], weight: Array | None, seed: int, unit: float = 1.0
) -> Any:
    """Fit to weighted rows; without weights exactly `model.fit(X, y)`.

    A model whose `fit` takes no weights gets rows drawn by weight, `unit` is the weight of a row
    that counts once in the bags of a forest. Where a single class is left, a classifier that
    refuses it becomes a constant.
    """
    if weight is not None:
        X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
    name = weight_parameter(model)
    if weight is not None and name is None:
        X, y = resample(X, y, weight, seed)
        weight = None
    try:
        if weight is None:
            return model.fit(X, y)
        with _bags(model, weight, unit):
            return model.fit(X, y, **{str(name): weight})
    except InvalidParameterError:
        raise
    except ValueError as error:
        one = is_classifier(model) and len(np.unique(y)) == 1
        if not one or "class" not in str(error):  # another reason than the single class
            raise
        return DummyClassifier(strategy="prior").fit(X, y)


@contextmanager
def _bags(model: Any, weight: Array, unit: float) -> Iterator[None]:
    """Bags of as many draws as the weights are rows, unless the user says how many.

    A forest draws as many as there are rows, however light they are: beside many light ones each
    own row would be in every bag, and the trees would learn its noise by heart.
    """
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    known = last.get_params(deep=False) if hasattr(last, "get_params") else {}
    if not _DRAWN or known.get("bootstrap") is not True or known.get("max_samples", 0) is not None:
        yield
        return
    count = round(min(float(weight.sum()) / unit, _MOST * len(weight)))
    last.set_params(max_samples=max(count, 1))
    try:
        yield
    finally:
        last.set_params(max_samples=None)


def refit(
    prototype: Any,
    last: Any,
    X: Array,
    y: NDArray[Any],
    weight: Array | None,
    seed: int,
    unit: float = 1.0,
) -> Any:
    """Fit anew, or from the last model where that continues the same minimisation."""
    if last is None or not continues(last, y):
        return train(copy.deepcopy(prototype), X, y, weight, seed, unit)
    before = last.get_params(deep=False)["warm_start"]
    model = train(last.set_params(warm_start=True), X, y, weight, seed, unit)
    if model is last:
        model.set_params(warm_start=before)
    return model


def continues(model: Any, y: NDArray[Any]) -> bool:
    """Whether `fit` with warm_start=True minimises the same function, from where it stands.

    True of linear models, and of others (networks) whose user asks for it by warm_start=True; not
    of forests and boosting, which would keep the trees of earlier rounds. `partial_fit` is never
    called: it takes one step from the rows it gets (a warm `fit` takes as many as needed), or adds
    them to all earlier ones.
    """
    parameters = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    if "warm_start" not in parameters:
        return False
    if hasattr(model, "classes_") and not np.array_equal(model.classes_, np.unique(y)):
        return False
    grows = hasattr(model, "estimators_") or hasattr(model, "_predictors")
    return hasattr(model, "coef_") or bool(parameters["warm_start"] and not grows)


def weight_parameter(model: Any) -> str | None:
    """How `fit` calls its row weights, None if it takes none; those of a pipeline's last step."""
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        inner = None if isinstance(last, str) or last is None else weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(model, "sample_weight") else None


def resample(X: Array, y: NDArray[Any], weight: Array, seed: int) -> tuple[Array, NDArray[Any]]:
    """Each row as often as its weight says, on average over seeds, and rounded up or down.

    Rows of weight 1 stay as they are, unless there are too many rows in all.
    """
    rng, most = np.random.default_rng([seed, 1]), _MOST * len(weight)
    share = weight * min(1.0, most / weight.sum())
    whole = np.floor(share + 1e-9)
    order = rng.permutation(len(weight))
    steps = np.floor(np.cumsum((share - whole).clip(0.0)[order]) + rng.random())
    extra = np.empty(len(weight))
    extra[order] = np.diff(steps, prepend=0.0)
    times = (whole + extra).astype(np.int64)
    if not times.any():
        times[np.argmax(weight)] = 1
    pick = np.repeat(np.arange(len(weight)), times)
    return X[pick], y[pick]


def constant(classes: NDArray[Any] | None, X: Array) -> Any:
    """The model of a node that no data reach: zero, or all classes equally likely."""
    if classes is None:
        return DummyRegressor().fit(X[:1], np.zeros(1))
    return DummyClassifier(strategy="prior").fit(np.repeat(X[:1], len(classes), axis=0), classes)


def predictions(model: Any, X: Array, classes: NDArray[Any] | None) -> Array:
    """Values of shape (n_rows,), or probabilities of all classes, (n_rows, n_classes).

    A class that the model has not seen has probability 0; a model that gives no probabilities is
    sure of what it predicts.
    """
    if classes is None:
        return np.asarray(model.predict(X), dtype=np.float64).reshape(len(X))
    out = np.zeros((len(X), len(classes)))
    if len(getattr(model, "classes_", classes)) == 1:  # some then give a second column
        out[:, np.searchsorted(classes, model.classes_)] = 1.0
    elif hasattr(model, "predict_proba"):
        out[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    else:
        out[np.arange(len(X)), np.searchsorted(classes, model.predict(X))] = 1.0
    return out
