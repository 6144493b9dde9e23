"""Privacy: feature maps, and audits that measure what leaks."""

from nefele.privacy import audit, maps

__all__ = ["audit", "maps"]
