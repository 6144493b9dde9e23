"""The program of a site with models of any kind: alpha, comparison, final fit.

What neighbours say in each round is in `nefele.sites.coupling`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.estimators.design import Rows
from nefele.program import Program, Sum
from nefele.runtime.programs import Fitted
from nefele.sites.coupling import Relaxing
from nefele.sites.learning import Learner
from nefele.sites.learnt import Scales, Scores
from nefele.sites.noisy import draws, judged

_STRONG, _DEPTH = 10.0, 1e-4  # largest candidate, 1 being one shared row for each own, and smallest
_ROUGH = 1e-2  # change that is small enough to compare candidates for alpha


@dataclass(frozen=True, eq=False)
class Predicted:
    """What a site knows in the end.

    Attributes
    ----------
    nodes : list of str
        The own ones.
    models : dict of node to model
        For rows that are scaled by `scales`.
    shared : array of shape (n_own, m') or (n_own, m', n_classes)
        Their predictions at the shared rows.
    classes : array of str, optional
        Sorted.
    rows, scales, alpha, fitted, alphas, errors, scores, everywhere
        See `nefele.sites.learning.Learnt`; errors of one model for all are NaN: models of any kind
        have none.
    """

    nodes: list[str]
    models: dict[str, Any]
    shared: Array
    classes: NDArray[Any] | None
    rows: Rows
    scales: Scales
    alpha: float
    fitted: Fitted
    alphas: Array
    errors: Array
    scores: Scores
    everywhere: Array


@dataclass(frozen=True, eq=False)
class Networked(Predicted):
    """What a site with networks knows in the end; it has no shared rows.

    Attributes
    ----------
    model : GTVNetRegressor or GTVNetClassifier
        The networks of the own nodes, for rows in the units of the data.
    parameters : array of shape (n_own, P)
        As they were trained, for scaled rows.
    """

    model: Any
    parameters: Array


class Predictor:
    """The program of one member for the method "predictions".

    Parameters
    ----------
    learner : Learner
        Of the same member, for its rows and what all agreed to.
    make : callable
        Makes an unfitted model.
    shared : array of shape (m', d)
        The shared rows.
    """

    def __init__(self, learner: Learner, make: Callable[[], Any], shared: Array) -> None:
        self.learner, self.make, self.shared = learner, make, shared

    def run(self) -> Program[Predicted]:
        """From the rows to the models."""
        learner, rows, federation = self.learner, self.learner.rows, self.learner.federation
        place = learner.graph.positions(rows.node_ids)
        held = judged(place, learner.federation.seed, learner.federation.held_out)
        train, test = rows.take(np.flatnonzero(~held)), rows.take(np.flatnonzero(held))
        scales = yield from learner.scales(train)
        alphas, errors, alpha = np.zeros(0), np.zeros(0), federation.alpha
        if isinstance(alpha, str):
            alphas, errors = yield from self.choose(train, scales)
            alpha = float(alphas[int(np.argmin(errors))])
        scores, everywhere = yield from self.compare(train, test, scales, alpha)
        scales = yield from learner.scales(rows)
        nodes = yield from self.begun(rows, scales)
        fitted = yield from nodes.run(alpha, federation.tol, "final fit")
        names = [site.name for site in nodes.sites.values()]
        models = {site.name: nodes.model(i) for i, site in nodes.sites.items()}
        found = (rows, scales, alpha, fitted, alphas, errors, scores, everywhere)
        return Predicted(names, models, nodes.shared(), nodes.classes, *found)

    def begun(self, rows: Rows, scales: Scales) -> Program[Relaxing]:
        """The own nodes, each fitted by itself."""
        nodes = Relaxing(self.learner, rows, scales, self.make, self.shared)
        yield from nodes.begin()
        return nodes

    def choose(self, rows: Rows, scales: Scales) -> Program[tuple[Array, Array]]:
        """Candidates for alpha, descending, and their mean errors at rows left out in turn."""
        federation, alphas = self.learner.federation, self.grid()
        place = self.learner.graph.positions(rows.node_ids)
        errors, fold = np.zeros(len(alphas)), draws(place, federation.seed) % federation.folds
        for number in range(federation.folds):
            test = rows.take(np.flatnonzero(fold == number))
            nodes = yield from self.begun(rows.take(np.flatnonzero(fold != number)), scales)
            for k, alpha in enumerate(alphas.tolist()):
                stage = f"fold {number + 1}/{federation.folds}, alpha {k + 1}/{len(alphas)}"
                yield from nodes.run(alpha, max(_ROUGH, federation.tol), stage)
                errors[k] += nodes.errors(test)[0].sum()
        found = yield Sum(np.append(errors, len(rows.y)))
        return alphas, found[:-1] / found[-1]

    def grid(self) -> Array:
        """The agreed candidates, or some by how much shared rows weigh against own ones."""
        federation, graph = self.learner.federation, self.learner.graph
        if federation.alphas is not None:
            return np.array(sorted({a for a in federation.alphas if a > 0}, reverse=True))
        top = _STRONG / (float(graph.weight.mean()) if graph.n_edges else 1.0)
        return np.geomspace(top, _DEPTH * top, federation.n_alphas)

    def compare(
        self, train: Rows, test: Rows, scales: Scales, alpha: float
    ) -> Program[tuple[Scores, Array]]:
        """Own data only and coupled models at the held-out rows."""
        learner = self.learner
        nodes = yield from self.begun(train, scales)
        own = nodes.errors(test)
        yield from nodes.run(alpha, learner.federation.tol, "comparison")
        coupled = nodes.errors(test)
        place = np.searchsorted(learner.nodes, learner.graph.positions(test.node_ids))
        n = len(learner.nodes)

        def by_node(k: int) -> Array:
            sums = [np.bincount(place, row[k], n) for row in (own, coupled)]
            return np.stack([sums[0], np.full(n, np.nan), sums[1]])

        count = np.bincount(place, minlength=n)
        scores = Scores(learner.graph.ids[learner.nodes], count, by_node(0), by_node(1))
        mine = [table[::2].sum(axis=1) for table in (scores.error, scores.wrong)]
        sums = yield Sum(np.concatenate([*mine, [len(place)]]))
        everywhere = np.full((2, 3), np.nan)
        if sums[-1]:
            everywhere[:, ::2] = sums[:-1].reshape(2, 2) / sums[-1]
        return scores, everywhere
