"""One network of torch per node, the parameters of neighbours coupled over a graph."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nefele.networks.cv import GTVNetClassifierCV, GTVNetRegressorCV
    from nefele.networks.estimators import GTVNetClassifier, GTVNetRegressor
    from nefele.networks.graphs import GainGraph, GradientGraph, PredictionGraph
    from nefele.networks.layers import Layers

__all__ = [
    "GTVNetClassifier",
    "GTVNetClassifierCV",
    "GTVNetRegressor",
    "GTVNetRegressorCV",
    "GainGraph",
    "GradientGraph",
    "Layers",
    "PredictionGraph",
]

_LAZY = {  # torch is an extra
    "GTVNetClassifier": "estimators",
    "GTVNetClassifierCV": "cv",
    "GTVNetRegressor": "estimators",
    "GTVNetRegressorCV": "cv",
    "GainGraph": "graphs",
    "GradientGraph": "graphs",
    "Layers": "layers",
    "PredictionGraph": "graphs",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"nefele.networks.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
