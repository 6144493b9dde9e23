"""What can honestly be said about a comparison on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array

OWN, POOLED, COUPLED = "own data only", "one model", "nefele"
METRICS = {"regression": "mean squared error", "classification": "log loss"}
_SAME = 1e-6  # relative difference of errors that is none


@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors at held-out rows of the nodes' own models, of one model, and of the coupled models.

    Attributes
    ----------
    own, pooled, coupled : arrays of shape (n,)
        Mean error of each node that has held-out rows.
    held_out : int array of shape (n,)
        Their numbers of held-out rows.

    Examples
    --------
    >>> count = np.full(4, 3)
    >>> own, coupled = np.array([2.0, 3.0, 2.0, 3.0]), np.array([1.0, 1.1, 1.0, 1.1])
    >>> found = Comparison(own, own + 1.0, coupled, count)
    >>> print(found.verdict())
    Coupling helps: the error at held-out rows is 58% smaller than with own data only and 70%
    smaller than with one model.
    """

    own: Array
    pooled: Array
    coupled: Array
    held_out: NDArray[np.int64]

    def total(self, errors: Array) -> float:
        """Mean over all held-out rows."""
        return float(np.average(errors, weights=self.held_out))

    @property
    def scores(self) -> list[tuple[str, float]]:
        """Overall errors by method."""
        pairs = ((OWN, self.own), (POOLED, self.pooled), (COUPLED, self.coupled))
        return [(name, self.total(errors)) for name, errors in pairs]

    def count(self, errors: Array) -> tuple[int, int]:
        """Number of nodes that do better and worse than with own data only."""
        slack = _SAME * self.own
        return int((errors < self.own - slack).sum()), int((errors > self.own + slack).sum())

    def rival(self) -> tuple[str, Array]:
        """The better of the two simple methods."""
        own_wins = self.total(self.own) <= self.total(self.pooled)
        return (OWN, self.own) if own_wins else (POOLED, self.pooled)

    def gain(self) -> tuple[float, float]:
        """By how much the coupled models beat the rival, and the standard error over the nodes."""
        share = self.held_out / self.held_out.sum()
        difference = self.rival()[1] - self.coupled
        mean = float(share @ difference)
        if len(share) < 2:
            return mean, float("nan")
        spread = float(np.sqrt((share**2) @ (difference - mean) ** 2))
        return mean, spread * float(np.sqrt(len(share) / (len(share) - 1)))

    @property
    def helps(self) -> str:
        """Whether it helps: "yes", "unclear" (within one standard error, or below 1%) or "no"."""
        gain, error = self.gain()
        size = self.total(self.rival()[1])
        if not gain > _SAME * abs(size):
            return "no"
        return "yes" if gain >= 0.01 * size and not gain <= error else "unclear"

    def verdict(self) -> str:
        """One or two plain sentences."""
        own, pooled, coupled = (error for _, error in self.scores)
        name, _ = self.rival()
        best = min(own, pooled)
        if self.helps == "no":
            better = "does better" if coupled > best * (1 + _SAME) else "does as well"
            return (
                f"Coupling does not help here: {name} {better} at held-out rows ({best:.4g} "
                f"against {coupled:.4g})."
            )
        gain, error = self.gain()
        if self.helps == "unclear":
            return (
                f"Coupling does not clearly help: the error at held-out rows is {coupled:.4g} "
                f"against {best:.4g} with {name}, a gain of {gain:.2g} with a standard error of "
                f"{error:.2g}."
            )
        return (
            f"Coupling helps: the error at held-out rows is {_less(coupled, own)} smaller than "
            f"with own data only and {_less(coupled, pooled)} smaller than with one model."
        )


def _less(value: float, base: float) -> str:
    share = 1.0 - value / base
    return f"{share:.0%}" if share < 0.995 else f"{share:.2%}"


def edge_notes(chosen: int, alphas: Array, automatic: bool) -> list[str]:
    """A note when the best alpha is at an end of the candidates."""
    if not automatic or len(alphas) < 2:
        return []
    if chosen == 0:
        return ["The best alpha is the largest tried: one model per connected part of the graph."]
    if chosen == len(alphas) - 1:
        return ["The best alpha is the least tried: hardly any coupling."]
    return []


def missed_notes(counts: dict[str, int], tol: float) -> list[str]:
    """Notes about solves that did not reach the tolerance."""
    return [
        f"{missed} solves of the {phase} did not reach the relative gap {tol:.1e}; their numbers "
        "are those of the points reached."
        for phase, missed in counts.items()
        if missed
    ]


def describe_graph(facts: dict[str, Any]) -> str:
    """The graph in a few words."""
    n, m = facts["n_nodes"], facts["n_edges"]
    text = f"{n} node{'s' if n != 1 else ''}, {m} edge{'s' if m != 1 else ''}"
    return f"{text}, {facts['source']}"
