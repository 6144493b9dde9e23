"""One node of the model-agnostic FedRelax: its rows, its model, and one update (AGN, Eq. (11))."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, type_name
from nefele.agnostic._discrepancy import Pull, soft_rows
from nefele.agnostic._models import predictions, refit

Block = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Site:
    """What a node owns and keeps to itself: m_i rows, its unfitted model, and a seed.

    A weight of None means that every row counts once. The seed draws rows, the same in every round:
    then the update is a fixed map.
    """

    name: Any
    X: Array
    y: NDArray[Any]
    weight: Array | None
    prototype: Any
    seed: int

    @property
    def total(self) -> float:
        """m_i, or the sum of the row weights."""
        return float(len(self.y) if self.weight is None else self.weight.sum())


@dataclass(frozen=True, eq=False)
class Moved:
    """A node's model after an update, its predictions on the shared set, its mean local loss."""

    model: Any
    shared: Array
    loss: float


def move(
    site: Site,
    last: Any,
    block: Block | Pull | None,
    X_shared: Array,
    alpha: float,
    classes: NDArray[Any] | None,
) -> Moved:
    """Fit the node's model to its rows and to the block of pseudo-labelled ones.

    Without a block (no neighbours, or alpha = 0) this is `estimator.fit` on the local rows.
    """
    model, shared = fitted(site, last, block, X_shared, alpha, classes)
    if not np.isfinite(shared).all():
        raise ValueError(
            f"Node {site.name!r}: {type(model).__name__} predicts NaN or inf on X_shared. "
            "Scale the features, or choose another model."
        )
    return Moved(model, shared, _loss(site, model, classes))


def fitted(
    site: Site,
    last: Any,
    block: Block | Pull | None,
    X_shared: Array,
    alpha: float,
    classes: NDArray[Any] | None,
) -> tuple[Any, Array]:
    """The model of `move` and its predictions on the shared rows, finite or not."""
    pull, block = (block, None) if isinstance(block, Pull) else (None, block)
    if pull is not None:
        need_gradients(site)
    X, y, weight = _rows(site, block, X_shared, alpha, classes)
    try:
        if pull is None:
            unit = site.total / len(site.y) if site.total else 1.0
            model = refit(site.prototype, last, X, y, weight, site.seed, unit)
        else:
            model = _pulled(site, last, pull, X_shared, alpha, classes)
        return model, predictions(model, X_shared, classes)
    except ValueError as error:
        raise ValueError(
            f"Node {site.name!r}: {type(site.prototype).__name__} could not be fitted to "
            f"{len(site.y)} own rows and {len(y) - len(site.y)} of its neighbours. {error}"
        ) from error


def need_gradients(site: Site) -> None:
    """Refuse a model that cannot follow the gradient of a discrepancy of the user's own."""
    if not hasattr(site.prototype, "fit_pulled"):
        raise ValueError(
            "A function as discrepancy needs torch models at all nodes, TorchRegressor or "
            f"TorchClassifier; node {site.name!r} has {type_name(site.prototype)}. Change these, "
            "or take a discrepancy by name."
        )


def _pulled(
    site: Site,
    last: Any,
    pull: Pull,
    X_shared: Array,
    alpha: float,
    classes: NDArray[Any] | None,
) -> Any:
    """The update with a discrepancy of the user's own, by gradients."""
    goes_on = hasattr(last, "fit_pulled") and last.warm_start
    model = last if goes_on else copy.deepcopy(site.prototype)
    return model.fit_pulled(site.X, site.y, site.weight, X_shared, pull, alpha, classes)


def _rows(
    site: Site, block: Block | None, X_shared: Array, alpha: float, classes: NDArray[Any] | None
) -> tuple[Array, NDArray[Any], Array | None]:
    """Local rows of weight 1 and shared rows of weight m_i alpha d_i / m' (math of AGN (13))."""
    if block is None:
        return site.X, site.y, site.weight
    target, pull = block
    # Without rows of its own a node has nothing to weigh the shared rows against.
    weight = pull * site.total * alpha / len(pull) if site.total else pull / pull.mean()
    X, y = X_shared, target
    if classes is not None:
        row, label, weight = soft_rows(target, weight)
        X, y = X_shared[row], classes[label]
    if site.total:
        own = np.ones(len(site.y)) if site.weight is None else site.weight
        weight = np.concatenate([own, weight])
        return np.concatenate([site.X, X]), np.concatenate([site.y, y]), weight
    return X, y, None if np.allclose(weight, 1.0) else weight


def _loss(site: Site, model: Any, classes: NDArray[Any] | None) -> float:
    """Mean squared error or log loss of the local rows, 0 without rows."""
    if not site.total:
        return 0.0
    found = predictions(model, site.X, classes)
    if classes is None:
        losses = (found - site.y) ** 2
    else:
        hit = found[np.arange(len(found)), np.searchsorted(classes, site.y)]
        losses = -np.log(np.maximum(hit, 1e-12))
    return float(np.average(losses, weights=site.weight))
