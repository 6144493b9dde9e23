"""Which solver: by name, or for "auto" the one that fits the problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nefele._checks import check_name
from nefele.problem import Problem
from nefele.solvers.admm import ADMM
from nefele.solvers.base import Solver
from nefele.solvers.fedrelax import FedRelax
from nefele.solvers.interior_point import Newton
from nefele.solvers.local import Local
from nefele.solvers.merging import Merging
from nefele.solvers.pd_gradient import PrimalDualGradient
from nefele.solvers.primal_dual import PrimalDual
from nefele.solvers.quadratic import QuadraticCG
from nefele.solvers.spdhg import StochasticPrimalDual

_BY_NAME: dict[str, Callable[[], Solver]] = {
    "admm": ADMM,
    "algorithm1": PrimalDual.as_printed,
    "fedrelax": FedRelax,
    "local": Local,
    "merging": Merging,
    "newton": Newton,
    "pd_gradient": PrimalDualGradient,
    "primal_dual": PrimalDual,
    "quadratic_cg": QuadraticCG,
    "spdhg": StochasticPrimalDual,
}


def as_solver(solver: Any, problem: Problem) -> Solver:
    """The solver itself, the one of this name, or for "auto" the one that fits the problem.

    Parameters
    ----------
    solver : str or Solver
    problem : Problem
        What "auto" looks at.

    Examples
    --------
    >>> from nefele import Graph, LocalData
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> as_solver("auto", Problem(Graph.from_edges([(0, 1)]), data, lam=0.0))
    Local()
    """
    if isinstance(solver, Solver):
        return solver
    if solver != "auto":
        return _BY_NAME[check_name(solver, ["auto", *_BY_NAME], "solver")]()
    if not problem.coupled:
        return Local()
    if QuadraticCG.fits(problem):
        return QuadraticCG()
    if Merging.pays(problem):
        return Merging()
    return Newton() if Newton.pays(problem) else PrimalDual()
