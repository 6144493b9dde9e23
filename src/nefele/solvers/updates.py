"""The papers' updates, written once, for any set of nodes or of edges.

NFL, Algorithm 1: all nodes at once, one site with its own loss, networks of torch. Its compiled
twin for squared losses is `nefele._kernels.primal_dual`. AGN, Algorithm 1, on parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from nefele._checks import Array

Prox = Callable[[Array, Array, Array], Array]


class _Loss(Protocol):
    def prox(self, v: Array, step: Array, start: Array | None = None) -> Array: ...


class _Penalty(Protocol):
    def prox_conjugate(self, v: Array, scale: Array, step: Array) -> Array: ...


def primal(loss: _Loss, w: Array, flow: Array, tau: Array) -> Array:
    """w+ = PU(w - tau D^T u) (NFL, Eq. (32); Algorithm 1, steps 3 and 4).

    Parameters
    ----------
    loss : the losses of these nodes
    w, flow : arrays of shape (n_nodes, d)
        Parameters, and (D^T u)_i: flows that leave each node minus those that reach it.
    tau : array of shape (n_nodes,)

    Examples
    --------
    >>> import numpy as np
    >>> from nefele import LocalData
    >>> from nefele.losses import Squared
    >>> loss = Squared().bind(LocalData.from_list([([[1.0]], [4.0])]))
    >>> primal(loss, np.zeros((1, 1)), np.ones((1, 1)), np.array([0.5]))
    array([[1.75]])
    """
    return loss.prox(w - tau[:, None] * flow, tau, start=w)


def ahead(w: Array, new: Array) -> Array:
    """2 w+ - w: what the edges are told of a primal update."""
    return 2 * new - w


def dual(penalty: _Penalty, u: Array, diff: Array, scale: Array, sigma: Array) -> Array:
    """u+ = DU(u + sigma D(2 w+ - w)) (NFL, Eq. (33); Algorithm 1, steps 7 and 8).

    Parameters
    ----------
    penalty : Penalty
    u, diff : arrays of shape (n_edges, d)
        Flows, and differences of what the two ends of each edge said.
    scale, sigma : arrays of shape (n_edges,)
        lam A_e and the steps.

    Examples
    --------
    >>> import numpy as np
    >>> from nefele.penalties import L1Norm
    >>> u, one = np.zeros((1, 2)), np.ones(1)
    >>> dual(L1Norm(), u, np.array([[0.4, -8.0]]), one, 0.5 * one)
    array([[ 0.2, -1. ]])
    """
    return penalty.prox_conjugate(u + sigma[:, None] * diff, scale, sigma)


def relaxed(old: Array, new: Array, rho: float) -> Array:
    """Old + rho (new - old): over-relaxation, rho in (0, 2)."""
    return old + rho * (new - old)


def refit(prox: Prox, w: Array, slope: Array, step: Array) -> Array:
    """Prox of the losses at w - step slope: an update of FedRelax (AGN, Algorithm 1).

    slope_i is the gradient of lam sum_j A_ij phi(w_i - w_j) for a quadratic phi; with the step
    1/(lam d_i) this is the loss's prox at the weighted mean of the neighbours.
    """
    return prox(w - step[:, None] * slope, step, w)
