"""The primal-dual method, its iterations in NumPy and compiled, and its reduced solves."""

from nefele.solvers.primal_dual.quotient import reduced_solve
from nefele.solvers.primal_dual.solver import PrimalDual, PrimalDualState

__all__ = ["PrimalDual", "PrimalDualState", "reduced_solve"]
