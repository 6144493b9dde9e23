"""Fits near a user's signals, and what a computation costs."""

import numpy as np
import pandas as pd
import pytest

import nefele
from nefele._threads import processor_seconds
from nefele.accountable import Cost, fit_explainable, measure_cost
from tests.accountable.data import network


def posed(penalty="squared_l2", **options):
    return nefele.GTVRegressor(
        nefele.graphs.chain(6), penalty=penalty, alpha=0.5, standardize=False, tol=1e-13, **options
    )


def test_the_objective_is_labels_plus_strength_times_signals():
    """Against a dense solve of the stated objective."""
    X, y, ids = network()
    signal = np.where(np.arange(len(y)) % 3 == 0, X[:, 0], np.nan)
    found = fit_explainable(posed(), X, y, signal, strength=0.7, node_ids=ids)
    on = ~np.isnan(signal)
    Z, n, d = np.column_stack([X, np.ones(len(X))]), 6, 3
    A, b = np.zeros((n * d, n * d)), np.zeros(n * d)
    for i in range(n):
        at, own, told = slice(i * d, i * d + d), ids == i, (ids == i) & on
        A[at, at] = 2 * (Z[own].T @ Z[own] + 0.7 * Z[told].T @ Z[told]) / 8
        b[at] = 2 * (Z[own].T @ y[own] + 0.7 * Z[told].T @ signal[told]) / 8
    L = np.diag([1.0, 2, 2, 2, 2, 1]) - np.eye(n, k=1) - np.eye(n, k=-1)
    w = np.linalg.solve(A + 0.5 * np.kron(L, np.eye(d)), b).reshape(n, d)
    mine = np.column_stack([found.model.coef_, found.model.intercept_])
    np.testing.assert_allclose(mine, w, atol=1e-6)
    assert found.model.status_ == "optimal" and found.model.dual_gap_ <= 1e-12


def test_more_strength_brings_predictions_nearer_at_the_cost_of_error():
    X, y, ids = network()
    runs = [
        fit_explainable(posed("l2"), X, y, X[:, 1], strength=s, node_ids=ids) for s in (0, 1, 9)
    ]
    distances, errors = [r.distance for r in runs], [r.error for r in runs]
    assert distances == sorted(distances, reverse=True) and errors == sorted(errors)
    assert runs[0].distance == pytest.approx(runs[0].free_distance)
    assert runs[0].error == pytest.approx(runs[0].free_error)


def test_signals_in_other_units_are_calibrated():
    """Any line through the signals gives the same fit."""
    X, y, ids = network()
    runs = [
        fit_explainable(posed(), X, y, signal, calibrate=True, node_ids=ids)
        for signal in (X[:, 0], 1000.0 - 3.0 * X[:, 0])
    ]
    np.testing.assert_allclose(runs[0].model.coef_, runs[1].model.coef_, atol=1e-6)
    line = np.polyval(np.polyfit(X[:, 0], y, 1), X[:, 0])
    plain = fit_explainable(posed(), X, y, line, node_ids=ids)
    np.testing.assert_allclose(runs[0].model.coef_, plain.model.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="must vary"):
        fit_explainable(posed(), X, y, np.ones(len(y)), calibrate=True, node_ids=ids)


def test_tables_keep_their_node_column():
    X, y, ids = network()
    table = pd.DataFrame(X, columns=["a", "b"]).assign(node=ids)
    one = fit_explainable(posed(node="node"), table, y, X[:, 0])
    two = fit_explainable(posed(), X, y, X[:, 0], node_ids=ids)
    np.testing.assert_allclose(one.model.coef_, two.model.coef_)
    assert nefele.explain(one.model, 2).exact


def test_bad_signals_are_refused():
    X, y, ids = network()
    for wrong, words in (
        ({"signal": y[:3]}, "one entry per row"),
        ({"signal": np.full(len(y), np.nan)}, "at least one"),
        ({"signal": np.full(len(y), np.inf)}, "finite"),
        ({"strength": -1.0}, "strength"),
        ({"model": posed(loss="huber")}, "squared loss"),
        ({"model": "model"}, "squared loss"),
    ):
        given = {"model": posed(), "X": X, "y": y, "signal": y, "node_ids": ids, **wrong}
        with pytest.raises(ValueError, match=words):
            fit_explainable(**given)


def test_cost_is_counted_also_when_the_work_fails():
    def fail():
        while processor_seconds() < 0.05 + before:
            np.linalg.svd(np.eye(50))
        raise RuntimeError

    before = processor_seconds()
    with pytest.raises(RuntimeError), measure_cost() as cost:
        fail()
    assert cost.cpu_seconds > 0
    assert cost.watt_hours == pytest.approx(cost.cpu_seconds * 15 / 3600)
    assert Cost(3600.0, watts=10.0).watt_hours == 10.0
    with pytest.raises(ValueError, match="watts"), measure_cost(-1.0):
        pass
