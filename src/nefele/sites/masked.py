"""FedRelax on parameters with masked sums: a member never hears one neighbour's model.

AGN, Algorithm 1, with a squared penalty needs of the neighbours their weighted sum only. Without
each neighbour's parameters there is no certificate: the rounds end when models stop changing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from nefele._checks import Array
from nefele.program import Exchange, Heard, Program, Sum, largest
from nefele.runtime.part import Part
from nefele.runtime.programs import Fitted
from nefele.sites.crowds import Crowd
from nefele.sites.masking import fixed, from_fixed, from_halves, halves, masked
from nefele.solvers.fedrelax import Block, contraction, prox_steps

REASON = "no certificate while masked"


class Masks:
    """The masked sums of one member over a whole run; each mask is used once.

    Parameters
    ----------
    crowd : Crowd
    secrets : dict of member to bytes
        Shared with each of `crowd.partners`.
    unit : float
        Resolution of the sums.
    """

    def __init__(self, crowd: Crowd, secrets: Mapping[str, bytes], unit: float) -> None:
        missing = [name for name in crowd.partners if name not in secrets]
        if missing:
            raise ValueError(f"{crowd.me!r} must share a secret with {missing[0]!r}; it has none.")
        self.crowd, self.secrets, self.unit = crowd, secrets, unit
        self.number = 0

    def said(self, w: Array) -> dict[str, Array]:
        """By neighbour: this member's share in the sum of each of its nodes, masked.

        Both ends of a link send as many rows as the longer message has; the last may be empty.
        """
        crowd, out = self.crowd, {}
        self.number += 1
        for name, faces in crowd.faces.items():
            words = fixed(crowd.shares[name] @ w, self.unit)
            for row, node in enumerate(faces.tolist()):
                context = [name, str(node), str(self.number)]
                around = crowd.around[node]
                words[row] = masked(words[row], crowd.me, around, self.secrets, context)
            rows = np.zeros((max(len(faces), len(crowd.own[name])), 2 * w.shape[1]))
            rows[: len(faces)] = halves(words)
            out[name] = rows
        return out

    def summed(self, w: Array) -> Program[Array]:
        """Weighted sums over the neighbours outside of each own node, shape (n_own, d)."""
        crowd = self.crowd
        heard: Heard = yield Exchange("masked", self.said(w))
        total = np.zeros(w.shape, dtype=np.uint64)
        for name, nodes in crowd.own.items():
            total[np.searchsorted(crowd.nodes, nodes)] += from_halves(
                heard.rows[name][: len(nodes)]
            )
        count = max((len(names) for names in crowd.around.values()), default=1)
        return from_fixed(total, self.unit, count) * crowd.outer[:, None]


def fit_masked(
    part: Part,
    masks: Masks,
    tol: float,
    rounds: int,
    every: int,
    watch: Callable[[int, float], object],
) -> Program[Fitted]:
    """Hear sums, refit, tell, until no parameter changes by more than tol of the largest.

    `watch` is given the change at this member in each round, and that of all when they are
    compared, which is after every `every` rounds. With `kappa` < 1, no parameter vector is further
    from its limit than kappa / (1 - kappa) times the change, but for the resolution.
    """
    step, part.w = prox_steps(part, part.w)
    block = Block(part, part.own, part.loss.prox)
    change, k = np.inf, 0
    while True:
        moved = size = 0.0
        for _ in range(min(every, rounds - k)):
            k += 1
            outside = yield from masks.summed(part.w)
            w = block.update(part, part.placed(part.w), step, part.lam * outside)
            moved = float(np.abs(w - part.w).max(initial=0.0))
            size = float(np.abs(w).max(initial=0.0))
            part.done(w, part.u, w, part.u1)
            watch(k, moved / size if size else 0.0)
        moved, size = yield Sum(np.array([moved, size]), largest=True)
        change = moved / size if size else 0.0
        watch(k, change)
        if change <= tol or k >= rounds:
            kappa = yield from largest(contraction(part))
            inside = part.graph.diff(part.placed(part.w))  # right where both ends are own
            part.u = part.u1 = part.scale[:, None] * part.penalty.gradient(inside)
            return Fitted(np.nan, None, k, [], kappa=kappa, change=float(change), reason=REASON)
