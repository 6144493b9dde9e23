"""Errors by node and group, and the fit for the worst-off node with its certificate."""

import cvxpy as cp
import matplotlib
import numpy as np
import pytest

import nefele
from nefele.accountable import fit_minimax
from nefele.losses import PointwiseLoss
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
    ):
        with pytest.raises(ValueError, match=words):
            nefele.fairness(model, **{"X": X, "y": y, "node_ids": ids, **wrong})
    classes = nefele.GTVClassifier(nefele.graphs.chain(6), alpha=0.1).fit(X, ids % 2, node_ids=ids)
    with pytest.raises(ValueError, match="classes of the fit"):
        nefele.fairness(classes, X, ids, node_ids=ids)


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
    once = fit_minimax(model, X, y > 0, node_ids=ids, rounds=1)
    assert once.rounds == 1 and once.lower <= once.upper
    with pytest.raises(ValueError, match="GTVRegressor or GTVClassifier"):
        fit_minimax("model", X, y)
    with pytest.raises(ValueError, match="rounds"):
        fit_minimax(model, X, y > 0, node_ids=ids, rounds=0)


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
    found = fit_minimax(model, X, y, node_ids=ids, rounds=5)
    assert not found.proven
