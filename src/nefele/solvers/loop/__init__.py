"""The one loop around all solvers, what it remembers and what it saves."""

from nefele.solvers.loop.loop import Callback, run
from nefele.solvers.loop.proven import proven

__all__ = ["Callback", "proven", "run"]
