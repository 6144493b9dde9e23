"""What is proven of the final fit of a run about wrong labels and captured nodes, as numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele._words import visible
from nefele.estimators.design import Design
from nefele.losses.squared import BoundSquared
from nefele.penalties import SquaredL2
from nefele.problem import Problem
from nefele.robust import WorstNodes, influence_bound, worst_nodes
from nefele.robust.bounds import by_curvature, steepest
from nefele.theory import label_sensitivity

_MOST_DENSE = 1_500  # unknowns of which the least eigenvalue is computed
_MOST_COMPARED = 300  # nodes that are compared one by one
_MOST_SOLVED = 3_000  # unknowns of a loss whose bound takes another fit
_LOOSE = "the losses of nodes are not strongly convex; a ridge term makes them so"

Facts = dict[str, Any]


def robustness(problem: Problem, units: str, w: Array | None = None) -> Facts:
    """The bounds of the optimum of a problem, for run.json.

    Parameters
    ----------
    problem : Problem
    units : str
        Those of the parameters, in words.
    w : array of shape (n_nodes, d), optional
        The optimum; with it, `size` is that of all models together, beside which a bound may say
        nothing.

    Returns
    -------
    dict
        `one_label` and `captured`: `number`, or None and `why` there is none; `units`; `size`;
        `spread`, the deviation of the labels of a squared loss.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, penalty="l2", lam=1.0)
    >>> found = robustness(problem, "units of the data")
    >>> round(found["captured"]["number"], 9), found["captured"]["node"]
    (0.5, '0')
    >>> round(found["one_label"]["number"], 9)
    1.0
    """
    facts: Facts = {"units": units}
    facts |= {"one_label": _one_label(problem), "captured": _captured(problem)}
    if w is not None:
        facts["size"] = float(np.linalg.norm(w))
        if isinstance(problem.loss, BoundSquared):
            facts["spread"] = float(np.std(problem.loss.data.y))
    return facts


def bounds_of(final: Design, point: tuple[Array, Array], standardize: bool) -> dict[str, Any]:
    """How the gap of a fit is known, and the bounds, as arrays of a stage."""
    units = "standardized units" if standardize else "units of the data"
    if final.layout is not None:
        units = "units of the estimated deviations"
    return {
        "certificate": np.array(final.problem.certificate(*point).form),
        "robustness": np.array(json.dumps(robustness(final.problem, units, point[0]))),
    }


def _none(why: str) -> Facts:
    return {"number": None, "why": why}


def _one_label(problem: Problem) -> Facts:
    """How far all models together move per unit of one training label, at most."""
    if not isinstance(problem.loss, BoundSquared):
        return _none("it is known for squared losses only")
    try:
        found = _by_strong_convexity(problem)
        small = problem.graph.n_nodes * problem.d <= _MOST_DENSE
        if isinstance(problem.penalty, SquaredL2) and problem.coupled and small:
            found = min(found, float(label_sensitivity(problem).max(initial=0.0)))
    except (ValueError, np.linalg.LinAlgError) as error:
        return _none(str(error))
    return {"number": found} if np.isfinite(found) else _none(_LOOSE)


def _by_strong_convexity(problem: Problem) -> float:
    """The same for every convex penalty: max_r g_r / sqrt(mu_i mu), g_r = 2 c_r ||x_r||.

    The coupling is monotone, so that a change x of the optimum by one label of node i obeys
    sum_j mu_j ||x_j||^2 <= g_r ||x_i||: ||x_i|| <= g_r / mu_i, and all together are at most
    g_r / sqrt(mu_i mu), mu the least of the connected component.
    """
    assert isinstance(problem.loss, BoundSquared)
    data, convexity = problem.loss.data, _convexity(problem)
    parts = problem.graph.components
    least = np.full(int(parts.max()) + 1, np.inf)
    np.minimum.at(least, parts, convexity)
    force = 2 * data.row_weight * np.sqrt((data.X**2).sum(axis=1))
    with np.errstate(divide="ignore"):
        moved = force / np.sqrt(convexity[data.row_node] * least[parts[data.row_node]])
    return float(moved[force > 0].max(initial=0.0))


def _convexity(problem: Problem) -> Any:
    """mu_i of each loss, less what an eigenvalue may be wrong by."""
    rounding = 4 * problem.d**2 * np.finfo(float).eps * problem.loss.curvature()
    return np.maximum(problem.loss.strong_convexity() - rounding, 0.0)


def _captured(problem: Problem) -> Facts:
    """How far one node in wrong hands can move the others: the worst one."""
    graph = problem.graph
    if graph.n_nodes < 2:
        return _none("there is one node only")
    if not (problem.coupled and graph.n_edges):
        return {"number": 0.0, "node": str(graph.ids[0]), "covered": graph.n_nodes - 1,
                "honest": graph.n_nodes - 1, "worst": True,
                "why": "nothing is coupled"}  # fmt: skip
    curved = not isinstance(problem.loss, BoundSquared)  # a bound may take a solve
    if curved and graph.n_nodes * problem.d > _MOST_SOLVED:
        return _none("the fit is too large for the solve that it needs")
    if not np.isfinite(steepest(problem.penalty, problem.d)):
        return _none(influence_bound(problem, graph.ids[:1]).reason.removeprefix("None: "))
    worst = _furthest(problem) if graph.n_nodes <= _MOST_COMPARED else _connected(problem)
    bound, node = worst.bound, str(worst.nodes[0])
    if not bound.certified:
        why = bound.reason.removeprefix("None: ")
        return _none(f"for the node that could do most, {visible(node)}, {why}")
    return {
        "number": float(bound.total),
        "node": node,
        "covered": int(bound.covered.sum()),
        "honest": graph.n_nodes - 1,
        "worst": worst.exact,
        "which": _which(worst.exact, graph.n_nodes <= _MOST_COMPARED),
        "why": bound.reason,
    }


def _which(exact: bool, compared: bool) -> str:
    """Which node the bound is about."""
    if exact:
        return "the worst one"
    return "the one that pulls hardest" if compared else "the best connected one"


def _furthest(problem: Problem) -> WorstNodes:
    """The node whose capture can move those with a bound furthest together."""
    if by_curvature(problem, np.zeros(problem.graph.n_nodes, dtype=bool)):
        return worst_nodes(problem, 1)
    bounds = [
        influence_bound(problem, problem.graph.ids[[i]]) for i in range(problem.graph.n_nodes)
    ]
    bound = max(bounds, key=lambda found: found.total)
    return WorstNodes(bound.attackers.tolist(), bound, True)


def _connected(problem: Problem) -> WorstNodes:
    """The node with the largest weight of edges, where comparing all would take too long."""
    node = problem.graph.ids[[int(problem.graph.weighted_degree.argmax())]]
    return WorstNodes(node.tolist(), influence_bound(problem, node), False)
