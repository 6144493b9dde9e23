"""Audits: what leaks, measured. Each ends in a sentence, a number with its uncertainty, a picture.

`print(found)` is the sentence, `found.plot()` the picture.
"""

from nefele.privacy.audit.gaussian import gaussian_delta, gaussian_epsilon, gaussian_mu
from nefele.privacy.audit.information import Information, mutual_information
from nefele.privacy.audit.lower_bound import LowerBound, canary
from nefele.privacy.audit.members import Membership, loss_attack, membership
from nefele.privacy.audit.reconstruct import (
    row_from_gradient,
    statistics_from_answers,
    statistics_from_messages,
    watch,
)
from nefele.privacy.audit.reconstruction import Reconstruction

__all__ = [
    "Information",
    "LowerBound",
    "Membership",
    "Reconstruction",
    "canary",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "loss_attack",
    "membership",
    "mutual_information",
    "row_from_gradient",
    "statistics_from_answers",
    "statistics_from_messages",
    "watch",
]
