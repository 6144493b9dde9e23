"""One part of many, each in a process of its own: what it asks becomes messages to its peers.

What moves the messages is a `Post`; rows go to the neighbouring parts, sums along the tree of
`nefele.runtime.tree`, so that their last bits depend on nothing but who is linked to whom.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from nefele._checks import Array
from nefele._threads import one_blas_thread
from nefele.program import Exchange, Heard, Program, Sum, check_request
from nefele.runtime.tree import Tree, join

T = TypeVar("T")

ROWS, UP, DOWN = range(3)  # kinds of messages


class Post(Protocol):
    """Moves arrays between two parts, those of one kind in the order in which they were sent."""

    def send(self, to: Any, kind: int, array: Array) -> None:
        """Send without waiting; the array must not change any more."""

    def receive(self, sender: Any, kind: int) -> Array:
        """Wait for the next array of this kind."""


@dataclass
class Costs:
    """Where the time of one part has gone, and what it has sent.

    Attributes
    ----------
    compute, exchange, sums : float
        Seconds of own work, files included; of waiting for rows; of waiting for sums. Who is done
        first waits longest: the least of all parts is what messages cost.
    exchanges, messages, bytes : int
        Exchanges of rows, and what they sent.
    added : int
        Sums over all parts.

    Examples
    --------
    >>> Costs(compute=3.0, exchange=1.0).seconds
    4.0
    """

    compute: float = 0.0
    exchange: float = 0.0
    sums: float = 0.0
    exchanges: int = 0
    messages: int = 0
    bytes: int = 0
    added: int = 0

    @property
    def seconds(self) -> float:
        """All of them."""
        return self.compute + self.exchange + self.sums


class Line:
    """A part's place among the others.

    Parameters
    ----------
    name : hashable
    tree : Tree
    post : Post
    """

    def __init__(self, name: Any, tree: Tree, post: Post) -> None:
        self.parent, self.children, self.post = tree.parent[name], tree.children[name], post
        self.costs = Costs()

    def exchange(
        self, arrays: dict[Any, Array], meanwhile: Callable[[], None] | None = None
    ) -> Heard:
        """Tell every neighbour its rows, do what can be done meanwhile, and wait for theirs."""
        costs, started = self.costs, time.perf_counter()
        for neighbour, rows in arrays.items():
            self.post.send(neighbour, ROWS, rows)
            costs.bytes += rows.nbytes
        costs.messages += len(arrays)
        costs.exchanges += 1
        told = time.perf_counter()
        if meanwhile is not None:
            meanwhile()
        worked = time.perf_counter()
        heard = {
            neighbour: self.post.receive(neighbour, ROWS).reshape(-1, *rows.shape[1:])
            for neighbour, rows in arrays.items()
        }
        costs.compute += worked - told
        costs.exchange += time.perf_counter() - worked + told - started
        return Heard(heard, frozenset(heard))

    def add(self, values: Array, largest: bool) -> Array:
        """The sum over all parts, or the largest of each entry: up the tree and down again."""
        self.costs.added += 1
        shape = np.shape(values)
        below = [self.post.receive(child, UP).reshape(shape) for child in self.children]
        found = join(values, below, largest)
        if self.parent is not None:
            self.post.send(self.parent, UP, found)
            found = self.post.receive(self.parent, DOWN).reshape(shape)
        for child in self.children:
            self.post.send(child, DOWN, found)
        return np.array(found)

    def drive(self, program: Program[T]) -> T:
        """Run a program to its end."""
        answer: Any = None
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            while True:
                started = time.perf_counter()
                try:
                    request = program.send(answer)
                except StopIteration as end:
                    self.costs.compute += time.perf_counter() - started
                    return end.value
                self.costs.compute += time.perf_counter() - started
                answer = self._answer(request)

    def _answer(self, request: Any) -> Any:
        if isinstance(request, Exchange):
            return self.exchange(request.arrays, request.meanwhile)
        started = time.perf_counter()
        if isinstance(request, Sum):
            found = self.add(request.values, request.largest)
            self.costs.sums += time.perf_counter() - started
            return found
        check_request(request)
        done = request.call(*request.arguments)
        self.costs.compute += time.perf_counter() - started
        return done
