"""The choice of alpha in words."""

from __future__ import annotations

from typing import Any


def summary(model: Any) -> str:
    """Scores, baselines, whether coupling helps and the clearest clusters of a fitted search."""
    results, k = model.cv_results_, model.best_index_
    count = results["n_clusters"][k]
    rule = " (one standard error from the best)" if model.one_se else ""
    lines = [
        f"alpha {model.alpha_:.4g}{rule}: score {results['mean_test_score'][k]:.4g} at "
        f"held-out rows, {count} cluster{'s' if count != 1 else ''}",
        f"own data only: {_own_words(model)}; one model: {model.baseline_scores_['pooled']:.4g}",
        model.verdict_.text(),
    ]
    if model.clearest_clusters_ is None:
        lines.append("No clear clusters: no partition lasts along the path.")
    else:
        count = int(model.clearest_clusters_.max()) + 1
        lines.append(f"clearest clusters: {count}, at alpha {model.clearest_alpha_:.4g}")
    if model.n_left_out_:
        lines.append(
            f"{model.n_left_out_} held-out rows were not judged: the graph of their fold does "
            "not know their node."
        )
    return "\n".join(lines)


def _own_words(model: Any) -> str:
    if not model._n_own:
        return "not possible, the nodes of held-out rows have no training rows"
    bare = model._n_judged - model._n_own
    rest = f" ({bare} of {model._n_judged} held-out rows, of nodes without training rows, by "
    words = f"{model.baseline_scores_['own']:.4g}"
    return f"{words}{rest}the pooled model)" if bare else words
