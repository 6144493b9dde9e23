"""What theory says about the final fit of a run: facts for the record, pictures for the report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele._words import at_most
from nefele.graph import Graph
from nefele.graph_learning import graph_diagnostics
from nefele.losses.squared import BoundSquared
from nefele.problem import Problem
from nefele.report.layout import place
from nefele.result import Result, Status
from nefele.solvers import solve
from nefele.theory import (
    CriticalLambda,
    ErrorBound,
    WellConnected,
    certify_clusters,
    critical_lambda,
    edge_influence,
    error_bound,
    label_sensitivity,
    plot_certified,
    plot_contraction,
    plot_critical_flow,
    plot_error_bound,
    plot_influence,
    plot_sensitivity,
    plot_slack,
    spectrum_bounds,
    well_connected,
)

MOST_NODES = 20_000  # for the diagnostics of the graph
_MOST_FLOW = {"l2": 10_000, "l1": 30_000, "linf": 30_000}  # numbers of a flow: seconds of work
_MOST_CLUSTERED = 2_000  # nodes for maximum flows
_MOST_REMOVED = 1_000_000  # numbers of all changes when each edge is removed
_MOST_DENSE = 1_500  # unknowns of which all eigenvalues are computed
_MOST_BARS = 40
_MOST_DRAWN = 2_000  # nodes
_UNITS = "norm in standardized units"
_PROOF, _STEPS = 1e-10, 3_000  # relative gap for proofs, and steps to spend on it

Fact = tuple[str, str]
Draw = Callable[[Any], object]


@dataclass(frozen=True, eq=False)
class FinalFit:
    """The final fit of a run, as a problem of the core with its certified solution.

    The result is the fit brought nearer to the optimum: the smaller the gap, the more it proves;
    None when the fit did not reach its tolerance. The positions are where the report draws the
    nodes; None when there are too many to draw.
    """

    model: Any
    problem: Problem
    result: Result | None
    clusters: Any
    positions: Array | None

    @classmethod
    def of(
        cls,
        model: Any,
        problem: Problem,
        point: tuple[Array, Array],
        positions: Array | None,
        geo: bool,
    ) -> FinalFit:
        """From an estimator and its parameters and duals in the units of the problem."""
        graph = problem.graph
        small = graph.n_nodes <= _MOST_DRAWN
        result = None
        if model.status_ == Status.OPTIMAL:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tol = min(model.tol, _PROOF) if small else model.tol
                result = solve(problem, tol=tol, max_iter=_STEPS, w0=point[0], u0=point[1])
        if not small:
            return cls(model, problem, result, model.clusters_, None)
        edges = np.column_stack([graph.head, graph.tail])
        xy = place(graph.n_nodes, edges, positions, geo).xy
        return cls(model, problem, result, model.clusters_, xy)


@dataclass(eq=False)
class Examined:
    """What was found about a fit: labels and values, of the graph and of what theory says.

    `draws` has what draws each picture into an Axes, by the names of `PICTURES`.
    """

    diagnostics: list[Fact] = field(default_factory=list)
    theory: list[Fact] = field(default_factory=list)
    draws: dict[str, Draw] = field(default_factory=dict)


def examine(fit: FinalFit) -> Examined:
    """Diagnostics of the graph, facts of theory, and what draws each picture.

    What theory does not cover (a loss without a gradient, a graph too large) is left out.
    """
    found, graph = Examined(), fit.problem.graph
    if graph.n_nodes <= MOST_NODES:
        look = graph_diagnostics(graph, fit.model if fit.result is None else fit.result)
        found.diagnostics = look.rows()
        if graph.n_edges:
            found.draws["graph.svg"] = lambda ax: look.plot(fit.positions, ax)
    if not (fit.problem.coupled and graph.n_edges):
        return found
    for part in (_equal_or_not, _connected, _smooth):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for fact, name, draw in part(fit):
                    found.theory.append(fact)
                    if draw is not None:
                        found.draws[name] = draw
        except (ValueError, np.linalg.LinAlgError):
            continue  # its assumptions do not hold
    return found


Found = Iterator[tuple[Fact, str, Draw | None]]


def _equal_or_not(fit: FinalFit) -> Found:
    """The critical alpha, and which neighbours are proven to agree below it."""
    critical = _critical(fit)
    if critical is not None:
        yield _critical_fact(fit, critical)
        if fit.problem.lam >= critical.value:
            n = fit.problem.graph.n_edges
            words = f"all {n} edges join equal models: alpha is not below the critical one"
            yield ("proven at the optimum", words), "", None
            return
    if fit.result is None:
        return
    found = certify_clusters(fit.result)
    counts = [int(part.sum()) for part in (found.close, found.apart, found.undecided)]
    words = (
        f"{counts[0]} of {sum(counts)} edges join models that differ by at most "
        f"{at_most(found.tol, 2)} "
        f"({_UNITS}), if at all; {counts[1]} join models that differ; {counts[2]} undecided"
    )
    form = "proven at the optimum" if found.proven else "estimated at the optimum"

    def draw(ax: Any) -> object:
        return plot_certified(found, fit.problem, positions=fit.positions, ax=ax)

    yield (form, words), "proven.svg", draw if counts[0] else None


def _critical(fit: FinalFit) -> CriticalLambda | None:
    """The critical alpha where it is known within seconds."""
    problem = fit.problem
    size, most = problem.graph.n_edges * problem.d, _MOST_FLOW.get(fit.model.penalty, 0)
    if size > most:
        return None
    try:
        found = critical_lambda(problem)
    except (ValueError, np.linalg.LinAlgError):
        return None
    return found if np.isfinite(found.value) and found.value > 0 else None


def _critical_fact(fit: FinalFit, found: CriticalLambda) -> tuple[Fact, str, Draw]:
    graph = fit.problem.graph
    value, least = f"{found.value:.4g}", f"{found.lower:.4g}"
    words = value if found.exact else f"between {least} and {value}"
    parts = int(graph.components.max())
    where = "each part of the graph has one model" if parts else "all nodes have one model"
    narrow = _ends(graph, int(found.load.argmax()))

    def draw(ax: Any) -> object:
        plot_critical_flow(found, fit.problem, positions=fit.positions, ax=ax)
        return ax.set_title(f"critical alpha = {value}")

    fact = ("critical alpha", f"{words}: from there on {where}; a bottleneck is {narrow}")
    return fact, "critical.svg", draw


def _ends(graph: Graph, edge: int) -> str:
    a, b = graph.ids[[graph.head[edge], graph.tail[edge]]].tolist()
    return f"{a!r} - {b!r}"


def _connected(fit: FinalFit) -> Found:
    size = np.bincount(fit.clusters)
    if fit.problem.graph.n_nodes > _MOST_CLUSTERED or not (size > 1).any():
        return
    found = well_connected(fit.problem, fit.clusters)
    several = _several(found, size)
    count = len(several.labels)
    words = f"{int(several.holds.sum())} of {count} clusters of several nodes"

    def draw(ax: Any) -> object:
        return plot_slack(several, ax=ax).set_xlabel("nodes of the cluster")

    fact = ("well-connected", f"{words} (by Theorem 2 of the first paper, which asks for a lot)")
    # where none is, the picture would look like an alarm, and it is none
    shown = bool(several.holds.any()) and count <= _MOST_BARS
    yield fact, "slack.svg", draw if shown else None
    if shown:
        yield from _near_their_optima(fit, size)


def _near_their_optima(fit: FinalFit, size: Any) -> Found:
    """How far well-connected clusters are from the optima of their own rows."""
    on = np.flatnonzero(size > 1)
    found = error_bound(fit.problem, fit.clusters)
    several = ErrorBound(size[on], found.value[on], found.proven[on], found.optimum[on])
    most = float(several.value[several.proven].max())

    def draw(ax: Any) -> object:
        return plot_error_bound(several, ax=ax).set_xlabel("nodes of the cluster")

    words = (
        f"models of well-connected clusters are within {at_most(most, 3)} of their rows' own "
        "optimum"
    )
    yield ("error bound", f"{words} ({_UNITS})"), "bound.svg", draw if np.isfinite(most) else None


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


def _smooth(fit: FinalFit) -> Found:
    """What one edge, one label and one gradient step do under the quadratic penalty."""
    problem = fit.problem
    if fit.model.penalty != "squared_l2":
        return
    if problem.graph.n_edges * problem.graph.n_nodes * problem.d <= _MOST_REMOVED:
        yield from _removed(fit)
    if problem.graph.n_nodes * problem.d > _MOST_DENSE:
        return
    moved = label_sensitivity(problem)
    if np.isfinite(moved).all():
        most = at_most(float(moved.max()), 3)
        words = f"all models together move by at most {most} per unit of a label ({_UNITS})"
        if fit.result is not None and isinstance(problem.loss, BoundSquared):
            size = float(np.linalg.norm(fit.result.w))
            if float(moved.max()) * float(np.std(problem.loss.data.y)) > size:
                words += (
                    ". That is of no use here: a label that is off by one deviation of the labels "
                    "may, by this bound, move them farther than they are large"
                )
        yield (
            ("one label", words),
            "sensitivity.svg",
            partial(plot_sensitivity, moved, problem),
        )
    found = spectrum_bounds(problem)
    if np.isfinite(found.iterations()):
        words = f"{found.iterations():,} steps are enough for a millionth of the first error"
        draw = partial(plot_contraction, found, 1e-6)
        yield ("gradient descent", words), "contraction.svg", draw


def _removed(fit: FinalFit) -> Found:
    problem, graph = fit.problem, fit.problem.graph
    found = edge_influence(problem)
    change = np.where(np.isfinite(found.size), found.size, -np.inf)
    top = int(change.argmax())
    if not np.isfinite(change[top]):
        return  # without any edge some node would be without data

    def draw(ax: Any) -> object:
        return plot_influence(found, problem, positions=fit.positions, ax=ax)

    words = f"{_ends(graph, top)}: without it all models together move by {change[top]:.3g}"
    yield ("edge that matters most", f"{words} ({_UNITS})"), "influence.svg", draw
