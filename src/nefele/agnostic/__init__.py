"""Model-agnostic FedRelax: any model with fit and predict at each node of a graph (AGN)."""

from nefele.agnostic.fedrelax import FedRelaxClassifier, FedRelaxRegressor

__all__ = ["FedRelaxClassifier", "FedRelaxRegressor"]
