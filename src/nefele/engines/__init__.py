"""Graphs larger than one machine: the same solve by parts, in one process, on Ray or by MPI."""

from nefele.engines.costs import Costs, PartCosts
from nefele.engines.files import write_index, write_part
from nefele.engines.folder import PartsFit, solve_parts
from nefele.engines.partition import partition
from nefele.engines.result import PartsResult
from nefele.engines.solving import solve
from nefele.engines.tables import Entry, PartsIndex, PartTable

__all__ = [
    "Costs",
    "Entry",
    "PartCosts",
    "PartTable",
    "PartsFit",
    "PartsIndex",
    "PartsResult",
    "partition",
    "solve",
    "solve_parts",
    "write_index",
    "write_part",
]
