"""Squared losses with a quadratic penalty: one linear system, by conjugate gradients.

(blkdiag(H_i) + lam D^T A D (x) Q) w = b, preconditioned by its diagonal blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.certificate import Certificate
from nefele.laplacian import laplacian
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
        loss, graph = _quadratic(problem), problem.graph
        system = laplacian(graph, problem.scale[:, None], loss.H, problem.penalty)
        alone = graph.degree == 0
        if alone.any():
            state.w[alone] = loss.minimise()[alone]
        residual = loss.b - system(state.w) if state.w.any() else loss.b.copy()
        residual[alone] = 0.0  # rounding errors there would leave the fit of least norm
        p, z = np.zeros_like(residual), np.zeros_like(residual)
        _, rz = system.advance(0.0, state.w, residual, p, z)
        system.turn(0.0, p, z)
        objective = problem.objective(state.w)
        state.extra.update(system=system, r=residual, p=p, z=z, rz=rz, objective=objective)
        return state

    def step(self, problem: Problem, state: State) -> None:
        extra = state.extra
        system, r, p, z, before = (extra[name] for name in ("system", "r", "p", "z", "rz"))
        bend = system.product(p, z)
        if not bend > 0:
            return
        alpha = before / bend
        _, extra["rz"] = system.advance(alpha, state.w, r, p, z)
        system.turn(extra["rz"] / before if before > 0 else 0.0, p, z)
        extra["objective"] -= 0.5 * alpha * before

    def promising(self, problem: Problem, state: State, tol: float) -> bool:
        """r^T P r / 2 estimates the error of the objective."""
        extra = state.extra
        size = max(abs(extra["objective"]), 1e-6 * problem.objective_at_zero)
        if extra["rz"] > 0.1 * min(tol * size, extra.get("asked", np.inf)):
            return False
        extra["asked"] = extra["rz"]
        return True

    def scalars(self, state: State) -> dict[str, Any]:
        names = ("rz", "objective", "asked")
        return {name: float(state.extra[name]) for name in names if name in state.extra}

    def arrays(self, state: State) -> dict[str, Array]:
        return {name: state.extra[name] for name in ("r", "p")}

    def resume(
        self, problem: Problem, state: State, scalars: dict[str, Any], arrays: dict[str, Array]
    ) -> None:
        super().resume(problem, state, scalars, arrays)
        state.extra.update(scalars, r=arrays["r"], p=arrays["p"])

    def point(self, problem: Problem, state: State) -> tuple[Array, Array]:
        return state.w, problem.smooth_flow(state.w)

    def certify(
        self, problem: Problem, state: State, *, tol: float, exact: bool
    ) -> tuple[Array, Certificate]:
        return state.w, problem.certificate(state.w, problem.smooth_flow(state.w), tol=tol)


def _quadratic(problem: Problem) -> BoundSquared:
    assert isinstance(problem.loss, BoundSquared)
    return problem.loss
