"""What the theory asks of its arguments, and optima of pooled losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.graph import Graph
from nefele.penalties import L1Norm, L2Norm, LinfNorm, Lp, Penalty, SquaredL2
from nefele.problem import Problem

Index = NDArray[np.int64]


def check_problem(problem: Any) -> Problem:
    """A Problem, or an error that says how to get one."""
    if not isinstance(problem, Problem):
        raise ValueError(
            f"problem must be a Problem; got {type(problem).__name__}. "
            "Build it by nefele.Problem(graph, data, ...), or take result.problem."
        )
    problem.graph.check_plain("nefele.theory")
    return problem


def check_smooth(problem: Problem, what: str) -> None:
    """Raise unless every local loss has a gradient everywhere."""
    if not problem.loss.smooth:
        raise ValueError(
            f"{what} needs differentiable losses; got one without a gradient (absolute, hinge or "
            "an l1 term). Use squared, huber or logistic, without l1."
        )


def check_norm(problem: Problem, what: str) -> None:
    """Raise unless the penalty is a norm of all parameters."""
    penalty = problem.penalty
    if not penalty.is_norm or not penalty.whole:
        raise ValueError(
            f"{what} needs a penalty that is a norm of all parameters (l2, l1, linf); "
            f"got {penalty!r}."
        )


def check_quadratic(problem: Problem, what: str) -> None:
    """Raise unless the penalty is SquaredL2 and every loss is quadratic."""
    if not isinstance(problem.penalty, SquaredL2):
        raise ValueError(f'{what} needs penalty="squared_l2"; got {problem.penalty!r}.')
    if not (problem.loss.affine_grad and problem.loss.smooth):
        raise ValueError(f'{what} needs quadratic losses; use loss="squared", without l1.')
    if not problem.lam > 0:
        raise ValueError(f"{what} needs lam > 0; got {problem.lam:g}: nothing is coupled.")


def norm_name(penalty: Penalty, d: int) -> str | None:
    """Which of "l1", "l2", "linf" the penalty is; all of them are "l1" at d = 1. Else None."""
    if d == 1 and penalty.is_norm:
        return "l1"
    if isinstance(penalty, Lp):
        return {1.0: "l1", 2.0: "l2", math.inf: "linf"}.get(float(penalty.p))
    names = ((L1Norm, "l1"), (L2Norm, "l2"), (LinfNorm, "linf"))
    return next((name for kind, name in names if isinstance(penalty, kind)), None)


def check_partition(problem: Problem, partition: Any) -> tuple[NDArray[Any], Index]:
    """Distinct labels of a partition and the number of each node's cluster, shape (n_nodes,)."""
    labels = np.asarray(partition)
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels.tolist()):
        labels = labels.astype(str)
    n = problem.graph.n_nodes
    if labels.ndim != 1 or len(labels) != n:
        raise ValueError(
            f"partition must have one label per node, shape ({n},); got shape {labels.shape}. "
            "Give the labels in the order of problem.graph.ids."
        )
    if labels.dtype.kind not in "biufUS":
        raise ValueError(
            f"partition must hold labels of one kind, numbers or strings; got dtype {labels.dtype}."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"partition must hold labels; got {labels[~np.isfinite(labels)][0]}.")
    names, cluster = np.unique(labels, return_inverse=True)
    return names, cluster.astype(np.int64)


def boundary(graph: Graph, cluster: Index) -> Array:
    """Weight of each node's edges to other clusters, shape (n_nodes,)."""
    across = np.where(cluster[graph.head] != cluster[graph.tail], graph.weight, 0.0)
    return graph.at_ends(across)


def pooled_optima(problem: Problem, cluster: Index, what: str) -> Array:
    """Minimiser of each cluster's summed loss, given to each of its nodes, shape (n_nodes, d).

    The cluster-wise optimiser of NFL, Eq. (9).
    """
    lost = problem.loss.unbounded(cluster)
    if lost.any():
        node = problem.graph.ids[cluster == int(np.argmax(lost))][:1].tolist()[0]
        raise ValueError(
            f"{what} needs a summed loss with a minimiser; that of the nodes around {node!r} has "
            "none (separable labels, or counts that are all zero). Add a ridge term such as "
            "Logistic(l2=0.01)."
        )
    if int(cluster.max()) + 1 == len(cluster):  # each node by itself
        return problem.loss.minimise()
    found = problem.loss.pooled(cluster)
    if found is None or not np.isfinite(found).all():
        raise ValueError(
            f"{what} needs losses with a Hessian and finite numbers; got none. Give your loss a "
            "method hess, or rescale the features."
        )
    return found
