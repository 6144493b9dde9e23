"""Attacks, what they can do at most, and what holds them off."""

from nefele.robust.aggregation import (
    centred_clipping,
    coordinate_median,
    fltrust,
    geometric_median,
    krum,
    trimmed_mean,
)
from nefele.robust.attacks import (
    Alie,
    Backdoor,
    CleanLabel,
    Constant,
    Curious,
    FlipLabels,
    InnerProduct,
    MessageAttack,
    PoisonFeatures,
    Random,
    ShiftLabels,
    SignFlip,
    Sybil,
)
from nefele.robust.bounds import InfluenceBound, influence_bound
from nefele.robust.detection import Saturation, Suspects, saturation, suspects
from nefele.robust.guarded import Guarded
from nefele.robust.leaving import Without, without_node
from nefele.robust.rules import (
    CentredClip,
    Clip,
    FLTrust,
    GeometricMedian,
    Krum,
    Last,
    Median,
    Rule,
    TrimmedMean,
)
from nefele.robust.worst import WorstNodes, worst_nodes

__all__ = [
    "Alie",
    "Backdoor",
    "CentredClip",
    "CleanLabel",
    "Clip",
    "Constant",
    "Curious",
    "FLTrust",
    "FlipLabels",
    "GeometricMedian",
    "Guarded",
    "InfluenceBound",
    "InnerProduct",
    "Krum",
    "Last",
    "Median",
    "MessageAttack",
    "PoisonFeatures",
    "Random",
    "Rule",
    "Saturation",
    "ShiftLabels",
    "SignFlip",
    "Suspects",
    "Sybil",
    "TrimmedMean",
    "Without",
    "WorstNodes",
    "centred_clipping",
    "coordinate_median",
    "fltrust",
    "geometric_median",
    "influence_bound",
    "krum",
    "saturation",
    "suspects",
    "trimmed_mean",
    "without_node",
    "worst_nodes",
]
