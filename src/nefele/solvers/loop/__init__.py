"""The one loop around all solvers, what it remembers and what it saves."""

from nefele.solvers.loop.loop import Callback, run

__all__ = ["Callback", "run"]
