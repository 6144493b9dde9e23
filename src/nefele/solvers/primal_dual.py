"""The primal-dual method of NFL, Algorithm 1, as printed and with steps scaled to the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nefele._checks import Array, check_number
from nefele.certificate import Certificate, estimate
from nefele.problem import Problem
from nefele.result import relative_gap
from nefele.solvers.base import Solver, State
from nefele.solvers.fused import Fused
from nefele.solvers.polish import Polished
from nefele.solvers.quotient import reduced_solve

# First stage, then later ones: step scale in units of (spread of local fits) / (lam mean A).
_FIRST_GAMMA, _LATER_GAMMA = 0.15, 0.015
_GAMMA_LIMITS = (1e-3, 1e1)  # where the search turns round
_LONGEST = 1e6  # longest step of a prox in units of 1 / curvature: all but the local minimiser
_FAST = 3.0  # factor by which a stage should shrink the gap
_FLAT = 1e-4  # least curvature of all losses together, relative to its bound
_TURN = 3.0  # factor of a change of the step scale
_HOPELESS = 1.5  # guessed gap, in units of the tolerance, at which a certificate may be spared
_MOST_SPARED = 3  # times in a row
_SCALARS = ("gamma", "last", "pace", "turn", "spared", "guess")  # what adapting the steps remembers
_FUSED = ("q", "wbar")  # what the compiled iteration remembers beside w and u, in its own order


@dataclass
class PrimalDual(Solver):
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

    def init(self, problem: Problem, w0: Array, u0: Array) -> State:
        state = State(w0.copy(), u0.copy())
        state.extra.update(w1=state.w, u1=state.u)
        isolated = problem.graph.degree == 0
        if isolated.any():
            state.w[isolated] = problem.loss.minimise()[isolated]
        if not self.printed:
            state.extra["unit"], force = typical_sizes(problem)
            flow = np.minimum(problem.scale, force)
            state.extra["flow"] = np.where(flow > 0, flow, 1.0)  # lam = 0: any step will do
            gamma = self.gamma or _FIRST_GAMMA * state.extra["unit"]
            state.extra["gamma"] = gamma
        else:
            state.extra.update(gamma=1.0, flow=np.ones(problem.graph.n_edges))
        if self.compiled and Fused.fits(problem):
            state.extra["fused"] = Fused(problem, state.w, state.u, state.extra["flow"])
        curvature = problem.loss.curvature()
        with np.errstate(divide="ignore"):
            state.extra["longest"] = np.where(curvature > 0, _LONGEST / curvature, np.inf)
        self._set_steps(problem, state)
        return state

    def _set_steps(self, problem: Problem, state: State) -> None:
        """tau_i = gamma / sum_e f_e and sigma_e = f_e / (2 gamma), f the expected size of flows.

        f_e = 1 and gamma = 1 are the printed steps.
        """
        graph, gamma, size = problem.graph, state.extra["gamma"], state.extra["flow"]
        through = np.bincount(graph.head, size, graph.n_nodes)
        through += np.bincount(graph.tail, size, graph.n_nodes)
        tau = np.minimum(gamma / np.where(through > 0, through, 1.0), state.extra["longest"])
        sigma = size / (2 * gamma)
        state.extra.update(tau=tau, sigma=sigma)
        if "fused" in state.extra:
            state.extra["fused"].set_steps(gamma, tau)

    def step(self, problem: Problem, state: State) -> None:
        if "fused" in state.extra:
            state.extra["fused"].step(self.relax)
            return
        state.extra["w1"], state.extra["u1"] = w1, u1 = self._plain(problem, state)
        state.w = state.w + self.relax * (w1 - state.w)
        state.u = state.u + self.relax * (u1 - state.u)

    def _plain(self, problem: Problem, state: State) -> tuple[Array, Array]:
        """The unrelaxed iteration (NFL, Algorithm 1, steps 3-4 and 7-8)."""
        graph, tau, sigma = problem.graph, state.extra["tau"], state.extra["sigma"]
        w, u = state.w, state.u
        w1 = problem.loss.prox(w - tau[:, None] * graph.div(u), tau, start=w)
        v = u + sigma[:, None] * graph.diff(2 * w1 - w)
        return w1, problem.penalty.prox_conjugate(v, problem.scale, sigma)

    def certify(
        self, problem: Problem, state: State, *, tol: float, exact: bool
    ) -> tuple[Array, Certificate]:
        """Certify the unrelaxed iterate, whose flow is inside the balls, or its polished form."""
        w, u = self.iterate(state, exact)
        if exact:
            return w, problem.certificate(w, u)
        better, objective = self._improve(problem, w, u), problem.objective(w)
        if better is not None and better.objective <= objective:
            w, objective = better.w, better.objective
            self._set_w(state, w)
        else:
            better = None
        if better is not None and better.exact:
            firm = problem.certificate(w, better.u, firm=True, tol=tol)
            if relative_gap(problem, firm.objective, firm.gap_abs) <= tol:
                return w, firm
        smooth = problem.loss.smooth
        found = self._spare(problem, state, w, u, objective, tol) if smooth else None
        if found is None:
            found = problem.certificate(w, u, tol=tol)
        if better is not None and better.exact:
            found = max(firm, found, key=lambda c: (c.lower, c.estimate))
        return w, found

    def _spare(
        self, problem: Problem, state: State, w: Array, u: Array, objective: float, tol: float
    ) -> Certificate | None:
        """A guess instead of a certificate that will not be good enough, by that same guess.

        Not more than a few times in a row, since it is only a guess.
        """
        guess = estimate(problem, w, u)
        state.extra["guess"] = relative_gap(problem, objective, guess)
        hopeless = state.extra["guess"] > _HOPELESS * tol and not state.final
        state.extra["spared"] = state.extra.get("spared", 0) + 1 if hopeless else 0
        if state.extra["spared"] % (_MOST_SPARED + 1) == 0:
            return None
        return Certificate(objective, -np.inf, "none", 0.0, u, objective - guess)

    def point(self, problem: Problem, state: State) -> tuple[Array, Array]:
        """The unrelaxed iterate, or its polished form."""
        w, u = self.iterate(state)
        better = self._improve(problem, w, u)
        if better is None or better.objective > problem.objective(w):
            return w, u
        self._set_w(state, better.w)
        return better.w, better.u

    def current(self, problem: Problem, state: State) -> tuple[Array, Array]:
        """The relaxed iterate."""
        fused = state.extra.get("fused")
        if fused is None:
            return state.w, state.u
        return fused.layout.nodes_out(fused.w), fused.layout.flow_out(fused.u)

    def scalars(self, state: State) -> dict[str, Any]:
        return {name: float(state.extra[name]) for name in _SCALARS if name in state.extra}

    def arrays(self, state: State) -> dict[str, Array]:
        fused = state.extra.get("fused")
        if fused is None:
            return {name: state.extra[name] for name in ("w1", "u1")}
        return {name: getattr(fused, name).copy() for name in _FUSED}

    def resume(
        self, problem: Problem, state: State, scalars: dict[str, Any], arrays: dict[str, Array]
    ) -> None:
        super().resume(problem, state, scalars, arrays)
        state.extra.update(scalars)
        self._set_steps(problem, state)
        fused = state.extra.get("fused")
        if fused is None:
            state.extra.update(w1=arrays["w1"], u1=arrays["u1"])
            return
        fused.set_w(arrays["w"])
        for name in _FUSED:
            getattr(fused, name)[:] = arrays[name]

    def _improve(self, problem: Problem, w: Array, u: Array) -> Polished | None:
        return reduced_solve(problem, PrimalDual(polish=False), w, u) if self.polish else None

    def iterate(self, state: State, exact: bool = False) -> tuple[Array, Array]:
        """The last unrelaxed iterate: its flow is inside the balls."""
        fused = state.extra.get("fused")
        if fused is None:
            return state.extra["w1"], state.extra["u1"]
        return fused.unrelaxed(self.relax if exact else None)

    def _set_w(self, state: State, w: Array) -> None:
        state.w = w
        if "fused" in state.extra:
            state.extra["fused"].set_w(w)

    def adapt(self, problem: Problem, state: State, gap: float) -> None:
        """Smaller steps for the flow after the first stage, then uphill in speed of progress."""
        extra = state.extra
        if self.printed or self.gamma is not None:
            return
        gap = max(extra.get("guess", 0.0), gap, np.finfo(float).tiny)
        before, extra["last"] = extra.get("last"), gap
        if before is None:
            extra.update(gamma=_LATER_GAMMA * extra["unit"], pace=0.0, turn=-1)
        elif gap > before / _FAST:  # a stage that does better keeps its steps
            pace = np.log(before / gap)
            if pace < extra["pace"]:
                extra["turn"] = -extra["turn"]
            extra["pace"] = pace
            low, high = (limit * extra["unit"] for limit in _GAMMA_LIMITS)
            if not low <= extra["gamma"] * _TURN ** extra["turn"] <= high:
                extra["turn"] = -extra["turn"]
            extra["gamma"] *= _TURN ** extra["turn"]
        self._set_steps(problem, state)


def typical_sizes(problem: Problem) -> tuple[float, float]:
    """Typical sizes of parameters and of flows.

    The first is the distance of the (slightly regularised) local fits from the pooled one, the
    second the largest gradient there: flows hardly grow beyond it, however heavy an edge is.
    """
    loss = problem.loss
    curvature = loss.curvature()
    known = loss.labelled & (curvature > 0)
    if not known.any():
        return 1.0, np.inf
    zero = np.zeros((problem.graph.n_nodes, problem.d))
    step = 10 / np.where(known, curvature, curvature[known].mean())
    fits = loss.prox(zero, step)
    centre = np.broadcast_to(_pooled(problem, fits[known].mean(axis=0)), zero.shape)
    away = np.sqrt(((fits - centre)[known] ** 2).sum(axis=1))
    spread = float(np.median(away)) or float(away.max()) or float(np.abs(centre).max()) or 1.0
    pull = (centre - loss.prox(centre.copy(), 0.1 * step)) / (0.1 * step)[:, None]
    force = float(np.sqrt((pull[known] ** 2).sum(axis=1)).max())
    return spread, force if force > 0 else np.inf


def _pooled(problem: Problem, start: Array) -> Array:
    """One Newton step towards the pooled optimum, where the loss has a Hessian."""
    loss = problem.loss
    at = np.broadcast_to(start, (problem.graph.n_nodes, problem.d)).copy()
    hess = loss.hess(at) if loss.smooth else None
    if hess is None:
        return start
    total = hess.sum(axis=0)
    # Huber losses are straight far from the data: no step as long as their Hessian allows
    least = 1e-10 * np.trace(total) if loss.affine_grad else _FLAT * loss.curvature().sum()
    total += least * np.eye(problem.d)
    return start - np.linalg.solve(total, loss.grad(at).sum(axis=0))
