"""Predictions of left-out rows: exact for numbers, close for classes and counts."""

import numpy as np
import pytest
from scipy.optimize import minimize

from nefele import graphs
from nefele.data import LocalData
from nefele.mixed.components import Form
from nefele.mixed.coupling import Apart, Joined
from nefele.mixed.fitting import fit
from nefele.mixed.likelihood import Likelihood
from nefele.mixed.refits import refitted
from nefele.mixed.response import Classes, Counts, Numbers
from nefele.mixed.statistics import Statistics
from tests.mixed.rows import grouped

PERSONAL = np.array([0, 2])


def without(data, r):
    keep = np.arange(data.n_rows) != r
    weight = None if data.sample_weight is None else data.sample_weight[keep]
    return LocalData.from_long(
        data.X[keep],
        data.y[keep],
        data.row_node[keep],
        np.arange(data.n_nodes),
        sample_weight=weight,
    )


@pytest.mark.parametrize("coupling", [Apart(), Joined(graphs.chain(8), 0.9)])
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_of_left_out_rows_are_those_of_refits(coupling, weighted):
    data = grouped(n=8, empty=(3,))
    if weighted:
        weight = np.random.default_rng(0).uniform(0.2, 1.0, data.n_rows)
        data = LocalData(data.X, data.y, data.ptr, sample_weight=weight)
    fitted = fit(data, Numbers(), PERSONAL, Form(2, True, np.array([-1, 0, -1])), coupling)
    found, given = fitted.left_out(), fitted.found
    for r in range(0, data.n_rows, 7):
        likelihood = Likelihood(Statistics.of(without(data, r)), PERSONAL, coupling)
        model = likelihood(given.F, given.ridge)
        expected = data.X[r] @ model.b + data.X[r, PERSONAL] @ model.r[data.row_node[r]]
        assert abs(found[r] - expected) < 1e-9


@pytest.mark.parametrize("response", [Classes(), Counts()], ids=["classes", "counts"])
def test_losses_of_left_out_rows_are_within_two_percent_of_refits(response):
    form = Form(1, False, np.full(3, -1))
    worst = 0.0
    for seed in range(25):
        data = generated(response, seed)
        fitted = fit(data, response, np.array([2]), form)
        given = Form(1, False, form.groups, fitted.found.F)
        approximate = response.errors(fitted.left_out(), data.y)
        rows = np.random.default_rng(seed).choice(data.n_rows, 12, replace=False)
        exact = []
        for r in rows:
            again = fit(without(data, r), response, np.array([2]), given)
            i, model = data.row_node[r], again.found.model
            eta = data.X[r] @ model.b + data.X[r, 2] * model.r[i, 0]
            exact.append(response.errors(np.array([eta]), data.y[r : r + 1])[0])
        worst = max(worst, abs(approximate[rows].mean() / np.mean(exact) - 1))
    assert worst < 0.02


def generated(response, seed):
    data = grouped(seed, n=15, rows=10, deviations=(0.0, 0.0, 0.8), noise=0.0)
    rng = np.random.default_rng(1000 + seed)
    eta = 0.4 * (data.y - data.y.mean())
    if isinstance(response, Classes):
        y = np.where(rng.random(len(eta)) < 1 / (1 + np.exp(-eta)), 1.0, -1.0)
    else:
        y = rng.poisson(np.exp(1.0 + eta)).astype(float)
    return LocalData(data.X, y, data.ptr)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("response", [Classes(), Counts()], ids=["classes", "counts"])
def test_own_models_without_a_row_are_those_of_a_minimiser(response, weighted):
    """Most nodes can be separated, or have no counts but one: a step from the fit is far off."""
    data = rare(response, weighted)
    fitted = fit(data, response, np.arange(2), Form(2, False, np.full(2, -1), 10 * np.eye(2)))
    found, model = refitted(fitted, response), fitted.found.model
    count = np.ones(data.n_rows) if data.sample_weight is None else data.sample_weight
    for r in range(0, data.n_rows, 5):
        own = data.row_node == data.row_node[r]
        X, y, weight = data.X[own], data.y[own], count[own].copy()
        weight[np.flatnonzero(own) == r] -= min(count[r], 1.0)

        def value(u, X=X, y=y, weight=weight):
            return weight @ response.errors(X @ (model.b + 10 * u), y) + 0.5 * u @ u

        u = minimize(value, np.zeros(2), tol=1e-10).x
        assert found[r] == pytest.approx(data.X[r] @ (model.b + 10 * u), rel=0.01, abs=0.01)


def rare(response, weighted):
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=160), np.ones(160)])
    y = (rng.random(160) < 0.08).astype(float)
    if isinstance(response, Classes):
        y = 2 * y - 1
    weight = rng.uniform(0.5, 2.0, 160) if weighted else None
    return LocalData(X, y, 8 * np.arange(21), sample_weight=weight)


def test_nodes_with_too_many_rows_are_not_fitted_again(monkeypatch):
    monkeypatch.setattr("nefele.mixed.refits._WORK", 64 * 3)
    data = rare(Classes(), False)
    fitted = fit(data, Classes(), np.arange(2), Form(2, False, np.full(2, -1), np.eye(2)))
    found = refitted(fitted, Classes())
    assert np.isfinite(found[:24]).all() and np.isnan(found[24:]).all()
