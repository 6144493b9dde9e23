"""Which coupling: one model, a centre, a graph and a centre, chosen by likelihood and prediction.

All are members of one family: y = X b + personal deviations r ~ N(0, R^-1 x S), in which R says
who is joined to whom (the centre, a graph, both) and S how far each coefficient may go. Its
posterior mean is generalised total variation minimisation with the squared penalty in the metric
of S, over the graph with one more node, the centre.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import linalg

from nefele.data import LocalData
from nefele.graph import Graph
from nefele.mixed.choice import CORRELATED, INTERCEPTS, ONE, SLOPES, Tried, choose
from nefele.mixed.columns import Columns, Table, columns_of, thin
from nefele.mixed.components import FINE, Form
from nefele.mixed.coupling import DENSE, INVERTED, Apart, Coupling, Index, Joined
from nefele.mixed.fitting import Fit, fit
from nefele.mixed.likelihood import Likelihood
from nefele.mixed.response import Response
from nefele.mixed.scan import Scan
from nefele.mixed.smooth import Smooth
from nefele.mixed.statistics import Statistics

_MOST_CORRELATED = 5  # coefficients that may depend on each other
_WORTH = 2.0  # gain of the deviance from which a graph is tried: that of its one number
_TOGETHER = 1e-3  # deviation, relative to the noise, that is none
_ASLEEP = 0.05  # deviation, relative to the noise, below which a graph would not be noticed
_SHARES = (0.5, 0.9, 0.99)  # of the graph in the coupling
# Numbers in one evaluation, beyond which a form is not tried, or not even evaluated once.
_WORK, _ONCE = 2e8, 1e9
_SUMS = 5e7  # numbers in the sums of products with curves
_SLIGHT = 30.0  # ridge, per row, that leaves a curve hardly bent
_FEW = 12  # components that are estimated more exactly


class Family:
    """Fits members of the family to one table and chooses among them.

    Parameters
    ----------
    table : Table
    response : Response
    graph : Graph, optional
    curves : bool
        Whether common curves are tried.
    correlated : bool
        Whether deviations that depend on each other are tried.
    told : callable, optional
        Called with each member that was tried.
    """

    def __init__(
        self,
        table: Table,
        response: Response,
        graph: Graph | None = None,
        *,
        curves: bool = False,
        correlated: bool = True,
        told: Callable[[Tried], object] | None = None,
    ) -> None:
        self.table = replace(table, common=table.common | thin(table))
        self.response = response
        self.graph = graph if graph is not None and graph.n_edges else None
        self.curves, self.correlated, self.told = curves, correlated, told
        self.tried: list[Tried] = []

    def choose(self) -> Tried:
        """The chosen member, sharpened; `tried` has all of them in order of simplicity.

        One question after the other: what is personal, then whether common curves, then whether a
        graph makes that better.
        """
        straight = columns_of(self.table)
        sums = Statistics.of(straight.data) if self.response.direct else None
        for name in (ONE, INTERCEPTS, SLOPES, CORRELATED):
            self._try(name, straight, sums=sums)
        if not self.tried:
            raise np.linalg.LinAlgError("No member of the family has a fit.")
        best = self._best(self.tried)
        if self.curves:
            curved = self._with_curves(best)
            if curved is not None:
                known = len(self.tried)
                self._try(best.name, curved, start=self._before(best, curved))
                best = self._best([best, *self.tried[known:]])
        if self.graph is not None:
            known = len(self.tried)
            for base in self._to_join(best):
                self._join(base, self.graph)
            best = self._best([best, *self.tried[known:]])
        return self._sharpened(best)

    def _best(self, tried: list[Tried]) -> Tried:
        return choose(tried, self.table, self.response)

    @property
    def lonely(self) -> bool:
        """Whether only one node has rows, so that nothing tells how nodes differ."""
        return len(np.unique(self.table.owner)) < 2

    def of(self, name: str, coupling: Coupling | None = None) -> Tried | None:
        """One member, without a choice; None when there is no such."""
        straight = columns_of(self.table)
        self._try(name, straight, coupling)
        if not self.tried:
            return None
        if self.curves:
            curved = self._with_curves(self.tried[-1])
            if curved is not None:
                self._try(name, curved, coupling)
        return self._sharpened(self.tried[-1])

    def one_beside(self, best: Tried) -> Tried:
        """One model with the same columns, curves included; without them where that has no fit."""
        for tried in self.tried:
            if tried.name == ONE and tried.columns is best.columns:
                return tried
        self._try(ONE, best.columns)
        last = self.tried[-1]
        same = last.name == ONE and last.columns is best.columns and np.isfinite(last.errors).all()
        return last if same else self.tried[0]

    def together(self, one: Tried) -> Tried:
        """One model, as that of nodes which have as good as nothing of their own."""
        columns = one.columns
        personal = columns.personal[-1:] if len(columns.personal) else np.array([0])
        form = Form(1, False, columns.groups, np.full((1, 1), _TOGETHER))
        return replace(one, fit=fit(columns.data, self.response, personal, form))

    def _sharpened(self, best: Tried) -> Tried:
        """The same member, its components as exact as is worth the time."""
        many = len(best.fit.found.x) > _FEW
        if many or (best.rho and self.table.n_nodes * len(best.fit.personal) > DENSE):
            return best
        start = best.fit
        args = (start.personal, start.found.form, best.coupling, start)
        return replace(best, fit=fit(best.columns.data, self.response, *args, tol=FINE))

    def _with_curves(self, best: Tried) -> Columns | None:
        """The columns with curves of those features whose likelihood rises by a slight one."""
        straight = best.columns
        varies = straight.used[straight.personal[straight.personal < len(straight.used)]]
        smooth = Smooth.of(self.table.X, varies, self.table.weight)
        if smooth is None:
            return None
        columns = columns_of(self.table, smooth)
        found = self._form(best.name, columns, _ONCE)
        if found is None or self.table.n_nodes * columns.data.X.shape[1] ** 2 > _SUMS:
            return None
        personal, form = found
        z, w = self.response.linear(best.fit.eta, columns.data.y)
        weight = w if columns.data.sample_weight is None else w * columns.data.sample_weight
        data = LocalData(columns.data.X, z, columns.data.ptr, sample_weight=weight)
        sums = Statistics.of(data, best.fit.count)
        likelihood = Likelihood(sums, personal, noise=self.response.noise)
        n_F = len(form.entries[0])
        if n_F != len(best.fit.found.form.entries[0]):
            return columns
        slight = np.full(form.n_groups, np.log(_SLIGHT * likelihood.n_rows))
        x = np.concatenate([best.fit.found.x[:n_F], slight])
        slope = form.slope(likelihood(form.F(x), form.ridge(x)))[n_F:]
        rising = slope[form.n_groups - len(smooth.curves) :] > 0
        smooth = smooth.take(rising)
        return None if smooth is None else columns_of(self.table, smooth)

    def _before(self, best: Tried, curved: Columns) -> Fit | None:
        """The fit without curves, to start from with them."""
        found = self._form(best.name, curved)
        before = best.fit.found
        n_F = len(before.form.entries[0])
        if found is None or len(found[1].entries[0]) != n_F:
            return None
        x = found[1].start(float(best.fit.count.sum()))
        x[:n_F] = before.x[:n_F]
        return replace(best.fit, found=replace(before, x=x))

    def _nested(self, name: str, columns: Columns, coupling: Coupling) -> Fit | None:
        """The fit of slopes that do not depend on each other, for those that may."""
        if name != CORRELATED or not isinstance(coupling, Apart):
            return None
        found = [t.fit for t in self.tried if t.name == SLOPES and t.columns is columns]
        return found[0] if found else None

    def _form(self, name: str, columns: Columns, work: float = _WORK) -> tuple[Index, Form] | None:
        personal = columns.personal
        if name == ONE:
            personal = personal[:0]
        elif name == INTERCEPTS:
            personal = personal[-1:] if self.table.intercept else personal[:0]
        p, d, n = len(personal), columns.data.X.shape[1], self.table.n_nodes
        if name != ONE and self.lonely:
            return None
        if (name != ONE and not p) or (name == SLOPES and p == 1 and self.table.intercept):
            return None
        if name == CORRELATED and not (self.correlated and 1 < p <= _MOST_CORRELATED):
            return None
        if n * p * (p * p + d * d) > work and name not in (ONE, INTERCEPTS):
            return None
        return personal, Form(p, name == CORRELATED, columns.groups)

    def _try(
        self,
        name: str,
        columns: Columns,
        coupling: Coupling | None = None,
        start: Fit | None = None,
        sums: Statistics | None = None,
    ) -> None:
        found = self._form(name, columns)
        if found is None:
            return
        coupling = Apart() if coupling is None else coupling
        try:
            fitted = fit(
                columns.data,
                self.response,
                *found,
                coupling,
                start,
                nested=self._nested(name, columns, coupling),
                sums=sums,
            )
        except (linalg.LinAlgError, np.linalg.LinAlgError):
            return
        self._keep(name, columns, coupling, fitted)

    def _keep(self, name: str, columns: Columns, coupling: Coupling, fitted: Fit) -> None:
        left_out = np.full(len(self.table.y), np.nan)
        p = len(fitted.personal)
        if isinstance(coupling, Apart) or self.table.n_nodes * p <= INVERTED:
            left_out[columns.order] = fitted.left_out()
        errors = self.response.errors(left_out, self.table.y)
        tried = Tried(name, columns, fitted, coupling, left_out, np.nan_to_num(errors, nan=np.inf))
        self.tried.append(tried)
        if self.told is not None:
            self.told(tried)

    def _to_join(self, best: Tried) -> list[Tried]:
        """Members to try with a graph: neighbours may be alike where no two others are."""
        if best.name != ONE:
            return [best]
        names = (INTERCEPTS, SLOPES, CORRELATED)
        if best.columns.smooth is not None:
            for name in names:
                self._try(name, best.columns)
        return [t for t in self.tried if t.name in names and t.columns is best.columns]

    def _join(self, best: Tried, graph: Graph) -> None:
        """A member of the centre, with a graph beside it."""
        shares = [Joined(graph, rho) for rho in _SHARES]
        start = _awake(best)
        scan = Scan(start.fit, self.response.noise)
        values = [scan.deviance(joined) for joined in shares]
        joined = shares[int(np.argmin(values))]
        deviance, size = scan.bottom(joined, min(values))
        if deviance > best.fit.found.model.deviance - _WORTH:
            return
        if self.table.n_nodes * len(best.fit.personal) > DENSE:
            self._keep(best.name, best.columns, joined, self._at(scan.at(joined, size), joined))
            return
        self._try(best.name, best.columns, joined, scan.at(joined, size))
        tried = self.tried[-1]
        scan = Scan(tried.fit, self.response.noise, joined)
        other = min(shares, key=scan.deviance)
        if other.rho != joined.rho:  # the deviations were those of the centre before
            self._try(best.name, best.columns, other, scan.at(other, 1.0))

    def _at(self, start: Fit, coupling: Coupling) -> Fit:
        """The models at given components."""
        likelihood = Likelihood(start.sums(), start.personal, coupling, self.response.noise)
        form, x = start.found.form, start.found.x
        model = likelihood(form.F(x), form.ridge(x), slopes=False)
        found = replace(start.found, F=form.F(x), ridge=form.ridge(x), model=model)
        return replace(start, found=found)


def _awake(tried: Tried) -> Tried:
    """With deviations large enough to see whether a graph wants them."""
    found = tried.fit.found
    rows, columns = found.form.entries
    x = found.x.copy()
    k = len(rows)
    x[:k] = np.where(rows == columns, np.maximum(x[:k], _ASLEEP), x[:k])
    found = replace(found, x=x, F=found.form.F(x))
    return replace(tried, fit=replace(tried.fit, found=found))
