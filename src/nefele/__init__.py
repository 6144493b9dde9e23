"""nefele: networked federated learning by generalised total variation minimisation.

One personal model per node of a network, neighbours coupled, every fit with a certified gap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nefele import (
        accountable,
        agnostic,
        baselines,
        datasets,
        encoding,
        engines,
        estimators,
        flavours,
        graph_learning,
        graphs,
        losses,
        networks,
        penalties,
        privacy,
        report,
        robust,
        runtime,
        selection,
        sites,
        solvers,
        theory,
    )
    from nefele.accountable import explain, fairness
    from nefele.agnostic import FedRelaxClassifier, FedRelaxRegressor
    from nefele.certificate import Certificate
    from nefele.data import LocalData
    from nefele.encoding import TableEncoder
    from nefele.engines import solve
    from nefele.estimators import (
        ConvexClustering,
        ForwardWithinNode,
        GraphSelectorCV,
        GraphSignalSmoother,
        GTVClassifier,
        GTVClassifierCV,
        GTVRegressor,
        GTVRegressorCV,
        WithinNodeKFold,
        bootstrap_intervals,
        components_of,
        keep_node,
        load,
        plot_residuals,
    )
    from nefele.graph import Graph
    from nefele.graphs import as_graph
    from nefele.paths import PathResult, lam_max, path
    from nefele.problem import Problem
    from nefele.result import ConvergenceWarning, DataWarning, Record, Result, Status

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "ConvergenceWarning",
    "ConvexClustering",
    "DataWarning",
    "FedRelaxClassifier",
    "FedRelaxRegressor",
    "ForwardWithinNode",
    "GTVClassifier",
    "GTVClassifierCV",
    "GTVRegressor",
    "GTVRegressorCV",
    "Graph",
    "GraphSelectorCV",
    "GraphSignalSmoother",
    "LocalData",
    "PathResult",
    "Problem",
    "Record",
    "Result",
    "Status",
    "TableEncoder",
    "WithinNodeKFold",
    "accountable",
    "agnostic",
    "as_graph",
    "baselines",
    "bootstrap_intervals",
    "components_of",
    "datasets",
    "encoding",
    "engines",
    "estimators",
    "explain",
    "fairness",
    "flavours",
    "graph_learning",
    "graphs",
    "keep_node",
    "lam_max",
    "load",
    "losses",
    "networks",
    "path",
    "penalties",
    "plot_residuals",
    "privacy",
    "report",
    "robust",
    "runtime",
    "selection",
    "sites",
    "solve",
    "solvers",
    "theory",
]

# NumPy and SciPy take long to import, scikit-learn longer: all names are looked up at first use.
# So the command line is there at once, and Ctrl-C ends it at any time.
_LAZY = {
    "accountable": ("explain", "fairness"),
    "agnostic": ("FedRelaxClassifier", "FedRelaxRegressor"),
    "certificate": ("Certificate",),
    "data": ("LocalData",),
    "encoding": ("TableEncoder",),
    "engines": ("solve",),
    "estimators": (
        "ConvexClustering",
        "ForwardWithinNode",
        "GTVClassifier",
        "GTVClassifierCV",
        "GTVRegressor",
        "GTVRegressorCV",
        "GraphSelectorCV",
        "GraphSignalSmoother",
        "WithinNodeKFold",
        "bootstrap_intervals",
        "components_of",
        "keep_node",
        "load",
        "plot_residuals",
    ),
    "graph": ("Graph",),
    "graphs": ("as_graph",),
    "paths": ("PathResult", "lam_max", "path"),
    "problem": ("Problem",),
    "result": ("ConvergenceWarning", "DataWarning", "Record", "Result", "Status"),
}
_HOME = {name: package for package, names in _LAZY.items() for name in names}
_PACKAGES = set(__all__) - set(_HOME)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"nefele.{name}")
    if name in _HOME:
        found = getattr(import_module(f"nefele.{_HOME[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'nefele' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
