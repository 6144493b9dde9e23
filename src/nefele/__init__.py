"""nefele: networked federated learning by generalised total variation minimisation.

One personal model per node of a network, neighbours coupled, every fit with a certified gap.
"""

from nefele import datasets, graphs, losses, penalties, solvers
from nefele.certificate import Certificate
from nefele.critical import lam_max
from nefele.data import LocalData
from nefele.graph import Graph
from nefele.graphs import as_graph
from nefele.lam_path import PathResult, path
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, DataWarning, Record, Result, Status
from nefele.solvers import solve

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "ConvergenceWarning",
    "DataWarning",
    "Graph",
    "LocalData",
    "PathResult",
    "Problem",
    "Record",
    "Result",
    "Status",
    "as_graph",
    "datasets",
    "graphs",
    "lam_max",
    "losses",
    "path",
    "penalties",
    "solve",
    "solvers",
]
