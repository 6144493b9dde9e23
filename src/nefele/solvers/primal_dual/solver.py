"""The primal-dual method of NFL, Algorithm 1, as printed and with steps scaled to the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from nefele._checks import Array, check_number
from nefele.certificate import Certificate, estimate
from nefele.problem import Problem
from nefele.program import run_alone
from nefele.result import relative_gap
from nefele.solvers.base import Solver, State, settled
from nefele.solvers.loop.stages import sparing
from nefele.solvers.primal_dual.fused import LEAST_WORK, Fused, Layout, good_order, is_uniform
from nefele.solvers.primal_dual.plain import Plain
from nefele.solvers.primal_dual.polish import Polished, all_smooth
from nefele.solvers.primal_dual.quotient import NEWTON, reduced_solve
from nefele.solvers.steps import adapt, first_steps, scaled, typical_sizes

# Step scale after the first stage, in units of (spread of local fits) / (lam mean A).
_REDUCED = 100  # iterations on a reduced problem
_FINE = 1e-7  # tolerance below which large reduced problems are worth Newton steps too
_SCALARS = ("gamma", "last", "pace", "turn", "spared", "guess")


@dataclass
class PrimalDualState(State):
    """The iteration, and what adapting its steps remembers."""

    iteration: Plain | Fused  # which moves on; w and u are where it began
    unit: float = 0.0  # typical size of parameters
    size: Array = field(default_factory=lambda: np.empty(0))  # expected, of each edge's flow
    longest: Array = field(default_factory=lambda: np.empty(0))  # most useful step of each node
    gamma: float = 0.0  # scale of the steps; 0: not known yet
    last: float | None = None  # gap at the last examined point
    pace: float = 0.0  # by how much its logarithm fell in the last stage
    turn: int = -1  # whether gamma is being lowered or raised
    spared: int = 0  # certificates that a guess has replaced, in a row
    guess: float = 0.0  # gap at the last examined point, as guessed


@dataclass
class PrimalDual(Solver[PrimalDualState]):
    """w+ = PU(w - tau D^T u), u+ = DU(u + sigma D(2 w+ - w)) (NFL, Algorithm 1).

    Steps tau_i = gamma / sum_e A_e and sigma_e = A_e / (2 gamma), over-relaxed by `relax`.

    Parameters
    ----------
    gamma : float, optional
        Step scale; default: from the spread of the local fits, adapted between stages.
    relax : float
        Over-relaxation in (0, 2); 1 is the plain method.
    polish : bool
        Fuse what the flow holds together and solve the reduced problem by Newton steps at each
        certified point.
    printed : bool
        The steps as printed in the paper, tau_i = 1/degree_i and sigma_e = 1/2.
    compiled : bool
        Use compiled loops where there are some and the problem is large enough.

    Examples
    --------
    >>> PrimalDual.as_printed()
    PrimalDual(gamma=None, relax=1.0, polish=False, printed=True, compiled=True)
    """

    maps = True
    least_work: ClassVar[int] = LEAST_WORK  # numbers in u from which loops are compiled

    gamma: float | None = None
    relax: float = 1.9
    polish: bool = True
    printed: bool = False
    compiled: bool = True

    def __post_init__(self) -> None:
        if self.gamma is not None:
            check_number(self.gamma, "gamma", low=0.0, strict=True)
        if not 0 < self.relax < 2:
            raise ValueError(f"relax must be in (0, 2); got {self.relax!r}.")

    @classmethod
    def as_printed(cls) -> PrimalDual:
        """Algorithm 1 of NFL with the printed steps."""
        return cls(relax=1.0, polish=False, printed=True)

    def init(self, problem: Problem, w0: Array, u0: Array) -> PrimalDualState:
        u = u0.copy()
        if self.immediate(problem) and not w0.any():
            w0 = np.where(problem.undetermined[:, None], w0, problem.start)
        w = settled(problem, w0, problem.graph.degree == 0)
        state = PrimalDualState(w, u, Plain(problem, w, u))
        if not self.immediate(problem):
            self._begin(problem, state)
        return state

    def _begin(self, problem: Problem, state: PrimalDualState) -> None:
        """Find the first steps; of problems that mostly end at the start when they are needed."""
        if state.gamma > 0:
            return
        steps = run_alone(first_steps(problem, self.printed, self.gamma, self._sizes(problem)))
        if self.compiled and problem.graph.plain and Fused.fits(problem, least=self.least_work):
            layout = Layout(problem.graph, good_order(problem.graph))
            rule = steps.size, layout, is_uniform(problem.scale)
            state.iteration = Fused(problem, state.w, state.u, *rule)
        state.iteration.set_steps(steps.gamma, steps.tau, steps.sigma)
        state.unit, state.size, state.longest = steps.unit, steps.size, steps.longest
        state.gamma = steps.gamma

    def _sizes(self, problem: Problem) -> tuple[float, float] | None:
        """Typical sizes, found once for all lams where losses remember nothing of the search."""
        if self.printed or not problem.loss.affine_grad:
            return None
        if "sizes" not in problem.known:
            problem.known["sizes"] = run_alone(typical_sizes(problem))
        found: tuple[float, float] = problem.known["sizes"]
        return found

    def step(self, problem: Problem, state: PrimalDualState) -> None:
        self._begin(problem, state)
        state.iteration.step(self.relax)

    def certify(
        self, problem: Problem, state: PrimalDualState, *, tol: float, exact: bool
    ) -> tuple[Array, Certificate]:
        """Certify the unrelaxed iterate, whose flow is inside the balls, or its polished form."""
        w, u = state.iteration.unrelaxed(self.relax if exact else None)
        if exact:
            return w, problem.certificate(w, u)
        better, objective = self._improve(problem, w, u, tol), problem.objective(w)
        if better is not None and better.objective <= objective:
            w, objective = better.w, better.objective
            state.iteration.set_w(w)
        else:
            better = None
        if better is not None and better.exact:
            firm = problem.certificate(w, better.u, firm=True, tol=tol)
            if relative_gap(problem, firm.objective, firm.gap_abs) <= tol:
                return w, firm
        smooth = problem.loss.smooth
        found = self._spare(problem, state, w, u, objective, tol) if smooth else None
        if found is None:
            ours = isinstance(state.iteration, Fused) and not state.traced  # u is a copy
            found = problem.certificate(w, u, tol=tol, spend=ours)
        if better is not None and better.exact:
            found = max(firm, found, key=lambda c: (c.lower, c.estimate))
        return w, found

    def immediate(self, problem: Problem) -> bool:
        """Newton steps are all it takes where loss and penalty are smooth and unknowns few."""
        return self.polish and all_smooth(problem)

    def _spare(
        self,
        problem: Problem,
        state: PrimalDualState,
        w: Array,
        u: Array,
        objective: float,
        tol: float,
    ) -> Certificate | None:
        """A guess instead of a certificate that will not be good enough, by that same guess."""
        guess = estimate(problem, w, u)
        state.guess = relative_gap(problem, objective, guess)
        state.spared = sparing(state.spared, state.guess, tol, state.final)
        if not state.spared:
            return None
        return Certificate(objective, -np.inf, "none", 0.0, u, objective - guess)

    def point(self, problem: Problem, state: PrimalDualState) -> tuple[Array, Array]:
        """The unrelaxed iterate, or its polished form."""
        w, u = state.iteration.unrelaxed()
        better = self._improve(problem, w, u)
        if better is None or better.objective > problem.objective(w):
            return w, u
        state.iteration.set_w(better.w)
        return better.w, better.u

    def current(self, problem: Problem, state: PrimalDualState) -> tuple[Array, Array]:
        """The relaxed iterate; a state that is kept has its steps."""
        self._begin(problem, state)
        return state.iteration.current()

    def scalars(self, state: PrimalDualState) -> dict[str, Any]:
        return {name: getattr(state, name) for name in _SCALARS}

    def arrays(self, state: PrimalDualState) -> dict[str, Array]:
        return state.iteration.arrays()

    def resume(
        self,
        problem: Problem,
        state: PrimalDualState,
        scalars: dict[str, Any],
        arrays: dict[str, Array],
    ) -> None:
        self._begin(problem, state)
        for name in _SCALARS:
            setattr(state, name, scalars[name])
        check_number(state.gamma, "gamma", low=0.0, strict=True)
        _set_steps(problem, state)
        state.iteration.take(arrays)

    def _improve(self, problem: Problem, w: Array, u: Array, tol: float = 1.0) -> Polished | None:
        if not (self.polish and problem.graph.plain):
            return None
        return reduced_solve(problem, iterated, w, u, most=None if tol < _FINE else NEWTON)

    def adapt(self, problem: Problem, state: PrimalDualState, gap: float) -> None:
        """Smaller steps for the flow after the first stage, then uphill in speed of progress."""
        if self.printed or self.gamma is not None:
            return
        self._begin(problem, state)
        adapt(state, max(state.guess, gap))
        _set_steps(problem, state)


def _set_steps(problem: Problem, state: PrimalDualState) -> None:
    steps = scaled(problem.graph, state.size, state.gamma, state.longest)
    state.iteration.set_steps(state.gamma, *steps)


def iterated(
    problem: Problem, w: Array, u: Array, solver: PrimalDual | None = None
) -> tuple[Array, Array]:
    """The point (w, u) after some iterations, as a reduced solve wants it."""
    solver = solver or PrimalDual(polish=False)
    state = solver.init(problem, w, u)
    for _ in range(_REDUCED):
        solver.step(problem, state)
    return state.iteration.unrelaxed()
