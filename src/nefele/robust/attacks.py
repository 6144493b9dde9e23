"""All attacks: on what nodes say, on their rows, and on the graph."""

from nefele.robust.messages import (
    Alie,
    Constant,
    Curious,
    InnerProduct,
    MessageAttack,
    Random,
    SignFlip,
)
from nefele.robust.poisoning import (
    Backdoor,
    CleanLabel,
    FlipLabels,
    PoisonFeatures,
    ShiftLabels,
)
from nefele.robust.sybil import Sybil

__all__ = [
    "Alie",
    "Backdoor",
    "CleanLabel",
    "Constant",
    "Curious",
    "FlipLabels",
    "InnerProduct",
    "MessageAttack",
    "PoisonFeatures",
    "Random",
    "ShiftLabels",
    "SignFlip",
    "Sybil",
]
