"""What a result proves about differences between neighbours (NFL, Eq. (28), made quantitative)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_number
from nefele._words import Text
from nefele.problem import Problem
from nefele.result import Result

_PROOFS = ("dual", "strong convexity")


@dataclass(frozen=True, eq=False)
class CertifiedClusters:
    """Bounds on the differences of neighbours at every optimum w*.

    Attributes
    ----------
    upper : array of shape (n_edges,)
        ||w*_i - w*_j|| is at most this, in the penalty's norm (Euclidean for smooth penalties);
        inf where nothing is proven.
    lower : array of shape (n_edges,)
        ||w*_i - w*_j||_2 is at least this; 0 where nothing is proven.
    differs : bool array of shape (n_edges,)
        lower > 0: the two ends provably have different models.
    radius : array of shape (n_nodes,)
        ||w_i - w*_i||_2 is at most this; inf where the local loss is not strongly convex.
    groups : int array of shape (n_nodes,)
        Labels of groups in which any two nodes provably differ by at most `tol` in the penalty's
        norm; for smooth penalties every node is a group of its own.
    tol : float
    proven : bool
        False when the certificate of the result is itself only an estimate.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> from nefele.theory import certify_clusters
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> result = solve(Problem(Graph.from_edges([(0, 1)]), data, lam=1.0), tol=1e-9)
    >>> certify_clusters(result, tol=0.01).summary
    'proven: 0 edges within 0.01, 1 edges differ, 0 undecided; 2 groups'
    """

    upper: Array = field(repr=False)
    lower: Array = field(repr=False)
    differs: NDArray[np.bool_] = field(repr=False)
    radius: Array = field(repr=False)
    groups: NDArray[np.int64] = field(repr=False)
    tol: float
    proven: bool

    @property
    def summary(self) -> Text:
        """One line for people."""
        close, far, rest = (int(part.sum()) for part in (self.close, self.apart, self.undecided))
        form = "proven" if self.proven else "estimated"
        return Text(
            f"{form}: {close} edges within {self.tol:.3g}, {far} edges differ, {rest} undecided; "
            f"{self.groups.max() + 1} groups"
        )

    @property
    def close(self) -> NDArray[np.bool_]:
        """Edges whose ends provably differ by at most `tol`, if at all; shape (n_edges,)."""
        return self.upper <= self.tol

    @property
    def apart(self) -> NDArray[np.bool_]:
        """The other edges whose ends provably differ, shape (n_edges,)."""
        return self.differs & ~self.close

    @property
    def undecided(self) -> NDArray[np.bool_]:
        """Edges of which neither is proven, shape (n_edges,)."""
        return ~(self.close | self.differs)


def certify_clusters(result: Result, tol: float | None = None) -> CertifiedClusters:
    """Which neighbours provably have nearly the same model, and which provably differ.

    For a norm penalty and every optimum w*, sum_e (lam A_e - ||u_e||_dual) ||(D w*)_e|| <= gap_abs,
    so each edge strictly inside its ball has ||(D w*)_e|| <= gap_abs / (lam A_e - ||u_e||_dual),
    and the same bound with the least slack holds along a whole path. Where L_i and L_j are mu_i-
    and mu_j-strongly convex, ||w*_i - w*_j||_2 >= ||w_i - w_j||_2 - sqrt(2 gap_abs (1/mu_i +
    1/mu_j)), and for smooth penalties at most the same with a plus. "Equal" itself cannot be
    certified by a finite gap, "different" can.

    Parameters
    ----------
    result : Result
        With a certificate.
    tol : float, optional
        Two nodes are grouped when they provably differ by at most this; default 1e-3 times the
        largest spread of a parameter over all nodes, at least 1e-6 times the largest parameter.

    Returns
    -------
    CertifiedClusters

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> from nefele.theory import certify_clusters
    >>> data = LocalData.from_list([([[1.0]], [y]) for y in (0.0, 0.1, 5.0)])
    >>> result = solve(Problem(Graph.from_edges([(0, 1), (1, 2)]), data, lam=0.3), tol=1e-9)
    >>> found = certify_clusters(result, tol=1e-3)
    >>> found.groups.tolist(), found.differs.tolist()
    ([0, 0, 1], [False, True])
    """
    if not isinstance(result, Result):
        raise ValueError(f"result must be a Result; got {type(result).__name__}. Use nefele.solve.")
    if not np.isfinite(result.gap_abs):
        raise ValueError(
            f"result must carry a finite certified gap; got gap_abs={result.gap_abs}. "
            "Solve with certify=True."
        )
    if tol is None:
        spread = float(np.ptp(result.w, axis=0).max(initial=0.0))
        tol = max(1e-3 * spread, 1e-6 * float(np.abs(result.w).max(initial=0.0)))
    tol = check_number(tol, "tol", low=0.0)
    problem, gap = result.problem, _gap(result)
    with np.errstate(divide="ignore"):
        inverse = 1 / problem.loss.strong_convexity()
    graph = problem.graph
    radius = _times(inverse, gap)
    apart = np.sqrt((graph.diff(result.w) ** 2).sum(axis=1))
    error = _times(inverse[graph.head] + inverse[graph.tail], gap)
    lower = np.maximum(apart - error, 0.0)
    upper = _upper(problem, result.u, gap) if problem.penalty.is_norm else apart + error
    # the bounds of smooth penalties hold for each edge, not along paths: no groups there
    close = (upper <= tol) & problem.penalty.is_norm
    proven = result.certificate in _PROOFS
    return CertifiedClusters(upper, lower, lower > 0, radius, graph.joined(close), tol, proven)


def _gap(result: Result) -> float:
    """The gap, not below the rounding errors of the objective itself."""
    return max(result.gap_abs, 1e-15 * abs(result.objective))


def _times(inverse: Array, gap: float) -> Array:
    """sqrt(2 gap inverse), inf where the loss is flat, also when the gap is zero."""
    flat = np.isinf(inverse)
    return np.where(flat, np.inf, np.sqrt(2 * gap * np.where(flat, 0.0, inverse)))


def _upper(problem: Problem, u: Array, gap: float) -> Array:
    """The bound on each edge for a norm; inf where the flow is at the boundary."""
    if not problem.coupled:
        return np.full(problem.graph.n_edges, np.inf)
    room = problem.scale - problem.penalty.dual_norm(u)
    inside = room > 1e-12 * problem.scale
    return np.where(inside, gap / np.where(inside, room, 1.0), np.inf)
