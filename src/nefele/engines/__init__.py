"""Graphs larger than one machine: the same solve by parts, in one process, on Ray or by MPI."""

from nefele.engines.costs import Costs, PartCosts
from nefele.engines.result import PartsResult
from nefele.engines.solving import solve

__all__ = ["Costs", "PartCosts", "PartsResult", "solve"]
