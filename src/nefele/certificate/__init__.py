"""How far from the optimum, proven: a lower bound from a flow and the losses' duals."""

from nefele.certificate.bound import Certificate, Origin, certify
from nefele.certificate.guess import estimate

__all__ = ["Certificate", "Origin", "certify", "estimate"]
