"""Squared losses with a quadratic penalty: one linear system, by conjugate gradients.

(blkdiag(H_i) + lam D^T A D (x) Q) w = b, preconditioned by its diagonal blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nefele._checks import Array
from nefele._systems.laplacian import BlockLaplacian, laplacian
from nefele._systems.operator import MOST_UNKNOWNS, OperatorSystem
from nefele.certificate import Certificate
from nefele.graphs.mapped import MappedGraph
from nefele.losses.squared import BoundSquared
from nefele.penalties import Quadratic, SquaredL2
from nefele.problem import Problem
from nefele.solvers.base import Solver, State, settled

_EARLY = 0.05  # estimated error, in units of the tolerance, at which a certificate is asked for
_EXACT = 1e-14  # accuracy of a factorised system
_ROUNDING = 1e-28  # share of the first r^T P r at which what is left is rounding errors


@dataclass
class ConjugateState(State):
    """Conjugate gradients: the system, residual and direction."""

    system: BlockLaplacian
    r: Array  # residual
    p: Array  # direction
    z: Array  # zero, and room for products
    rz: float  # r^T P r, P the preconditioner
    objective: float  # at w, as it falls
    first: float  # rz at the start, or at zero
    asked: float = np.inf  # rz at the last certificate


@dataclass
class QuadraticCG(Solver[ConjugateState]):
    """Block-Jacobi preconditioned conjugate gradients; an iteration is one product.

    Examples
    --------
    >>> QuadraticCG()
    QuadraticCG()
    """

    kept = ("rz", "objective", "first", "asked", "r", "p")
    maps = True

    @staticmethod
    def fits(problem: Problem) -> bool:
        """Whether loss and penalty are quadratic.

        Parameters
        ----------
        problem : Problem
        """
        loss = problem.loss
        return (
            isinstance(loss, BoundSquared)
            and loss.smooth
            and isinstance(problem.penalty, SquaredL2 | Quadratic)
        )

    def check(self, problem: Problem) -> None:
        if not self.fits(problem):
            raise ValueError(
                "QuadraticCG needs squared loss and SquaredL2 or Quadratic; got "
                f'{type(problem.loss).__name__} and {problem.penalty!r}. Use solver="auto".'
            )

    def init(self, problem: Problem, w0: Array, u0: Array) -> ConjugateState:
        loss, graph = _quadratic(problem), problem.graph
        system = laplacian(graph, problem.scale[:, None], loss.H, **problem.penalty.mixing)
        alone = graph.degree == 0
        w = settled(problem, _directly(problem, w0), alone)
        residual = loss.b - system(w) if w.any() else loss.b.copy()
        residual[alone] = 0.0  # rounding errors there would leave the fit of least norm
        p, z = np.zeros_like(residual), np.zeros_like(residual)
        _, rz = system.advance(0.0, w, residual, p, z)
        system.turn(0.0, p, z)
        first = rz
        if not graph.plain:  # w may be the solution already: what is left of b then
            _, first = system.advance(0.0, w.copy(), loss.b.copy(), p.copy(), z.copy())
        return ConjugateState(w, u0, system, residual, p, z, rz, problem.objective(w), first)

    def step(self, problem: Problem, state: ConjugateState) -> None:
        system, before = state.system, state.rz
        if before <= _ROUNDING * state.first:  # a singular system would lead anywhere
            return
        bend = system.product(state.p, state.z)
        if not bend > 0:
            return
        alpha = before / bend
        _, state.rz = system.advance(alpha, state.w, state.r, state.p, state.z)
        system.turn(state.rz / before if before > 0 else 0.0, state.p, state.z)
        state.objective -= 0.5 * alpha * before

    def promising(self, problem: Problem, state: ConjugateState, tol: float) -> bool:
        """r^T P r / 2 estimates the error of the objective."""
        size = max(abs(state.objective), 1e-6 * problem.objective_at_zero)
        if state.rz > _EARLY * min(tol * size, state.asked):
            return False
        state.asked = state.rz
        return True

    def point(self, problem: Problem, state: ConjugateState) -> tuple[Array, Array]:
        return state.w, problem.smooth_flow(state.w)

    def certify(
        self, problem: Problem, state: ConjugateState, *, tol: float, exact: bool
    ) -> tuple[Array, Certificate]:
        flow = problem.smooth_flow(state.w)  # nobody else has it
        return state.w, problem.certificate(state.w, flow, tol=tol, spend=not state.traced)


def _directly(problem: Problem, w0: Array) -> Array:
    """Over linear maps the solution itself, if it can be factorised: gradients are slow there."""
    loss, graph = _quadratic(problem), problem.graph
    if not isinstance(graph, MappedGraph) or w0.size > MOST_UNKNOWNS:
        return w0
    width = graph.width(problem.d)
    C = problem.penalty.curvature(np.zeros((graph.n_edges, width)))
    C = problem.scale[:, None, None] * C
    return OperatorSystem(graph, problem.d).factorise(loss.H, C).refined(loss.b, _EXACT)


def _quadratic(problem: Problem) -> BoundSquared:
    assert isinstance(problem.loss, BoundSquared)
    return problem.loss
