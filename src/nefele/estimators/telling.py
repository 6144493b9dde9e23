"""What searches show of their folds and solves with `verbose`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature
from typing import Any, TypeVar

from joblib import Parallel, effective_n_jobs

from nefele._progress import Line, progress
from nefele.result import Result

T = TypeVar("T")

# Before joblib 1.3 folds are told of when all have ended.
_LIVE: dict[str, Any] = (
    {"return_as": "generator"} if "return_as" in signature(Parallel).parameters else {}
)


def run_folds(
    tasks: Callable[[Any], Iterable[Any]],
    count: int,
    verbose: Any,
    n_jobs: int | None,
    n_alphas: int = 0,
) -> list[Any]:
    """Run `count` folds, perhaps at the same time, and show which one is done.

    `tasks` makes the delayed calls from what is to be told of each solution. With one process
    these are the fold and the alpha of every solve; with more, a fold is told when it has ended.
    """
    with progress(verbose) as line:
        alone = effective_n_jobs(n_jobs) == 1
        told = _solves(line, count, n_alphas) if line.on and alone and n_alphas else None
        if not line.on:
            return list(Parallel(n_jobs=n_jobs)(tasks(told)))
        ended = Parallel(n_jobs=n_jobs, **_LIVE)(tasks(told))
        return [_then(fold, k, line, told, count) for k, fold in enumerate(ended, 1)]


def _then(fold: T, k: int, line: Line, told: Any, count: int) -> T:
    if told is None:
        line.show(f"fold {k} of {count}")
    return fold


def _solves(line: Line, n_folds: int, n_alphas: int) -> Callable[[Result], object]:
    done = iter(range(n_folds * n_alphas))

    def told(result: Result) -> None:
        fold, alpha = divmod(next(done), n_alphas)
        where = f"fold {fold + 1} of {n_folds}, alpha {alpha + 1} of {n_alphas}"
        line.show(f"{where}: gap {result.gap:.1e}")

    return told


def along(points: Iterable[Result], count: int, verbose: Any) -> list[Result]:
    """The points of a path of all rows, each one shown."""
    found: list[Result] = []
    with progress(verbose) as line:
        for point in points:
            found.append(point)
            line.show(f"all rows, alpha {len(found)} of {count}: gap {point.gap:.1e}")
    return found


class Telling:
    """What a comparison of graphs says of each solve: to a user's function, or in a line."""

    def __init__(
        self, line: Line, also: Callable[[str], object] | None, n_jobs: int | None
    ) -> None:
        self.line, self.also, self.done = line, also, 0
        self.alone = effective_n_jobs(n_jobs) == 1  # other processes have no line

    def __call__(self, name: str) -> Callable[[Any], object] | None:
        """What is to be told of each solve with the graph of this name."""
        also = self.also
        if not self.line.on or not self.alone:
            self.line.show(f"graph {name}")
            return None if also is None else lambda result: also(name)

        def told(result: Any) -> None:
            self.done += 1
            self.line.show(f"graph {name}, solve {self.done}")
            if also is not None:
                also(name)

        return told
