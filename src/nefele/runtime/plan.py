"""What a solve by parts is to do, where it keeps its state, and where a part has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from nefele._checks import Array
from nefele.program import Program
from nefele.result import Record, Status
from nefele.runtime.saved import SavedPart
from nefele.solvers import PrimalDual


class Store(Protocol):
    """Where a part keeps its state, and finds it again; `failed` says why it could not, if so."""

    failed: str

    def due(self, k: int) -> bool:
        """Whether iteration k is to be kept."""

    def save(self, saved: SavedPart) -> Program[None]:
        """Keep the state of this part; done when all parts have theirs."""

    def load(self) -> Program[SavedPart | None]:
        """The state of this part at the last iteration that all parts have kept."""


@dataclass(frozen=True)
class Plan:
    """What a solve by parts is to do.

    Attributes
    ----------
    solver : PrimalDual
        Its steps, its over-relaxation, and whether reduced problems are solved at examined points.
    tol : float or None
        Relative gap to reach; None runs exactly `max_iter` iterations.
    max_iter : int
    """

    solver: PrimalDual
    tol: float | None
    max_iter: int


@dataclass
class Ended:
    """Where a part has ended.

    Attributes
    ----------
    w, u : arrays of shapes (n_own, d) and (n_edges, d)
        The best point's parameters of the own nodes, and the flow of the best bound.
    objective, gap, gap_abs, leak : float
    certificate : str
        Form of the bound.
    status : Status
    n_iter : int
    history : list of Record
    unsaved : str
        Why this part could not write a checkpoint, if so.
    """

    w: Array = field(repr=False)
    u: Array = field(repr=False)
    objective: float
    gap: float
    gap_abs: float
    certificate: str
    leak: float
    status: Status
    n_iter: int
    history: list[Record] = field(repr=False)
    unsaved: str = ""


Watch = Callable[[Record], Any]
