"""Edges that couple some entries of the parameters: the others have no flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nefele._checks import Array


class Some:
    """The cones or springs of the entries `on` of d, in the place of cones of all entries."""

    def __init__(self, core: Any, on: Sequence[int], d: int) -> None:
        self.core, self.on, self.d = core, list(on), d

    def __getattr__(self, name: str) -> Any:
        if name == "core":  # not there yet, as in a copy
            raise AttributeError(name)
        return getattr(self.core, name)

    def _placed(self, values: Array) -> Array:
        out = np.zeros((len(values), self.d))
        out[:, self.on] = values
        return out

    @property
    def flow(self) -> Array:
        """The flow u, shape (n_edges, d)."""
        return self._placed(self.core.flow)

    def ahead_flow(self, step: float) -> Array:
        """The flow after a step."""
        return self._placed(self.core.ahead_flow(step))

    def scale(self) -> Array:
        """C, shape (n_edges, d, d)."""
        C, on = self.core.scale(), np.array(self.on)
        out = np.zeros((len(C), self.d, self.d))
        out[:, on[:, None], on] = C
        return out

    def aim(self, level: float, rest: float, bend: float) -> Array:
        """The pull of the entries."""
        return self._placed(self.core.aim(level, rest, bend))

    def nudge(self, step: float, level: float) -> Array:
        """The new pull of the entries."""
        return self._placed(self.core.nudge(step, level))

    def direct(self, change: Array, flow: Array, rest: float) -> None:
        """Directions, given D dw and C D dw."""
        parts = (np.ascontiguousarray(x[:, self.on]) for x in (change, flow))
        self.core.direct(*parts, rest)
