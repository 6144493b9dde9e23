"""What every part of a solve by parts is told, and what it gives back."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any, Protocol

from nefele.program import Program
from nefele.result import Record
from nefele.runtime.checkpoints import Checkpoints
from nefele.runtime.drivers.line import Costs, Line, Post
from nefele.runtime.part import Part
from nefele.runtime.plan import Ended, Plan, Watch
from nefele.runtime.solving import solve_part
from nefele.runtime.tree import Tree


class WorkersLostError(RuntimeError):
    """Workers were lost more often than a solve may start new ones."""


class Source(Protocol):
    """Where a part comes from, and where what it has found goes."""

    def open(self) -> Part:
        """The part, in the process that works on it."""

    def opened(self) -> Source:
        """What is needed of it once the part is open."""

    def close(self, part: Part, ended: Ended) -> Ended:
        """Keep what it has found; what of it goes back to who asked for the solve."""


@dataclass(frozen=True)
class Packed:
    """A part in bytes, cut from a problem in memory; all that it finds goes back."""

    content: bytes = field(repr=False)

    @classmethod
    def of(cls, part: Part) -> Packed:
        """The part in bytes."""
        return cls(pickle.dumps(part, protocol=5))

    def open(self) -> Part:
        return pickle.loads(self.content)

    def opened(self) -> Packed:
        return Packed(b"")

    def close(self, part: Part, ended: Ended) -> Ended:
        return ended


@dataclass(frozen=True)
class Job:
    """What all parts are to do.

    Attributes
    ----------
    plan : Plan
    links : dict of part to its neighbours
        Parts are numbered from 0.
    kept : Checkpoints, optional
    """

    plan: Plan
    links: dict[int, list[int]]
    kept: Checkpoints | None = None

    @property
    def parts(self) -> int:
        """How many there are."""
        return len(self.links)

    def program(self, part: Part, number: int, watch: Watch) -> Program[Ended]:
        """What a part has to do."""
        store = None if self.kept is None else self.kept.store(part, number, self.parts)
        return solve_part(part, self.plan, store, watch)


@dataclass
class Done:
    """What a part gives back.

    Attributes
    ----------
    ended : Ended
    costs : Costs
    nodes, edges, seen : int
        Own nodes, edges at them, and nodes of others that they see.
    """

    ended: Ended
    costs: Costs
    nodes: int
    edges: int
    seen: int


@dataclass
class Told:
    """The examined points so far, for who asks, and whether somebody wants to stop."""

    records: list[Record] = field(default_factory=list)
    stop: bool = False

    def __call__(self, record: Record) -> bool:
        self.records.append(record)
        return self.stop


def work(job: Job, number: int, source: Source, part: Part, post: Post, watch: Watch) -> Done:
    """Do one part's share of a job, by messages to the others."""
    line = Line(number, Tree(job.links), post)
    ended = line.drive(job.program(part, number, watch))
    seen = part.graph.n_nodes - len(part.nodes)
    counts = len(part.nodes), part.graph.n_edges, seen
    return Done(source.close(part, ended), line.costs, *counts)


def links_of(parts: list[Part]) -> dict[int, list[int]]:
    """Who is linked to whom."""
    return {part.name: sorted(part.says) for part in parts}


Sources = list[Any]  # of Source
