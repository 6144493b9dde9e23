"""An interior-point method for norms over trees and small graphs: few steps, each a linear system.

With s_e = lam A_e the problem (NFL, Eq. (16)) is

    min  sum_i L_i(w_i) + sum_e s_e t_e    subject to  ||v_e|| <= t_e,  v = D w             (1)

and its optima are the points with

    grad L(w) + D^T u = 0,    ||u_e|| <= s_e,    s_e t_e = <u_e, v_e>.                      (2)

A step solves (2) linearised, with s_e t_e - <u_e, v_e> aimed at a level that falls to zero. In the
scaling of Nesterov and Todd everything but w can be eliminated, which leaves

    (hess L(w) + D^T C D) dw = -grad L(w) - D^T (u + pull).                                 (3)

Mehrotra's predictor chooses the level and corrects the step to second order, with the same
factors. Over a forest (3) is solved without fill (`nefele.forest`). The penalties: L2Norm; L1Norm,
with one cone per entry; Huber, with v = D w - (delta / s) u.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.certificate import Certificate
from nefele.forest import Forest
from nefele.problem import Problem
from nefele.result import relative_gap
from nefele.solvers.base import Solver, State
from nefele.solvers.cones import Cones
from nefele.solvers.direct import SmallGraph
from nefele.solvers.polish import _group_means, _groups
from nefele.solvers.primal_dual import PrimalDual

_INSIDE = 0.99  # share of the way to the cones' boundary that a step may go
_SHORT = 0.2  # predictor step below which its second-order term misleads
_WARM = 0.1  # least first sum of x^T z at a given start, in units of the objective there
_CAUTION = 2.0  # the same in units of the start's error
_NEARER = 0.3  # error of a given start, relative to that of zero, up to which it is used
_SLACK = 1e-2  # share of the predicted progress that a step must make
_HALVINGS = 30
_DONE = 1e-15  # sum of x^T z, relative to the first, below which rounding errors rule
_MOST_STEPS, _MOST_FAILURES = 80, 8
_FEW_ENTRIES = 120_000  # of a system over a graph with cycles that is still cheap
_MOST_NUMBERS = 20_000_000  # in the blocks of a forest's system
_FEWEST, _MOST_PARAMETERS = 200, 30  # unknowns and parameters per node for which "auto" takes it
_LEAST = np.finfo(float).tiny ** 0.5  # lam A_e below which products in the cones underflow
_FEWEST_CURVED = 20  # unknowns when losses are not quadratic

_curved: WeakKeyDictionary[object, bool] = WeakKeyDictionary()  # losses asked for a Hessian


@dataclass
class Newton(Solver):
    """Primal-dual interior-point steps: about ten to twenty, whatever the size.

    Each step factorises a system with one block of d x d numbers per node and edge: cheap over
    chains and other trees, dear over large graphs with cycles. Where steps fail, which rounding
    errors or a wrong Hessian may cause, the primal-dual method goes on from the point reached.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> data = LocalData.from_list([([[1.0]], [0.0]), None, ([[1.0]], [4.0])])
    >>> result = solve(Problem(Graph.from_edges([(0, 1), (1, 2)]), data, lam=1.0), Newton())
    >>> result.w[[0, 2], 0].round(3).tolist(), result.converged
    ([0.5, 3.5], True)
    """

    @staticmethod
    def fits(problem: Problem) -> bool:
        """Whether the penalty is one of those above and the loss has a Hessian."""
        loss = problem.loss
        if not (Cones.fit(problem) and loss.smooth):
            return False
        if loss not in _curved:
            _curved[loss] = loss.hess(np.zeros((loss.n_nodes, loss.d))) is not None
        return _curved[loss]

    @staticmethod
    def pays(problem: Problem) -> bool:
        """Whether steps are so cheap that few of them beat the primal-dual method's many.

        Over forests, and over small graphs when the losses are not quadratic: 2 to 10 times faster
        there for logistic losses, also over tiny graphs. For quadratic losses over a tiny graph
        both are fast.
        """
        graph, d = problem.graph, problem.d
        curved = not problem.loss.affine_grad
        small = curved and SmallGraph.entries(graph, d) <= _FEW_ENTRIES
        return bool(
            graph.n_nodes * d >= (_FEWEST_CURVED if curved else _FEWEST)
            and d <= _MOST_PARAMETERS
            and _numbers(problem) <= _MOST_NUMBERS
            and Cones.fit(problem)
            and problem.scale.min(initial=1.0) >= _LEAST
            and (small or Forest.of(graph) is not None)
            and Newton.fits(problem)
        )

    def check(self, problem: Problem) -> None:
        if not self.fits(problem):
            raise ValueError(
                "Newton needs L2Norm, L1Norm or Huber and a loss with gradient and Hessian; got "
                f'{problem.penalty!r} and {type(problem.loss).__name__}. Use solver="auto".'
            )
        if not problem.coupled:
            return
        if Forest.of(problem.graph) is None:
            SmallGraph.check(problem.graph, problem.d)
        elif _numbers(problem) > _MOST_NUMBERS:
            raise ValueError(
                f"Newton needs (n_nodes + n_edges) * d^2 <= {_MOST_NUMBERS}; got "
                f'{_numbers(problem)}. Use solver="auto".'
            )

    def init(self, problem: Problem, w0: Array, u0: Array) -> State:
        graph, loss = problem.graph, problem.loss
        state = State(w0.copy(), u0.copy())
        alone = graph.degree == 0 if problem.coupled else np.ones(graph.n_nodes, dtype=bool)
        if alone.any():
            state.w[alone] = loss.minimise()[alone]
        if not problem.coupled:
            return state
        warm = bool(w0.any() or u0.any())
        if warm:
            state.extra["start"] = state.w.copy(), u0
        error = _error(problem, state, alone) if warm else 1.0
        if error <= _NEARER:
            value = max(_WARM, _CAUTION * error) * problem.objective(state.w)
        else:
            state.w[~alone], state.u[:] = 0.0, 0.0
            value = float(loss.value(state.w).sum())
        value = max(abs(value), 1e-6 * abs(problem.objective_at_zero)) or 1.0
        cones = Cones(problem, graph.diff(state.w), state.u, value)
        state.u = cones.flow
        slope = _slope(problem, state.w, state.u, alone)
        reach = float(np.abs(slope).sum())
        state.extra.update(
            cones=cones,
            system=Forest.of(graph) or SmallGraph(graph, problem.d),
            alone=alone,
            slope=slope,
            length=value / reach if reach > 0 else 0.0,
            size=abs(problem.objective_at_zero),
            damp=0.0,
            steps=0,
            failures=0,
        )
        return state

    def step(self, problem: Problem, state: State) -> None:
        extra = state.extra
        if "rescue" in extra:
            solver, inner = extra["rescue"]
            solver.step(problem, inner)
        elif not _at_end(state):
            extra.pop("start", None)
            self._interior(problem, state)
            extra["steps"] += 1
            if extra["steps"] > _MOST_STEPS or extra["failures"] > _MOST_FAILURES:
                self._rescue(problem, state)

    def _interior(self, problem: Problem, state: State) -> None:
        """Predictor, corrector and a step that stays inside the cones."""
        extra, cones, graph = state.extra, state.extra["cones"], problem.graph
        hess, slope = problem.loss.hess(state.w), extra["slope"]
        if extra["damp"] > 0:
            hess = hess + extra["damp"] * np.eye(problem.d)
        try:
            factor = extra["system"].factorise(hess, cones.scale())
        except np.linalg.LinAlgError:
            extra["failures"] = np.inf
            return

        def aim(level: float, rest: float, bend: float) -> Array:
            pull = cones.aim(level, rest, bend)
            dw, change, flow = factor.solve(-rest * slope - graph.div(pull))
            cones.direct(change, flow, rest)
            return np.asarray(dw)

        aim(0.0, 1.0, 0.0)
        step = min(1.0, cones.longest)
        centre = float(np.clip(cones.ahead(step) / cones.total, 0.0, 1.0)) ** 3
        rest = 1.0 - centre
        dw = aim(centre * cones.total / len(cones.t), rest, 1.0 if step >= _SHORT else step**2)
        self._search(problem, state, dw, rest)

    def _search(self, problem: Problem, state: State, dw: Array, rest: float) -> None:
        """Halve the step until the sum of x^T z and of the slopes' sizes falls enough."""
        extra, cones = state.extra, state.extra["cones"]
        du = cones.du.reshape(state.u.shape)
        before = cones.total + extra["length"] * float(np.abs(extra["slope"]).sum())
        step = min(1.0, _INSIDE * cones.longest)
        for _ in range(_HALVINGS):
            w = state.w + step * dw
            slope = _slope(problem, w, state.u + step * du, extra["alone"])
            after = cones.ahead(step) + extra["length"] * float(np.abs(slope).sum())
            if after <= before * (1 - _SLACK * step * rest):
                cones.move(step, rest)
                state.w = w
                extra.update(slope=slope, move=dw, damp=0.1 * extra["damp"])
                return
            step *= 0.5
        size = float(np.abs(extra["slope"]).max())
        extra["damp"] = max(10 * extra["damp"], 1e-3 * size / (extra["length"] or 1.0))
        extra["failures"] += 1

    def _rescue(self, problem: Problem, state: State) -> None:
        solver = PrimalDual()
        state.extra["rescue"] = solver, solver.init(problem, state.w, state.u)

    def promising(self, problem: Problem, state: State, tol: float) -> bool:
        """Whether what is left at the edges and at the nodes seems within the tolerance."""
        extra = state.extra
        if "rescue" in extra:
            return False
        if _at_end(state):
            return True
        if "move" not in extra:  # no step has succeeded yet
            return False
        total = extra["cones"].total
        if total > min(20 * tol * extra["size"], 0.5 * extra.get("asked", np.inf)):
            return False
        diff, penalty = problem.graph.diff(state.w), problem.penalty
        spent = float(problem.scale @ penalty.value(diff))
        value = abs(float(problem.loss.value(state.w).sum()) + spent)
        extra["size"] = max(value, 1e-6 * abs(problem.objective_at_zero))
        left = spent + float(penalty.conjugate(state.u, problem.scale).sum())
        left += float(np.abs(extra["slope"] * extra["move"]).sum() - np.vdot(state.u, diff))
        if left > 0.9 * tol * extra["size"]:
            return False
        extra["asked"] = total
        return True

    def certify(
        self, problem: Problem, state: State, *, tol: float, exact: bool
    ) -> tuple[Array, Certificate]:
        """The point with the nodes fused whose flow says so, if that is as good."""
        if "rescue" in state.extra:
            solver, inner = state.extra["rescue"]
            inner.final = state.final
            found: tuple[Array, Certificate] = solver.certify(problem, inner, tol=tol, exact=exact)
            return found
        w, u = self.point(problem, state)
        plain = problem.certificate(w, u, tol=tol)
        if exact or "start" in state.extra or not (problem.coupled and problem.penalty.is_norm):
            return w, plain
        together = _fuse(problem, w, u)
        fused = replace(plain, objective=problem.objective(together))
        near = relative_gap(problem, fused.objective, fused.gap_abs) <= tol
        return (together, fused) if near or fused.objective <= plain.objective else (w, plain)

    def point(self, problem: Problem, state: State) -> tuple[Array, Array]:
        if "rescue" in state.extra:
            solver, inner = state.extra["rescue"]
            found: tuple[Array, Array] = solver.point(problem, inner)
            return found
        start: tuple[Array, Array] = state.extra.get("start", (state.w, state.u))
        return start

    def current(self, problem: Problem, state: State) -> tuple[Array, Array]:
        return self.point(problem, state)

    def adapt(self, problem: Problem, state: State, gap: float) -> None:
        """Leave to the primal-dual method what could not be certified at the end."""
        if "rescue" in state.extra:
            solver, inner = state.extra["rescue"]
            solver.adapt(problem, inner, gap)
        elif _at_end(state):
            self._rescue(problem, state)


