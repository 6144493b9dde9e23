"""A hash of a whole problem: whether two are the same, to the last bit of their data."""

from __future__ import annotations

import hashlib
import pickle
from functools import cached_property
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.graphs.mapped import MappedGraph
from nefele.problem import Problem

_VERSION = 3  # of what is hashed, and in which order
_PLAIN = (str, bytes, bool, int, float, complex, type(None), range)
_DIGITS = 6


def fingerprint(problem: Problem) -> str:
    """A hash of graph, data, loss and penalty with all their parameters, and lam.

    Objects of a user's own are told apart by their class and attributes; what has none and cannot
    be written down, such as a function, only by what loss and penalty give at a few points.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> fingerprint(problem) == fingerprint(problem.with_lam(2.0))
    False
    """
    graph, loss = problem.graph, problem.loss
    found = _Hash()
    found.add([_VERSION, problem.lam, graph.head, graph.tail, graph.weight, graph.ids])
    if isinstance(graph, MappedGraph):
        found.add(list(graph.contents))
    found.add([problem.data, loss, problem.penalty])
    rows = 3 if problem.penalty.edges is None else problem.penalty.edges
    width = graph.width(loss.d)
    steps = np.linspace(0.5, 2.0, rows * width).reshape(rows, width)
    found.add(_rounded(problem.penalty.value(steps)))
    found.add(_rounded(loss.value(np.ones((loss.n_nodes, loss.d)))))
    return found.text()


def digest(values: list[Any], near: list[Array]) -> str:
    """A hash of any values with all their parameters, and of numbers up to rounding.

    Examples
    --------
    >>> digest([np.zeros(2)], []) == digest([np.array([0.0, 1e-300])], [])
    False
    """
    found = _Hash()
    found.add(values)
    found.add([_rounded(numbers) for numbers in near])
    return found.text()


class _Hash:
    """Takes values of any kind, each with its type and size, so that no two sequences agree."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._seen: dict[int, tuple[int, Any]] = {}  # keeps them alive, so that ids stay theirs

    def text(self) -> str:
        return self._hash.hexdigest()

    def add(self, value: Any) -> None:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, _PLAIN):
            self._write(type(value).__name__, repr(value))
        elif id(value) in self._seen:
            self._write("again", str(self._seen[id(value)][0]))
        else:
            self._seen[id(value)] = (len(self._seen), value)
            self._add_object(value)

    def _add_object(self, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            self._write("array", f"{value.dtype.str} {value.shape}")
            self._hash.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
        elif isinstance(value, list | tuple | np.ndarray):
            self._write(type(value).__name__, str(len(value)))
            for item in value:
                self.add(item)
        elif isinstance(value, set | frozenset):
            self._write("set", repr(sorted(map(repr, value))))
        elif isinstance(value, dict):
            self._write("dict", str(len(value)))
            for key, item in value.items():
                self.add(key)
                self.add(item)
        else:
            self._write("object", f"{type(value).__module__}.{type(value).__qualname__}")
            if not hasattr(value, "__dict__"):
                self._write("content", _written(value))
            for name, item in _attributes(value):
                self._write("attribute", name)
                self.add(item)

    def _write(self, kind: str, text: str) -> None:
        data = text.encode(errors="surrogatepass")
        self._hash.update(f"{kind} {len(data)} ".encode())
        self._hash.update(data)


def _attributes(value: Any) -> list[tuple[str, Any]]:
    """What an object was given, not what it computed later; of nefele's own, what is public.

    Functions and classes have names only.
    """
    kind = type(value)
    if isinstance(value, type | FunctionType | MethodType | ModuleType):
        return []
    ours = kind.__module__.split(".")[0] == "nefele"
    return sorted(
        (name, item)
        for name, item in getattr(value, "__dict__", {}).items()
        if not (ours and name.startswith("_"))
        and not isinstance(getattr(kind, name, None), cached_property)
    )


def _written(value: Any) -> str:
    """The content of an object without attributes, if it can be written; never read again."""
    try:
        return hashlib.sha256(pickle.dumps(value)).hexdigest()
    except Exception:
        return ""


def _rounded(values: Any) -> Any:
    """Six digits: rounding does not show, such as that of another number of threads.

    Infinite values, of points outside a loss's set, stay so.
    """
    size = np.abs(values)
    largest = float(size.max(initial=0.0, where=np.isfinite(size)))
    return np.round(values / (largest or 1.0), _DIGITS) + 0.0
