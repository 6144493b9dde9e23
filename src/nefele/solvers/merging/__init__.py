"""Merging what is equal: points pulled together, as in convex clustering."""

from nefele.solvers.merging.solver import Merging

__all__ = ["Merging"]
