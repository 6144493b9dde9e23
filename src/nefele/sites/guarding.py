"""FedRelax between sites with guarded messages: nodes hear by an agreed rule.

AGN, Algorithm 1, where a node moves towards what a rule of `nefele.robust` makes of its neighbours'
parameters, those of its own member too. What the rounds come to minimises no objective, so there
is no certificate: they end when models stop changing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.program import Program, Sum
from nefele.robust.guarded import Before
from nefele.robust.rules import Rule
from nefele.runtime.part import Part
from nefele.runtime.programs import Fitted
from nefele.sites.relaxing import told
from nefele.solvers.fedrelax import Block, prox_steps
from nefele.solvers.updates import refit

REASON = "no certificate: guarded messages"


class Ears:
    """What nodes hear by a rule in place of what was said; each remembers its last round.

    Parameters
    ----------
    rule : Rule

    Examples
    --------
    >>> from nefele.robust import Median
    >>> rows = {k: np.array([v]) for k, v in enumerate((1.0, 2.0, 1e9))}
    >>> [row.tolist() for row in Ears(Median()).heard("a", rows, np.zeros(1)).values()]
    [[2.0], [2.0], [2.0]]
    """

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._before: dict[Any, Before] = {}

    def heard(self, node: Any, rows: dict[Any, Array], own: Array) -> dict[Any, Array]:
        """By neighbour, what `node` goes on with; arrays of one shape, as its own."""
        before = self._before.setdefault(node, Before())
        flat = {j: np.ravel(row) for j, row in rows.items()}
        said = before.heard(self.rule, flat, np.ravel(own))
        return {j: row.reshape(np.shape(own)) for j, row in said.items()}


def fit_guarded(
    part: Part,
    rule: Rule,
    tol: float,
    rounds: int,
    every: int,
    wait: bool,
    watch: Callable[[int, float], object],
) -> Program[Fitted]:
    """Hear by the rule, refit, tell, until no parameter changes by more than tol of the largest.

    `watch` is given the change at this member in each round, and that of all when they are
    compared, which is after every `every` rounds.
    """
    step, part.w = prox_steps(part, part.w)
    block, ears, near = Block(part, part.own, part.loss.prox), Ears(rule), _neighbours(part)
    seen = yield from part.seen(part.w, "parameters")
    k = 0
    while True:
        moved = size = 0.0
        for _ in range(min(every, rounds - k)):
            k += 1
            around = _around(ears, near, seen, part.w)
            slope = part.penalty.gradient(block.degree * part.w - part.lam * around)
            w = refit(block.prox, part.w, slope, step)
            seen = yield from told(part, w, seen, wait)
            moved, size = (float(np.abs(v).max(initial=0.0)) for v in (w - part.w, w))
            part.done(w, part.u, w, part.u1)
            watch(k, moved / size if size else 0.0)
        moved, size = yield Sum(np.array([moved, size]), largest=True)
        change = float(moved / size) if size else 0.0
        watch(k, change)
        if change <= tol or k >= rounds:
            inside = part.graph.diff(part.placed(part.w))  # right where both ends are own
            part.u = part.u1 = part.scale[:, None] * part.penalty.gradient(inside)
            return Fitted(np.nan, None, k, [], change=change, reason=REASON)


def _neighbours(part: Part) -> list[dict[int, float]]:
    """Of each own node: the weights of its edges by neighbour, in the order of the edges."""
    near: dict[int, dict[int, float]] = {i: {} for i in part.own.tolist()}
    ends = (part.graph.head.tolist(), part.graph.tail.tolist(), part.graph.weight.tolist())
    for i, j, weight in zip(*ends, strict=True):
        for one, other in ((i, j), (j, i)):
            if one in near:
                near[one][other] = weight
    return list(near.values())


def _around(ears: Ears, near: list[dict[int, float]], seen: Array, w: Array) -> Array:
    """sum_j A_ij of what node i hears of j, shape (n_own, d)."""
    out = np.zeros_like(w)
    for k, weights in enumerate(near):
        if weights:
            said = ears.heard(k, {j: seen[j] for j in weights}, w[k])
            out[k] = sum(a * said[j] for j, a in weights.items())
    return out
