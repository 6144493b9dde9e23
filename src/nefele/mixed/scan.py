"""A fit seen with other couplings, before any of them is estimated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nefele._checks import Array
from nefele.mixed.coupling import Joined
from nefele.mixed.fitting import Fit
from nefele.mixed.likelihood import Likelihood

_WIDER = 1.7  # factor of the deviations at which a graph is tried as well


class Scan:
    """The deviance of a fit with other couplings, its deviations adjusted to their spread."""

    def __init__(self, fitted: Fit, noise: float | None, joined: Joined | None = None) -> None:
        self.fitted, self.noise = fitted, noise
        self.spread = 1.0 if joined is None else joined.spread
        self.sums = fitted.sums()

    def deviance(self, joined: Joined, size: float = 1.0) -> float:
        likelihood = Likelihood(self.sums, self.fitted.personal, joined, self.noise)
        F = self._factor(joined, size) * self.fitted.found.F
        return likelihood(F, self.fitted.found.ridge, slopes=False).deviance

    def bottom(self, joined: Joined, middle: float) -> tuple[float, float]:
        """The least deviance over the size of the deviations, about, and that size."""
        ends = [self.deviance(joined, 1 / _WIDER), self.deviance(joined, _WIDER)]
        logs = np.log([1 / _WIDER, 1.0, _WIDER])
        value, log = _bottom(logs, [ends[0], middle, ends[1]])
        return value, float(np.exp(log))

    def at(self, joined: Joined, size: float) -> Fit:
        """The fit, to start from."""
        found = self.fitted.found
        x = found.x.copy()
        x[: len(found.form.entries[0])] *= self._factor(joined, size)
        return replace(self.fitted, found=replace(found, x=x))

    def _factor(self, joined: Joined, size: float) -> float:
        return size * float(np.sqrt(self.spread / joined.spread))


def _bottom(logs: Array, values: list[float]) -> tuple[float, float]:
    """Value and place of the bottom of the parabola through three points, not far from them."""
    a, b, c = np.polyfit(logs, values, 2)
    if a <= 0:
        k = int(np.argmin(values))
        return values[k], float(logs[k])
    at = float(np.clip(-b / (2 * a), 2 * logs[0], 2 * logs[-1]))
    return float(a * at * at + b * at + c), at
