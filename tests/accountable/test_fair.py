"""Errors by node and group, and the fit for the worst-off node with its certificate."""

import cvxpy as cp
import matplotlib
import numpy as np
import pandas as pd
import pytest

import nefele
from nefele.accountable import fit_minimax
from nefele.losses import PointwiseLoss
from nefele.result import ConvergenceWarning
from tests.accountable.data import fitted, network


def test_errors_by_node_and_group():
    model, X, y, ids = fitted()
    groups = {i: "north" if i < 2 else "south" for i in range(6)}
    found = nefele.fairness(model, X, y, groups, node_ids=ids)
    each = (model.predict(X, node_ids=ids) - y) ** 2
    np.testing.assert_allclose(found.errors, [each[ids == i].mean() for i in range(6)])
    assert found.mean == pytest.approx(each.mean())
    assert found.worst.tolist() == [int(found.errors.argmax())]
    assert found.worst_tenth == found.errors.max()
    sides = [each[ids < 2].mean(), each[ids >= 2].mean()]
    np.testing.assert_allclose(found.group_errors, sides)
    assert found.gap == pytest.approx(abs(sides[0] - sides[1]))
    assert found.group_frame()["rows"].to_list() == [16, 32]
    assert found.frame()["worst_tenth"].to_list() == [True] + 5 * [False]
    matplotlib.use("agg")
    assert found.plot().get_ylabel() == "mean squared error"


def test_no_groups_have_no_gap():
    model, X, y, ids = fitted()
    assert np.isnan(nefele.fairness(model, X, y, node_ids=ids).gap)


def test_bad_input_of_fairness():
    model, X, y, ids = fitted()
    for wrong, words in (
        ({"groups": ["a"]}, "dict"),
        ({"groups": {0: "a"}}, "missing: 1"),
        ({"y": y[:3]}, "one entry per row"),
        ({"y": np.full(len(y), np.nan)}, "finite"),
        ({"y": ["warm"] * len(y)}, "y must be numeric"),
        ({"groups": {i: ["a"] for i in range(6)}}, "texts, numbers or tuples"),
        ({"groups": {i: (["a"], 1) for i in range(6)}}, "texts, numbers or tuples"),
        ({"groups": {i: "a" if i else float("nan") for i in range(6)}}, "not NaN.*node 0"),
        ({"groups": {i: "a" if i else pd.NA for i in range(6)}}, "not NaN.*node 0"),
    ):
        with pytest.raises(ValueError, match=words):
            nefele.fairness(model, **{"X": X, "y": y, "node_ids": ids, **wrong})
    classes = nefele.GTVClassifier(nefele.graphs.chain(6), alpha=0.1).fit(X, ids % 2, node_ids=ids)
    with pytest.raises(ValueError, match="classes of the fit"):
        nefele.fairness(classes, X, ids, node_ids=ids)
    odd = np.empty(len(y), dtype=object)
    odd[:] = [[0]] * len(y)
    with pytest.raises(ValueError, match="classes of the fit"):
        nefele.fairness(classes, X, odd, node_ids=ids)


@pytest.mark.parametrize("penalty", ["squared_l2", "l2"])
def test_the_bounds_enclose_the_value_of_the_game(penalty):
    """The value by a conic solver: min t + P(w) with L_i(w_i) <= t."""
    X, y, ids = network(n_nodes=3)
    options = {"penalty": penalty, "alpha": 2.0, "standardize": False, "fit_intercept": False}
    model = nefele.GTVRegressor(nefele.graphs.chain(3), **options)
    found = fit_minimax(model, X, y, node_ids=ids, tol=1e-3)
    w, t = cp.Variable((3, 2)), cp.Variable()
    phi = (lambda v: cp.sum_squares(v) / 2) if penalty == "squared_l2" else cp.norm
    coupling = 2.0 * sum(phi(w[i] - w[i + 1]) for i in range(2)) / 3
    losses = [cp.sum_squares(X[ids == i] @ w[i] - y[ids == i]) / 8 for i in range(3)]
    game = cp.Problem(cp.Minimize(t + coupling), [loss <= t for loss in losses])
    value = game.solve(solver="CLARABEL")
    assert found.lower <= value * (1 + 1e-5)
    assert found.upper >= value * (1 - 1e-5)
    assert found.converged and found.upper - found.lower <= 1e-3 * found.upper
    assert found.proven
    each = (np.einsum("rj,rj->r", X, found.model.coef_[ids]) - y) ** 2
    mine = [each[ids == i].mean() for i in range(3)]
    np.testing.assert_allclose(found.losses, mine, rtol=1e-9)
    assert found.losses.max() < found.even_losses.max()
    assert found.weights.sum() == pytest.approx(1) and (found.weights > 0).all()


