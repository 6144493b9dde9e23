"""The linear system that makes a dual point feasible; see `nefele.certificate`.

    (M + D^T C D) x = s + D^T u

M_i is the curvature of the loss duals and C_e the room left to the flow. Where w is already the
optimum of a reduced problem only the flow need change (M = 0): a weighted graph Laplacian.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._kernels.groups import group_means
from nefele._systems.direct import SmallGraph
from nefele._systems.grounded import laplacian_direct, potential
from nefele._systems.laplacian import (
    COMPILED,
    MOST_STEPS,
    BlockLaplacian,
    gradients_program,
    laplacian,
)
from nefele._systems.operator import OperatorSystem
from nefele.certificate.posed import Posed
from nefele.graphs.mapped import MappedGraph
from nefele.losses.base import DualPoint
from nefele.losses.quadratic import QuadraticDual
from nefele.penalties import L1Norm, L2Norm, Penalty, SquaredL2
from nefele.program import Program, Sum, largest, total

Index = NDArray[np.int64]
Room = tuple[Array | None, Array | None]

_FACTOR_SECONDS = 0.5  # of a factorisation that is taken instead of conjugate gradients
_REFINED, _EXACT = 4, 1e-10  # solves of what the last ones left, and accuracy that is enough
_VAIN = 20  # conjugate gradient steps where a factorisation was not accurate
_DENSE = 600  # unknowns up to which a stagnating system is solved densely
_DIRECT = 300  # nodes up to which a Laplacian is factorised at once
_SPARSE = 1.05  # edges per node up to which there is hardly any fill
_STIFF = 1e8  # most give of an edge relative to the losses' curvature: keeps the system solvable
_LEAST = 0.02  # least share of a ball that counts as room
_DIGITS = 1e-14  # accuracy of a factorised system over linear maps
_DEPTH = 0.5  # how far inside its ball a flow is put, in units of how far outside it was
_COMPILED_NORMS = {L2Norm: 0, L1Norm: 1}
_COMPILED_PENALTIES = {**_COMPILED_NORMS, SquaredL2: 2}


class LossAndFlow:
    """Corrections shared by the losses and the flow, by block-Jacobi conjugate gradients."""

    def __init__(self, problem: Posed, unit: float, direct: bool = False) -> None:
        """`direct`: by factors of the matrix first, where they can be had soon."""
        self.problem, self.unit, self.direct = problem, unit, False
        self.exact = False  # whether the last solution was by factors: none is more accurate
        self._pattern: SmallGraph | None = None
        graph, d = problem.graph, problem.d
        small = direct and problem.whole and problem.coupled and graph.plain
        if small and SmallGraph.seconds(graph, d) <= _FACTOR_SECONDS:
            self._pattern = SmallGraph.of(graph, d)
        self._last: BlockLaplacian | None = None
        self._room: tuple[Array, Array, Array] | None = None
        self._right: Array | None = None
        self._edges: Array | None = None
        self._next: Array | None = None
        self._metric: Array | None = None
        self._known: Array | None = None  # a part's metric, and the same in the order of its graph
        self._there = np.zeros(0)
        self._stiffest = 0.0
        self._halo: NDArray[np.bool_] | None = None
        if not problem.whole:
            self._halo = np.ones(problem.graph.n_nodes, dtype=bool)
            self._halo[problem.own] = False

    def solve(
        self,
        dual: DualPoint,
        u: Array,
        out: Array,
        rtol: float,
        start: Array | None = None,
        last: Shifted | None = None,
    ) -> Program[tuple[Array, Array]]:
        """The correction x of the losses, shape (n_nodes, d), and the give of each edge.

        `out` is D^T u. Without a `start` the next call overwrites x. `last` is what the round
        before has found, if there was one.
        """
        problem, graph = self.problem, self.problem.graph
        given = None if last is None else last.give
        if last is None or given is None:
            right = np.add(dual.flow(), out, out=self._right)
        else:
            right = last.out
        metric = dual.metric()
        if not problem.coupled:
            return problem.placed(_blockwise(metric, right)), np.zeros((graph.n_edges, 1))
        penalty = problem.penalty
        if not (problem.whole and metric is self._metric):  # that of squared losses stays
            self._stiffest = yield from largest(np.einsum("ijj->ij", metric).max(initial=0.0))
            self._metric = metric
        give = self._give(u, self._most) if given is None else given
        if isinstance(graph, MappedGraph):
            return _mapped_solve(graph, penalty, give, metric, right, u.shape[1]), give
        if problem.whole:  # memory to use again: to touch new pages takes longer than the sums
            self._right = right
        else:
            if metric is not self._known:
                self._known, self._there = metric, problem.placed(metric)
            right, metric = problem.placed(right), self._there
        if self._pattern is not None:
            x, self.exact = self._by_factors(metric, give, right, rtol)
            if x is not None:
                return x, give
        system = laplacian(graph, give, metric, **penalty.mixing, halo=self._halo)
        if self._last is not None and self._last.metric is metric:  # a squared loss: packed once
            system.share(self._last)
        self._last = system
        fill = None if problem.whole else problem.fill
        small = right.copy() if problem.whole and right.size <= _DENSE else None
        self._room = self._room or tuple(np.empty_like(right) for _ in range(3))  # type: ignore
        if small is not None and self._pattern is not None:  # these would not do better
            return _dense_solve(system, small), give
        most = MOST_STEPS if self._pattern is None else _VAIN  # what factors could not solve
        solving = gradients_program(system, right, rtol, start, most, fill, self._room)
        x, solved = yield from solving
        if not solved and small is not None:
            x = _dense_solve(system, small)
        return x, give

    @property
    def _most(self) -> float:
        """The most that an edge may give."""
        return _STIFF * self._stiffest or np.inf

    def following(self, dual: DualPoint) -> Following | None:
        """How the next system follows from this one, solved by conjugate gradients.

        What they have left of its right-hand side is what the next one begins with, but for what
        brings edges back inside their balls: in one pass, no more sums over losses and edges.
        """
        problem = self.problem
        linear = isinstance(dual, QuadraticDual) and type(problem.penalty) is L2Norm
        if not (linear and self._metric is not None and self._pattern is None):
            return None
        fits = problem.whole and problem.graph.plain and _dims(problem) is not None
        if not (fits and self._right is not None and self._right.size >= COMPILED):
            return None
        new = np.empty((problem.graph.n_edges, 1)) if self._next is None else self._next
        self._edges, self._next = new, self._edges
        return Following(self._right, new, self.unit, _LEAST, self._most)

    def moved(self, dual: DualPoint, x: Array, near: Shifted) -> None:
        """Move the losses' duals by the correction x that has led to the flow of `near`."""
        if near.give is not None:
            assert isinstance(dual, QuadraticDual)
            dual.point -= x
        else:
            dual.move(x[self.problem.own], -near.out)

    def _by_factors(
        self, metric: Array, give: Array, right: Array, rtol: float
    ) -> tuple[Array | None, bool]:
        """The solution, or None where it is not accurate, and whether nothing is more accurate.

        A singular matrix is regularised.
        """
        assert self._pattern is not None
        C = _edge_blocks(self.problem.penalty, give, right.shape[1])
        try:
            factor = self._pattern.factorise(metric, C)
        except (np.linalg.LinAlgError, ValueError):
            return None, False
        x, size = np.zeros_like(right), float(np.abs(right).max(initial=0.0))
        rest = right
        for _ in range(_REFINED):
            x = x + factor.solve(rest)[0]
            flow = (C @ self.problem.graph.diff(x)[..., None])[..., 0]
            rest = right - (metric @ x[..., None])[..., 0] - self.problem.graph.div(flow)
            if not np.abs(rest).max(initial=0.0) > min(rtol, _EXACT) * size:
                break
        if not np.isfinite(x).all():
            return None, False
        left = float(np.abs(rest).max(initial=0.0))
        return x if left <= max(rtol, _EXACT) * size else None, left <= _EXACT * size

    def _give(self, u: Array, most: float) -> Array:
        """The give of each edge, at most so much."""
        problem = self.problem
        if type(problem.penalty) is not L2Norm or u.size < COMPILED:
            give = problem.penalty.give(u, problem.scale, self.unit, _LEAST)
            return np.asarray(np.minimum(give, most))
        from nefele._kernels.certificate import room

        out = np.empty((len(u), 1)) if self._edges is None else self._edges
        room(u, problem.scale, self.unit, _LEAST, most, out)
        self._edges = out
        return out


