"""The model of a node if another one were not there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.accountable.fitted import Fitted
from nefele.accountable.settling import settled
from nefele.accountable.system import System
from nefele.estimators.fitting import core_loss
from nefele.graph import Graph
from nefele.problem import Problem

Index = NDArray[np.int64]


def problem_without(fit: Fitted, gone: int) -> tuple[Problem, Index]:
    """The problem without one node, its rows and its edges, and the places of those that stay."""
    problem, graph, data = fit.problem, fit.problem.graph, fit.problem.data
    assert data is not None
    stay = np.flatnonzero(np.arange(graph.n_nodes) != gone)
    place = np.cumsum(np.arange(graph.n_nodes) != gone) - 1
    on = (graph.head != gone) & (graph.tail != gone)
    less = Graph(graph.ids[stay], place[graph.head[on]], place[graph.tail[on]], graph.weight[on])
    loss = core_loss(fit.model)
    less_data = data.subset(stay)
    return Problem(less, less_data, loss, problem.penalty, lam=problem.lam), stay


def parameters_without(fit: Fitted, system: System, gone_id: object) -> Array:
    """Parameters of the explained node without the other: by formula, or solved to rounding."""
    gone = fit.problem.graph.position(gone_id)
    if gone == system.at:
        raise ValueError(
            f"The node to leave out must be another one; got {gone_id!r}, the one explained."
        )
    if fit.problem.parts[gone] != fit.problem.parts[system.at]:
        return np.asarray(system.w[system.at])
    problem, stay = problem_without(fit, gone)
    at = int(np.searchsorted(stay, system.at))
    if system.exact:
        flow = np.zeros((problem.graph.n_edges, problem.d))
        return np.asarray(System(problem, system.w[stay], flow, at).by_node.sum(axis=0))
    none = np.zeros((problem.graph.n_edges, problem.d))
    return np.asarray(settled(problem, system.w[stay], none, at).w[at])