def _numbers(problem: Problem) -> int:
    return (problem.graph.n_nodes + problem.graph.n_edges) * problem.d**2


def _at_end(state: State) -> bool:
    """Whether there is nothing to do, or nothing that rounding errors allow."""
    cones = state.extra.get("cones")
    return cones is None or cones.total <= _DONE * cones.first


def _slope(problem: Problem, w: Array, u: Array, alone: NDArray[np.bool_]) -> Array:
    """The gradient L'(w) + D^T u; zero at nodes without edges, which are at their minimisers."""
    slope = problem.loss.grad(w) + problem.graph.div(u)
    slope[alone] = 0.0
    return slope


def _error(problem: Problem, state: State, alone: NDArray[np.bool_]) -> float:
    """How far a given start, its flow brought inside, is from (2), relative to zero."""
    ratio = problem.penalty.domain_ratio(state.u, problem.scale)
    state.u /= np.maximum(ratio, 1.0)[:, None]
    if not problem.objective(state.w) <= problem.objective_at_zero:
        return 1.0
    here = _slope(problem, state.w, state.u, alone)
    zero = _slope(problem, np.zeros_like(here), np.zeros_like(state.u), alone)
    return float(np.abs(here).sum()) / (float(np.abs(zero).sum()) or 1.0)


def _fuse(problem: Problem, w: Array, u: Array) -> Array:
    """Equal parameters over the edges whose difference is nearer to zero than their room."""
    penalty, scale = problem.penalty, problem.scale[:, None]
    diff, unit = problem.graph.diff(w), float(np.ptp(w, axis=0).max())
    if penalty.entrywise:
        room, away = 1 - np.abs(u) / scale, np.abs(diff)
    else:
        room = 1 - penalty.domain_ratio(u, problem.scale)[:, None]
        away = penalty.value(diff)[:, None]
    fused = np.broadcast_to(away < room * unit, diff.shape)
    return _group_means(*_groups(problem, fused), w)
