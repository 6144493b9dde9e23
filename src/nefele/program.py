"""What an algorithm over a network asks of others, so that it never sees a network.

A program is a generator. It owns some nodes, computes, and yields a request; whoever drives it
sends back the answer. One process, many of them, or sites far apart differ in the driver only.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nefele._checks import Array

__all__ = [
    "Exchange",
    "Heard",
    "Program",
    "Sum",
    "Work",
    "largest",
    "run_alone",
    "steady_totals",
    "total",
]

T = TypeVar("T")
Program = Generator[Any, Any, T]

_GRIDS = 4  # pieces of a number
_DROPPED = 52  # bits by which a grid's step is below its size
_NUMBERS = 2**18  # cut at a time: they stay in the cache


@dataclass(frozen=True, eq=False)
class Exchange:
    """Rows for each neighbour; answered by a `Heard` with theirs.

    Attributes
    ----------
    content : str
        What the rows are, such as "parameters".
    arrays : dict of neighbour to array
    wait : bool
        Whether all must have answered; otherwise what has come is enough, old or new. A driver
        that never waits takes all exchanges so.
    meanwhile : callable, optional
        Own work that needs no answers. A driver may call it, once, while the rows are on their
        way; the program must see to the work itself where none has.
    """

    content: str
    arrays: dict[Any, Array] = field(default_factory=dict)
    wait: bool = True
    meanwhile: Callable[[], None] | None = None


class Heard(NamedTuple):
    """What neighbours have said.

    Attributes
    ----------
    rows : dict of neighbour to array
        The newest of each; of all of them, unless the driver goes on without waiting.
    fresh : frozenset of neighbours
        Those that said it in this round, or in the one before where all go on at the same time.
    """

    rows: dict[Any, Array]
    fresh: frozenset[Any]


@dataclass(frozen=True, eq=False)
class Sum:
    """Numbers of this part; answered by their sums over all parts, or by the largest of each."""

    values: Array
    largest: bool = False


@dataclass(frozen=True, eq=False)
class Work:
    """A long computation of this part alone; answered by its result. A driver may use a pool."""

    call: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


def total(value: Any) -> Program[float]:
    """The sum of one number over all parts."""
    return float((yield Sum(np.array([value], dtype=float)))[0])


def largest(value: Any) -> Program[float]:
    """The largest of one number over all parts."""
    return float((yield Sum(np.array([value], dtype=float), largest=True))[0])


def steady_totals(*arrays: Array) -> Program[list[Array]]:
    """Sums over the first axis and over all parts, the same bits however the rows are spread.

    Each number is cut into pieces on grids so coarse that all sums of pieces are exact, whatever
    their order; what the last grid drops is far below rounding.

    Examples
    --------
    >>> rows = np.array([0.25, 1e16, 0.5, -1e16])
    >>> [float(run_alone(steady_totals(some))[0]) for some in (rows, rows[::-1])]
    [0.75, 0.75]
    """
    sizes = [_tops(rows).ravel() for rows in arrays]
    tops = yield Sum(np.concatenate(sizes), largest=True)
    count = yield from total(max(len(rows) for rows in arrays))
    pieces = []
    for rows, top in zip(
        arrays, np.split(tops, np.cumsum([s.size for s in sizes])[:-1]), strict=True
    ):
        pieces.append(_pieces(rows.reshape(len(rows), top.size), top, count))
    sums = yield Sum(np.concatenate(pieces, axis=1))
    found = np.split(sums[::-1].sum(axis=0), np.cumsum([s.size for s in sizes])[:-1])
    return [f.reshape(rows.shape[1:]) for f, rows in zip(found, arrays, strict=True)]


def _tops(rows: Array) -> Array:
    """Largest absolute values over the first axis, without an array of all of them."""
    return np.maximum(rows.max(axis=0, initial=0.0), -rows.min(axis=0, initial=0.0))


def _pieces(rows: Array, top: Array, count: float) -> Array:
    """Sums of the pieces on each grid, the coarsest first, shape (_GRIDS, columns)."""
    with np.errstate(over="ignore", invalid="ignore"):
        grid = 1.5 * 2.0 ** (np.frexp(top)[1] + np.frexp(count)[1])  # > 1.5 count top
        out = np.zeros((_GRIDS, rows.shape[1]))
        some = max(_NUMBERS // max(rows.shape[1], 1), 1)
        for first in range(0, len(rows), some):
            rest = rows[first : first + some]
            unit = grid
            for level in range(_GRIDS):
                piece = (rest + unit) - unit
                out[level] += piece.sum(axis=0)
                rest, unit = rest - piece, unit * 2.0**-_DROPPED * 2.0 ** np.frexp(count)[1]
    return out


def between(
    program: Program[T], asks: Callable[[Any], Any], hears: Callable[[Any, Any], Any]
) -> Program[T]:
    """The program with what it asks changed by `asks(request)`, and the answer by `hears`.

    `hears(request, answer)` is given the request as the program made it.

    Examples
    --------
    >>> twice = between(total(3.0), lambda asked: Sum(2 * asked.values), lambda asked, got: got)
    >>> run_alone(twice)
    6.0
    """
    answer: Any = None
    while True:
        try:
            request = program.send(answer)
        except StopIteration as end:
            return end.value
        answer = hears(request, (yield asks(request)))


def run_alone(program: Program[T]) -> T:
    """Run a program that owns all nodes: its sums are the sums, and there is nobody to hear.

    Examples
    --------
    >>> run_alone(total(3.0))
    3.0
    """
    answer: Any = None
    while True:
        try:
            request = program.send(answer)
        except StopIteration as end:
            return end.value
        answer = _by_itself(request)


def _by_itself(request: Any) -> Any:
    if isinstance(request, Sum):
        return request.values.copy()
    if isinstance(request, Work):
        return request.call(*request.arguments)
    check_request(request)
    return Heard({}, frozenset())


def check_request(request: Any) -> None:
    """Refuse what no driver can answer."""
    if not isinstance(request, Exchange | Sum | Work):
        raise ValueError(f"A program must yield an Exchange, a Sum or a Work; got {request!r}.")
