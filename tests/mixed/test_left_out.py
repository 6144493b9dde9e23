"""Predictions of left-out rows: exact for numbers, close for classes and counts."""

import numpy as np
import pytest

from nefele import graphs
from nefele.data import LocalData
from nefele.mixed.components import Form
from nefele.mixed.coupling import Apart, Joined
from nefele.mixed.fitting import fit
from nefele.mixed.likelihood import Likelihood
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
