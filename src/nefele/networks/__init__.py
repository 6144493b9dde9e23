"""One network of torch per node, the parameters of neighbours coupled over a graph."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nefele.networks.estimators import GTVNetClassifier, GTVNetRegressor
    from nefele.networks.layers import Layers

__all__ = ["GTVNetClassifier", "GTVNetRegressor", "Layers"]

_LAZY = {  # torch is an extra
    "GTVNetClassifier": "estimators",
    "GTVNetRegressor": "estimators",
    "Layers": "layers",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"nefele.networks.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
