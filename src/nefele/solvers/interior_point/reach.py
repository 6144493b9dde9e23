"""Which problems the interior-point method takes, and for which ones "auto" chooses it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from nefele._systems.direct import SmallGraph
from nefele._systems.forest import Forest
from nefele._systems.operator import MOST_UNKNOWNS
from nefele.problem import Problem
from nefele.solvers.interior_point import kinks
from nefele.solvers.interior_point.forms import edge_kind, forms
from nefele.solvers.interior_point.terms import Terms, uneven
from nefele.solvers.primal_dual.polish import all_smooth

_FEW_ENTRIES = 120_000  # of a system over a graph with cycles that is cheap for curved losses
_SOME_ENTRIES = 400_000  # of one for quadratic losses
_MANY_ENTRIES = 2_000_000  # of one that is cheap if it fills little
# For quadratic losses: edges per node up to which the primal-dual method may need many iterations,
# and seconds of a factorisation that are worth it; where nodes lack data it mostly does need them.
_SPARSE, _MOMENT, _LONGER = 6, 4e-3, 2e-2
_MOST_NUMBERS = 20_000_000  # in the blocks of a forest's system
_FEWEST = 200  # unknowns of quadratic losses from which "auto" takes it
_MOST_PARAMETERS = 30  # per node
_MOST_SECONDS = 0.7  # of a factorisation where steps with one are few
_LEAST = np.finfo(float).tiny ** 0.5  # lam A_e below which products in the cones underflow

_curved: WeakKeyDictionary[object, bool] = WeakKeyDictionary()  # losses asked for a Hessian


def fits(problem: Problem) -> bool:
    """Whether penalty and loss are among those that `solver` names."""
    loss = problem.loss
    if not Terms.fit(problem):
        return False
    if loss not in _curved:
        _curved[loss] = kinks.fits(problem)
    return _curved[loss]


def pays(problem: Problem) -> bool:
    """Whether steps are so cheap that few of them beat the primal-dual method's many.

    Wherever the system can be factorised, with kinks or couplings for which the primal-dual method
    may need tens of thousands of iterations: features of very different units, linf, p-norms,
    penalties of some entries or by edge, quadratic ones of losses that are not squared, absolute,
    hinge, Huber and lasso losses, and nodes with losses of different kinds. Else over forests; over
    graphs with little fill when the losses are not quadratic, 2 to 20 times faster there for
    logistic losses; and over sparse ones that are factorised in a moment for quadratic losses,
    single solves (a seventh to 75 times as fast) and paths (half to 5 times).
    """
    graph, d = problem.graph, problem.d
    if not graph.plain and graph.n_nodes * d > MOST_UNKNOWNS:
        return False
    possible = (
        _numbers(problem) <= _MOST_NUMBERS
        and Terms.fit(problem)
        and problem.scale.min(initial=1.0) >= _LEAST
    )
    if not possible:
        return False
    if not graph.plain:
        return fits(problem)
    curved, forest = not problem.loss.affine_grad, Forest.of(graph) is not None
    kind = edge_kind(problem)
    mixed = uneven(kinks.units(problem))
    if kind == "springs" and problem.penalty.whole and not (kinks.present(problem) or mixed):
        Q = forms(problem)[0].stiffness
        if not curved:
            return False
        if np.linalg.matrix_rank(Q, hermitian=True) == len(Q):
            if all_smooth(problem) or d > _MOST_PARAMETERS:
                return False  # the primal-dual method begins with Newton steps for all unknowns
            return (forest or _cheap(problem, curved)) and fits(problem)
    hard = kinks.present(problem) or not problem.penalty.whole or kind != "cones"
    if hard or mixed:
        return (forest or SmallGraph.seconds(graph, d) <= _MOST_SECONDS) and fits(problem)
    if d > _MOST_PARAMETERS or not (curved or graph.n_nodes * d >= _FEWEST):
        return False
    return (forest or _cheap(problem, curved)) and fits(problem)


def _cheap(problem: Problem, curved: bool) -> bool:
    """Whether steps over a graph with cycles take less time than the primal-dual method."""
    graph, d = problem.graph, problem.d
    entries = SmallGraph.entries(graph, d)
    if not curved:
        if graph.n_edges > _SPARSE * graph.n_nodes or entries > _SOME_ENTRIES:
            return False
        worth = _MOMENT if problem.loss.labelled.all() else _LONGER
        return SmallGraph.seconds(graph, d) <= worth
    if entries <= _FEW_ENTRIES:
        return True
    return entries <= _MANY_ENTRIES and SmallGraph.seconds(graph, d) <= _MOST_SECONDS


def check(problem: Problem) -> None:
    """Raise when the interior-point method does not fit the problem."""
    if not fits(problem):
        raise ValueError(
            "Newton needs one of nefele's penalties and losses with gradients and Hessians, or "
            "with kinks that it knows: those of nefele. Got "
            f'{problem.penalty!r} and {type(problem.loss).__name__}. Use solver="auto".'
        )
    if not problem.coupled or not problem.graph.plain:
        return
    if Forest.of(problem.graph) is None:
        SmallGraph.check(problem.graph, problem.d)
    elif _numbers(problem) > _MOST_NUMBERS:
        raise ValueError(
            f"Newton needs (n_nodes + n_edges) * d^2 <= {_MOST_NUMBERS}; got "
            f'{_numbers(problem)}. Use solver="auto".'
        )


def _numbers(problem: Problem) -> int:
    return (problem.graph.n_nodes + problem.graph.n_edges) * problem.d**2
