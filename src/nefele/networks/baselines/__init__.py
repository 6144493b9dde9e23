"""Federated learning with a server, for comparison: general and personalised methods."""

from nefele.networks.baselines.among import FedAMP, FedPer, FedRep
from nefele.networks.baselines.beside import APFL, Ditto, PerFedAvg, PFedMe
from nefele.networks.baselines.estimators import PersonalClassifier, PersonalRegressor
from nefele.networks.baselines.methods import FedAvg, FedProx, Local, Method, Pooled

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