class FlowOnly:
    """Corrections by the flow inside the clusters alone: a Laplacian with the room as weights."""

    def __init__(self, problem: Posed) -> None:
        graph = problem.graph
        self.problem, self.least, self.exact = problem, 1e-5, False
        self.direct = graph.n_nodes <= _DIRECT or graph.n_edges <= _SPARSE * graph.n_nodes

    def solve(
        self,
        dual: DualPoint,
        u: Array,
        out: Array,
        rtol: float,
        start: Array | None = None,
        last: Shifted | None = None,
    ) -> Program[tuple[Array, Array]]:
        """The potential x of the correction C D x of the flow, and the give of each edge.

        Only a whole problem comes here: it asks nobody.
        """
        problem, graph = self.problem, self.problem.graph
        right = dual.flow() + out
        right -= group_means(graph.components, right)  # what no flow can carry away
        give = problem.penalty.give(u, problem.scale, 1.0, self.least)
        if not self.direct:
            x, self.direct = potential(graph, give, right, rtol, start)
            self.exact = self.direct
            return x, give
        self.exact = True
        return laplacian_direct(graph, give, right), give
        yield

    def following(self, dual: DualPoint) -> None:
        """Each system is set up anew."""

    def moved(self, dual: DualPoint, x: Array, near: Shifted) -> None:
        """The losses' duals stay."""


