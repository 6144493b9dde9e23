"""Federated learning with a server, for comparison: general and personalised methods."""

from nefele.networks.baselines.estimators import PersonalClassifier, PersonalRegressor
from nefele.networks.baselines.methods import (
    APFL,
    Ditto,
    FedAMP,
    FedAvg,
    FedPer,
    FedProx,
    FedRep,
    Local,
    Method,
    PerFedAvg,
    PFedMe,
    Pooled,
)

__all__ = [
    "APFL",
    "Ditto",
    "FedAMP",
    "FedAvg",
    "FedPer",
    "FedProx",
    "FedRep",
    "Local",
    "Method",
    "PFedMe",
    "PerFedAvg",
    "PersonalClassifier",
    "PersonalRegressor",
    "Pooled",
]
