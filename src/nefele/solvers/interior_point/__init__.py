"""The interior-point method: its terms for edges and rows, and the problems it is for."""

from nefele.solvers.interior_point.solver import Newton

__all__ = ["Newton"]
