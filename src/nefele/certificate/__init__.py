"""How far from the optimum, proven: a lower bound from a flow and the losses' duals."""

from nefele.certificate.bound import Certificate, Origin, certify, objective_of
from nefele.certificate.feasible import certify_feasible, certify_known
from nefele.certificate.guess import estimate, guess

__all__ = [
    "Certificate",
    "Origin",
    "certify",
    "certify_feasible",
    "certify_known",
    "estimate",
    "guess",
    "objective_of",
]
