"""The layout that `scale`, `hub` and `features` ask for, with what is estimated for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array, check_name, check_number
from nefele._threads import one_blas_thread
from nefele.estimators.design import Rows
from nefele.estimators.layout import Layout
from nefele.graph import Graph
from nefele.losses import (
    Absolute,
    Hinge,
    HuberLoss,
    Logistic,
    Loss,
    Multinomial,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
)
from nefele.mixed.columns import Columns, Table, columns_of
from nefele.mixed.components import Form
from nefele.mixed.coupling import Apart, Coupling, Joined, mean_degree
from nefele.mixed.family import INTERCEPTS, ONE, SLOPES, Family, Tried
from nefele.mixed.fitting import fit
from nefele.mixed.response import Classes, Counts, Numbers, Response

FEATURES = ("linear", "spline")
_NONE = 1e-7  # deviation, relative to the largest, of a coefficient that is common


def check_layout(scale: Any, hub: Any, features: Any) -> None:
    """Raise ValueError unless the parameters are in their domain."""
    share = check_number(hub, "hub", low=0.0)
    if share > 1:
        raise ValueError(f"hub must be a share from 0 (graph) to 1 (centre); got {hub!r}.")
    check_name(features, FEATURES, "kind of features")
    if isinstance(scale, str):
        check_name(scale, ("auto",), "scale")


def response_of(loss: Loss) -> Response:
    """The kind of target that a loss is for."""
    if isinstance(loss, Logistic | Hinge | SquaredHinge):
        return Classes()
    return Counts() if isinstance(loss, Poisson) else Numbers()


def counted(weight: Array) -> Array:
    """How many rows each stands for.

    A weight of 2 is two rows. Weights of a mean below 1 are relative: their mean is made 1, since
    rows that hardly count would leave nothing to estimate from.
    """
    return np.asarray(weight / min(1.0, float(weight.mean())))


def table_of(rows: Rows, graph: Graph, intercept: bool) -> Table:
    """Rows as the family of mixed models takes them."""
    d = rows.X.shape[1]
    return Table(
        rows.X,
        rows.y,
        counted(rows.sample_weight),
        graph.positions(rows.node_ids),
        graph.n_nodes,
        intercept,
        np.zeros(d, dtype=bool),
    )


def coupling_of(graph: Graph, hub: float) -> Coupling:
    """Who is joined to whom, for the family; without any coupling the centre."""
    if hub == 1 or not graph.n_edges:
        return Apart()
    return Joined(graph, 1 - max(hub, 1e-3))


def layout_of_member(member: Tried, intercept: bool) -> Layout:
    """The layout of a fitted member of the family, in absolute units of its noise."""
    columns, found = member.columns, member.fit.found
    factor = _principal(np.sqrt(found.model.s2) * found.F)
    b, ridge = found.model.b, found.ridge
    return _layout(columns, intercept, member.fit.personal, factor, b, ridge, 1 - member.rho)


def _layout(
    columns: Columns,
    intercept: bool,
    personal: Any,
    F: Array,
    b: Array,
    ridge: Array,
    hub: float,
) -> Layout:
    """From the columns of the family (used features, functions, constant) to those of X."""
    d, kept = len(columns.shift), len(columns.used)
    place = np.append(columns.used, d) if intercept else columns.used
    inner = np.arange(kept)
    inner = np.append(inner, columns.data.X.shape[1] - 1) if intercept else inner
    to_X = dict(zip(inner.tolist(), place.tolist(), strict=True))
    own = np.array([to_X[int(j)] for j in personal], dtype=np.int64)
    shared = np.zeros(d + int(intercept))
    shared[place] = b[inner]
    shared[own] = 0.0
    smooth = columns.smooth
    count = 0 if smooth is None else len(smooth.groups)
    if smooth is not None:
        smooth = replace(smooth, weights=b[kept : kept + count])
    whole = np.concatenate([np.zeros(len(shared)), ridge[kept : kept + count]])
    whole[place] = ridge[inner]
    held = whole if whole.any() else None
    return Layout(columns.shift, columns.scale, intercept, own, F, shared, hub, smooth, held)


def make_layout(
    rows: Rows,
    graph: Graph,
    loss: Loss,
    *,
    scale: Any,
    hub: float,
    features: str,
    fit_intercept: bool,
    alpha: float,
    standardize: bool,
) -> Layout | None:
    """The layout of an estimator's parameters; None when these ask for none."""
    if scale is None and not hub and features == "linear":
        return None
    table = table_of(rows, graph, fit_intercept)
    response, coupling = response_of(loss), coupling_of(graph, hub)
    if isinstance(loss, Multinomial) and features != "linear":
        raise ValueError('More than two classes take features="linear" only.')
    if isinstance(loss, Multinomial) and isinstance(scale, str):
        return _by_class(rows, graph, hub, fit_intercept)
    member = None
    smooth = None
    if scale == "auto" if isinstance(scale, str) else features == "spline":
        member = _estimated(table, response, coupling, features == "spline")
    if member is not None and isinstance(scale, str):
        return replace(layout_of_member(member, fit_intercept), hub=hub)
    if member is not None:
        smooth = member.columns.smooth
    columns = columns_of(table, smooth)
    given = _given(scale, columns, rows, fit_intercept, standardize)
    degree = mean_degree(graph) or 1.0
    return _at(given, columns, table, response, coupling, hub, alpha, degree, fit_intercept, loss)


