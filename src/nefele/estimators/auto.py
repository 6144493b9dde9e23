"""Which coupling, chosen by the estimator: the family of mixed and spatial models.

Own data only, one model, a centre, a graph and a centre are compared at rows that are left out one
by one; see `nefele.mixed.family`. What is chosen is then fitted as a problem of the core, in its
metric and over the graph with a centre, so that it has a certificate as any other fit.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele._threads import one_blas_thread
from nefele.estimators import fitting
from nefele.estimators.design import Design, Rows, graph_nodes, shrinks
from nefele.estimators.layout import CARRIED, Layout
from nefele.estimators.metric import (
    alpha_of,
    layout_of_member,
    make_layout,
    response_of,
    table_of,
)
from nefele.graph import Graph
from nefele.losses import Multinomial
from nefele.mixed.columns import columns_of
from nefele.mixed.components import Form
from nefele.mixed.family import ONE, SLOPES, Family, Tried
from nefele.mixed.fitting import fit
from nefele.mixed.refits import refitted
from nefele.mixed.response import Response
from nefele.selection.folds import Fold
from nefele.selection.verdict import Verdict

Told = Callable[[str], object]

# Deviation of coefficients, in units of the noise or of the largest that was found, that leaves
# nodes to themselves, and the largest that sums of squares have digits for.
_ALONE, _MOST_ALONE = 100.0, 1e6
_MOST_SUMS = 5e7  # numbers in the sums of products of all nodes
_WORK = 2e8  # numbers in one evaluation, beyond which own models are not compared


@dataclass(frozen=True, eq=False)
class Choice:
    """A coupling that was chosen, and what it was compared with.

    Attributes
    ----------
    layout : Layout
    alpha : float
    words : str
        The coupling in words.
    member : Tried or None
        The chosen member, fitted to the target less `shift`.
    tried : list of Tried
    errors : dict of str to arrays of shape (n_rows,)
        What the prediction of each left-out row costs: "own", "pooled", "coupled".
    shift : float
    one : Choice, optional
        One model with the same common curves, where there are some.
    """

    layout: Layout
    alpha: float
    words: str
    member: Tried | None
    tried: list[Tried]
    errors: dict[str, Array]
    shift: float = 0.0
    one: Choice | None = None

    @property
    def judged(self) -> bool:
        """Whether there are predictions of left-out rows."""
        names = ("coupled", "pooled")
        return all(np.isfinite(self.errors.get(name, np.nan)).all() for name in names)


def graph_of(model: Any, rows: Rows) -> Graph:
    """The graph of the model; without any, nodes that only the centre joins."""
    return graph_nodes(rows.node_ids) if model.graph is None else fitting.make_graph(model, rows)


def too_large(rows: Rows, graph: Graph) -> bool:
    """Whether the sums of products of all nodes would not fit into memory."""
    return graph.n_nodes * (rows.X.shape[1] + 1) ** 2 > _MOST_SUMS


@one_blas_thread()
def choose_coupling(
    model: Any, rows: Rows, graph: Graph, *, curves: bool, told: Told | None = None
) -> Choice:
    """The member of the family that suits these rows."""
    if len(rows.y) < 2:
        raise ValueError(f"A coupling needs at least 2 rows; got n_samples={len(rows.y)}.")
    loss, intercept = model._core_loss(), bool(model.fit_intercept)
    if isinstance(loss, Multinomial):
        return _many_classes(model, rows, graph)
    response = response_of(loss)
    shift = 0.0
    if response.direct and intercept:
        shift = float(np.average(rows.y, weights=rows.sample_weight))
    table = table_of(replace(rows, y=rows.y - shift), graph, intercept)
    say = None if told is None else (lambda tried: told(tried.words))
    correlated = not shrinks(loss)
    family = Family(table, response, graph, curves=curves, correlated=correlated, told=say)
    best = family.choose()
    one = family.one_beside(best)
    errors = {"coupled": best.errors, "pooled": one.errors}
    errors["own"] = _own(family, response, errors["pooled"])

    def drawn(tried: Tried) -> Choice:
        member = tried if tried.name != ONE else family.together(tried)
        layout = layout_of_member(member, intercept)
        if intercept and len(layout.shift) not in layout.personal:  # the constant is common
            shared = layout.shared.copy()
            shared[-1] += shift
            layout = replace(layout, shared=shared)
        alpha = alpha_of(member, graph, loss)
        if not (np.isfinite(layout.F).all() and np.isfinite(layout.shared).all() and alpha > 0):
            raise np.linalg.LinAlgError("The chosen coupling has no finite scale.")
        return Choice(layout, alpha, tried.words, member, family.tried, errors, shift)

    curved = best.columns.smooth is not None
    return replace(drawn(best), one=drawn(one) if curved and one.columns is best.columns else None)


def _own(family: Family, response: Response, pooled: Array) -> Array:
    """Errors of models that nodes make of their own rows; of one model where these say nothing."""
    columns = columns_of(family.table)
    p, d, n = len(columns.personal), columns.data.X.shape[1], family.table.n_nodes
    if not p or family.lonely or n * p * (p * p + d * d) > _WORK:
        return np.full(len(pooled), np.nan)
    largest = max(np.abs(t.fit.found.F).max(initial=1.0) for t in family.tried)
    alone = min(_ALONE * largest, _MOST_ALONE) if response.direct else _ALONE
    fixed = Form(p, False, columns.groups, alone * np.eye(p))
    try:
        fitted = fit(columns.data, response, columns.personal, fixed)
    except np.linalg.LinAlgError:
        return np.full(len(pooled), np.nan)
    errors = np.empty(len(pooled))
    errors[columns.order] = response.errors(fitted.left_out(), columns.data.y)
    if not response.direct:  # one step may miss what a refit finds, which knows no common part
        again = response.errors(refitted(fitted, response), columns.data.y)
        errors[columns.order] = np.fmax(errors[columns.order], again)
    return errors


def _many_classes(model: Any, rows: Rows, graph: Graph) -> Choice:
    """More than two classes: the deviations of each against the others, by the centre."""
    hub = 0.5 if graph.n_edges else 1.0
    layout = make_layout(
        rows,
        graph,
        model._core_loss(),
        scale="auto",
        hub=hub,
        features="linear",
        fit_intercept=bool(model.fit_intercept),
        alpha=1.0,
        standardize=True,
    )
    assert layout is not None
    counts = np.bincount(graph.positions(rows.node_ids), rows.sample_weight, graph.n_nodes)
    degree = 2.0 * float(graph.weight.sum()) / max(graph.n_nodes, 1) or 1.0
    alpha = 1.0 / (float(counts[counts > 0].mean()) * degree)
    by = "the centre" if hub == 1 else "graph 50%, centre 50%"
    return Choice(layout, alpha, f"personal {SLOPES} by {by}", None, [], {})


def apply(model: Any, choice: Choice, d: int) -> None:
    """Give the chosen coupling to an estimator with a fixed alpha."""
    layout = choice.layout
    width = d + int(layout.fit_intercept)
    unit = np.append(layout.scale, 1.0) if layout.fit_intercept else layout.scale
    covariance = np.zeros((width, width))
    covariance[np.ix_(layout.personal, layout.personal)] = layout.F @ layout.F.T
    covariance /= np.outer(unit, unit)
    model.set_params(
        penalty="squared_l2",
        alpha=choice.alpha,
        scale=covariance,
        hub=float(layout.hub),
        features="linear" if layout.smooth is None else "spline",
    )
    model._layout = layout


def start_of(choice: Choice, design: Design) -> Array | None:
    """The member's models as parameters of the design's problem, the centre last."""
    member = choice.member
    if member is None or design.n_outputs > 1:
        return None
    found, layout = member.fit.found.model, choice.layout
    common = found.b[member.fit.personal]
    own = np.concatenate([common + found.r, common[None]])
    own[:, layout.personal == len(layout.shift)] += choice.shift - design.offset
    w = np.linalg.solve(layout.F, own.T).T
    if design.carried:
        w = np.column_stack([w, np.full(len(w), 1 / CARRIED)])
    return w if layout.hub else w[:-1]


def verdict_of(choice: Choice, rows: Rows, graph: Graph) -> Verdict:
    """What the coupling gains, over the nodes, at rows that are left out one by one."""
    place = graph.positions(rows.node_ids)
    weight = np.bincount(place, rows.sample_weight, graph.n_nodes)
    on = weight > 0

    def by_node(errors: Array) -> Array:
        return np.bincount(place, rows.sample_weight * errors, graph.n_nodes)[on] / weight[on]

    own, pooled, coupled = (by_node(choice.errors[name]) for name in ("own", "pooled", "coupled"))
    return Verdict(own, pooled, coupled, weight[on], np.asarray(graph.ids)[on].tolist())


def table_of_candidates(choice: Choice, rows: Rows) -> list[dict[str, Any]]:
    """The members that were compared: words, mean error at left-out rows, Akaike's criterion."""
    found = []
    for tried in choice.tried:
        error = float(np.average(tried.errors, weights=rows.sample_weight))
        found.append({"coupling": tried.words, "error": error, "aic": tried.fit.found.aic})
    return found


