"""Standard errors of personal and common coefficients, at the variances of the fit.

A squared penalty is the logarithm of a normal prior: the fit is the mean of the posterior, and the
inverse of its curvature is the covariance. For classes and counts this is Laplace's approximation,
the curvature being that at the fit. See `nefele.mixed.posterior`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nefele._checks import Array, type_name
from nefele.estimators.design import Design, Rows
from nefele.estimators.layout import Layout
from nefele.estimators.metric import counted, response_of
from nefele.estimators.scores import kept_rows, raw, refuse_signals
from nefele.losses import Logistic, Loss, Poisson, Squared
from nefele.mixed.posterior import Posterior, posterior
from nefele.mixed.response import Response
from nefele.penalties import Quadratic, SquaredL2

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StandardErrors:
    """Standard deviations of all coefficients about the true ones, in the units of X.

    Attributes
    ----------
    nodes : array of shape (n_nodes, d + 1)
        Of each node's coefficients and, the last, its intercept; not a number where the data do
        not determine them.
    common : array of shape (d + 1,)
        Of the centre's model; without a centre of what is common, not a number elsewhere.
    """

    nodes: Array
    common: Array


def standard_errors(model: Any) -> StandardErrors:
    """Standard errors of a fitted GTVRegressor or GTVClassifier with a squared penalty.

    Examples
    --------
    Ten rows of one node alone: the standard error of a mean.

    >>> import nefele
    >>> y = np.arange(10.0)
    >>> model = nefele.GTVRegressor(alpha=0.0).fit(np.empty((10, 0)), y, node_ids=["a"] * 10)
    >>> found = standard_errors(model).nodes[0, 0]
    >>> bool(np.isclose(found, y.std(ddof=1) / np.sqrt(10)))
    True
    """
    loss = model._core_loss()
    _check(model, loss)
    system = _System(model, model._rows, model._make_design(model._rows, model.graph_), loss)
    found = system.solve()
    noise = system.noise()
    inner, outer = system.maps()
    nodes = np.full((model.graph_.n_nodes, len(inner)), np.nan)
    nodes[system.known] = np.sqrt(noise * found.variances(inner, outer))
    common = np.sqrt(noise * np.einsum("ck,kl,cl->c", outer, found.border, outer))
    nodes[:, system.fixed] = common[system.fixed] = np.nan
    if not system.hub:
        common[system.personal_units] = np.nan
    return StandardErrors(nodes, common)


def _check(model: Any, loss: Loss) -> None:
    """Raise ValueError where there is no formula."""
    advice = "Use nefele.bootstrap_intervals(model)."
    if not isinstance(loss, Squared | Logistic | Poisson) or model._n_outputs > 1:
        raise ValueError(
            "Standard errors need the squared, logistic or Poisson loss, and at most two classes; "
            f"got {type_name(loss)}. {advice}"
        )
    if getattr(loss, "l1", 0.0) > 0:
        raise ValueError(f"Standard errors need a loss without an l1 term. {advice}")
    kept_rows(model, "Standard errors")
    refuse_signals(model, "Standard errors")


class _System:
    """The curvature of a fit's objective, scaled such that a row of weight 1 counts as one."""

    def __init__(self, model: Any, rows: Rows, design: Design, loss: Any) -> None:
        self.model, self.rows, self.design, self.loss = model, rows, design, loss
        self.layout = _layout(design)
        self.hub = self.layout.hub > 0
        self.response: Response = response_of(loss)
        owner = np.asarray(design.graph.positions(rows.node_ids))
        weight = counted(rows.sample_weight)
        total = np.bincount(owner, weight, design.graph.n_nodes)
        self.n_rows, self.labelled = float(weight.sum()), total > 0
        # Of the objective, in which labelled nodes count as one on average; squares have no half.
        self.unit = self.n_rows / int(self.labelled.sum()) * (0.5 if self.response.direct else 1.0)
        if model.weighting == "nodes":
            weight = weight / total[owner] * self.n_rows / int(self.labelled.sum())
        fitted = raw(model, rows.X, rows.node_ids)
        target, bend = self.response.linear(fitted, rows.y)
        self.weight, self.residual = weight * bend, target - fitted
        self.known = np.flatnonzero(~design.problem.undetermined[: design.graph.n_nodes])
        self.owner = owner
        self.Q = self._penalty()

    def _penalty(self) -> Array:
        """Curvature of the penalty over the personal columns; zero where nothing is coupled."""
        p, problem = len(self.layout.personal), self.design.problem
        penalty = problem.penalty
        if not problem.lam or not problem.graph.n_edges:
            return np.zeros((p, p))
        if not isinstance(penalty, SquaredL2 | Quadratic):
            raise ValueError(
                "Standard errors need a squared penalty, such as squared_l2; got "
                f"{type_name(penalty)}. Use nefele.bootstrap_intervals(model)."
            )
        place = slice(p) if self.design.layout is not None else self.layout.personal
        whole = penalty.Q if isinstance(penalty, Quadratic) else np.eye(problem.d)
        return np.asarray(problem.lam * self.unit * whole[place][:, place])

    @property
    def fixed(self) -> Index:
        """Coefficients that the fit leaves at zero."""
        on = np.zeros(len(self.layout.shift) + 1, dtype=bool)
        on[self.layout.personal] = on[self.common] = True
        on[-1] &= self.layout.fit_intercept
        return np.flatnonzero(~on)

    @property
    def personal_units(self) -> Index:
        """Coefficients that differ between nodes; the intercept at zero with any other."""
        return np.append(self.layout.personal, len(self.layout.shift))

    @property
    def common(self) -> Index:
        """Columns of X and the constant with one coefficient for all nodes."""
        return np.flatnonzero(self.layout.shared)

    def maps(self) -> tuple[Array, Array]:
        """From u_i and from the border to coefficients and intercept: (d + 1, p), (d + 1, k)."""
        layout, d = self.layout, len(self.layout.shift)
        units = np.zeros((d + 1, d + 1))
        units[:d, :d] = np.diag(1 / layout.scale)
        units[d, :d] = -layout.shift / layout.scale
        units[d, d] = 1.0
        inner = units[:, layout.personal] @ layout.F
        functions = np.zeros((d + 1, self._n_functions))
        parts = [inner] if self.hub else []
        return inner, np.hstack([*parts, units[:, self.common], functions])

    @property
    def _n_functions(self) -> int:
        known = self.layout.smooth is not None and self.layout.ridge is not None
        return len(self.layout.smooth.groups) if known and self.layout.smooth is not None else 0

    def _ridge(self) -> Array:
        """Of the border's columns."""
        p, width = len(self.layout.personal), len(self.layout.shared)
        ridge = np.zeros(width) if self.layout.ridge is None else self.layout.ridge
        parts = [np.zeros(p)] if self.hub else []
        return np.concatenate([*parts, ridge[self.common], ridge[width:][: self._n_functions]])

    def _shared_values(self) -> Array:
        """Fitted values of the border's columns, zero for the centre, which has no ridge."""
        layout = self.layout
        parts = [np.zeros(len(layout.personal))] if self.hub else []
        parts.append(layout.shared[self.common])
        if self._n_functions and layout.smooth is not None and layout.smooth.weights is not None:
            parts.append(layout.smooth.weights)
        return np.concatenate(parts)

    def _columns(self) -> tuple[Array, Array]:
        """Columns of the personal parts and of the border, in the order of the rows."""
        standard = self.layout.standard(self.rows.X)
        own = standard[:, self.layout.personal] @ self.layout.F
        parts = [own] if self.hub else []
        parts.append(standard[:, self.common])
        if self._n_functions and self.layout.smooth is not None:
            parts.append(self.layout.smooth.basis(self.rows.X))
        return own, np.hstack(parts)

    def _shrink(self) -> Array:
        """Curvature of the loss's ridge at each labelled node, shape (p,)."""
        data, p = self.design.problem.data, len(self.layout.personal)
        if not np.any(self.loss.l2):
            return np.zeros(p)
        assert data is not None
        factor = np.ones(data.X.shape[1]) if data.shrink is None else np.asarray(data.shrink)
        place = slice(p) if self.design.layout is not None else self.layout.personal
        l2 = np.broadcast_to(np.asarray(self.loss.l2, dtype=float), factor.shape)
        return np.asarray(2 * self.unit * l2[place] * factor[place] ** 2)

    def solve(self) -> Posterior:
        """Covariances in units of the noise, of the nodes that data reach."""
        own, border = self._columns()
        n, p, k = len(self.labelled), own.shape[1], border.shape[1]
        order = np.argsort(self.owner, kind="stable")
        ends = np.searchsorted(self.owner[order], np.arange(n + 1))
        H, B = np.zeros((n, p, p)), np.zeros((n, p, k))
        for i in np.flatnonzero(self.labelled):
            rows = order[ends[i] : ends[i + 1]]
            left = own[rows].T * self.weight[rows]
            H[i], B[i] = left @ own[rows], left @ border[rows]
        shrink = self.labelled[:, None] * self._shrink()
        H[:, range(p), range(p)] += shrink
        D = (border.T * self.weight) @ border + np.diag(self._ridge())
        if self.hub:
            B[:, range(p), range(p)] += shrink
            D[range(p), range(p)] += shrink.sum(axis=0)
        links = self._links()[self.known][:, self.known]
        return posterior(H[self.known], links, self.Q, B[self.known], D)

    def _links(self) -> sparse.csr_array:
        """Laplacian of the problem's graph; without the row of the centre."""
        graph, n = self.design.problem.graph, self.design.problem.graph.n_nodes
        weight = graph.weight if self.Q.any() else np.zeros(graph.n_edges)
        i, j = np.concatenate([graph.head, graph.tail]), np.concatenate([graph.tail, graph.head])
        off = sparse.csr_array((np.concatenate([weight, weight]), (i, j)), shape=(n, n))
        off.eliminate_zeros()
        whole = sparse.diags_array(off.sum(axis=1)) - off
        return sparse.csr_array(whole)[: len(self.labelled), : len(self.labelled)]

    def noise(self) -> float:
        """The restricted likelihood's variance of the rows; 1 for classes, not a number if none."""
        if self.response.noise is not None:
            return float(self.response.noise)
        p = len(self.layout.personal)
        w = self.model._point(self.design)
        w = w[:, :p] if self.design.layout is not None else w[:, self.layout.personal]
        graph = self.design.problem.graph
        away = w[graph.head] - w[graph.tail]
        apart = graph.weight @ np.einsum("ep,pq,eq->e", away, self.Q, away)
        drawn = (w[: len(self.labelled)][self.labelled] ** 2 @ self._shrink()).sum()
        held = self._ridge() @ self._shared_values() ** 2
        free = self.n_rows - self._n_flat()
        rest = float(self.weight @ self.residual**2 + apart + drawn + held)
        return rest / free if free > 0 else np.nan

    def _n_flat(self) -> int:
        """How many numbers neither the coupling nor a ridge holds."""
        shrink = np.diag(self._shrink())
        each = len(shrink) - int(np.linalg.matrix_rank(shrink + self.Q, hermitian=True))
        whole = len(shrink) - int(np.linalg.matrix_rank(shrink, hermitian=True))
        components = self.design.problem.graph.components[: len(self.labelled)]
        parts = len(np.unique(components[self.labelled]))
        loose = int((self._ridge() == 0).sum()) - (len(shrink) if self.hub else 0)
        return int(self.labelled.sum()) * each + parts * (whole - each) + loose


def _layout(design: Design) -> Layout:
    """The layout of a design; for one without, all columns that vary, as they are."""
    if design.layout is not None:
        return design.layout
    d = len(design.shift)
    own = np.flatnonzero(np.append(np.isfinite(design.scale), design.fit_intercept))
    shared = np.zeros(d + int(design.fit_intercept))
    F = np.eye(len(own))
    return Layout(design.shift, design.scale, design.fit_intercept, own, F, shared, 0.0)
