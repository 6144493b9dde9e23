"""Graph signal recovery: against a cone solver, missing values, unreachable components."""

import pickle

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import nefele
from nefele.estimators.smoother import GraphSignalSmoother

GRAPH = nefele.graphs.grid(5, 6)
RNG = np.random.default_rng(0)
LEVEL = np.where(np.arange(30) < 12, 0.0, 4.0)
NOISY = LEVEL + 0.3 * RNG.normal(size=30)
PARTLY = np.where(RNG.random(30) < 0.4, np.nan, NOISY)


# check_array_api_input runs only where SCIPY_ARRAY_API is set and skips itself elsewhere.
@parametrize_with_checks(
    [GraphSignalSmoother(alpha=0.05), GraphSignalSmoother(n_alphas=3, cv=2, tol=1e-2)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_agrees_with_a_cone_solver_with_two_signals_and_holes():
    y = np.column_stack([PARTLY, np.where(np.arange(30) % 3 == 0, np.nan, -NOISY)])
    model = GraphSignalSmoother(GRAPH, alpha=0.6, tol=1e-9).fit(None, y)
    w, seen = cp.Variable((30, 2)), ~np.isnan(y)
    fit = cp.sum_squares(cp.multiply(seen, w - np.nan_to_num(y)))
    apart = cp.sum(cp.norm(w[GRAPH.head] - w[GRAPH.tail], 2, axis=1))
    objective = cp.Problem(cp.Minimize(fit + 0.6 * apart)).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
    )
    found = (((model.signal_ - np.nan_to_num(y)) * seen) ** 2).sum()
    found += 0.6 * np.linalg.norm(GRAPH.diff(model.signal_), axis=1).sum()
    assert found == pytest.approx(objective, rel=1e-7)
    assert (model.observed_ == seen).all()


def test_squared_penalty_is_the_laplacian_system():
    model = GraphSignalSmoother(GRAPH, alpha=0.8, penalty="squared_l2", tol=1e-12)
    model.fit(None, PARTLY)
    laplacian = np.zeros((30, 30))
    for i, j in zip(GRAPH.head, GRAPH.tail, strict=True):
        laplacian[[i, j], [i, j]] += 1
        laplacian[[i, j], [j, i]] -= 1
    seen = ~np.isnan(PARTLY)
    exact = np.linalg.solve(2 * np.diag(seen) + 0.8 * laplacian, 2 * np.where(seen, PARTLY, 0.0))
    assert np.allclose(model.signal_, exact, atol=1e-5)


def test_alpha_by_cross_validation_recovers_the_levels():
    model = GraphSignalSmoother(GRAPH).fit(None, PARTLY)
    assert model.alpha_ == model.alphas_[np.argmin(model.cv_errors_)]
    mean = np.nanmean(PARTLY)
    assert np.mean((model.signal_ - LEVEL) ** 2) < 0.1 * np.mean((mean - LEVEL) ** 2)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, None])
def test_ids_are_matched_by_value_in_tables_and_lists(make):
    graph = nefele.Graph.from_edges([("a", "b"), ("b", "c")])
    ids = ["c", "a", "a"]
    X = ids if make is None else make({"place": ids})
    model = GraphSignalSmoother(graph, alpha=0.0 + 1e-9).fit(X, [3.0, 1.0, 2.0])
    assert model.predict(["a", "c"]) == pytest.approx([1.5, 3.0])
    ask = ["b", "a"] if make is None else make({"place": ["b", "a"]})
    assert model.predict(ask).shape == (2,)
    assert len(model.predict()) == 3


def test_a_component_without_values_is_said_and_nan():
    graph = nefele.Graph.from_edges([("a", "b"), ("c", "d")])
    with pytest.warns(nefele.DataWarning, match=r"2 node\(s\) in 1 component.*'c', 'd'"):
        model = GraphSignalSmoother(graph, alpha=0.1).fit(["a"], [2.0])
    assert np.isnan(model.signal_).tolist() == [False, False, True, True]
    assert model.predict(["b"]) == pytest.approx([2.0])


def test_large_alpha_gives_the_mean_of_each_component():
    model = GraphSignalSmoother(GRAPH, alpha=1e3).fit(None, PARTLY)
    assert np.allclose(model.signal_, np.nanmean(PARTLY), atol=1e-4)
    assert not model.clusters_.any()


def test_coordinates_use_the_nearest_node():
    points = np.linspace(0, 1, 40)[:, None]
    y = np.where(points[:, 0] < 0.5, 1.0, 3.0)
    model = GraphSignalSmoother(n_neighbors=2).fit(points, y)
    assert model.predict([[0.01], [0.99]]) == pytest.approx([1.0, 3.0], abs=0.1)


def test_one_value_or_a_constant_needs_no_choice():
    for y in ([2.0] + [np.nan] * 29, [2.0] * 30):
        assert np.allclose(GraphSignalSmoother(GRAPH).fit(None, y).signal_, 2.0)


def test_clone_and_pickle():
    model = GraphSignalSmoother(GRAPH, alpha=0.3).fit(None, PARTLY)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict() == model.predict()).all()
    assert clone(model).graph == GRAPH


@pytest.mark.parametrize(
    ("X", "y", "match"),
    [
        ([99], [1.0], "must be a node of the graph; unknown: 99"),
        (None, [np.nan] * 30, "y must have a value at one node at least"),
        (np.zeros((30, 2)), PARTLY, "node ids in one column; got 2 columns"),
        (None, PARTLY[:5], "inconsistent numbers of samples"),
        (None, None, "requires y to be passed"),
    ],
)
def test_errors(X, y, match):
    with pytest.raises(ValueError, match=match):
        GraphSignalSmoother(GRAPH).fit(X, y)


def test_negative_alpha_is_an_error():
    with pytest.raises(ValueError, match="alpha must be finite and >= 0"):
        GraphSignalSmoother(GRAPH, alpha=-1.0).fit(None, PARTLY)