def node_give(problem: Posed, w: Array, u: Array) -> Program[Array]:
    """Sum of the room left to the flows at each own node, shape (n_own, 1 or d)."""
    give = problem.penalty.give(u, problem.scale, (yield from typical(problem, w)), _LEAST)
    return problem.graph.at_ends(give)[problem.own]


def corrected(problem: Posed, u: Array, give: Array, x: Array, room: Array | None = None) -> Array:
    """The flow u - C D x, a new array or in the memory of `room`."""
    if not problem.penalty.mixing and x.size >= COMPILED and problem.graph.plain:
        from nefele._kernels.certificate import correct

        graph, out = problem.graph, np.empty_like(u) if room is None else room
        dims = _dims(problem, give.shape[1])
        correct(dims, graph.ptr, graph.tail, give, x, u, out)
        return out
    return u - problem.penalty.mix(give * problem.graph.diff(x))


def variation(problem: Posed, w: Array) -> float:
    """Lam sum_e A_e phi(D w) (NFL, Eq. (14))."""
    kind, graph = _COMPILED_PENALTIES.get(type(problem.penalty)), problem.graph
    if kind is None or w.size < COMPILED or not (problem.whole and graph.plain):
        on = problem.counted
        return float(problem.scale[on] @ problem.penalty.at(on).value(graph.diff(w)[on]))
    from nefele._kernels.certificate import variation

    return float(variation(_dims(problem), kind, graph.ptr, graph.tail, problem.scale, w))


def conjugate(problem: Posed, u: Array) -> float:
    """sum_e (lam A_e phi)*(u_e), the penalty's share of the dual objective (NFL, Eq. (24))."""
    on = problem.counted
    if type(problem.penalty) is not SquaredL2 or u.size < COMPILED or not problem.whole:
        return float(problem.penalty.at(on).conjugate(u[on], problem.scale[on]).sum())
    from nefele._kernels.certificate import energy

    return float(energy(_dims(problem), u, problem.scale))


def smooth_flow(problem: Posed, w: Array) -> Array:
    """Lam A_e phi'(D w): the flow that w fixes when the penalty is differentiable."""
    graph, scale = problem.graph, problem.scale
    if type(problem.penalty) is not SquaredL2 or w.size < COMPILED or not graph.plain:
        return scale[:, None] * problem.penalty.gradient(graph.diff(w))
    from nefele._kernels.certificate import tensions

    out = np.empty((graph.n_edges, w.shape[1]))
    tensions(_dims(problem), graph.ptr, graph.tail, scale, w, out)
    return out


def _dims(problem: Posed, weights: int = 1) -> tuple[int, ...] | None:
    from nefele._kernels.rows import as_dims

    return as_dims(problem.d, weights)


class Shifted(NamedTuple):
    """A flow inside its balls after a correction.

    Attributes
    ----------
    flow : array of shape (n_edges, d)
    outside : float
        How far outside its balls it was, relative to their size.
    spare : float
        Its Fenchel-Young residuals, summed over all parts: no correction removes them.
    out : array of shape (n_own, d)
        D^T flow at the own nodes; with `give` what is missing there, D^T flow and losses together.
    give : array of shape (n_edges, 1), optional
        That of each edge in the next round.
    """

    flow: Array
    outside: float
    spare: float
    out: Array
    give: Array | None = None


class Following(NamedTuple):
    """What is left of a system's right-hand side, and how the edges will give in the next one."""

    left: Array
    give: Array
    unit: float
    least: float
    most: float


