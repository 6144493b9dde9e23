"""nefele: networked federated learning by generalised total variation minimisation.

One personal model per node of a network, neighbours coupled, every fit with a certified gap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from nefele import estimators
    from nefele.estimators import (
        ConvexClustering,
        ForwardWithinNode,
        GraphSignalSmoother,
        GTVClassifier,
        GTVClassifierCV,
        GTVRegressor,
        GTVRegressorCV,
        WithinNodeKFold,
        bootstrap_intervals,
        keep_node,
        load,
    )

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "ConvergenceWarning",
    "ConvexClustering",
    "DataWarning",
    "ForwardWithinNode",
    "GTVClassifier",
    "GTVClassifierCV",
    "GTVRegressor",
    "GTVRegressorCV",
    "Graph",
    "GraphSignalSmoother",
    "LocalData",
    "PathResult",
    "Problem",
    "Record",
    "Result",
    "Status",
    "WithinNodeKFold",
    "as_graph",
    "bootstrap_intervals",
    "datasets",
    "estimators",
    "graphs",
    "keep_node",
    "lam_max",
    "load",
    "losses",
    "path",
    "penalties",
    "solve",
    "solvers",
]

# These need scikit-learn, which takes long to import: they are looked up at first use.
_ESTIMATORS = (
    "ConvexClustering",
    "ForwardWithinNode",
    "GTVClassifier",
    "GTVClassifierCV",
    "GTVRegressor",
    "GTVRegressorCV",
    "GraphSignalSmoother",
    "WithinNodeKFold",
    "bootstrap_intervals",
    "keep_node",
    "load",
)


def __getattr__(name: str) -> Any:
    if name == "estimators":
        return import_module("nefele.estimators")
    if name in _ESTIMATORS:
        return getattr(import_module("nefele.estimators"), name)
    raise AttributeError(f"module 'nefele' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