def remember(model: Any, choice: Choice, rows: Rows) -> None:
    """Note at a model which coupling was chosen for it, and what was compared: both are saved."""
    model.coupling_ = choice.words
    model.candidates_ = table_of_candidates(choice, rows)


def run_fold(
    template: Any, rows: Rows, split: Any, curves: bool, scorer: Any = None, table: Any = None
) -> Fold:
    """Choose on the training rows of a split, and judge on the others."""
    model = copy.copy(template)
    train = rows.take(split[0])
    train = train.filled_by(train)
    model.graph = graph_of(model, rows if model.graph is None else train)
    choice = choose_coupling(model, train, model.graph, curves=curves)
    apply(model, choice, rows.X.shape[1])
    alphas = np.array([choice.alpha])
    return judge(model, template, choice, rows, split, alphas, scorer, None, table)


def judge(
    model: Any, template: Any, choice: Choice, rows: Rows, split: Any, alphas: Array, *how: Any
) -> Fold:
    """Judge a chosen coupling beside own models and one model as they are without it.

    One model has common curves where the coupling has them: what these are worth is not the
    coupling's. `how` is what `fitting.run_fold` takes after the alphas.
    """
    found = fitting.run_fold(model, rows, split, alphas, *how)
    plain = copy.copy(template)
    plain.graph = graph_nodes(rows.node_ids)
    scorer = how[0] if how else None
    simple = fitting.run_fold(plain, rows, split, np.zeros(1), scorer, None, *how[2:])
    errors, pooled = found.errors, simple.pooled
    if errors is not None and simple.errors is not None:
        errors = replace(errors, own=simple.errors.own, pooled=simple.errors.pooled)
    if choice.one is not None:
        curved = copy.copy(model)
        apply(curved, choice.one, rows.X.shape[1])
        one = fitting.run_fold(
            curved, rows, split, np.array([choice.one.alpha]), scorer, None, *how[2:]
        )
        pooled = float(one.scores[0])
        if errors is not None and one.errors is not None:
            errors = replace(errors, pooled=one.errors.coupled[0])
    return replace(found, own=simple.own, pooled=pooled, errors=errors)
