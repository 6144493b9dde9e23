"""What theory says about the final fit of a run: facts for the record, pictures for the report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.graph_learning import graph_diagnostics
from nefele.problem import Problem
from nefele.report import Picture
from nefele.report.layout import place
from nefele.result import Result, Status
from nefele.runs.wording import PICTURES
from nefele.solvers import solve
from nefele.theory import (
    WellConnected,
    certify_clusters,
    consensus_bound,
    critical_lambda,
    edge_influence,
    plot_certified,
    plot_critical_flow,
    plot_influence,
    plot_slack,
    well_connected,
)

MOST_NODES = 20_000  # for the diagnostics of the graph
_MOST_FLOW = {"l2": 10_000, "l1": 30_000, "linf": 30_000}  # numbers of a flow: seconds of work
_MOST_CLUSTERED = 2_000  # nodes for maximum flows
_MOST_REMOVED = 1_000_000  # numbers of all changes when each edge is removed
_MOST_BARS = 40
_MOST_DRAWN = 2_000  # nodes
_PROOF, _STEPS = 1e-10, 3_000  # relative gap for proofs, and steps to spend on it

Fact = tuple[str, str]
Draw = Callable[[Any], object]


@dataclass(frozen=True, eq=False)
class Fit:
    """The final fit of a run, as a problem of the core with its certified solution.

    Attributes
    ----------
    model : fitted estimator
    problem : Problem
    result : Result or None
        The fit, brought nearer to the optimum: the smaller the gap, the more it proves. None when
        the fit did not reach its tolerance.
    clusters : int array of shape (n_nodes,)
    positions : array of shape (n_nodes, 2), optional
        Where the report draws the nodes; None when there are too many to draw.
    """

    model: Any
    problem: Problem
    result: Result | None
    clusters: Any
    positions: Array | None

    @classmethod
    def of(cls, model: Any, problem: Problem, w: Array, positions: Array | None, geo: bool) -> Fit:
        """From an estimator and its parameters w in the units of the problem."""
        graph = problem.graph
        small = graph.n_nodes <= _MOST_DRAWN
        result = None
        if model.status_ == Status.OPTIMAL:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tol = min(model.tol, _PROOF) if small else model.tol
                result = solve(problem, tol=tol, max_iter=_STEPS, w0=w, u0=model._flow)
        if not small:
            return cls(model, problem, result, model.clusters_, None)
        edges = np.column_stack([graph.head, graph.tail])
        xy = place(graph.n_nodes, edges, positions, geo).xy
        return cls(model, problem, result, model.clusters_, xy)


def examine(fit: Fit) -> tuple[list[Fact], list[Fact], dict[str, Draw]]:
    """Diagnostics of the graph, facts of theory, and what draws each picture.

    What theory does not cover (a loss without a gradient, a graph too large) is left out.
    """
    diagnostics: list[Fact] = []
    draws: dict[str, Draw] = {}
    if fit.problem.graph.n_nodes <= MOST_NODES:
        found = graph_diagnostics(fit.problem.graph, fit.model)
        diagnostics = found.rows()
        if fit.problem.graph.n_edges:
            draws["graph.svg"] = lambda ax: found.plot(fit.positions, ax)
    facts: list[Fact] = []
    if not (fit.problem.coupled and fit.problem.graph.n_edges):
        return diagnostics, facts, draws
    for part in (_certified, _critical, _connected, _removed):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for fact, name, draw in part(fit):
                    facts.append(fact)
                    if draw is not None:
                        draws[name] = draw
        except (ValueError, np.linalg.LinAlgError):
            continue  # its assumptions do not hold
    return diagnostics, facts, draws


Found = Iterator[tuple[Fact, str, Draw | None]]


def _certified(fit: Fit) -> Found:
    if fit.result is None:
        return
    found = certify_clusters(fit.result)
    close = found.upper <= found.tol
    words = (
        f"{int(close.sum())} of {len(close)} edges join models within {found.tol:.2g} of each "
        f"other, {int(found.differs.sum())} join models that differ"
    )
    form = "proven at the optimum" if found.proven else "estimated at the optimum"

    def draw(ax: Any) -> object:
        return plot_certified(found, fit.problem, positions=fit.positions, ax=ax)

    yield (form, words), "proven.svg", draw if close.any() else None


def _critical(fit: Fit) -> Found:
    problem = fit.problem
    size, most = problem.graph.n_edges * problem.d, _MOST_FLOW.get(fit.model.penalty, 0)
    if size > most:
        return
    found = critical_lambda(problem)
    value, least = f"{found.value:.4g}", f"{found.lower:.4g}"
    words = value if found.exact else f"between {least} and {value}"
    many = int(problem.graph.components.max())
    where = "each part of the graph has one model" if many else "all nodes have one model"

    def draw(ax: Any) -> object:
        plot_critical_flow(found, problem, positions=fit.positions, ax=ax)
        return ax.set_title(f"critical alpha = {found.value:.4g}")

    drawn = draw if np.isfinite(found.value) and found.value > 0 else None
    yield ("critical alpha", f"{words}: from there on {where}"), "critical.svg", drawn


def _connected(fit: Fit) -> Found:
    size = np.bincount(fit.clusters)
    if fit.problem.graph.n_nodes > _MOST_CLUSTERED or not (size > 1).any():
        return
    found = well_connected(fit.problem, fit.clusters)
    several = _several(found, size)
    count = len(several.labels)
    words = f"{int(several.holds.sum())} of {count} clusters of several nodes"

    def draw(ax: Any) -> object:
        return plot_slack(several, ax=ax).set_xlabel("nodes of the cluster")

    fact = ("well-connected", f"{words} (Theorem 2; sufficient, not necessary)")
    yield fact, "slack.svg", draw if count <= _MOST_BARS else None


def _several(found: WellConnected, size: Any) -> WellConnected:
    """The same without single nodes, which always are; clusters are named by their size."""
    on = np.flatnonzero(size > 1)
    return replace(
        found,
        labels=size[on],
        center=[found.center[c] for c in on],
        worst=[found.worst[c] for c in on],
        holds=found.holds[on],
        slack=found.slack[on],
        boundary=found.boundary[on],
        alpha=found.alpha[on],
    )


def _removed(fit: Fit) -> Found:
    problem, graph = fit.problem, fit.problem.graph
    if fit.model.penalty != "squared_l2":
        return
    if fit.result is not None and graph.n_nodes <= _MOST_CLUSTERED:
        bound = consensus_bound(fit.result).value
        if np.isfinite(bound).all():
            words = f"at most {float(bound.max()):.3g}, summed squares, standardized units"
            yield ("spread of the models", words), "", None
    if graph.n_edges * graph.n_nodes * problem.d > _MOST_REMOVED:
        return
    found = edge_influence(problem)
    size = np.where(np.isfinite(found.size), found.size, -np.inf)
    top = int(size.argmax())
    if not np.isfinite(size[top]):
        return  # without any edge some node would be without data
    ends = graph.ids[[graph.head[top], graph.tail[top]]].tolist()

    def draw(ax: Any) -> object:
        return plot_influence(found, problem, positions=fit.positions, ax=ax)

    words = f"{ends[0]!r} - {ends[1]!r}: without it the models move by {size[top]:.3g}"
    yield ("edge that matters most", words), "influence.svg", draw


def drawn(fit: Fit, draws: dict[str, Draw]) -> Iterator[tuple[str, Picture]]:
    """The pictures, none without matplotlib."""
    if fit.positions is None:
        return
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return
    across, upwards = np.maximum(np.ptp(fit.positions, axis=0), 1e-3)
    height = float(np.clip(5.0 * upwards / across, 3.4, 6.4))  # of a map, as the map is
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as letters that a font lacks
        for name, one in draws.items():
            with rc_context({"font.family": "sans-serif", "font.size": 10.0}):
                figure = Figure(figsize=(6.4, 4.0 if name == "slack.svg" else height))
                one(figure.subplots())
                yield name, Picture.drawn(figure, *PICTURES[name])
