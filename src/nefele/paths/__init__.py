"""Solutions along lam, and the lam from which all nodes agree."""

from nefele.paths.critical import lam_max
from nefele.paths.path import PathResult, path

__all__ = ["PathResult", "lam_max", "path"]
