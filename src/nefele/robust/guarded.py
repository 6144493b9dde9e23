"""A guard between a program and what it hears."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.program import Exchange, Heard, Program, between
from nefele.robust.rules import Last, Rule

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
        good: dict[tuple[str, Any], Array] = {}
        before: dict[str, Before] = {}

        def hears(request: Any, answer: Any) -> Any:
            if not (isinstance(request, Exchange) and isinstance(answer, Heard)):
                return answer
            finite = _finite(request, answer, good)
            if request.content not in self.contents or not (finite.rows and request.arrays):
                return finite
            memory = before.setdefault(request.content, Before())
            return self._guarded(request, finite, memory)

        return between(program, lambda request: request, hears)

    def _guarded(self, request: Exchange, heard: Heard, before: Before) -> Heard:
        own = np.asarray(next(iter(request.arrays.values())))
        odd = [q for q, array in heard.rows.items() if np.shape(array) != own.shape]
        if odd:
            raise ValueError(
                f"Guarded needs vectors of one shape, {own.shape}; {odd[0]!r} sent "
                f"{np.shape(heard.rows[odd[0]])}. Let every part be one node."
            )
        rows = {q: np.ravel(array).astype(float) for q, array in heard.rows.items()}
        said = before.heard(self.rule, rows, own.ravel().astype(float))
        return replace_rows(heard, {q: row.reshape(own.shape) for q, row in said.items()})


class Before:
    """What was said in the last round, for rules about what has changed since.

    Examples
    --------
    >>> from nefele.robust import FLTrust
    >>> memory, rows = Before(), {"a": np.array([2.0])}
    >>> [memory.heard(FLTrust(), rows, np.array([own]))["a"].tolist() for own in (1.0, 1.5)]
    [[1.0], [1.5]]
    """

    def __init__(self) -> None:
        self._rows: dict[Any, Array] = {}
        self._own: Array | None = None

    def heard(self, rule: Rule, rows: dict[Any, Array], own: Array) -> dict[Any, Array]:
        """What a node hears by this rule in place of `rows`, and take note of these."""
        start = np.zeros_like(own)  # all began there
        last = [self._rows.get(name, start) for name in rows]
        before = Last(np.stack(last), start if self._own is None else self._own)
        said = rule.heard(np.stack(list(rows.values())), own, before)
        self._rows, self._own = self._rows | rows, own
        return dict(zip(rows, said, strict=True))


def _finite(request: Exchange, heard: Heard, good: dict[tuple[str, Any], Array]) -> Heard:
    """The last finite rows of each neighbour, and the own ones before there are any."""
    found = {}
    for name, array in heard.rows.items():
        key = (request.content, name)
        if np.isfinite(array).all():
            good[key] = array
        kept = good.get(key, request.arrays.get(name))
        if kept is not None:
            found[name] = kept
    return replace_rows(heard, found)


def replace_rows(heard: Heard, rows: dict[Any, Array]) -> Heard:
    """The same with other rows; only those who are still there are fresh."""
    return Heard(rows, frozenset(q for q in heard.fresh if q in rows))


def with_arrays(request: Exchange, arrays: dict[Any, Array]) -> Exchange:
    """The same request with other rows."""
    return replace(request, arrays=arrays)