def alpha_of(member: Tried, graph: Graph, loss: Loss) -> float:
    """The strength of the coupling at which the problem is the member of the family."""
    table_rows = np.diff(member.columns.data.ptr).astype(float)
    weight = member.columns.data.sample_weight
    if weight is not None:
        table_rows = np.bincount(member.columns.data.row_node, weight, len(table_rows))
    mean_rows = float(table_rows[table_rows > 0].mean())
    noise = member.fit.found.model.s2
    factor = {Squared: 2 * noise, HuberLoss: noise, Poisson: noise}
    if isinstance(loss, Absolute | Quantile):  # at q = 1/2 half the absolute loss
        half = 0.5 if isinstance(loss, Quantile) else 1.0
        strength = half * float(np.sqrt(noise / 2))
    else:
        strength = factor.get(type(loss), 1.0)
    return float(strength / (mean_rows * (mean_degree(graph) or 1.0)))


@one_blas_thread()
def _estimated(table: Table, response: Response, coupling: Coupling, curves: bool) -> Tried:
    """Every coefficient with a variance of its own."""
    if len(table.y) < 2:
        raise ValueError(f'scale="auto" needs at least 2 rows; got n_samples={len(table.y)}.')
    family = Family(table, response, curves=curves)
    member = family.of(SLOPES, coupling) or family.of(INTERCEPTS, coupling)
    one = family.of(ONE) if member is None and family.lonely else None
    if one is not None:
        return family.together(one)
    if member is None:
        raise ValueError(
            'scale="auto" needs a coefficient that may differ between nodes; there is none. Use '
            "fit_intercept=True, or features that vary within nodes."
        )
    return member


