"""Words of a run: its pictures, its measures of error, its notes."""

from __future__ import annotations

from typing import Any

from nefele._checks import Array

PRICE = "price.svg"
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
    PRICE: (
        "What does privacy cost?",
        "Error at held-out rows against epsilon, beside own data only and the fit without noise. "
        "Made of raw rows: not for others.",
    ),
    "contraction.svg": (
        "How fast would gradient descent be?",
        "The bound on its error, without an eigenvalue of the whole problem: safe, not sharp.",
    ),
    "errors.svg": (
        "Whom does it serve badly?",
        "Error of each node at its held-out rows, the largest first; hatched: the worst tenth. "
        "Compare groups that matter by nefele.fairness.",
    ),
    "sources.svg": (
        "What is a model made of?",
        "Of the node with the fewest rows: the share of its parameters that the rows of each node "
        "determine, and how much comes directly from its own rows and from each neighbour. For "
        "other nodes: nefele explain.",
    ),
    "residuals.svg": (
        "What is left over",
        "Residuals of the final fit at all rows. They should show no pattern against the "
        "prediction, and lie on the line if the noise is normal; so should the deviations of the "
        "nodes. Nodes above the dashed lines fit worse than chance explains.",
    ),
}
MADE_OF_NOISE = (
    "All numbers here are made of noisy moments, errors and comparisons too: own data only would "
    "do better with the raw rows than it does here. The share of rows outside the bounds and the "
    "hash of the data stay with the data."
)
PRICED = (
    "The curve of the price is made of raw rows and their held-out parts. It is not private: this "
    "report stays with the data."
)
METRICS = {"regression": "mean squared error", "classification": "log loss"}


def gap_text(gap: float) -> str:
    """A certified gap in print; below what doubles resolve it is no exact number.

    Examples
    --------
    >>> gap_text(0.0), gap_text(3e-5)
    ('< 1e-16', '3.0e-05')
    """
    return f"{gap:.1e}" if gap >= 1e-16 else "< 1e-16"


def edge_notes(chosen: int, alphas: Array, automatic: bool) -> list[str]:
    """A note when the best alpha is at an end of the candidates that were worth trying."""
    if not automatic or len(alphas) < 2:
        return []
    if chosen == 0:
        return ["The best alpha is the largest tried: about one model for each part of the graph."]
    if chosen == len(alphas) - 1:
        return ["The best alpha is the least tried: hardly any coupling."]
    return []


def unused_graph_note(words: str) -> str:
    """What became of a graph that has no part in the coupling that was chosen.

    Examples
    --------
    >>> unused_graph_note("personal slopes by the centre")[:52]
    'The graph has no part in the models: it was not foun'
    """
    return (
        "The graph has no part in the models: it was not found to predict better than "
        f"{words}. Its neighbours may be no more alike than other nodes; nefele graph compares "
        "graphs."
    )


def noise_notes(error: float, y: Any) -> list[str]:
    """A note when predictions are worse than a constant within the bounds of the target can be.

    Examples
    --------
    >>> noise_notes(99.0, (0, 20))
    []
    >>> noise_notes(2879.0, (0, 40))[0][:52]
    'The predictions are noise: their error is 2879, whil'
    """
    low, high = y if isinstance(y, list | tuple) else (-y, y)
    most = ((high - low) / 2) ** 2
    if error <= most:
        return []
    return [
        f"The predictions are noise: their error is {error:.4g}, while the middle of the bounds of "
        f"the target, {(low + high) / 2:g}, has one of at most {most:.4g} for any rows. Take a "
        "larger epsilon, more rows per node, or narrower bounds; nefele.privacy.price tells "
        "beforehand, and --price beside the fit."
    ]


def missed_notes(counts: dict[str, int], tol: float) -> list[str]:
    """Notes about solves that did not reach the tolerance."""
    return [
        f"{missed} solves of the {phase} did not reach the relative gap {tol:.1e}; their numbers "
        "are those of the points reached."
        for phase, missed in counts.items()
        if missed
    ]


def columns_used(facts: dict[str, Any]) -> list[str]:
    """Which columns a run used, and how: a line for plain numbers, one for each other column.

    Examples
    --------
    >>> columns_used({"columns": [["wind", "numbers"], ["roof", "text, 2 levels against 'tin'"]]})
    ['Features: wind (numbers)', "  roof: text, 2 levels against 'tin'"]
    """
    if "columns" not in facts:  # a demonstration
        return []
    plain = [name for name, how in facts["columns"] if how == "numbers"]
    others = [f"  {name}: {how}" for name, how in facts["columns"] if how != "numbers"]
    first = f"{', '.join(plain)} (numbers)" if plain else "no plain numbers" if others else "none"
    return [f"Features: {first}", *others]


def describe_graph(facts: dict[str, Any]) -> str:
    """The graph in a few words."""
    n, m = facts["n_nodes"], facts["n_edges"]
    text = f"{n} node{'s' if n != 1 else ''}, {m} edge{'s' if m != 1 else ''}"
    return f"{text}, {facts['source']}"
