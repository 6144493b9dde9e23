"""Curvature of the losses in the penalty's norm (NFL, Assumption 2).

beta_i: ||grad L_i(w) - grad L_i(v)||_dual <= beta_i ||w - v||; alpha_c: the summed loss of cluster
c minus (alpha_c / 2) ||w||^2 is convex, both in the penalty's own norm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array
from nefele._kernels.groups import group_sums
from nefele.problem import Problem
from nefele.theory._inputs import Index, norm_name

_FLAT = 1e-12  # relative size of an eigenvalue that counts as zero


def curvature_bounds(
    problem: Problem, cluster: Index, alpha: Any, beta: Any, what: str
) -> tuple[Array, Array]:
    """The alpha of each cluster and beta of each node: given, or from the Hessians H_i.

    | norm | beta | alpha |
    |---|---|---|
    | l2 | largest eigenvalue of H_i | least eigenvalue of sum_C H_i |
    | l1 | max_jk abs(H_jk) | the same over d |
    | linf | sum_jk abs(H_jk) | the same |
    """
    count = int(cluster.max()) + 1
    if alpha is not None and beta is not None:
        return _given(alpha, count, "alpha", "cluster"), _given(
            beta, problem.graph.n_nodes, "beta", "node"
        )
    name = norm_name(problem.penalty, problem.d)
    zero = np.zeros((problem.graph.n_nodes, problem.d))
    H = problem.loss.hess(zero)
    if name is None or not problem.loss.affine_grad or H is None:
        raise ValueError(
            f"{what} knows the curvature of quadratic losses in the l1, l2 and linf norms; got "
            f"{problem.penalty!r} and other losses. Give both alpha (one bound per cluster) and "
            "beta (one bound per node), in the norm of the penalty."
        )
    total = np.linalg.eigvalsh(group_sums(cluster, H))
    least = np.where(total[:, 0] > _FLAT * total[:, -1], total[:, 0], 0.0)
    if name == "l2":
        own: Array = np.maximum(np.linalg.eigvalsh(H)[:, -1], 0.0)
    elif name == "l1":
        least, own = least / problem.d, np.abs(H).max(axis=(1, 2))
    else:
        own = np.abs(H).sum(axis=(1, 2))
    found_alpha = least if alpha is None else _given(alpha, count, "alpha", "cluster")
    return found_alpha, own if beta is None else _given(beta, len(own), "beta", "node")


def _given(values: Any, count: int, name: str, what: str) -> Array:
    if np.ndim(values) == 0:
        values = np.full(count, values)
    array = as_float_array(values, name, None)
    if array.shape != (count,) or not (np.isfinite(array) & (array >= 0)).all():
        raise ValueError(
            f"{name} must hold one finite number >= 0 per {what}, shape ({count},); got {values!r}."
        )
    return array
