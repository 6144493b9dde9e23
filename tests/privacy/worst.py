"""Search for the worst pair of records, and noise that is none."""

import numpy as np
from scipy.optimize import minimize


class Silent:
    """A source of noise that is zero: what is released is what would be without it."""

    def standard_normal(self, size=None):
        return np.zeros(() if size is None else size)


QUIET = 1e-9  # a noise multiplier so small that the grid is as fine as numbers are


def worst_distance(output, size, rng, starts=3, steps=150):
    """The largest distance of the outputs of two records that a search finds.

    `output` maps a record, `size` numbers without any bounds, to an array.
    """

    def distance(pair):
        return -float(np.linalg.norm(output(pair[:size]) - output(pair[size:])))

    best = 0.0
    for _ in range(starts):
        start = rng.normal(size=2 * size) * 10 ** rng.uniform(-1, 5)
        found = minimize(distance, start, method="Powell", options={"maxfev": steps})
        best = max(best, -float(found.fun))
    return best
