"""A guard between a program and what it hears."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.program import Exchange, Heard, Program, between
from nefele.robust.rules import Rule

_GUARDED = ("parameters", "predictions", "probabilities")


@dataclass(frozen=True)
class Guarded:
    """A program whose neighbours' messages go through a rule first.

    What is not finite is refused before anything else: the last good message of that neighbour
    counts, and before there is one, the own vector. Give it to `wrap` of
    `nefele.runtime.relax_messages`, or call it with any program.

    Both ends of an edge must do the same to its flow, so a rule that combines messages belongs to
    FedRelax, where a node moves towards its neighbours. In Algorithm 1 the penalty is the guard:
    a norm or Huber.

    Parameters
    ----------
    rule : Rule
        `Clip`, `TrimmedMean`, `Median`, `GeometricMedian`, `Krum`, `CentredClip` or `FLTrust`.
    contents : tuple of str
        Which messages it looks at; the others pass, if they are finite.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.robust import Constant, Guarded, Median
    >>> from nefele.runtime import relax_messages
    >>> data = LocalData.from_list([([[1.0]], [1.0])] * 4)
    >>> graph = Graph.from_edges([(i, j) for i in range(4) for j in range(i)])
    >>> problem = Problem(graph, data, penalty="squared_l2", lam=1.0)
    >>> bad = {3: Constant(1e6)}
    >>> relax_messages(problem, 50, wrap=bad).w[0].round().tolist()
    [333334.0]
    >>> good = {i: Guarded(Median()) for i in range(3)}
    >>> relax_messages(problem, 50, wrap=bad | good).w[0].round(6).tolist()
    [1.0]
    """

    rule: Rule
    contents: tuple[str, ...] = _GUARDED

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule):
            raise ValueError(f"rule must be one such as Median() or Clip(1.0); got {self.rule!r}.")

    def __call__(self, program: Program[Any]) -> Program[Any]:
        """The program, guarded."""
        last: dict[tuple[str, Any], Array] = {}

        def hears(request: Any, answer: Any) -> Any:
            if isinstance(request, Exchange) and isinstance(answer, Heard):
                return self._guard(request, answer, last)
            return answer

        return between(program, lambda request: request, hears)

    def _guard(self, request: Exchange, heard: Heard, last: dict[tuple[str, Any], Array]) -> Heard:
        own, good = _own(request), {}
        for name, array in heard.rows.items():
            key = (request.content, name)
            if np.isfinite(array).all():
                last[key] = array
            kept = last.get(key, request.arrays.get(name))
            if kept is not None:
                good[name] = kept
        heard = replace_rows(heard, good)
        if request.content not in self.contents or own is None or not good:
            return heard
        odd = [q for q, a in good.items() if np.shape(a) != own.shape]
        if odd:
            raise ValueError(
                f"Guarded needs vectors of one shape, {own.shape}; {odd[0]!r} sent "
                f"{np.shape(good[odd[0]])}. Let every part be one node."
            )
        names = list(good)
        rows = np.stack([np.ravel(good[q]) for q in names]).astype(float)
        said = self.rule.heard(rows, own.ravel().astype(float))
        shaped = {q: said[k].reshape(own.shape) for k, q in enumerate(names)}
        return replace_rows(heard, shaped)


def _own(request: Exchange) -> Array | None:
    """What the part tells of itself; None when it has told nothing yet."""
    return next((np.asarray(array) for array in request.arrays.values()), None)


def replace_rows(heard: Heard, rows: dict[Any, Array]) -> Heard:
    """The same with other rows; only those who are still there are fresh."""
    return Heard(rows, frozenset(q for q in heard.fresh if q in rows))


def with_arrays(request: Exchange, arrays: dict[Any, Array]) -> Exchange:
    """The same request with other rows."""
    return replace(request, arrays=arrays)
