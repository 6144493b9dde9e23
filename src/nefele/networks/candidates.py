"""What a search over couplings of networks tries, and what each is worth at held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._torch.base import Tensor, to_numpy, torch
from nefele.networks.coupled import Coupling, train_common, train_coupled, unit_of_alpha
from nefele.networks.personal import own_outputs
from nefele.networks.rows import Source
from nefele.networks.steps import Steps
from nefele.selection.folds import Fold, NodeErrors
from nefele.selection.judge import Judge

OWN, ONE = "own rows only", "one network"


@dataclass(frozen=True)
class Candidate:
    """A way to couple.

    Attributes
    ----------
    common : float
        Share of the rounds as one network, but for the biases of the last layer; 0 is own rows
        only, 1 is one network for all, with its biases.
    graph : str
        Name of the graph for the other rounds; "" for none.
    ratio : float
        alpha in units of `unit_of_alpha`, or alpha itself if `absolute`.
    couple : {"all", "body"}
    absolute : bool
    """

    common: float
    graph: str = ""
    ratio: float = 0.0
    couple: str = "all"
    absolute: bool = False

    def alpha(self, unit: float) -> float:
        """The strength of the coupling."""
        return self.ratio if self.absolute else self.ratio * unit

    def __str__(self) -> str:
        if self.common in (0.0, 1.0) and not self.ratio:
            return OWN if self.common == 0 else ONE
        start = f"{self.common:.0%} of the rounds as one network"
        if not self.ratio:
            return f"{start}, then own rows only"
        what = "" if self.couple == "all" else ", last layers personal"
        size = "alpha" if self.absolute else "strength"
        return f"{start}, then graph {self.graph} with {size} {self.ratio:g}{what}"


class Search:
    """All candidates from one start: common rounds are done once.

    Parameters
    ----------
    training : Steps
        At the start.
    graphs : dict of str to Graph
    """

    def __init__(self, training: Steps, graphs: dict[str, Any]) -> None:
        self.training, self.graphs = training, graphs
        start = training.start(), training.mark()
        self._known = {False: {0: start}, True: {0: start}}

    def train(self, candidate: Candidate) -> Tensor:
        """Parameters of all nodes, shape (n_nodes, P)."""
        common = self._rounds(candidate)
        w = self._common(common, candidate.common < 1)
        rest = self.training.rounds - common
        if not candidate.ratio:
            return self.training.descend(w, rest * self.training.local_steps)
        return train_coupled(self.training, w, self.coupling(candidate), rest)

    def coupling(self, candidate: Candidate) -> Coupling:
        """The coupling of a candidate with a graph; training goes to where it begins."""
        graph, common = self.graphs[candidate.graph], self._rounds(candidate)
        self._common(common, candidate.common < 1)
        unit = unit_of_alpha(self.training, graph, self.training.rounds - common)
        return Coupling(graph, candidate.alpha(unit), candidate.couple)

    def _rounds(self, candidate: Candidate) -> int:
        rounds = round(self.training.rounds * candidate.common)
        return min(rounds, self.training.rounds - 1) if candidate.common < 1 else rounds

    def _common(self, rounds: int, intercept: bool) -> Tensor:
        """Parameters after so many rounds as one network, from the last point that is known."""
        known = self._known[intercept]
        if rounds not in known:
            last = max(k for k in known if k <= rounds)
            w, mark = known[last]
            self.training.go_back(mark)
            w = train_common(self.training, w, rounds - last, intercept)
            known[rounds] = w, self.training.mark()
        w, mark = known[rounds]
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


class Trial:
    """One split: what candidates trained on some rows are worth at the others.

    Parameters
    ----------
    search : Search
    judge : Judge
    held : Source
        Held-out rows.
    classes : array of shape (n_classes,) or None
    """

    def __init__(
        self, search: Search, judge: Judge, held: Source, classes: NDArray[Any] | None
    ) -> None:
        self.search, self.judge, self.held, self.classes = search, judge, held, classes
        self.scores: list[float] = []

    def tell(self, candidate: Candidate) -> float:
        """The score of a candidate."""
        out = own_outputs(self.search.training.stack, self.search.train(candidate), self.held)
        said = Said(values_at(out, self.classes is not None), self.classes)
        self.scores.append(self.judge(said, None, self.held.target))
        return self.scores[-1]

    def fold(self, order: Sequence[int], own: int, one: int) -> Fold:
        """The scores told so far in this order; `own` and `one` say where the rivals are."""
        judge, scores = self.judge, np.array(self.scores)
        table = np.stack(judge.errors)
        wrong = [judge.wrong[k] for k in (one, *order, own)] if judge.wrong else []
        about = (judge.nodes, judge.count, judge.with_rows)
        errors = NodeErrors(*about, table[own], table[one], table[list(order)], wrong)
        counts = (0, 0, judge.n_rows, judge.n_own)
        return Fold(scores[list(order)], scores[own], scores[one], *counts, errors)


def look_for(
    tell: Callable[[Candidate], float],
    graphs: Sequence[str],
    ratios: Sequence[float],
    couples: Sequence[str],
    commons: Sequence[float],
    absolute: bool,
) -> list[Candidate]:
    """Candidates told of, step by step: when to part, who with whom and how strongly, and what.

    1. Without coupling: own rows only, one network, and one network for each share `commons` of
       the rounds, then own rows only. The best share is kept.
    2. From there on each graph with each ratio, all parameters coupled.
    3. The best graph and ratio with the other things to couple, and at the next larger ratio.

    Examples
    --------
    >>> def tell(c):
    ...     return -abs(c.common - 0.5) - abs(c.ratio - 1.0)
    >>> found = look_for(tell, ["a", "b"], [4.0, 1.0], ["all"], [0.2, 0.7], False)
    >>> print(max(found, key=tell))
    70% of the rounds as one network, then graph a with strength 1
    """
    worth: dict[Candidate, float] = {}

    def ask(*some: Candidate) -> Candidate:
        for one in some:
            if one not in worth:
                worth[one] = tell(one)
        return max(some, key=lambda one: worth[one])

    ask(Candidate(0.0), Candidate(1.0))
    start = ask(*(Candidate(float(share)) for share in commons)).common
    strengths = sorted({float(ratio) for ratio in ratios} - {0.0}, reverse=True)
    if not strengths:
        return list(worth)
    first = couples[0]
    best = ask(*(Candidate(start, g, r, first, absolute) for r in strengths for g in graphs))
    place = strengths.index(best.ratio)
    near = strengths[max(place - 1, 0) : place + 1]
    ask(best, *(replace(best, couple=c, ratio=r) for c in couples[1:] for r in near))
    return list(worth)


def order_of(tried: Sequence[Candidate]) -> list[int]:
    """Places from the strongest coupling to none: of equally good ones the first is taken."""
    key = [(-c.common if not c.ratio else -2.0 + 1 / (1 + c.ratio), k) for k, c in enumerate(tried)]
    return sorted(range(len(tried)), key=lambda k: (tried[k].common < 1, *key[k]))