def _given(scale: Any, columns: Columns, rows: Rows, intercept: bool, standardize: bool) -> Array:
    """Factor of all columns and the constant, in standardised units, from the user's `scale`."""
    d = rows.X.shape[1]
    width = d + int(intercept)
    unit = np.append(columns.scale, 1.0) if intercept else columns.scale
    unit = np.where(np.isfinite(unit), unit, 0.0)
    if scale is None:
        return np.diag(np.where(unit > 0, 1.0, 0.0)) if standardize else np.diag(unit)
    values = as_float_array(scale, "scale", None)
    if values.ndim == 1 and len(values) == d and intercept:
        raise ValueError(
            f"scale must have an entry for each feature and, the last, one for the intercept "
            f"({width}); got {len(values)}."
        )
    if values.shape not in ((width,), (width, width)):
        raise ValueError(
            f"scale must have shape ({width},), the deviations of the coefficients, or "
            f"{(width, width)}, their covariance; got {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError("scale must be finite.")
    if values.ndim == 1:
        if (values < 0).any():
            raise ValueError(f"scale must be >= 0; got {values.min():g}. Use 0 for a common one.")
        return np.diag(values * unit)
    if not np.allclose(values, values.T, rtol=1e-8, atol=0):
        raise ValueError("scale must be symmetric when it is a matrix: a covariance.")
    return _root(values * np.outer(unit, unit))


def _principal(F: Array) -> Array:
    """A factor of the same S = F F^T with orthogonal columns.

    A triangular factor of coefficients that move together has columns that nearly agree, and the
    models in its coordinates are large numbers that cancel.
    """
    if not np.tril(F, -1).any():
        return F
    U, s, _ = np.linalg.svd(F)
    return np.asarray(U * s)


def _root(S: Array) -> Array:
    """A lower triangular F with F F^T = S, zero rows where S has them."""
    out = np.zeros_like(S)
    on = np.flatnonzero(S.diagonal() > 0)
    block = S[np.ix_(on, on)]
    try:
        out[np.ix_(on, on)] = np.linalg.cholesky(block + 1e-14 * np.diag(block.diagonal()))
    except np.linalg.LinAlgError:
        raise ValueError(
            "scale must be positive definite where its diagonal is positive."
        ) from None
    return out


def _at(
    whole: Array,
    columns: Columns,
    table: Table,
    response: Response,
    coupling: Coupling,
    hub: float,
    alpha: float,
    degree: float,
    intercept: bool,
    loss: Loss,
) -> Layout:
    """The layout at a given factor; what is common is estimated for it."""
    size = np.abs(whole).max(initial=0.0)
    d = len(columns.shift)
    place = np.append(columns.used, d) if intercept else columns.used
    inner = np.arange(len(columns.used))
    inner = np.append(inner, columns.data.X.shape[1] - 1) if intercept else inner
    on = whole.diagonal()[place] > _NONE * size
    if not on.any():
        raise ValueError("scale must be > 0 for at least one coefficient; all are common.")
    F = whole[np.ix_(place[on], place[on])]
    if isinstance(loss, Multinomial) and not on.all():
        raise ValueError("scale must be > 0 for every coefficient with more than two classes.")
    if on.all() and columns.smooth is None:
        none = np.zeros(columns.data.X.shape[1])
        return _layout(columns, intercept, inner[on], F, none, none, hub)
    counts = np.bincount(table.owner, table.weight, table.n_nodes)
    noise = alpha * degree * float(counts[counts > 0].mean()) * _half(response)
    fixed = F / np.sqrt(max(noise, 1e-300))
    form = Form(len(F), False, columns.groups, fixed)
    found = fit(columns.data, response, inner[on], form, coupling).found
    return _layout(columns, intercept, inner[on], F, found.model.b, found.ridge, hub)


def _half(response: Response) -> float:
    """Squared errors come without a half."""
    return 0.5 if response.direct else 1.0


def _by_class(rows: Rows, graph: Graph, hub: float, intercept: bool) -> Layout:
    """For many classes: the deviations of one class against the others, on average."""
    found = []
    for label in np.unique(rows.y):
        one = replace(rows, y=np.where(rows.y == label, 1.0, -1.0))
        table = table_of(one, graph, intercept)
        member = _estimated(table, Classes(), Apart(), False)
        found.append((layout_of_member(member, intercept), member))
    first = found[0][0]
    d = len(first.shift) + int(intercept)
    variance = np.zeros(d)
    for layout, _ in found:
        variance[layout.personal] += layout.F.diagonal() ** 2 / len(found)
    deviation = np.sqrt(variance)
    usable = np.append(np.isfinite(first.scale), True) if intercept else np.isfinite(first.scale)
    own = np.flatnonzero(usable)
    F = np.diag(np.maximum(deviation[own], 0.1 * deviation.max()))
    return Layout(first.shift, first.scale, intercept, own, F, np.zeros(d), hub)
