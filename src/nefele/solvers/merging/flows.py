"""Flows that hold clusters together, and the bound that any flow gives.

With losses L_i(w) = h_i/2 ||w||^2 - b_i^T w + c_i, h_i > 0, every flow inside its balls proves

    optimum >= sum_i c_i - ||b_i - (D^T u)_i||^2 / (2 h_i)          (NFL, Eq. (24))

without any equation to solve. Parameters w of clusters fix the flow between these. Inside them
it must carry away what is left at each node: an electrical flow does, over the room that edges
have, and what sticks out of a ball is put back and sent round by other edges.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele._kernels.groups import group_means
from nefele._kernels.short_rows import row_all
from nefele._systems.fill import dissected_seconds
from nefele._systems.laplacian import conjugate_gradients, laplacian
from nefele.problem import Problem

_LEAST = 0.02  # least share of a ball that counts as room
_HELD = 1e-9  # weight, relative to the edges', that holds what no edge joins
_PER_EDGE = 4e-6  # seconds of a factorisation at which conjugate gradients do as well
_ROUGH = 0.2  # accuracy of these
_DEPTH = 0.5  # how far inside its ball a flow is put, in units of how far outside it was
_DEEPEST = 0.1  # at most
_FEW = 10  # of them that cost less than another factorisation
_PACE = 0.7  # shrinking of the gap by a round at which more of them are vain


class Settled(NamedTuple):
    """A flow inside its balls and the lower bound on the optimum that it proves."""

    u: Array
    lower: float


def bound(problem: Problem, u: Array) -> float:
    """The lower bound on the optimum from a flow inside its balls."""
    loss = problem.loss
    left = loss.b - problem.graph.div(u)  # type: ignore[attr-defined]
    h = loss.curvature()[:, None]
    return float(loss.c.sum() - 0.5 * (left * left / h).sum())  # type: ignore[attr-defined]


def settle(
    problem: Problem, w: Array, u: Array, goal: float, rounds: int, firm: bool = True
) -> Settled:
    """The best flow found around u for the clusters of w; ends at a bound above `goal`.

    `firm` says that w is the optimum for its clusters: it then fixes the flow between them.

    Examples
    --------
    >>> from nefele import Graph
    >>> from nefele.losses.quadratic import BoundQuadratic
    >>> a = np.array([[0.0], [1.0], [5.0]])
    >>> loss = BoundQuadratic(np.full((3, 1, 1), 2.0), 2 * a, (a * a).sum(axis=1))
    >>> graph = Graph.from_edges([(0, 1), (1, 2)])
    >>> problem = Problem(graph, None, loss=loss, penalty="l2", lam=2.0)
    >>> found = settle(problem, np.array([[1.0], [1.0], [4.0]]), np.zeros((2, 1)), np.inf, 3)
    >>> found.u.round(6).tolist(), round(found.lower, 6), problem.objective([[1.0], [1.0], [4.0]])
    ([[-2.0], [-2.0]], 8.0, 8.0)
    """
    graph, scale, penalty = problem.graph, problem.scale, problem.penalty
    diff = graph.diff(w)
    inner = row_all(diff == 0)
    if firm:
        u = np.where(inner[:, None], u, scale[:, None] * penalty.gradient(diff))
    clusters, push = graph.joined(inner), problem.loss.grad(w)
    best = Settled(u, bound(problem, problem.inside(u)))
    before, potentials = np.inf, _Potentials(problem, inner)
    for _ in range(rounds if inner.any() else 0):
        room = np.maximum(scale - penalty.dual_norm(u), _LEAST * scale)
        give = np.where(inner, room, 0.0)
        rest = push + graph.div(u)
        rest -= group_means(clusters, rest)
        x = potentials.solve(give, rest, _ROUGH)
        u = u - give[:, None] * graph.diff(x)
        over = np.maximum(penalty.domain_ratio(u, scale), 1.0)
        found = Settled(u / over[:, None], bound(problem, u / over[:, None]))
        best = max(best, found, key=lambda s: s.lower)
        left = goal - found.lower
        if left <= 0 or left > _PACE * before:
            break
        before = left
        # deeper inside there is room left for what other edges send round in the next round
        u = found.u * np.maximum(1 - _DEPTH * (over - 1), 1 - _DEEPEST)[:, None]
    return best


class _Potentials:
    """X with D^T C D x = right over the inner edges, for one C after the other.

    By factors of the first one unless they fill too much; they are good enough for the next ones
    as preconditioner of conjugate gradients, which cost less.
    """

    def __init__(self, problem: Problem, inner: NDArray[np.bool_]) -> None:
        graph, known = problem.graph, problem.known
        self.graph, self.inner = graph, inner
        self.factor: Any = None
        if "dissected" not in known:
            known["dissected"] = dissected_seconds(graph)
        self.direct = known["dissected"] <= _PER_EDGE * graph.n_edges

    def solve(self, give: Array, right: Array, rough: float) -> Array:
        """The potentials for the C of these edges, zero where they are not inner.

        By conjugate gradients they are accurate to `rough`.
        """
        if not self.direct:
            system = laplacian(self.graph, give[:, None], columns=right.shape[1])
            return conjugate_gradients(system, right, rough)[0]
        matrix = self._matrix(give)
        if self.factor is not None:
            x = _nearly(matrix, self.factor, right, rough)
            if x is not None:
                return x
        options = {"SymmetricMode": True}
        self.factor = splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
        return np.asarray(self.factor.solve(right), dtype=float)

    def _matrix(self, give: Array) -> sparse.csc_array:
        nodes = np.arange(self.graph.n_nodes)
        head, tail = self.graph.head[self.inner], self.graph.tail[self.inner]
        ends, c = self.graph.at_ends(give), give[self.inner]
        diagonal = ends + _HELD * (float(ends.max()) or 1.0)
        rows = np.concatenate([nodes, head, tail])
        columns = np.concatenate([nodes, tail, head])
        values = np.concatenate([diagonal, -c, -c])
        return sparse.csc_array((values, (rows, columns)), shape=(len(nodes), len(nodes)))


def _nearly(matrix: sparse.csc_array, factor: Any, right: Array, rough: float) -> Array | None:
    """A rough solution by few conjugate gradients with the factors of a matrix like this one."""
    x, r = np.zeros_like(right), right.copy()
    goal = rough * float(np.linalg.norm(right))
    z = p = factor.solve(r)
    rz = float(np.vdot(r, z))
    for _ in range(_FEW):
        if not rz > 0:
            return x
        q = matrix @ p
        alpha = rz / float(np.vdot(p, q))
        x += alpha * p
        r -= alpha * q
        if np.linalg.norm(r) <= goal:
            return x
        z = factor.solve(r)
        before, rz = rz, float(np.vdot(r, z))
        p = z + rz / before * p
    return None
