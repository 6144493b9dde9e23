"""What a solve returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_number
from nefele._html import count, facts
from nefele.graph import Graph
from nefele.problem import Problem

_ROUNDING = 1e-13  # difference, relative to the largest parameter, that is none


class ConvergenceWarning(UserWarning):
    """The tolerance was not reached."""


class DataWarning(UserWarning):
    """The data do not determine every parameter."""


class Status(StrEnum):
    """How a solve ended; each status carries advice.

    Examples
    --------
    >>> Status.MAX_ITER.advice
    'Increase max_iter or tol, or rescale features that differ much in size.'
    """

    OPTIMAL = "optimal"
    MAX_ITER = "max_iter"
    FINISHED = "finished"
    STALLED = "stalled"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    UNCERTIFIED = "uncertified"
    UNBOUNDED = "unbounded"
    HELD = "optimal except for held nodes"
    FAILED = "failed"
    PERTURBED = "perturbed, no guarantee"

    @property
    def reached(self) -> bool:
        """Whether a certified gap is within the tolerance, with nodes held or not."""
        return self in (Status.OPTIMAL, Status.HELD)

    @property
    def advice(self) -> str:
        """What the user may do."""
        return _ADVICE[self]


_ADVICE = {
    Status.OPTIMAL: "Nothing to do: the gap is within the tolerance.",
    Status.MAX_ITER: "Increase max_iter or tol, or rescale features that differ much in size.",
    Status.FINISHED: "The iterations asked for were done; no tolerance was set.",
    Status.STALLED: "No progress for long: increase tol, or rescale features of unlike size.",
    Status.INTERRUPTED: "Pass w0=result.w, or resume= with a checkpoint, to go on from here.",
    Status.STOPPED: "The callback asked to stop; pass w0=result.w to go on from here.",
    Status.UNCERTIFIED: "A guess of the gap is within the tolerance; solve again without "
    "certify=False, from w0=result.w and u0=result.u, for a proof.",
    Status.UNBOUNDED: "The loss has no minimiser, its parameters grow without bound: give it a "
    "regulariser, such as l2=1e-3.",
    Status.HELD: "Nodes whose loss has no minimiser are held by a tiny ridge, see result.held; all "
    "others are solved. Give the loss a regulariser, such as l2=1e-3.",
    Status.FAILED: "Numbers overflowed: rescale features and labels to moderate sizes.",
    Status.PERTURBED: "Every update carries noise, which is no guarantee of privacy: measure what "
    "it leaks with nefele.privacy.audit.",
}


_OF_THE_HELD = (
    "Objective and gap are those of result.problem, in which nodes whose loss has no minimiser are "
    "held by a tiny ridge, see result.held: give the loss a regulariser, such as l2=1e-3."
)


class Record(NamedTuple):
    """One examined point of a solve.

    Attributes
    ----------
    iteration : int
    objective : float
        The least so far.
    gap : float
        The certified relative gap so far; inf while nothing is proven.
    seconds : float
        Since the start.
    guess : float
        A guess of the relative gap: certificates are computed when it promises success.
    rate : float
        Powers of ten by which the guess fell per second since the record before.

    Examples
    --------
    >>> record = Record(50, 3.5, gap=1e-3, seconds=1.0, guess=1e-3, rate=2.0)
    >>> record.seconds_left(tol=1e-7)
    2.0
    """

    iteration: int
    objective: float
    gap: float
    seconds: float
    guess: float = math.inf
    rate: float = 0.0

    def seconds_left(self, tol: float) -> float:
        """Seconds until the guess reaches tol, if it goes on falling at this rate.

        Parameters
        ----------
        tol : float
            Relative gap.
        """
        if self.guess <= tol:
            return 0.0
        return math.log10(self.guess / tol) / self.rate if self.rate > 0 else math.inf


@dataclass(frozen=True, eq=False)
class Result:
    """Parameters, certificate and history of a solve.

    Attributes
    ----------
    problem : Problem
        What was solved; nodes that are `held`, whatever the status, have a ridge in it.
    w : array of shape (n_nodes, d)
        Parameters of each node, in graph order.
    u : array of shape (n_edges, d)
        Dual flow, inside its balls.
    objective : float
        Objective at w.
    gap_abs : float
        Certified upper bound on objective - optimum; inf when solved with certify=False.
    gap : float
        gap_abs / max(|objective|, 1e-6 * |objective(0)|).
    certificate : str
        Which form the bound has: "dual", "strong convexity", "estimated radius", or "none" when
        solved with certify=False.
    leak : float
        Part of gap_abs that accounts for rounding errors.
    status : Status
        How the solve ended, with advice.
    n_iter : int
        Iterations done.
    history : list of Record
        Examined points: iteration, objective, gap, seconds, guess, rate.
    undetermined, unbounded : bool arrays of shape (n_nodes,)
        Nodes of components without data; nodes whose loss has no minimiser.
    held : array of shape (n_nodes, d), optional
        Weights of w_ij^2 that were added to hold nodes without a minimiser, zero at all others.
        Objective and gap are then those of the problem with these terms.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> result = solve(Problem(Graph.from_edges([(0, 1)]), data, lam=1.0))
    >>> result.w.round(6).tolist(), result.converged, result.clusters().tolist()
    ([[0.5], [3.5]], True, [0, 1])
    >>> result[1].round(6).tolist()
    [3.5]
    """

    problem: Problem = field(repr=False)
    w: Array = field(repr=False)
    u: Array = field(repr=False)
    objective: float
    gap: float
    gap_abs: float
    certificate: str
    leak: float = field(repr=False)
    status: Status
    n_iter: int
    history: list[Record] = field(repr=False)
    undetermined: NDArray[np.bool_] = field(repr=False)
    unbounded: NDArray[np.bool_] = field(repr=False)
    held: Array | None = field(default=None, repr=False, kw_only=True)

    @property
    def converged(self) -> bool:
        """Whether the certified gap is within the tolerance, nodes that are held included."""
        return self.status.reached

    @property
    def advice(self) -> str:
        """What the user may do, and of which problem objective and gap are if nodes are held."""
        if self.held is None or self.status is Status.HELD:
            return self.status.advice
        return f"{self.status.advice} {_OF_THE_HELD}"

    def __getitem__(self, node: Any) -> Array:
        """Parameters of the node with this id, shape (d,)."""
        return self.w[self.problem.graph.position(node)]

    def _repr_html_(self) -> str:
        return facts(
            f"Result: {self.status}",
            {
                "objective": f"{self.objective:.6g}",
                "certified gap": f"{self.gap:.1e} ({self.certificate})",
                "iterations": f"{self.n_iter:,}",
                "nodes": f"{len(self.w):,}, {count(self.w.shape[1], 'parameter')} each",
                "clusters": int(self.clusters().max()) + 1,
                "advice": self.advice,
            },
        )

    def plot(self, positions: Any = None, *, axes: Any = None) -> Any:
        """The network coloured by cluster, and the nodes' parameters; needs matplotlib.

        Parameters
        ----------
        positions : array of shape (n_nodes, 2) or mapping from node ids, optional
            Where the nodes are; by default by forces.
        axes : pair of matplotlib Axes, optional

        Returns
        -------
        array of two matplotlib Axes

        Examples
        --------
        >>> import matplotlib; matplotlib.use("agg")
        >>> from nefele import Graph, LocalData, Problem, solve
        >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
        >>> result = solve(Problem(Graph.from_edges([(0, 1)]), data, lam=1.0))
        >>> result.plot()[0].get_title()
        '2 clusters'
        """
        from nefele._draw.pictures import draw_result

        data = self.problem.data
        known = data is not None and len(data.feature_names) == self.w.shape[1]
        names = data.feature_names if data is not None and known else None
        title = f"{self.status}, gap {self.gap:.1e}"
        return draw_result(
            self.problem.graph,
            self.w,
            self.clusters(),
            names or [f"w{j}" for j in range(self.w.shape[1])],
            title,
            positions,
            axes,
        )

    def clusters(self, tol: float = 1e-5) -> NDArray[np.int64]:
        """Labels of the groups of connected nodes with equal parameters, shape (n_nodes,).

        Two neighbours count as equal when no parameter differs by more than `tol` times the
        largest spread of a parameter over all nodes.

        Parameters
        ----------
        tol : float
        """
        return equal_groups(self.problem.graph, self.w, tol)


def equal_groups(graph: Graph, w: Array, tol: float = 1e-5) -> NDArray[np.int64]:
    """Labels of the groups of connected nodes with equal rows of w, see `Result.clusters`."""
    check_number(tol, "tol", low=0.0)
    return groups_within(graph, w, tol * float(np.ptp(w, axis=0).max(initial=0.0)))


def groups_within(graph: Graph, w: Array, most: float) -> NDArray[np.int64]:
    """Labels of the groups of connected nodes that differ from a neighbour by at most so much.

    Rounding errors make no difference.
    """
    rounding = _ROUNDING * float(np.abs(w).max(initial=0.0))
    return graph.joined(graph.alike(w, max(most, rounding)))


class Scaled(Protocol):
    """What has a scale for gaps: a problem, or a part of one."""

    @property
    def objective_at_zero(self) -> float:
        """objective(0)."""


def relative_gap(problem: Scaled, objective: float, gap_abs: float) -> float:
    """gap_abs / max(|objective|, 1e-6 * |objective(0)|); 0 when both are 0, inf if not finite."""
    return 0.0 if gap_abs == 0 else as_relative(gap_abs, objective, problem.objective_at_zero)


def as_relative(gap_abs: float, objective: float, at_zero: float) -> float:
    """The same, given the objective at zero.

    Examples
    --------
    >>> as_relative(0.5, 2.0, 8.0)
    0.25
    """
    if gap_abs == 0:
        return 0.0
    size = max(abs(objective), 1e-6 * abs(at_zero))
    return gap_abs / size if 0 < size < float("inf") else float("inf")
