"""Model-agnostic federated learning: any model with fit and predict at each node."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nefele.agnostic.fedrelax import FedRelaxClassifier, FedRelaxRegressor

if TYPE_CHECKING:
    from nefele.agnostic.boosted import RelaxedBoosting, boosting
    from nefele.agnostic.node_boosting import NodeBoosting
    from nefele.agnostic.torch_model import TorchClassifier, TorchRegressor

__all__ = [
    "FedRelaxClassifier",
    "FedRelaxRegressor",
    "NodeBoosting",
    "RelaxedBoosting",
    "TorchClassifier",
    "TorchRegressor",
    "boosting",
]

_LAZY = {  # slow to import; torch is an extra
    "NodeBoosting": "node_boosting",
    "RelaxedBoosting": "boosted",
    "boosting": "boosted",
    "TorchClassifier": "torch_model",
    "TorchRegressor": "torch_model",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"nefele.agnostic.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
