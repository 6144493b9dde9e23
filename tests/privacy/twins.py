"""Three mechanisms that are broken on purpose, for audits that must notice."""

import numpy as np

from nefele.privacy.noise import noisy
from nefele.privacy.updates import Steps, Updates
from nefele.solvers.updates import ahead, dual


class HalfNoise(Updates):
    """Half of the noise that was paid for."""

    def release(self, data, rng):
        class Quiet:
            def standard_normal(self, size=None):
                return 0.5 * rng.standard_normal(size)

        return super().release(data, Quiet())


class RawFeedback(Updates):
    """Says noisy iterates, and goes on from the raw ones."""

    def release(self, data, rng):
        steps = Steps(self, data)
        n, e = self.graph.n_nodes, self.graph.n_edges
        w, u = np.zeros((n, steps.width)), np.zeros((e, steps.width))
        said = np.empty((self.rounds, n, steps.width))
        for k in range(self.rounds):
            new = steps.moved(w, self.graph.div(u))
            scale = self.lam * self.graph.weight
            u = dual(self.penalty, u, self.graph.diff(ahead(w, new)), scale, steps.sigma)
            said[k], w = steps.noisy(new, rng), new
        return said


class NoisePerNeighbour(Updates):
    """A fresh draw for each of some neighbours, whose mean tells more than one of them."""

    neighbours = 9

    def release(self, data, rng):
        steps = Steps(self, data)
        w = np.zeros((self.graph.n_nodes, steps.width))
        said = []
        for _ in range(self.rounds):
            new = steps.moved(w, np.zeros_like(w))
            spread = np.broadcast_to(steps.deviation[:, None], new.shape)
            told = [noisy(new, spread, rng) for _ in range(self.neighbours)]
            said.append(np.mean(told, axis=0))  # what neighbours who put together know
            w = told[0]
        return np.array(said)
