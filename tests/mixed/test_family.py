"""Which member of the family is chosen, on data made for each."""

import numpy as np
import pytest

import nefele
from nefele import graphs
from nefele.mixed.columns import Table, columns_of, thin
from nefele.mixed.coupling import Joined
from nefele.mixed.family import CORRELATED, INTERCEPTS, ONE, SLOPES, Family
from nefele.mixed.response import Classes, Counts, Numbers


def table(n=40, rows=12, slope=0.0, level=0.0, curve=0.0, smooth=False, seed=0):
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n), rows)
    X = np.column_stack([rng.normal(size=(n * rows, 2)), rng.normal(size=n)[owner]])
    along = np.cumsum(rng.normal(size=n)) if smooth else rng.normal(size=n)
    y = X @ [1.0, -1.0, 0.5] + slope * rng.normal(size=n)[owner] * X[:, 0]
    y += level * along[owner] + curve * np.sin(3 * X[:, 1]) + rng.normal(size=n * rows)
    return Table(X, y, np.ones(len(y)), owner, n, True, np.zeros(3, dtype=bool))


def chosen(given, graph=None, response=None, curves=False):
    family = Family(given, response or Numbers(), graph, curves=curves)
    return family, family.choose()


@pytest.mark.parametrize(
    ("made", "expected"),
    [({}, {ONE}), ({"level": 1.5}, {INTERCEPTS}), ({"slope": 1.5}, {SLOPES, CORRELATED})],
    ids=["one model", "levels", "slopes"],
)
def test_what_differs_is_what_is_personal(made, expected):
    assert chosen(table(**made))[1].name in expected


def test_neighbours_that_are_alike_speak_for_the_graph():
    given, chain = table(level=0.5, smooth=True, rows=4), graphs.chain(40)
    family, best = chosen(given, chain)
    assert best.rho > 0
    assert best.errors.mean() < min(t.errors.mean() for t in family.tried if not t.rho)
    shuffled = np.random.default_rng(1).permutation(40)
    other = Table(**{**vars(given), "owner": shuffled[given.owner]})
    assert chosen(other, chain)[1].errors.mean() > best.errors.mean()


def test_a_graph_is_tried_where_no_two_others_are_alike():
    given = table(level=0.1, smooth=True, rows=6, n=60, seed=3)
    family, _ = chosen(given, graphs.chain(60))
    assert any(isinstance(t.coupling, Joined) for t in family.tried)


def test_a_bent_feature_gets_a_curve_and_a_straight_one_none():
    _, best = chosen(table(curve=1.5, level=1.0), curves=True)
    assert best.columns.smooth is not None
    assert 1 in [curve.column for curve in best.columns.smooth.curves]
    _, straight = chosen(table(level=1.0), curves=True)
    assert straight.columns.smooth is None


def test_features_of_nodes_have_a_common_coefficient():
    found = columns_of(table())
    assert 2 in found.used and 2 not in found.personal


def test_a_column_that_is_a_sum_of_others_is_left_out():
    given = table()
    X = np.column_stack([given.X, given.X[:, 0] + given.X[:, 1], np.ones(len(given.y))])
    double = Table(**{**vars(given), "X": X, "common": np.zeros(5, dtype=bool)})
    assert columns_of(double).used.tolist() == [0, 1, 2]


def test_rescaled_and_shifted_features_give_the_same_predictions():
    given = table(slope=1.0, level=1.0)
    other = Table(**{**vars(given), "X": given.X * [1e-4, 1e5, 2.0] + [3.0, -1e5, 0.1]})
    errors = [chosen(t, curves=True)[1].errors for t in (given, other)]
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("response", [Classes(), Counts()], ids=["classes", "counts"])
def test_levels_of_classes_and_counts(response):
    given = table(level=1.0, rows=25)
    rng = np.random.default_rng(5)
    eta = given.y - given.y.mean()
    if isinstance(response, Classes):
        y = np.where(rng.random(len(eta)) < 1 / (1 + np.exp(-eta)), 1.0, -1.0)
    else:
        y = rng.poisson(np.exp(0.5 * eta)).astype(float)
    family, best = chosen(Table(**{**vars(given), "y": y}), response=response)
    assert best.name != ONE
    assert best.errors.mean() < 0.97 * family.tried[0].errors.mean()


def test_one_node_alone_is_one_model():
    given = table(n=1, rows=40)
    assert chosen(given)[1].name == ONE


def rare(rows_each, n=30, rows=12):
    """A level of text that some rows of each node have, one of them far from all others."""
    given = table(n=n, rows=rows, level=1.0)
    level = np.tile(np.arange(rows) < rows_each, n).astype(float)
    X, y = np.column_stack([given.X, level]), given.y.copy()
    y[0] -= 40.0
    return Table(**{**vars(given), "X": X, "y": y, "common": np.zeros(4, dtype=bool)})


def test_a_level_that_each_node_has_once_has_a_common_slope():
    family, best = chosen(rare(1))
    assert thin(family.table).tolist() == [False, False, True, True]
    assert 3 not in best.columns.used[best.columns.personal[:-1]]
    assert not thin(rare(2))[3]


def test_a_slope_that_few_nodes_tell_of_is_common():
    given = rare(4)
    X = given.X.copy()
    X[given.owner > 3, 3] = 0.0
    assert thin(Table(**{**vars(given), "X": X}))[3]
    few = Table(**{**vars(given), "X": X, "n_nodes": 30})
    on = few.owner < 6
    small = Table(
        few.X[on], few.y[on], few.weight[on], few.owner[on], 6, True, np.zeros(4, dtype=bool)
    )
    assert not thin(small)[3]


def test_a_row_of_weight_two_tells_of_a_slope_as_two_rows():
    given = rare(1)
    double = Table(**{**vars(given), "weight": np.where(given.X[:, 3] > 0, 2.0, 1.0)})
    assert thin(given)[3] and not thin(double)[3]


def test_nodes_of_two_rows_may_have_slopes():
    assert not thin(table(rows=2))[:2].any()


def test_curves_are_compared_with_the_same_without_them():
    """Whether what is personal is right was asked before."""
    family, best = chosen(table(curve=1.5, slope=0.3, level=1.0), curves=True)
    names = [t.name for t in family.tried if t.columns.smooth is not None]
    assert names == [best.name]


@pytest.mark.parametrize("unit", [0.3, 1 / 3, 3.14, 1000.0])
def test_the_choice_does_not_depend_on_the_unit_of_the_target(unit):
    """Nor on rounding: likelihoods that are compared have converged."""
    states = nefele.datasets.load_states()

    def chosen(y):
        model = nefele.GTVRegressorCV(states.graph)
        return model.fit(states.X[:, :4], y, node_ids=states.node_ids)

    one, other = chosen(states.y), chosen(unit * states.y)
    assert one.coupling_ == other.coupling_
    aic = [np.array([tried["aic"] for tried in model.candidates_]) for model in (one, other)]
    np.testing.assert_allclose(aic[0] - aic[0][0], aic[1] - aic[1][0], atol=0.3)
