"""The best point so far: least objective, greatest lower bound."""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.certificate import Certificate
from nefele.result import Scaled, relative_gap

_CONTRADICTION = 1e-8  # relative excess of a lower bound over the objective that disproves it


class Best:
    """What the examined points have shown together, each bound from whichever point.

    `estimate` is a lower bound on the optimum as far as it can be guessed.
    """

    def __init__(self, problem: Scaled) -> None:
        self.problem = problem
        self.objective, self.lower, self.estimate = np.inf, -np.inf, -np.inf
        self.latest = self.least = np.inf
        self.w: Array | None = None
        self.dual: Certificate | None = None

    def add(self, w: Array, found: Certificate) -> None:
        """Take note of a point and of what is proven or guessed about it."""
        self.latest = found.objective
        if self.w is None or np.isnan(self.objective) or found.objective < self.objective:
            self.w, self.objective = w.copy(), found.objective
        nothing = self.lower == -np.inf and found.estimate > self.estimate
        if self.dual is None or found.lower > self.lower or nothing:
            self.dual, self.lower = found, found.lower
        self.estimate = max(self.estimate, found.estimate, found.lower)
        self.least = min(self.least, found.objective - max(found.estimate, found.lower))

    @property
    def gap_abs(self) -> float:
        """Objective minus lower bound; inf when the bound lies above by more than rounding.

        Such a bound is no bound: a user's penalty or loss has a wrong dual norm or conjugate.
        """
        size = max(abs(self.objective), 1e-6 * abs(self.problem.objective_at_zero))
        if self.lower > self.objective + _CONTRADICTION * size:
            return np.inf
        return max(self.objective - self.lower, 0.0)

    @property
    def gap(self) -> float:
        """The certified gap, relative to the objective."""
        return relative_gap(self.problem, self.objective, self.gap_abs)

    @property
    def guess(self) -> float:
        """The gap as far as it can be guessed from any one point, relative to the objective.

        Bounds of different points are combined only when they are proven.
        """
        return relative_gap(self.problem, self.objective, max(min(self.least, self.gap_abs), 0.0))

    @property
    def progress(self) -> float:
        """A guess of the gap for the choice of steps, in units that stay the same."""
        unit = abs(self.problem.objective_at_zero) or 1.0
        return max(self.objective - self.estimate, 0.0) / unit
