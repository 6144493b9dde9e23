"""From validated rows to the core's problem, and from its solution back to the units of X."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_name
from nefele._ids import distinct
from nefele._kernels.groups import group_means
from nefele.data import LocalData
from nefele.estimators.layout import Layout, with_centre
from nefele.estimators.packing import Rows, packed
from nefele.graph import Graph
from nefele.losses import Absolute, Constrained, HuberLoss, Quantile, Squared
from nefele.penalties import as_penalty
from nefele.penalties.partial import couple_only
from nefele.problem import Problem

Mask = NDArray[np.bool_]

_HUGE = np.finfo(float).max
_FAR = 10.0  # mean of a target, in units of its spread, from which it is taken out


@dataclass(frozen=True, eq=False)
class Design:
    """A problem of the core and how its parameters relate to the units of X.

    The columns of the problem's X are (X - shift) / scale and, with an intercept, a constant; its
    target is y - offset.

    Attributes
    ----------
    problem : Problem
    shift, scale : arrays of shape (d,)
    coupled : bool array of shape (d,) or, with an intercept, (d + 1,)
        Columns whose parameters the graph couples.
    n_outputs : int
        Parameter vectors per node: 1, or the number of classes of a multinomial model.
    offset : float
        Taken from the target, and added to every intercept.
    layout : Layout or None
        A metric, a common part, a centre; then the columns are as it says, and the last node of
        the problem is the centre where there is one.
    carried : bool
        Whether the common part is a column of its own instead of a shift of the target.
    plain : Graph or None
        The graph without the centre.
    """

    problem: Problem
    shift: Array
    scale: Array
    coupled: Mask
    n_outputs: int = 1
    offset: float = 0.0
    layout: Layout | None = None
    carried: bool = False
    plain: Graph | None = None

    @property
    def graph(self) -> Graph:
        """The graph of the nodes, without the centre."""
        return self.problem.graph if self.plain is None else self.plain

    @property
    def hub(self) -> bool:
        """Whether the last node of the problem is the centre."""
        return self.layout is not None and self.layout.hub > 0

    @property
    def fit_intercept(self) -> bool:
        """Whether the last column is the constant."""
        return len(self.coupled) > len(self.shift)

    def with_alpha(self, alpha: float) -> Design:
        """The same design with another strength of the coupling; what is computed is shared."""
        return replace(self, problem=self.problem.with_lam(alpha if self.coupled.any() else 0.0))

    @property
    def columns(self) -> NDArray[np.int64]:
        """Columns of the parameters that the graph couples."""
        return np.flatnonzero(np.tile(self.coupled, self.n_outputs))

    def coupled_part(self, w: Array) -> Array:
        """The coupled entries of w, shape (n_nodes, k); all of them when none is coupled."""
        return w[:, self.columns] if self.coupled.any() else w

    def one_model(self, loss: Any) -> Problem:
        """The problem of one model for all rows, each with its share in the sum of the losses."""
        data = self.problem.data
        assert data is not None
        ptr = np.array([0, data.n_rows])
        pooled = LocalData(data.X, data.y, ptr, sample_weight=data.row_weight, shrink=data.shrink)
        return Problem(Graph([0], [], []), pooled, loss=loss, lam=0.0)

    def to_units(self, w: Array, *, fill: bool = True) -> tuple[Array, Array]:
        """Coefficients (n_nodes, n_outputs, d) and intercepts (n_nodes, n_outputs) for raw X.

        Nothing determines what is not coupled at a node without rows: with `fill` it is the mean
        over the nodes with rows of the component (of the graph, if these have none). Leave that
        out where w is not one model per node of the problem's graph. The same intercept more for
        all classes says nothing: their mean over each component is zero.
        """
        coef, intercept = self._to_units(w, fill)
        if self.n_outputs > 1 and self.fit_intercept:
            parts = self.problem.graph.components
            one_each = len(parts) == len(w)
            intercept -= (group_means(parts, intercept) if one_each else intercept).mean(
                axis=1, keepdims=True
            )
        return coef, intercept

    def _to_units(self, w: Array, fill: bool) -> tuple[Array, Array]:
        blocks = w.reshape(len(w), self.n_outputs, len(self.coupled))
        if self.layout is not None:
            coef, intercept, _ = self.layout.to_units(blocks, self.carried)
            return coef, intercept + self.offset
        d = len(self.shift)
        coef = blocks[:, :, :d] / self.scale
        constant = blocks[:, :, d] if self.fit_intercept else np.zeros(blocks.shape[:2])
        constant = constant + self.offset
        if fill and self.offset:  # what no data determine is zero, in the units of the target
            constant[self.problem.undetermined] = 0.0
        intercept = constant - coef @ self.shift
        if not fill or self.coupled.all() or self.problem.data is None:
            return coef, intercept
        there = self.problem.data.counts > 0
        if there.all() or not there.any():
            return coef, intercept
        bare = np.flatnonzero(~there)
        coef[bare] = np.where(self.coupled[:d], coef[bare], self._means(coef, there)[bare])
        if self.fit_intercept and not self.coupled[d]:
            intercept[bare] = self._means(intercept, there)[bare]
        else:
            intercept[bare] = constant[bare] - coef[bare] @ self.shift
        return coef, intercept

    def common_weights(self, w: Array) -> Array:
        """Weight of the common part in each model, shape (n_nodes,)."""
        assert self.layout is not None
        blocks = w.reshape(len(w), self.n_outputs, len(self.coupled))
        return self.layout.to_units(blocks, self.carried)[2][:, 0]

    def _means(self, values: Array, there: Mask) -> Array:
        """Mean over the nodes with rows of each node's component, or of the graph if it has none.

        Shape of values, (n_nodes, ...).
        """
        parts = self.problem.graph.components
        count = np.bincount(parts, there)
        total = np.zeros((len(count), *values.shape[1:]))
        np.add.at(total, parts[there], values[there])
        shape = (-1,) + (1,) * (values.ndim - 1)
        mean = total / np.maximum(count, 1.0).reshape(shape)
        mean[count == 0] = values[there].mean(axis=0)
        return np.asarray(mean[parts])

    def from_units(self, coef: Array, intercept: Array) -> Array:
        """The parameters w of the problem, shape (n_nodes, n_outputs * columns)."""
        blocks = np.where(np.isfinite(self.scale), coef, 0.0) * np.minimum(self.scale, _HUGE)
        if self.fit_intercept:
            constant = intercept + coef @ self.shift - self.offset
            blocks = np.concatenate([blocks, constant[:, :, None]], axis=2)
        return blocks.reshape(len(blocks), -1)


def scaling(rows: Rows, standardize: bool, fit_intercept: bool) -> tuple[Array, Array]:
    """Shift and scale of the features: pooled weighted moments of the rows, or 0 and 1.

    Without an intercept nothing is shifted, that would bring one in, and constant columns keep
    their scale; with one they tell nothing more and get an infinite scale: their coefficients are
    zero.
    """
    d = rows.X.shape[1]
    if not standardize:
        return np.zeros(d), np.ones(d)
    mean = np.average(rows.X, axis=0, weights=rows.sample_weight)
    spread = np.sqrt(np.average((rows.X - mean) ** 2, axis=0, weights=rows.sample_weight))
    constant = spread <= 1e-12 * np.abs(rows.X).max(axis=0, initial=0.0)
    if fit_intercept:
        return mean, np.where(constant, np.inf, spread)
    return np.zeros(d), np.where(constant, 1.0, spread)


def target_offset(rows: Rows, loss: Any, fit_intercept: bool) -> float:
    """The mean of a target far from zero, where an intercept can take it.

    For losses that know only differences from the target the solution is the same, since ridge
    and lasso terms spare the intercept; the tolerance is then relative to the target's spread,
    not to its size.
    """
    shiftable = isinstance(loss, Squared | HuberLoss | Absolute | Quantile)
    if not fit_intercept or not shiftable:
        return 0.0
    if not len(rows.y):
        return 0.0
    mean = float(np.average(rows.y, weights=rows.sample_weight))
    far = np.isfinite(mean) and abs(mean) > _FAR * float(np.std(rows.y))
    return mean if far else 0.0


def coupled_mask(
    couple: Any, couple_intercept: bool, names: Sequence[str] | None, d: int, fit_intercept: bool
) -> Mask:
    """Which columns the graph couples, shape (d,) or, with an intercept, (d + 1,)."""
    if couple is None:
        mask = np.ones(d, dtype=bool)
    else:
        if isinstance(couple, str):
            raise ValueError(
                f"couple must be a list of features; got {couple!r}. Use [{couple!r}]."
            )
        mask = np.zeros(d, dtype=bool)
        for feature in couple:
            mask[_feature(feature, names, d)] = True
    return np.append(mask, bool(couple_intercept)) if fit_intercept else mask


def _feature(feature: Any, names: Sequence[str] | None, d: int) -> int:
    if isinstance(feature, str):
        if names is None:
            raise ValueError(
                f"couple names {feature!r}, but X has no column names. Use positions 0..{d - 1}."
            )
        return list(names).index(check_name(feature, names, "feature to couple"))
    if isinstance(feature, bool | np.bool_) or not isinstance(feature, int | np.integer):
        raise ValueError(f"couple must list names or positions of features; got {feature!r}.")
    if not 0 <= feature < d:
        raise ValueError(f"couple must list positions 0..{d - 1}; got {feature}.")
    return int(feature)


def local_data(
    rows: Rows,
    nodes: NDArray[Any],
    shift: Array,
    scale: Array,
    fit_intercept: bool,
    weighting: str,
    offset: float = 0.0,
) -> LocalData:
    """The rows as the core wants them: scaled, with a constant that is spared, packed by node."""
    X = (rows.X - shift) / scale
    shrink = np.append(np.ones(X.shape[1]), 0.0) if fit_intercept else None
    if fit_intercept:
        X = np.hstack([X, np.ones((len(X), 1))])
    return packed(X, rows.y - offset, rows, nodes, weighting, shrink)


def laid_out(
    rows: Rows,
    graph: Graph,
    layout: Layout,
    loss: Any,
    penalty: Any,
    alpha: float,
    weighting: str,
    n_outputs: int,
) -> Design:
    """The design of rows in a metric, with what is common to all nodes, and with a centre."""
    shiftable = isinstance(loss, Squared | HuberLoss | Absolute | Quantile)
    carried = layout.has_common and not shiftable
    offset = target_offset(rows, loss, layout.fit_intercept)
    X = layout.columns(rows.X, carried)
    target = rows.y - offset
    if layout.has_common and shiftable:
        target = target - layout.common(rows.X)
    shrink = _shrink(layout, loss, X.shape[1])
    data = packed(X, target, rows, graph.ids, weighting, shrink)
    whole = np.ones(X.shape[1], dtype=bool)
    problem = make_problem(
        with_centre(graph, layout.hub), data, loss, penalty, alpha, whole, n_outputs
    )
    return Design(
        problem, layout.shift, layout.scale, whole, n_outputs, offset, layout, carried, graph
    )


def shrinks(loss: Any) -> bool:
    """Whether a loss has a ridge or lasso term, which takes no full matrix as a scale."""
    inner: Any = loss.loss if isinstance(loss, Constrained) else loss
    return bool(np.any(inner.l2) or np.any(getattr(inner, "l1", 0.0)))


def _shrink(layout: Layout, loss: Any, width: int) -> Array | None:
    """What ridge and lasso terms see of the parameters: coefficients, but for the constant."""
    if not shrinks(loss):
        return None
    factor = layout.F.diagonal().copy()
    if (np.diag(factor) != layout.F).any():
        raise ValueError(
            "l2 and l1 of the loss must be 0 with a scale that is a full matrix; give the "
            "deviation of each coefficient, or leave the terms out: the coupling shrinks."
        )
    factor[layout.personal == len(layout.shift)] = 0.0
    return np.concatenate([factor, np.zeros(width - len(factor))])


def make_problem(
    graph: Graph, data: LocalData, loss: Any, penalty: Any, alpha: float, coupled: Mask, k: int
) -> Problem:
    """The core's problem: the penalty on the coupled columns of each of the k outputs."""
    on = np.flatnonzero(np.tile(coupled, k))
    named = penalty if isinstance(penalty, dict) else {None: penalty}
    kinds = {pair: as_penalty(kind) for pair, kind in named.items()}
    if not on.size:  # nothing is coupled: the same as no coupling at all
        return Problem(graph, data, loss=loss, lam=0.0)
    kinds = {pair: couple_only(kind, on, k * len(coupled)) for pair, kind in kinds.items()}
    chosen = kinds if isinstance(penalty, dict) else kinds[None]
    return Problem(graph, data, loss=loss, penalty=chosen, lam=alpha)


def graph_nodes(node_ids: NDArray[Any]) -> Graph:
    """A graph without edges over the ids of the rows."""
    return Graph(distinct(node_ids), [], [])
