"""A run that chooses the coupling itself: a centre, or a graph and a centre, and how strongly."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.estimators import auto, load
from nefele.estimators.components import components_of
from nefele.estimators.design import Design, Rows
from nefele.graph import Graph
from nefele.runs.config import RunConfig
from nefele.runs.inputs import Inputs
from nefele.runs.pipeline import Arrays, Pipeline
from nefele.runs.private import PrivatePipeline
from nefele.runs.split import Index, spare

_FARTHEST, _POINTS = 100.0, 13  # factor of the chosen strength at the ends of the path, and points


def pipeline_of(config: RunConfig, inputs: Inputs) -> Pipeline:
    """The stages of a run."""
    if config.epsilon is not None:
        return PrivatePipeline(config, inputs)
    return ChosenPipeline(config, inputs) if config.chooses else Pipeline(config, inputs)


class ChosenPipeline(Pipeline):
    """No folds: variances by restricted likelihood, members compared at left-out rows.

    What is chosen from the training rows is judged at the held-out ones; the final model is
    chosen and fitted again with all rows. The path shows weaker and stronger coupling of the same
    kind.
    """

    @property
    def automatic(self) -> bool:
        """There are no folds."""
        return False

    @property
    def n_solves(self) -> int:
        """How often `tick` is called."""
        return 2 * _POINTS + self._n_more

    def _held_out(self) -> tuple[Index, Index]:
        return spare(self.inputs.ids, *super()._held_out(), self.config.seed)

    def _network(self) -> Any:
        return self.inputs.graph if self.inputs.graph is not None else self._learner()

    def _choice(self, rows: Rows) -> tuple[Any, auto.Choice]:
        """A model with the coupling that suits some rows."""
        model = copy.copy(self.model)
        graph = auto.graph_of(model, rows)
        found = auto.choose_coupling(model, rows, graph, curves=True)
        auto.apply(model, found, rows.X.shape[1])
        model.graph = graph
        return model, found

    @cached_property
    def _trained(self) -> tuple[Any, auto.Choice]:
        """What the training rows choose."""
        train = self.rows.take(self.train)
        return self._choice(train.filled_by(train))

    def _grid(self) -> Arrays:
        found = self._trained[1]
        return {"alphas": found.alpha * _wide(), "words": np.array(found.words)}

    def _choose(self, alphas: Array, folds: list[Arrays]) -> int:
        return len(alphas) // 2

    def _compare(self, alphas: Array) -> Arrays:
        model, choice = self._trained
        split, told = (self.train, self.test), self._told("held-out rows")
        return self._compared(
            auto.judge(model, self.model, choice, self.rows, split, alphas, None, told)
        )

    def _graph_of(self, train: Rows) -> Graph:
        graph: Graph = self._trained[0].graph
        return graph

    def _path(self, alphas: Array, chosen: int) -> Arrays:
        """The coupling and its strength anew from all rows; the path by the same factors."""
        self.model, self._found = self._choice(self.rows)
        auto.remember(self.model, self._found, self.rows)
        alphas = self._found.alpha * _wide()
        return {
            **super()._path(alphas, chosen),
            "clearest": np.array(-1),
            "alphas": alphas,
            "words": np.array(self._found.words),
        }

    def _proven(self, alpha: float, found: Arrays) -> bool:
        alpha = float(found["alphas"][int(found["chosen"])])
        try:
            model = load(self.folder.file("model.nefele"))
        except ValueError:
            return False
        if not hasattr(model, "_layout") or len(model._layout.shift) != self.rows.X.shape[1]:
            return False
        self.model._layout, self.model.penalty = model._layout, "squared_l2"
        self.model.graph = model.graph_
        return super()._proven(alpha, found)

    def _proofs(self, final: Design) -> Arrays:
        """What was compared, and the variance components, as rows of two texts."""
        compared = [
            (f"compared: {one['coupling']}", f"{one['error']:.4g} at left-out rows")
            for one in self.model.candidates_
        ]
        components = components_of(self.model).rows()
        facts = [("coupling", self._found.words), *compared, *components]
        return {
            **self._robust(final),
            "diagnostics": np.array([], dtype=str).reshape(-1, 2),
            "theory": np.array(facts, dtype=str).reshape(-1, 2),
            "pictures": self._saved(self._accounts()),
        }


def _wide() -> Array:
    """Factors of the chosen strength along the path; 1 in the middle."""
    found = np.geomspace(_FARTHEST, 1 / _FARTHEST, _POINTS)
    found[_POINTS // 2] = 1.0
    return found
