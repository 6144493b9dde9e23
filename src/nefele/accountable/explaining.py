"""From a fitted model and a node to what the model is made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.accountable.direct import Direct, direct
from nefele.accountable.explanation import Explanation
from nefele.accountable.fitted import Fitted, fitted
from nefele.accountable.parts import Parts
from nefele.accountable.settling import settled
from nefele.accountable.system import System


def explain(model: Any, node: Any) -> Explanation:
    """What the model of a node is made of: own rows, neighbours, clusters, all other nodes.

    The optimum is linear in what the rows of the nodes ask for: w_i = sum_j (A^-1)_ij s_j with A
    the curvature of the objective. For squared loss and penalty these weights are exact. For other
    smooth losses and for norms and Huber they are those of the quadratic that touches the
    objective at its optimum, models that a norm holds equal moving as one: the parts still add up
    to the optimum, and tell how it moves with small changes. The optimum is computed here to
    rounding; `remainder` is what the tolerance of the fit left.

    Parameters
    ----------
    model : GTVRegressor, GTVClassifier, GTVRegressorCV or GTVClassifierCV
        Fitted, with its training rows.
    node : node id

    Returns
    -------
    Explanation

    Examples
    --------
    >>> import nefele
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(list("abc"), 10), rng.normal(size=(30, 2))
    >>> y = X @ [1.0, 2.0] + rng.normal(size=30)
    >>> model = nefele.GTVRegressor(penalty="squared_l2", hub=1.0, alpha=0.5)
    >>> found = nefele.explain(model.fit(X, y, node_ids=ids), "b")
    >>> bool(np.allclose(found.by_node.sum(axis=0)[:2], model.coef_[1], rtol=0, atol=1e-9))
    True
    >>> found.neighbours.tolist(), bool(np.isclose(found.own_share + found.neighbour_share[0], 1))
    (['(centre)'], True)
    """
    fit = fitted(model)
    graph = fit.problem.graph
    at = fit.design.graph.position(node)
    if not fit.design.coupled.all() and not fit.problem.loss.labelled[at]:
        raise ValueError(
            f"The node must have rows where some parameters are not coupled; {node!r} has none. "
            "Couple all features, or explain another node."
        )
    system = settled(fit.problem, fit.w, fit.u, at)
    parts = Parts(fit, system)
    total = fit.stored(at).ravel()
    if fit.n_outputs > 1:
        total = fit.to_units(system.classes.centred(fit.w, at)[at]) + fit.base
    remainder = total - (parts.by_node.sum(axis=0) + parts.common + parts.pulls)
    near = direct(system)
    return Explanation(
        graph.ids[[at]].tolist()[0],
        system.exact,
        system.certified,
        _how(system) + _noisy(fit),
        fit.names,
        total,
        np.array(graph.ids),
        parts.by_node,
        parts.share,
        parts.ridge_share,
        parts.common,
        fit.base,
        parts.pulls,
        remainder,
        *_near(fit, near),
        np.array(graph.ids[[at] if near is None else near.members]),
        np.asarray(fit.model.clusters_),
        parts,
    )


def _near(fit: Fitted, near: Direct | None) -> tuple[Any, Array, Array, Array, float]:
    """Neighbours with their parts and shares, and those of the own rows."""
    ids, width = fit.problem.graph.ids, len(fit.base)
    if near is None:
        none = np.zeros(0)
        return np.array(ids[:0]), np.zeros((0, width)), none, np.full(width, np.nan), float("nan")
    parts = fit.to_units(near.parts)
    return np.array(ids[near.nodes]), parts, near.shares, fit.to_units(near.own), near.own_share


def _noisy(fit: Fitted) -> str:
    """What must be said of a private model."""
    private = hasattr(fit.model, "privacy_")
    return " The rows stand for noisy moments, which privacy left." if private else ""


def _how(system: System) -> str:
    """What the weights are."""
    if system.exact:
        return "Exact weights: squared loss and squared penalty."
    if not system.fused.any():
        return "Weights of the curvature at the fit: exact sums, first-order changes."
    proof = "as the certificate proves" if system.certified else "which the certificate leaves open"
    return (
        "Weights of the curvature at the fit, equal models moving as one, "
        f"{proof}: exact sums, first-order changes while the clusters stay."
    )
