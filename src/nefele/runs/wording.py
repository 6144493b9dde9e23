"""What can honestly be said about a comparison on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array

OWN, POOLED, COUPLED = "own data only", "one model", "nefele"
PICTURES = {  # of a run, in the order of the report: title and words
    "graph.svg": (
        "The graph, examined",
        "Colours are communities of the graph alone, without the models. Orange dashes, if there "
        "are any, are suspicious edges: the fit cuts them although all others at one end hold.",
    ),
    "proven.svg": (
        "Which neighbours provably agree",
        "The certified gap bounds how far neighbours can be apart at the exact optimum. Colours "
        "are groups of nodes that provably have nearly the same model.",
    ),
    "critical.svg": (
        "What it takes to hold neighbours together",
        "The flow that proves the critical alpha, from which on connected nodes have one model. "
        "Dark, wide edges carry most: where they are few, the graph would come apart first.",
    ),
    "slack.svg": (
        "Are the clusters well-connected?",
        "A cluster with positive slack has one model by Theorem 2 of the first paper, whatever the "
        "others do. The condition asks for a lot: without it a cluster may be as real.",
    ),
    "bound.svg": (
        "How near are clusters to their own optimum?",
        "The bound on the distance of a cluster's model from the best one for its own rows, which "
        "edges to other clusters cause. Hatched where the cluster is not well-connected.",
    ),
    "influence.svg": (
        "Which edges matter",
        "How far the models move when an edge is removed, exactly, without another fit.",
    ),
    "sensitivity.svg": (
        "Which labels matter",
        "How far all models together move, at most, when one label of a node changes by one.",
    ),
    "contraction.svg": (
        "How fast would gradient descent be?",
        "The bound on its error, without an eigenvalue of the whole problem: safe, not sharp.",
    ),
}
METRICS = {"regression": "mean squared error", "classification": "log loss"}
_MOST = 0.5  # share of the gain that is worth naming who carries it
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
    nodes : sequence of str
        Their ids, to name those that carry the gain.

    Examples
    --------
    >>> count = np.full(4, 3)
    >>> own, coupled = np.array([2.0, 3.0, 2.0, 3.0]), np.array([1.0, 1.1, 1.0, 1.1])
    >>> found = Comparison(own, own + 1.0, coupled, count)
    >>> print(found.verdict())
    Coupling helps: the error at held-out rows is 58% smaller than with own data only and 70%
    smaller than with one model; the gain over own data only is 1.4 ± 0.26 (standard error).
    """

    own: Array
    pooled: Array
    coupled: Array
    held_out: NDArray[np.int64]
    nodes: Sequence[str] = ()

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
        """Whether it helps: "yes", "probably", "unclear" or "no".

        "yes" is a gain of more than two standard errors, "probably" of more than one; below that,
        below 1% of the error, or without a standard error it is "unclear".
        """
        gain, error = self.gain()
        size = self.total(self.rival()[1])
        if not gain > _SAME * abs(size):
            return "no"
        if gain < 0.01 * size or not gain > error:
            return "unclear"
        return "yes" if gain > 2 * error else "probably"

    def verdict(self) -> str:
        """One to three plain sentences."""
        own, pooled, coupled = (error for _, error in self.scores)
        name, _ = self.rival()
        best = min(own, pooled)
        if self.helps == "no":
            better = "does better" if coupled > best * (1 + _SAME) else "does as well"
            return (
                f"Coupling does not help here: {name} {better} at held-out rows ({best:.4g} "
                f"against {coupled:.4g}); the gain is {self._gain_text()}."
            )
        if self.helps == "unclear":
            return (
                f"Coupling does not clearly help: the error at held-out rows is {coupled:.4g} "
                f"against {best:.4g} with {name}, a gain of {self._gain_text()}.{self._carriers()}"
            )
        return (
            f"Coupling {'' if self.helps == 'yes' else 'probably '}helps: the error at held-out "
            f"rows is {_less(coupled, own)} smaller than with own data only and "
            f"{_less(coupled, pooled)} smaller than with one model; the gain over {name} is "
            f"{self._gain_text()}.{self._carriers()}"
        )

    def _gain_text(self) -> str:
        gain, error = self.gain()
        if not np.isfinite(error):
            return f"{gain:.2g}, from one node, so without a standard error"
        return f"{gain:.2g} ± {error:.2g} (standard error)"

    def _carriers(self) -> str:
        """A sentence when few nodes carry half of the gain or more."""
        parts = self.held_out / self.held_out.sum() * (self.rival()[1] - self.coupled)
        order = np.argsort(-parts, kind="stable")
        share = np.cumsum(parts[order]) / parts.sum()
        few = int(np.argmax(share >= _MOST)) + 1
        if len(parts) < 3 or len(self.nodes) != len(parts) or few > max(1, len(parts) // 10):
            return ""
        names = ", ".join(str(self.nodes[i]) for i in order[: min(few, 3)])
        more = ", ..." if few > 3 else ""
        who = f"One node, {names}, carries" if few == 1 else f"{few} nodes, {names}{more}, carry"
        much = f"{share[few - 1]:.0%} of it" if share[few - 1] < 1 else "all of it"
        return f" {who} {much}."


def _less(value: float, base: float) -> str:
    share = 1.0 - value / base
    return f"{share:.0%}" if share < 0.995 else f"{share:.2%}"


def gap_text(gap: float) -> str:
    """A certified gap in print; below what doubles resolve it is no exact number.

    Examples
    --------
    >>> gap_text(0.0), gap_text(3e-5)
    ('< 1e-16', '3.0e-05')
    """
    return f"{gap:.1e}" if gap >= 1e-16 else "< 1e-16"


def edge_notes(chosen: int, alphas: Array, automatic: bool) -> list[str]:
    """A note when the best alpha is at an end of the candidates."""
    if not automatic or len(alphas) < 2:
        return []
    if chosen == 0:
        return ["The best alpha is the largest tried: about one model for each part of the graph."]
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
