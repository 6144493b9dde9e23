"""Squared losses with a quadratic penalty: one linear system, by conjugate gradients.

(blkdiag(H_i) + lam D^T A D (x) Q) w = b, preconditioned by its diagonal blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nefele._checks import Array
from nefele.certificate import Certificate
from nefele.correction import block_inverse
from nefele.losses.squared import BoundSquared
from nefele.penalties import Quadratic, SquaredL2
from nefele.problem import Problem
from nefele.solvers.base import Solver, State


@dataclass
class QuadraticCG(Solver):
    """Block-Jacobi preconditioned conjugate gradients; an iteration is one product.

    Examples
    --------
    >>> QuadraticCG()
    QuadraticCG()
    """

    @staticmethod
    def fits(problem: Problem) -> bool:
        """Whether loss and penalty are quadratic."""
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

    def init(self, problem: Problem, w0: Array, u0: Array) -> State:
        state = State(w0.copy(), u0)
        residual = _quadratic(problem).b - self._apply(problem, w0)
        blocks = block_inverse(_quadratic(problem).H, problem.graph, self._stiffness(problem))
        z = _times(blocks, residual)
        state.extra.update(r=residual, z=z, p=z.copy(), rz=float((residual * z).sum()), P=blocks)
        return state

    def _stiffness(self, problem: Problem) -> Array:
        """Diagonal of each edge's block, for the preconditioner, shape (n_edges, d)."""
        diagonal = problem.penalty.curvature(np.zeros((1, problem.d)))[0].diagonal()
        return problem.scale[:, None] * diagonal

    def _apply(self, problem: Problem, x: Array) -> Array:
        graph = problem.graph
        flow = problem.scale[:, None] * problem.penalty.gradient(graph.diff(x))
        return _times(_quadratic(problem).H, x) + graph.div(flow)

    def step(self, problem: Problem, state: State) -> None:
        extra = state.extra
        p = extra["p"]
        Ap = self._apply(problem, p)
        bend = float((p * Ap).sum())
        if not bend > 0:
            return
        alpha = extra["rz"] / bend
        state.w = state.w + alpha * p
        extra["r"] = extra["r"] - alpha * Ap
        z = _times(extra["P"], extra["r"])
        rz = float((extra["r"] * z).sum())
        extra["p"] = z + (rz / extra["rz"] if extra["rz"] > 0 else 0.0) * p
        extra["rz"] = rz

    def promising(self, problem: Problem, state: State, tol: float) -> bool:
        """r^T P r / 2 estimates the error of the objective."""
        extra = state.extra
        if extra["rz"] > 0.1 * extra.get("asked", np.inf):
            return False
        size = max(abs(problem.objective(state.w)), 1e-6 * problem.objective_at_zero)
        if extra["rz"] > 0.1 * tol * size:
            return False
        extra["asked"] = extra["rz"]
        return True

    def certify(
        self, problem: Problem, state: State, *, tol: float, exact: bool
    ) -> tuple[Array, Certificate]:
        diff = problem.graph.diff(state.w)
        flow = problem.scale[:, None] * problem.penalty.gradient(diff)
        return state.w, problem.certificate(state.w, flow)


def _times(blocks: Array, x: Array) -> Array:
    return (blocks @ x[..., None])[..., 0]


def _quadratic(problem: Problem) -> BoundSquared:
    assert isinstance(problem.loss, BoundSquared)
    return problem.loss
