"""How uncertain personal and common coefficients are, once the variances are known.

Unknowns are the deviations u_i of every node and what all nodes share, the border. Their precision
is the curvature [[H + links x Q, B], [B^T, D]] of the penalised sum of squares, with blocks H_i on
the diagonal. Nodes are eliminated against the border (Henderson's equations; Robinson 1991), one
by one, or at once where edges join them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele.mixed.coupling import INVERTED

MOST = 6000  # unknowns of nodes that edges join, up to which all their variances are computed
_AT_ONCE = 500  # columns of the inverse at a time
_SINGULAR = 1e-12  # smallest over largest curvature of what the data do not tell


@dataclass(frozen=True, eq=False)
class Posterior:
    """Covariances in units of the noise.

    Attributes
    ----------
    own : array of shape (n_nodes, p, p)
        Of u_i when the border is known; not a number where the data do not determine u_i.
    follow : array of shape (n_nodes, p, k)
        How much u_i falls when the border rises.
    border : array of shape (k, k)
        Of the border.
    """

    own: Array
    follow: Array
    border: Array

    def variances(self, P: Array, K: Array) -> Array:
        """Of P u_i + K border for every node, shape (n_nodes, c), with P (c, p) and K (c, k)."""
        inner = np.einsum("cp,npq,cq->nc", P, self.own, P)
        outer = K - P @ self.follow
        return np.asarray(inner + np.einsum("nck,kl,ncl->nc", outer, self.border, outer))


def posterior(H: Array, links: sparse.sparray, Q: Array, B: Array, D: Array) -> Posterior:
    """Eliminate the nodes, then the border.

    Parameters
    ----------
    H : array of shape (n_nodes, p, p)
        Curvature of each node's rows.
    links : sparse array of shape (n_nodes, n_nodes)
        Strength of the coupling: the Laplacian of the edges, and on the diagonal also the edge to
        the centre.
    Q : array of shape (p, p)
        Curvature of the penalty.
    B : array of shape (n_nodes, p, k)
    D : array of shape (k, k)

    Examples
    --------
    One mean, two nodes with four rows each and deviations as large as the noise: the mean has the
    variance (1 + 1/4) / 2, a node's model less.

    >>> H, one = np.full((2, 1, 1), 4.0), sparse.eye_array(2).tocsc()
    >>> found = posterior(H, one, np.eye(1), B=H, D=H.sum(axis=0))
    >>> found.border.ravel(), found.variances(np.eye(1), np.eye(1)).ravel()
    (array([0.625]), array([0.225, 0.225]))
    """
    n, p, _ = H.shape
    links = sparse.csc_array(links)
    apart = (links != sparse.diags_array(links.diagonal())).nnz == 0
    if apart:
        own, follow = _one_by_one(H + links.diagonal()[:, None, None] * Q, B)
    elif n * p <= MOST:
        own, follow = _joined(H, links, Q, B)
    else:
        raise ValueError(
            f"Standard errors need at most {MOST} unknowns (nodes times personal coefficients) "
            f"where edges join the nodes; got {n * p}. Use nefele.bootstrap_intervals."
        )
    left = D - np.einsum("npk,npl->kl", B, follow)
    return Posterior(own, follow, _inverse(left))


def _one_by_one(A: Array, B: Array) -> tuple[Array, Array]:
    """Nodes without edges between them; what their rows do not tell they leave to the border."""
    values, vectors = np.linalg.eigh(A)
    known = values > _SINGULAR * np.maximum(values[:, -1:], np.finfo(float).tiny)
    inverse = np.where(known, 1.0 / np.where(known, values, 1.0), 0.0)
    own = np.einsum("npe,ne,nqe->npq", vectors, inverse, vectors)
    follow = own @ B
    own[~known.all(axis=1)] = np.nan
    return own, follow


def _joined(H: Array, links: sparse.csc_array, Q: Array, B: Array) -> tuple[Array, Array]:
    """Nodes that edges join: the inverse as a whole, or its columns some at a time."""
    n, p, k = B.shape
    blocks = sparse.bsr_array((H, np.arange(n), np.arange(n + 1)), shape=(n * p, n * p))
    A = sparse.csc_array(blocks + sparse.kron(links, Q))
    right = B.reshape(n * p, k)
    own = np.empty((n, p, p))
    if n * p <= INVERTED:
        inverse = _inverse(A.toarray()).reshape(n, p, n, p)
        place = np.arange(n)
        own[:] = inverse[place, :, place, :]
        return own, (inverse.reshape(n * p, n * p) @ right).reshape(n, p, k)
    factor = splu(A, diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    for first in range(0, n, max(1, _AT_ONCE // p)):
        last = min(n, first + max(1, _AT_ONCE // p))
        units = np.zeros((n * p, (last - first) * p))
        units[first * p : last * p] = np.eye((last - first) * p)
        columns = factor.solve(units)[first * p : last * p].reshape(last - first, p, -1, p)
        place = np.arange(last - first)
        own[first:last] = columns[place, :, place, :]
    return own, np.asarray(factor.solve(right)).reshape(n, p, k)


def _inverse(matrix: Array) -> Array:
    """Of a positive definite matrix; not a number where it is singular."""
    size = matrix.diagonal()
    if not (np.isfinite(matrix).all() and (size > 0).all()):
        return np.full_like(matrix, np.nan)
    unit = 1.0 / np.sqrt(size)
    scaled = matrix * np.outer(unit, unit)
    try:
        factor = linalg.cholesky(scaled, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)
    if (factor.diagonal() ** 2).min(initial=1.0) < _SINGULAR:
        return np.full_like(matrix, np.nan)
    found = linalg.cho_solve((factor, True), np.eye(len(matrix)), check_finite=False)
    return np.asarray(found * np.outer(unit, unit))