def test_minimax_of_classes_and_its_limits():
    X, y, ids = network()
    model = nefele.GTVClassifier(nefele.graphs.chain(6), penalty="squared_l2", alpha=1.0)
    found = fit_minimax(model, X, y > 0, node_ids=ids)
    assert found.lower <= found.upper and found.converged
    assert not hasattr(model, "coef_")
    with pytest.raises(ValueError, match="training rows"):
        nefele.explain(found.model, 0)
    with pytest.warns(ConvergenceWarning, match="after 1 rounds"):
        once = fit_minimax(model, X, y > 0, node_ids=ids, rounds=1)
    assert once.rounds == 1 and once.lower <= once.upper
    assert not once.converged and once.model.status_ == "max_iter"
    with pytest.raises(ValueError, match="GTVRegressor or GTVClassifier"):
        fit_minimax("model", X, y)
    with pytest.raises(ValueError, match="rounds"):
        fit_minimax(model, X, y > 0, node_ids=ids, rounds=0)
    with pytest.raises(ValueError, match="tol must be finite and > 0"):
        fit_minimax(model, X, y > 0, node_ids=ids, tol=0.0)


def test_a_loss_without_a_conjugate_proves_nothing():
    class Cosh(PointwiseLoss):
        def f(self, z, y):
            return np.logaddexp(z - y, y - z)

        def slope(self, z, y):
            return np.tanh(z - y)

        def bend(self, z, y):
            return 1 - np.tanh(z - y) ** 2

    X, y, ids = network(n_nodes=3)
    model = nefele.GTVRegressor(nefele.graphs.chain(3), loss=Cosh(), penalty="squared_l2")
    found = fit_minimax(model, X, y, node_ids=ids, tol=0.1)
    assert not found.proven


def test_losses_below_zero_are_weighed_by_their_differences():
    """Counts with means far apart: the loss of Poisson is negative, and most so where it is large.

    The value of the game by a conic solver.
    """
    rng = np.random.default_rng(1)
    ids, X = np.repeat(np.arange(3), 10), rng.normal(size=(30, 1))
    y = rng.poisson(np.exp(2.5 + 0.2 * X[:, 0] + 0.5 * ids))
    options = {"loss": "poisson", "alpha": 1.0, "standardize": False, "fit_intercept": True}
    model = nefele.GTVRegressor(nefele.graphs.chain(3), **options)
    found = fit_minimax(model, X, y, node_ids=ids, tol=1e-3)
    w, t, Z = cp.Variable((3, 2)), cp.Variable(), np.column_stack([X, np.ones(30)])
    coupling = sum(cp.norm(w[i] - w[i + 1]) for i in range(2)) / 3
    losses = []
    for i in range(3):
        z = Z[ids == i] @ w[i]
        losses.append(cp.sum(cp.exp(z) - cp.multiply(y[ids == i], z)) / 10)
    game = cp.Problem(cp.Minimize(t + coupling), [loss <= t for loss in losses])
    value = game.solve(solver="CLARABEL")
    assert found.upper < 0 and found.converged
    assert found.lower <= value + 1e-4 and found.upper >= value - 1e-4
    assert found.upper - found.lower <= 1e-3 * abs(found.upper)


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_data_that_fit_exactly_are_done_at_once(size):
    X, _, ids = network()
    y = size * (X @ [1.0, 2.0])
    found = fit_minimax(nefele.GTVRegressor(nefele.graphs.chain(6)), X, y, node_ids=ids)
    assert found.converged and found.rounds == 1
    assert found.losses.max() <= 1e-12 * size**2


def test_the_model_of_a_game_has_the_gap_of_the_game():
    X, y, ids = network()
    model = nefele.GTVRegressor(nefele.graphs.chain(6), penalty="squared_l2", tol=1e-6)
    found = fit_minimax(model, X, y, node_ids=ids, tol=1e-2)
    assert found.model.status_ == "optimal"
    assert found.model.dual_gap_ <= found.model.tol == 1e-2
    apart = (found.upper - found.lower) / found.upper
    assert found.model.dual_gap_ == pytest.approx(apart)
    assert model.tol == 1e-6
