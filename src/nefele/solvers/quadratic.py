"""Squared losses with a quadratic penalty: one linear system, by conjugate gradients.

(blkdiag(H_i) + lam D^T A D (x) Q) w = b, preconditioned by its diagonal blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.certificate import Certificate
from nefele.correction import BlockLaplacian, block_inverse, precondition
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
        loss, graph, scale = _quadratic(problem), problem.graph, problem.scale[:, None]
        system = BlockLaplacian(graph, scale, loss.H, problem.penalty)
        alone = graph.degree == 0
        if alone.any():
            state.w[alone] = loss.minimise()[alone]
        residual = loss.b - system(state.w)
        residual[alone] = 0.0  # rounding errors there would leave the fit of least norm
        inverse = block_inverse(loss.H, graph, scale * self._diagonal(problem))
        z = precondition(inverse, residual)
        state.extra.update(
            A=system,
            P=inverse,
            r=residual,
            p=z.copy(),
            rz=float(np.vdot(residual, z)),
            objective=problem.objective(state.w),
        )
        return state

    def _diagonal(self, problem: Problem) -> Array:
        """Diagonal of the penalty's matrix, for the preconditioner, shape (d,)."""
        return problem.penalty.curvature(np.zeros((1, problem.d)))[0].diagonal()

    def step(self, problem: Problem, state: State) -> None:
        extra, p = state.extra, state.extra["p"]
        compiled, z = extra["A"].compiled(p), np.empty_like(p)
        if compiled is None:
            z = extra["A"](p)
            bend = float(np.vdot(p, z))
        else:
            bend = laplacian().product(*compiled, p, z)
        if not bend > 0:
            return
        before, alpha = extra["rz"], extra["rz"] / bend
        if compiled is None:
            state.w += alpha * p
            extra["r"] -= alpha * z
            z = precondition(extra["P"], extra["r"])
            extra["rz"] = float(np.vdot(extra["r"], z))
        else:
            dims = compiled[0]
            extra["rz"] = laplacian().advance(dims, alpha, extra["P"], state.w, extra["r"], p, z)[1]
        extra["objective"] -= 0.5 * alpha * before
        p *= extra["rz"] / before if before > 0 else 0.0
        p += z

    def promising(self, problem: Problem, state: State, tol: float) -> bool:
        """r^T P r / 2 estimates the error of the objective."""
        extra = state.extra
        size = max(abs(extra["objective"]), 1e-6 * problem.objective_at_zero)
        if extra["rz"] > 0.1 * min(tol * size, extra.get("asked", np.inf)):
            return False
        extra["asked"] = extra["rz"]
        return True

    def point(self, problem: Problem, state: State) -> tuple[Array, Array]:
        return state.w, problem.smooth_flow(state.w)

    def certify(
        self, problem: Problem, state: State, *, tol: float, exact: bool
    ) -> tuple[Array, Certificate]:
        return state.w, problem.certificate(state.w, problem.smooth_flow(state.w), tol=tol)


def laplacian() -> Any:
    """The compiled loops, loaded when first needed."""
    from nefele._kernels import laplacian

    return laplacian


def _quadratic(problem: Problem) -> BoundSquared:
    assert isinstance(problem.loss, BoundSquared)
    return problem.loss
