"""A fit of FedRelax in words."""

from __future__ import annotations

from collections import Counter
from typing import Any


def summary_of(model: Any) -> str:
    """What was fitted and sent, and what is promised about privacy."""
    kinds = Counter(type(one).__name__ for one in model.estimators_.values())
    models = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return "\n".join(
        [
            f"{len(model.nodes_)} nodes, {model.graph_.n_edges} edges: {models}",
            model.ledger_.summary(),
            f"privacy: {_promise(model)}",
        ]
    )


def _promise(model: Any) -> str:
    if model.privacy is not None:
        spent = getattr(model, "privacy_", None)
        return "nothing was sent" if spent is None else str(spent.text())
    if model.noise:
        return f"no guarantee (predictions perturbed by noise of deviation {model.noise:g})"
    return "none: predictions are sent as they are"
