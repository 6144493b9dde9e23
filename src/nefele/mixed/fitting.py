"""Components and models for every kind of target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nefele._checks import Array
from nefele.data import LocalData
from nefele.mixed.components import FAIR, Estimate, Form, estimate
from nefele.mixed.coupling import Coupling, Index
from nefele.mixed.leave_out import left_out, predictions
from nefele.mixed.likelihood import Likelihood
from nefele.mixed.response import Response
from nefele.mixed.statistics import Statistics

_ROUNDS = 25  # linearisations at most
_SAME = 1e-3  # change of the predictors that is none, for a comparison


@dataclass(frozen=True, eq=False)
class Fit:
    """Components of local datasets and the models there.

    Attributes
    ----------
    found : Estimate
    data : LocalData
        The rows, linearised at the fit where the target is not normal.
    personal : int array of shape (p,)
    eta : array of shape (n_rows,)
        Linear predictors of the rows.
    unit : array of shape (n_rows,)
        The weight of a single row, see `leverages`.
    count : array of shape (n_rows,)
        How many rows each stands for.
    target : array of shape (n_rows,)
        The target as it is, not linearised.
    """

    found: Estimate
    data: LocalData
    personal: Index
    eta: Array
    unit: Array
    count: Array
    target: Array

    def sums(self) -> Statistics:
        """Sums of the rows, as a likelihood takes them."""
        return Statistics.of(self.data, self.count)

    def left_out(self) -> Array:
        """Linear predictor of each row by a fit without it; exact for a normal target."""
        return left_out(self.data, self.personal, self.found, self.unit)


def fit(
    data: LocalData,
    response: Response,
    personal: Index,
    form: Form,
    coupling: Coupling | None = None,
    start: Fit | None = None,
    *,
    nested: Fit | None = None,
    tol: float = FAIR,
    sums: Statistics | None = None,
) -> Fit:
    """Estimate the components, by penalised quasi-likelihood where the target is not normal.

    A target that is not normal is replaced by its linearisation at the last predictors, whose
    components are estimated, until the predictors stay (Breslow and Clayton 1993).

    Parameters
    ----------
    data : LocalData
    response : Response
    personal : int array of shape (p,)
    form : Form
    coupling : Coupling, optional
    start : Fit, optional
        A fit of the same form to start from.
    nested : Fit, optional
        A fit by the centre of the same form without correlations, to start from as well: neither
        it nor a start that knows nothing always leads to the best.
    tol : float
        See `estimate`.
    sums : Statistics, optional
        Those of the data, where they are known and the target is normal.
    """
    starts = [None if start is None else start.found.x]
    if nested is not None:
        starts.append(nested.found.correlated())
    weight = np.ones(data.n_rows) if data.sample_weight is None else data.sample_weight
    unit = np.minimum(weight, 1.0)
    if response.direct:
        known = Statistics.of(data) if sums is None else sums
        found = _likeliest(Likelihood(known, personal, coupling), form, starts, tol)
        return Fit(found, data, personal, predictions(data, personal, found), unit, weight, data.y)
    near = nested if start is None else start
    eta = response.start(data.y) if near is None else near.eta
    same = _SAME if tol >= FAIR else 1e-2 * _SAME
    for _ in range(_ROUNDS):
        z, w = response.linear(eta, data.y)
        linear = LocalData(data.X, z, data.ptr, data.ids, sample_weight=weight * w)
        likelihood = Likelihood(Statistics.of(linear, weight), personal, coupling, response.noise)
        found = _likeliest(likelihood, form, starts, tol)
        before, eta, starts = eta, predictions(linear, personal, found), [found.x]
        if not np.isfinite(eta).all():
            raise np.linalg.LinAlgError("The linearised fit has no minimiser.")
        if np.abs(eta - before).max(initial=0.0) <= same * (1 + np.abs(eta).max(initial=0.0)):
            break
    return Fit(found, linear, personal, eta, unit * w, weight, data.y)


def _likeliest(
    likelihood: Likelihood, form: Form, starts: list[Array | None], tol: float
) -> Estimate:
    found = (estimate(likelihood, form, x, tol=tol) for x in starts)
    return min(found, key=lambda one: one.model.deviance)