def shift_flow(
    problem: Posed,
    u: Array,
    give: Array,
    x: Array,
    w: Array,
    room: Room = (None, None),
    following: Following | None = None,
) -> Program[Shifted]:
    """The corrected flow brought inside its balls; w are the parameters of all nodes seen.

    Flow and outflow may be written to `room`: to touch new memory takes longer than the sums.
    """
    penalty, scale, graph = problem.penalty, problem.scale, problem.graph
    kind = _COMPILED_NORMS.get(type(penalty))
    if kind is not None and x.size >= COMPILED and problem.whole and graph.plain:
        from nefele._kernels.certificate import shift, shift_rows

        flow = np.empty_like(u) if room[0] is None else room[0]
        dims, arrays = _dims(problem), (graph.ptr, graph.tail, scale, give, x, w, u, flow)
        if following is not None:
            left, *rule = following
            found = shift_rows(dims, _DEPTH, *arrays, left, (True, *rule))
            return Shifted(flow, found[0], found[1], left, following.give)
        out = np.empty_like(x) if room[1] is None else room[1]
        out[:] = 0.0
        if kind == 0 and dims is not None and give.shape[1] == 1:
            nothing = (False, give, 1.0, 0.0, 0.0)
            found = shift_rows(dims, _DEPTH, *arrays, out, nothing)
        else:
            found = shift(dims, kind, _DEPTH, *arrays, out)
        return Shifted(flow, found[0], found[1], out)
    flow = corrected(problem, u, give, x)
    ratio = penalty.domain_ratio(flow, scale)
    over = np.maximum(ratio, 1.0)
    flow *= (np.maximum(1 - _DEPTH * (over - 1), 0.9) / over)[:, None]
    outside = yield from largest(ratio.max(initial=0.0))
    spare = yield from total(fenchel_young(problem, flow, w))
    return Shifted(flow, outside - 1, spare, problem.outflow(flow))


def fenchel_young(problem: Posed, u: Array, w: Array) -> float:
    """sum_e lam A_e phi(D w) + (lam A_e phi)*(u) - <u, D w> over the edges counted here.

    The flow u is inside its balls: the conjugate of a norm is zero there.
    """
    kind, graph = _COMPILED_NORMS.get(type(problem.penalty)), problem.graph
    if kind is not None and w.size >= COMPILED and problem.whole and graph.plain:
        from nefele._kernels.certificate import spare

        return float(spare(_dims(problem), kind, graph.ptr, graph.tail, problem.scale, w, u))
    on = problem.counted
    diff, flow, scale = graph.diff(w)[on], u[on], problem.scale[on]
    penalty = problem.penalty.at(on)
    left = scale @ penalty.value(diff) + penalty.conjugate(flow, scale).sum() - np.vdot(flow, diff)
    return float(left)


def typical(problem: Posed, w: Array) -> Program[float]:
    """The spread of the own nodes' parameters w and all others, or their size if all are equal."""
    count = yield from total(len(w))
    mean = (yield Sum(w.sum(axis=0))) / count
    square = yield from total(((w - mean) ** 2).sum())
    size = yield from largest(np.abs(w).max(initial=0.0))
    return float(np.sqrt(square / (count * w.shape[1]))) or size or 1.0


def _blockwise(metric: Array, right: Array) -> Array:
    """Least-norm solutions of M_i x_i = right_i; zero where a number has overflowed."""
    finite = np.asarray(np.isfinite(metric).all(axis=(1, 2)) & np.isfinite(right).all(axis=1))
    safe = np.where(finite[:, None, None], metric, 0.0)
    x = np.linalg.pinv(safe, hermitian=True) @ np.where(finite[:, None], right, 0.0)[..., None]
    return np.asarray(x[..., 0], dtype=float)


def _edge_blocks(penalty: Penalty, give: Array, p: int) -> Array:
    """C of each edge as a matrix, shape (n_edges, p, p)."""
    give = np.broadcast_to(give, (len(give), p))
    return np.stack([penalty.mix(give * unit) for unit in np.eye(p)], axis=2)


def _mapped_solve(
    graph: MappedGraph, penalty: Penalty, give: Array, metric: Array, right: Array, p: int
) -> Array:
    """The correction over linear maps, by a factorisation: their blocks are no Laplacian's."""
    if not (np.isfinite(metric).all() and np.isfinite(right).all()):
        return np.zeros_like(right)
    system = OperatorSystem(graph, right.shape[1])
    try:
        return system.factorise(metric, _edge_blocks(penalty, give, p)).refined(right, _DIGITS)
    except np.linalg.LinAlgError:
        return np.zeros_like(right)


def _dense_solve(apply: Callable[[Array], Array], right: Array) -> Array:
    unit = np.eye(right.size).reshape(right.size, *right.shape)
    matrix = np.stack([apply(column).ravel() for column in unit], axis=1)
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return np.zeros_like(right)
    x = np.linalg.lstsq(matrix, right.ravel(), rcond=1e-15)[0]
    return np.asarray(x, dtype=float).reshape(right.shape)
