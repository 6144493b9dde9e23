"""FedRelax with a guarantee: what a node says is noisy, whatever its model is."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, is_frame, type_name
from nefele.agnostic._discrepancy import Pull
from nefele.agnostic._site import Block, Moved, Site, fitted, move
from nefele.estimators.design import Rows
from nefele.estimators.private import account_of, graph_outside
from nefele.graph import Graph
from nefele.privacy import Privacy, Spent
from nefele.privacy.noise import Source
from nefele.privacy.predictions import release, release_classes, shards_of


@dataclass(frozen=True, eq=False)
class Noisy:
    """What all nodes know of the noise: how much of it, and how often it was paid for."""

    privacy: Privacy
    spent: Spent

    def source(self, i: int, k: int) -> Source:
        """The noise of node i's k-th update, of those that were paid for."""
        if not 0 <= k < self.spent.releases:
            raise RuntimeError(f"Release {k + 1} of {self.spent.releases} was not paid for.")
        return self.privacy.source(i, k)


def check(model: Any, rows: Rows, classifier: bool) -> None:
    """Raise ValueError for a FedRelax that would guarantee nothing."""
    privacy = model.privacy
    if not isinstance(privacy, Privacy):
        raise ValueError(f"privacy must be a nefele.privacy.Privacy; got {type_name(privacy)}.")
    if privacy.mechanism not in ("auto", "predictions"):
        raise ValueError(
            f'mechanism must be "predictions" for FedRelax; got "{privacy.mechanism}".'
        )
    if not classifier:
        privacy.need_target()
    public = is_frame(model.X_shared) or np.ndim(model.X_shared) == 2
    if not public:
        raise ValueError(
            "X_shared must be rows that are public anyway with privacy; "
            f"{model.X_shared!r} would be drawn from the nodes' own rows. Pass an array."
        )
    if model.schedule != "jacobi":
        raise ValueError(f'schedule must be "jacobi" with privacy; got "{model.schedule}".')
    if not (rows.sample_weight == 1.0).all():
        raise ValueError("sample_weight must be left out with privacy.")


def rehearse(
    sites: Iterable[Site],
    blocks: Iterable[Block | Pull | None],
    X_shared: Array,
    alpha: float,
    classes: NDArray[Any] | None,
    privacy: Privacy,
) -> None:
    """Fit all models to made-up rows, as many as they will see: an error here costs nothing.

    `blocks` are what neighbours may say: nothing, or something made up.
    """
    rng = np.random.default_rng(0)
    scale = np.where(X_shared.std(axis=0) > 0, X_shared.std(axis=0), 1.0)
    blocks = list(blocks)
    for site in sites:
        parts = shards_of(len(site.y), privacy.shards)
        for size in sorted({len(site.y), min(len(part) for part in parts)} - {0}):
            X = X_shared[rng.integers(len(X_shared), size=size)]
            X = X + scale * rng.normal(size=X.shape)
            if classes is None:
                low, high = privacy.bounds.target
                y: NDArray[Any] = rng.uniform(low, high, size)
            else:
                y = classes[np.arange(size) % len(classes)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # made-up rows need no advice
                for block in blocks:
                    made = replace(site, X=X, y=y, weight=None)
                    fitted(made, None, block, X_shared, alpha, classes)


def charge(model: Any, graph: Graph) -> Noisy:
    """Pay for all rounds: one release at the start, one in each round."""
    outside = graph_outside(model, graph)
    before = account_of(model)
    spent = model.privacy.charge("predictions", int(model.rounds) + 1, outside, before)
    model.privacy_ = spent
    return Noisy(model.privacy, spent)


def move_noisy(
    site: Site,
    block: Block | Pull | None,
    X_shared: Array,
    alpha: float,
    classes: NDArray[Any] | None,
    noisy: Noisy,
    source: Source,
) -> Moved:
    """The update of `move`: a model that stays here, and noisy predictions of models of shards.

    The mean local loss stays here too: it is not a number in the history.
    """
    if not len(site.y):  # nothing of its own to hide
        return move(site, None, block, X_shared, alpha, classes)
    own, _ = fitted(site, None, block, X_shared, alpha, classes)
    privacy, m = noisy.privacy, len(X_shared)

    def fit(part: Any) -> Array:
        if not len(part) and block is None:
            return np.zeros(m) if classes is None else np.full((m, len(classes)), 1 / len(classes))
        shard = replace(site, X=site.X[part], y=site.y[part])
        return fitted(shard, None, block, X_shared, alpha, classes)[1]

    terms = (privacy.shards, noisy.spent.multiplier, privacy.unit, source)
    if classes is None:
        low, high = privacy.bounds.target
        shared = release(fit, len(site.y), low, high, *terms)
    else:
        shared = release_classes(fit, len(site.y), *terms)
    return Moved(own, shared, float("nan"))
