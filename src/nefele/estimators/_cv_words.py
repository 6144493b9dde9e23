"""The choice of alpha in words."""

from __future__ import annotations

import math
from typing import Any


def summary(model: Any) -> str:
    """Scores, baselines, whether coupling helps and the clearest clusters of a fitted search."""
    results, k = model.cv_results_, model.best_index_
    rule = " (one standard error from the best)" if model.one_se else ""
    lines = [
        f"alpha {model.alpha_:.4g}{rule}: score {results['mean_test_score'][k]:.4g} at "
        f"held-out rows, {results['n_clusters'][k]} clusters",
        f"own data only: {_own_words(model)}; "
        f"one pooled model: {model.baseline_scores_['pooled']:.4g}",
        _verdict(model),
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


def _verdict(model: Any) -> str:
    scores = model.baseline_scores_
    rival = "own data only" if scores["own"] >= scores["pooled"] else "one pooled model"
    if not model.coupling_helps_:
        return f"Coupling does not help here: {rival} does as well or better."
    gain, error = model.gain_, model.gain_se_
    if math.isnan(error):
        return f"Coupling helps by {gain:.3g} over {rival}; one fold does not say how surely."
    words = f"{gain:.3g} ± {error:.2g} (standard error) over {rival}"
    if gain <= error:
        return f"Coupling may help, or it is chance: {words}."
    # as the command line says it: within two standard errors a gain may still be chance
    return f"Coupling {'helps' if gain > 2 * error else 'probably helps'}: {words}."
