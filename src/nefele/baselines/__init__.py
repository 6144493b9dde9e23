"""Federated learning without a graph, and what bounds it: the methods to compare with."""

from nefele.baselines._common import Fit
from nefele.baselines.compare import Comparison, compare
from nefele.baselines.fedavg import fedavg
from nefele.baselines.fedgd import fedgd, fedsgd
from nefele.baselines.fedprox import fedprox
from nefele.baselines.gtv import gtv
from nefele.baselines.ifca import ifca
from nefele.baselines.local import local
from nefele.baselines.pooled import oracle, pooled

__all__ = [
    "Comparison",
    "Fit",
    "compare",
    "fedavg",
    "fedgd",
    "fedprox",
    "fedsgd",
    "gtv",
    "ifca",
    "local",
    "oracle",
    "pooled",
]
