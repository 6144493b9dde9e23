"""Solvers, each callable by name, and `solve`, which picks one."""

from nefele.solvers.admm import ADMM
from nefele.solvers.base import Solver, State
from nefele.solvers.choose import as_solver
from nefele.solvers.fedrelax import FedRelax
from nefele.solvers.interior_point import Newton
from nefele.solvers.local import Local
from nefele.solvers.loop import run
from nefele.solvers.merging import Merging
from nefele.solvers.pd_gradient import PrimalDualGradient
from nefele.solvers.primal_dual import PrimalDual
from nefele.solvers.quadratic import QuadraticCG
from nefele.solvers.solving import solve
from nefele.solvers.spdhg import StochasticPrimalDual

__all__ = [
    "ADMM",
    "FedRelax",
    "Local",
    "Merging",
    "Newton",
    "PrimalDual",
    "PrimalDualGradient",
    "QuadraticCG",
    "Solver",
    "State",
    "StochasticPrimalDual",
    "as_solver",
    "run",
    "solve",
]
