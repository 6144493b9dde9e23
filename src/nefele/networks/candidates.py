"""What a search over couplings of networks tries, and what each is worth at held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._torch.base import Tensor, to_numpy, torch
from nefele.networks.coupled import Coupling, train_common, train_coupled, unit_of_alpha
from nefele.networks.training import Training
from nefele.selection.folds import Fold, NodeErrors
from nefele.selection.judge import Judge

OWN, ONE = "own rows only", "one network"


@dataclass(frozen=True)
class Candidate:
    """A way to couple.

    Attributes
    ----------
    graph : str
        Name of the graph; `OWN` or `ONE` where there is none.
    ratio : float
        alpha in units of `unit_of_alpha`, or alpha itself if `absolute`; 0: a common start only.
    couple : {"all", "body"}
    absolute : bool
    """

    graph: str
    ratio: float = 0.0
    couple: str = "all"
    absolute: bool = False

    def alpha(self, unit: float) -> float:
        """The strength of the coupling."""
        return self.ratio if self.absolute else self.ratio * unit


def candidates_of(
    graphs: Sequence[str], ratios: Sequence[float], couples: Sequence[str], absolute: bool
) -> list[Candidate]:
    """From the strongest coupling to none: of equally good ones the first is taken.

    Examples
    --------
    >>> found = candidates_of(["complete"], [4.0, 0.0], ["all"], False)
    >>> [(c.graph, c.ratio) for c in found]
    [('one network', 0.0), ('complete', 4.0), ('complete', 0.0), ('own rows only', 0.0)]
    """
    found = [Candidate(ONE)]
    for ratio in sorted({float(ratio) for ratio in ratios} - {0.0}, reverse=True):
        found += [Candidate(g, ratio, c, absolute) for g in graphs for c in couples]
    return [*found, Candidate(graphs[0]), Candidate(OWN)]


class Search:
    """All candidates from one start: the common rounds are done once.

    Parameters
    ----------
    training : Training
        At the start.
    graphs : dict of str to Graph
    common : int
        Rounds as one network before the personal ones.
    """

    def __init__(self, training: Training, graphs: dict[str, Any], common: int) -> None:
        self.training, self.graphs, self.common = training, graphs, common
        self._start = training.mark()
        self._split: tuple[Tensor, Any] | None = None

    def coupling(self, candidate: Candidate) -> Coupling:
        """The coupling of a candidate of the graphs."""
        graph = self.graphs[candidate.graph]
        self._common()
        unit = unit_of_alpha(self.training, graph, self.training.rounds - self.common)
        return Coupling(graph, candidate.alpha(unit), candidate.couple)

    def train(self, candidate: Candidate) -> Tensor:
        """Parameters of all nodes, shape (n_nodes, P)."""
        training, rest = self.training, self.training.rounds - self.common
        if candidate.graph == OWN:
            training.go_back(self._start)
            return training.descend(training.start(), training.budget)
        w = self._common()
        if candidate.graph == ONE:
            return train_common(training, w, rest)
        return train_coupled(training, w, self.coupling(candidate), rest)

    def _common(self) -> Tensor:
        """Parameters and batches where the ways part."""
        if self._split is None:
            self.training.go_back(self._start)
            w = train_common(self.training, self.training.start(), self.common)
            self._split = w, self.training.mark()
        w, mark = self._split
        self.training.go_back(mark)
        return w


class Said:
    """Predictions that are there already, as a model for the judge."""

    def __init__(self, values: Array, classes: NDArray[Any] | None) -> None:
        self.values = values
        if classes is not None:
            self.classes_ = classes
            self.predict_proba = lambda X: self.values

    def predict(self, X: Any) -> Array:
        """Predictions of the rows, whatever X is."""
        return self.values


def values_at(out: Tensor, labels: bool) -> Array:
    """Predictions, or probabilities."""
    return to_numpy(torch.softmax(out, dim=1) if labels else out)


def fold_of(judge: Judge, models: list[Said], y: NDArray[Any]) -> Fold:
    """Worth of the candidates, the first of which is one network and the last own rows only."""
    scores = np.array([judge(model, None, y) for model in models])
    pooled, own = float(scores[0]), float(scores[-1])
    errors = None
    if judge.errors:
        table = np.stack(judge.errors)
        about = (judge.nodes, judge.count, judge.with_rows)
        errors = NodeErrors(*about, table[-1], table[0], table, judge.wrong)
    return Fold(scores, own, pooled, 0, 0, judge.n_rows, judge.n_own, errors)
