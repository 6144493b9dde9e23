"""A view whose arrays do not fit together is refused before anything is drawn."""

from __future__ import annotations

import numpy as np

from nefele.report.view import View


def check_view(view: View) -> None:
    """Raise ValueError, with the field's name, when an array of the view has the wrong shape."""
    n, p, K = len(view.nodes), len(view.parameters), len(view.alphas)
    if not n or not K:
        raise ValueError(f"A view must have nodes and alphas; got {n} nodes and {K} alphas.")
    wanted: dict[str, tuple[int, ...]] = {
        "rows": (n,),
        "alphas": (K,),
        "coef": (K, n, p),
        "clusters": (K, n),
        "gaps": (K,),
        "cv_error": (K,),
        "cv_se": (K,),
        "own_error": (n,),
        "pooled_error": (n,),
        "node_error": (K, n),
        "weights": (len(view.edges),),
    }
    if len(view.edges):
        wanted["edges"] = (len(view.edges), 2)
    if view.positions is not None:
        wanted["positions"] = (n, 2)
    for name, shape in wanted.items():
        came = np.shape(getattr(view, name))
        if came != shape:
            raise ValueError(
                f"view.{name} must have shape {shape} ({n} nodes, {p} parameters, {K} alphas); "
                f"got {came}."
            )
    edges = np.asarray(view.edges)
    if edges.size and not 0 <= edges.min() <= edges.max() < n:
        raise ValueError(
            f"view.edges must hold places of nodes, 0 to {n - 1}; got {edges.min()} to "
            f"{edges.max()}."
        )
    for name in ("chosen", "best", "clearest"):
        if not -1 <= getattr(view, name) < K:
            raise ValueError(
                f"view.{name} must be a place in alphas, 0 to {K - 1}, or -1; got "
                f"{getattr(view, name)}."
            )
