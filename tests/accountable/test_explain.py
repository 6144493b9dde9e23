"""Explanations add up, agree with plain linear algebra, and leave-one-out with refits."""

from fractions import Fraction

import matplotlib
import numpy as np
import pandas as pd
import pytest

import nefele
from nefele.losses import Squared
from tests.accountable.data import fitted, network

SQUARED = [
    {},
    {"hub": 0.3},
    {"hub": 1.0},
    {"couple": [0]},
    {"couple_intercept": False},
    {"standardize": False, "weighting": "nodes"},
    {"scale": [1.0, 0.0, 2.0], "hub": 0.5},
    {"loss": Squared(l2=0.1)},
    {"fit_intercept": False},
    {"alpha": 0.0},
]
OTHERS = [{"penalty": "l2"}, {"penalty": "l1", "alpha": 0.2}, {"penalty": "huber", "alpha": 0.2}]


def naive(model, X, y, ids):
    """Intercept-and-slope models of the chain by one dense solve, no metric and no centre."""
    n, d = 6, 3
    A, b = np.zeros((n * d, n * d)), np.zeros((n, n * d))
    Z = np.column_stack([X, np.ones(len(X))])
    for i in range(n):
        at, own = slice(i * d, i * d + d), Z[ids == i]
        A[at, at] = 2 * own.T @ own / len(own)
        b[i, at] = 2 * own.T @ y[ids == i] / len(own)
    L = np.diag([1.0, 2, 2, 2, 2, 1]) - np.eye(n, k=1) - np.eye(n, k=-1)
    A += model.alpha * np.kron(L, np.eye(d))
    return np.linalg.solve(A, b.T).T.reshape(n, n, d)  # source, node, parameter


@pytest.mark.parametrize("shift", [0.0, 1000.0])
@pytest.mark.parametrize("options", SQUARED, ids=str)
def test_parts_of_squared_fits_add_up_to_the_model(options, shift):
    model, *_ = fitted(shift=shift, **options)
    for node in (0, 2):
        found = nefele.explain(model, node)
        whole = found.by_node.sum(axis=0) + found.common + found.pulls + found.remainder
        np.testing.assert_allclose(whole, found.total, rtol=0, atol=1e-10 * (1 + abs(shift)))
        assert found.exact and not found.pulls.any()
        size = np.abs(found.total).max()
        assert np.abs(found.remainder).max() <= 1e-7 * size  # a gap of 1e-14: its root
        direct = found.own_part + found.neighbour_parts.sum(axis=0) + found.shared_part
        np.testing.assert_allclose(direct, found.total, rtol=0, atol=1e-7 * size)
        assert found.share.sum() + found.ridge_share == pytest.approx(1, abs=1e-10)
        assert (found.ridge_share > 1e-3) == ("loss" in options)
        assert found.cluster_share.sum() == pytest.approx(found.share.sum(), abs=1e-12)
        np.testing.assert_allclose(
            found.cluster_parts.sum(axis=0), found.by_node.sum(axis=0), atol=1e-12 * (1 + size)
        )


def test_weights_agree_with_a_dense_solve_to_rounding():
    model, X, y, ids = fitted(standardize=False, weighting="nodes")
    by_source = naive(model, X, y, ids)
    for node in range(6):
        found = nefele.explain(model, node)
        np.testing.assert_allclose(found.by_node, by_source[:, node], rtol=0, atol=1e-10)


def test_a_centre_reproduces_the_model_to_1e_10():
    model, *_ = fitted(hub=1.0)
    for node in range(6):
        found = nefele.explain(model, node)
        whole = found.by_node.sum(axis=0) + found.common
        np.testing.assert_allclose(whole, found.total, rtol=0, atol=1e-10)
        direct = found.own_part + found.neighbour_parts.sum(axis=0) + found.shared_part
        np.testing.assert_allclose(direct, found.total, rtol=0, atol=1e-10)
        assert found.neighbours.tolist() == [6]  # the centre
        assert found.own_share + found.neighbour_share.sum() == pytest.approx(1, abs=1e-12)


def test_a_changed_label_moves_the_model_as_the_row_says():
    options = {"standardize": False, "weighting": "nodes"}
    model, X, y, ids = fitted(**options)
    found = nefele.explain(model, 2)
    row = int(found.row_frame(1)["row"][0])
    moved = y.copy()
    moved[row] = 0.0
    again = nefele.explain(fitted(**options)[0].fit(X, moved, node_ids=ids), 2)
    change = found.by_node - again.by_node
    others = np.arange(6) != ids[row]
    assert np.abs(change[others]).max() <= 1e-10
    Z = np.column_stack([X, np.ones(len(X))])[ids == 2]
    size = np.sqrt(((Z @ change[ids[row]]) ** 2).mean())
    assert size == pytest.approx(found.row_frame(1)["size"][0], rel=1e-8)


@pytest.mark.parametrize("options", OTHERS, ids=str)
def test_norms_and_huber_add_up_on_the_active_set(options):
    model, *_ = fitted(**{"tol": 1e-12, **options})
    for node in range(6):
        found = nefele.explain(model, node)
        whole = found.by_node.sum(axis=0) + found.common + found.pulls
        np.testing.assert_allclose(whole, found.total, rtol=0, atol=1e-7)
        assert not found.exact and "first-order" in found.how
        assert found.share.sum() == pytest.approx(1, abs=1e-9)


def test_equal_models_share_their_rows():
    model, *_ = fitted(penalty="l2", alpha=1.0, tol=1e-12)
    joined = np.flatnonzero(np.bincount(model.clusters_)[model.clusters_] > 1)
    assert joined.size
    found = nefele.explain(model, int(joined[0]))
    assert found.certified and "certificate proves" in found.how
    mine = np.flatnonzero(model.clusters_ == model.clusters_[joined[0]])
    assert found.members.tolist() == mine.tolist()
    other = nefele.explain(model, int(joined[1]))
    if model.clusters_[joined[0]] == model.clusters_[joined[1]]:
        np.testing.assert_allclose(found.by_node, other.by_node, atol=1e-12)
    direct = found.own_part + found.neighbour_parts.sum(axis=0) + found.shared_part
    np.testing.assert_allclose(direct, found.total, rtol=0, atol=1e-7)


def test_norm_weights_are_the_derivatives_of_the_fit():
    options = {"penalty": "l2", "tol": 1e-14, "standardize": False, "weighting": "nodes"}
    model, X, y, ids = fitted(**options)
    found = nefele.explain(model, 2)
    step, row = 1e-4, 20
    ends = []
    for sign in (1, -1):
        moved = y.copy()
        moved[row] += sign * step
        again = nefele.GTVRegressor(nefele.graphs.chain(6), alpha=0.5, **options)
        again.fit(X, moved, node_ids=ids)
        assert (again.clusters_ == model.clusters_).all()
        ends.append(np.append(again.coef_[2], again.intercept_[2]))
    slope = (ends[0] - ends[1]) / (2 * step)
    share = found._parts.system.Z[ids[row]].T @ np.append(X[row], 1.0) * 2 / 8
    np.testing.assert_allclose(slope, found._parts.fit.to_units(share), atol=1e-4)


@pytest.mark.parametrize("tol", [1e-4, 1e-13])
@pytest.mark.parametrize(
    "options", [{}, *({"penalty": name} for name in ("l2", "l1", "linf", "huber"))], ids=str
)
def test_without_a_neighbour_is_the_refit(options, tol):
    given = {"standardize": False, "weighting": "nodes", **options}
    model, X, y, ids = fitted(**{"tol": tol, **given})
    found = nefele.explain(model, 2)
    on = ids != 3
    left = nefele.Graph.from_edges([(0, 1), (1, 2), (4, 5)])
    again = nefele.GTVRegressor(left, alpha=0.5, tol=1e-14, **{"penalty": "squared_l2", **given})
    again.fit(X[on], y[on], node_ids=ids[on])
    at = again.nodes_.tolist().index(2)
    refit = np.append(again.coef_[at], again.intercept_[at])
    np.testing.assert_allclose(found.without(3), refit, rtol=0, atol=1e-6)
    x = X[17]
    assert found.prediction(x).without(3) == pytest.approx(
        again.predict(x[None], node_ids=[2])[0], abs=1e-6
    )


def test_a_node_of_another_component_changes_nothing():
    X, y, ids = network()
    graph = nefele.Graph.from_edges([(0, 1), (1, 2), (3, 4), (4, 5)])
    model = nefele.GTVRegressor(graph, penalty="squared_l2", tol=1e-12).fit(X, y, node_ids=ids)
    found = nefele.explain(model, 0)
    np.testing.assert_allclose(found.without(4), found.optimum, atol=1e-12)
    assert not found.share[3:].any() and not found.by_node[3:].any()


@pytest.mark.parametrize("options", [*SQUARED, *OTHERS], ids=str)
def test_features_and_sources_of_a_prediction_add_up(options):
    model, X, _, ids = fitted(**options)
    found = nefele.explain(model, 2).prediction(X[20])
    value = model.predict(X[20:21], node_ids=[2])[0]
    assert found.value == pytest.approx(value, abs=1e-12)
    assert found.base + found.features.sum() + found.curves.sum() == pytest.approx(value, abs=1e-12)
    assert found.by_node.sum() + found.rest == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(found.reference, X[ids == 2].mean(axis=0))
    similar = found.similar(3)
    assert similar["row"][0] == 20 and similar["distance"][0] == 0
    assert (ids[similar["row"].to_numpy()] == 2).all()


@pytest.fixture(scope="module")
def states():
    data = nefele.datasets.load_states()
    X = pd.DataFrame(data.X[:, :4], columns=data.feature_names[:4])
    X["state"] = data.node_ids
    return nefele.GTVRegressorCV(data.graph, node="state").fit(X, data.y), X


def test_the_chosen_coupling_with_centre_and_curves_is_explained(states):
    model, X = states
    found = nefele.explain(model, "Ohio")
    whole = found.by_node.sum(axis=0) + found.common
    np.testing.assert_allclose(whole, found.total, rtol=0, atol=1e-9)
    assert "(centre)" in found.neighbours.tolist()
    row = X[X["state"] == "Ohio"].iloc[:1]
    one = found.prediction(row)
    assert one.value == pytest.approx(model.predict(row)[0], abs=1e-12)
    assert one.names == list(X.columns[:4]) and one.frame().height == 4
    assert found.frame()["source"].to_list()[-1] == "total"
    with pytest.raises(ValueError, match="row of the node explained"):
        found.prediction(X[X["state"] == "Texas"].iloc[:1])


@pytest.mark.parametrize("features", ["linear", "spline"])
def test_classes_are_explained_on_the_scale_of_the_score(features):
    X, y, ids = network(n_rows=30)
    scale = [1.0, 0.0, 1.0] if features == "spline" else None
    model = nefele.GTVClassifier(
        nefele.graphs.chain(6), penalty="squared_l2", alpha=0.1, hub=0.5, scale=scale,
        features=features, tol=1e-12,
    ).fit(X, y > np.median(y), node_ids=ids)  # fmt: skip
    found = nefele.explain(model, 3)
    whole = found.by_node.sum(axis=0) + found.common + found.remainder
    np.testing.assert_allclose(whole, found.total, rtol=0, atol=1e-10)
    assert np.abs(found.remainder).max() < 1e-5 and not found.exact
    one = found.prediction(X[100])
    assert one.value == pytest.approx(model.decision_function(X[100:101], node_ids=[3])[0])
    assert one.label is True and set(found.row_frame(20)["target"]) <= {"True", "False"}


@pytest.mark.parametrize("loss", ["poisson", "huber"])
def test_other_losses_and_weights_of_rows(loss):
    rng = np.random.default_rng(0)
    X, _, ids = network(n_rows=20)
    y, weight = rng.poisson(np.exp(0.3 * X[:, 0])), rng.integers(0, 3, len(X))
    model = nefele.GTVRegressor(
        nefele.graphs.chain(6), penalty="squared_l2", alpha=0.1, loss=loss, tol=1e-12
    ).fit(X, y, sample_weight=weight, node_ids=ids)
    found = nefele.explain(model, 1)
    whole = found.by_node.sum(axis=0) + found.common
    np.testing.assert_allclose(whole, found.total, rtol=0, atol=1e-6)
    value = found.prediction(X[0]).value
    score = np.exp(value) if loss == "poisson" else value
    assert score == pytest.approx(model.predict(X[:1], node_ids=[1])[0])


def test_tables_with_text_are_explained_by_their_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "town": rng.choice(list("abc"), 90),
            "kind": rng.choice(["x", "y"], 90),
            "v": rng.normal(size=90),
        }
    )
    y = 2.0 * table["v"] + (table["kind"] == "x") + 0.1 * rng.normal(size=90)
    model = nefele.GTVRegressor(penalty="squared_l2", hub=1.0, node="town", alpha=0.1)
    found = nefele.explain(model.fit(table, y), "b")
    row = table[table["town"] == "b"].iloc[:1]
    one = found.prediction(row)
    assert one.value == pytest.approx(model.predict(row)[0], abs=1e-12)
    assert "v" in one.names and any(name.startswith("kind") for name in one.names)
    near = one.similar(1)
    assert near["row"][0] == row.index[0] and near["distance"][0] == 0


def test_a_single_pooled_node_is_its_own_rows():
    X, y, _ = network()
    model = nefele.GTVRegressor().fit(X, y)
    found = nefele.explain(model, model.nodes_[0])
    assert found.share.tolist() == pytest.approx([1.0]) and found.own_share == pytest.approx(1.0)
    assert found.edge_frame().height == 0


def test_a_node_without_rows_is_made_of_the_others():
    X, y, ids = network()
    on = ids != 2
    model = nefele.GTVRegressor(nefele.graphs.chain(6), penalty="squared_l2", tol=1e-14)
    found = nefele.explain(model.fit(X[on], y[on], node_ids=ids[on]), 2)
    assert found.share[2] == 0 and found.own_share == 0
    assert found.share.sum() == pytest.approx(1, abs=1e-10)
    assert found.prediction(X[0]).similar().height == 0


def test_edges_that_matter_are_those_nearby():
    model, *_ = fitted()
    table = nefele.explain(model, 0).edge_frame()
    assert table.height == 5
    assert set(table.sort("size", descending=True).head(2)["source"]) <= {"0", "1"}


def test_pictures():
    matplotlib.use("agg")
    model, X, *_ = fitted()
    found = nefele.explain(model, 2)
    first, second = found.plot()
    assert first.get_ylabel().startswith("share") and second.get_ylabel().startswith("direct")
    assert sum(bar.get_height() for bar in first.patches) == pytest.approx(1)
    ax = found.prediction(X[0]).plot()
    assert len(ax.patches) == 2
    with pytest.raises(ValueError, match="two matplotlib Axes"):
        found.plot([first])


def test_bad_input_is_refused(tmp_path):
    model, X, *_ = fitted()
    with pytest.raises(ValueError, match="fitted GTVRegressor"):
        nefele.explain("model", 0)
    with pytest.raises(ValueError, match="9"):
        nefele.explain(model, 9)
    found = nefele.explain(model, 0)
    with pytest.raises(ValueError, match="must be another one"):
        found.without(0)
    with pytest.raises(ValueError, match="one row"):
        found.prediction(X[:2])
    with pytest.raises(ValueError, match="x\\[1\\]"):
        found.prediction([0.0, np.nan])
    for wrong in (None, 3.0, np.ones((1, 1, 2))):
        with pytest.raises(ValueError, match="x must be one row: a table, or an array"):
            found.prediction(wrong)
    with pytest.raises(ValueError, match="count"):
        found.row_frame(0)
    model.save(tmp_path / "model.nefele")
    with pytest.raises(ValueError, match="training rows"):
        nefele.explain(nefele.load(tmp_path / "model.nefele"), 0)
    with pytest.raises(ValueError, match="label must be left out"):
        found.prediction(X[0], label=1)
    for options in ({"penalty": nefele.penalties.Lp(1.5)}, {"loss": "absolute"}):
        with pytest.raises(ValueError, match="An explanation needs"):
            nefele.explain(fitted(**{"tol": 1e-4, **options})[0], 0)


def solved(A, b):
    """A x = b without any rounding, by elimination with fractions."""
    rows = [[Fraction(v) for v in (*a, c)] for a, c in zip(A, b, strict=True)]
    for k in range(len(rows)):
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    x = [Fraction(0)] * len(rows)
    for k in reversed(range(len(rows))):
        rest = sum((rows[k][j] * x[j] for j in range(k + 1, len(x))), Fraction(0))
        x[k] = (rows[k][-1] - rest) / rows[k][k]
    return np.array([float(value) for value in x])


@pytest.mark.parametrize("sizes", [(1e6, 1e-6), (1e-6, 1.0), (1e-4, 1e4)])
def test_features_of_unlike_size_are_explained(sizes):
    """A coupling in raw units that drowns what the data say of a small feature; against fractions.

    The exact system has more digits than floats: only its solution is rounded.
    """
    X, y, ids = network(n_nodes=3)
    X = X * np.array(sizes)
    options = {"penalty": "squared_l2", "alpha": 0.5, "standardize": False, "fit_intercept": False}
    model = nefele.GTVRegressor(nefele.graphs.chain(3), tol=1e-9, **options)
    found = nefele.explain(model.fit(X, y, node_ids=ids), 1)
    n, d = 3, 2
    L = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    A = np.array([[Fraction(0)] * (n * d)] * (n * d), dtype=object)
    asks = np.zeros((n, n * d))
    for i in range(n):
        own = X[ids == i]
        at = slice(i * d, i * d + d)
        for r in own:
            A[at, at] += np.array([[Fraction(a) * Fraction(b) / 4 for b in r] for a in r])
        asks[i, at] = own.T @ y[ids == i] / 4
    for i in range(n):
        for j in range(n):
            for k in range(d):
                A[i * d + k, j * d + k] += Fraction(L[i, j]) / 2
    for i in range(n):
        part = solved(A, asks[i])[d : 2 * d]
        np.testing.assert_allclose(found.by_node[i, :d] * sizes, part * sizes, atol=1e-8)
    assert found.share.sum() == pytest.approx(1) and found.exact
    near = found.own_part + found.neighbour_parts.sum(axis=0)
    np.testing.assert_allclose(near[:d] * sizes, found.optimum[:d] * sizes, atol=1e-8)


def test_data_that_fix_nothing_are_refused():
    X, y = np.array([[1.0, 2.0], [0.0, 1.0]]), [1.0, 2.0]
    model = nefele.GTVRegressor(alpha=0.0).fit(X, y, node_ids=["a", "b"])
    with pytest.raises(ValueError, match="must fix the parameters"):
        nefele.explain(model, "a")


@pytest.mark.parametrize("options", [{"hub": 0.4}, {"scale": [1.0, 0.0, 2.0], "hub": 0.5}], ids=str)
def test_without_a_node_or_the_centre_solves_the_smaller_problem(options):
    model, *_ = fitted(**options)
    found = nefele.explain(model, 2)
    problem, w, _ = model.solution()
    graph, data = problem.graph, problem.data
    for gone in (3, 6):  # a neighbour, and the centre
        keep = np.arange(7) != gone
        on = keep[graph.head] & keep[graph.tail]
        place = np.cumsum(keep) - 1
        ends = place[graph.head[on]], place[graph.tail[on]]
        less = nefele.Graph(graph.ids[keep], *ends, graph.weight[on])
        rows = data.subset(np.flatnonzero(keep))
        again = nefele.Problem(less, rows, "squared", "squared_l2", lam=problem.lam)
        best = nefele.solve(again, tol=1e-14).w[2]
        moved = found.without(gone) - found.total
        change = found._parts.fit.to_units(best - w[2])
        np.testing.assert_allclose(moved, change, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("penalty", ["squared_l2", "l2"])
def test_sums_and_shares_over_random_networks(seed, penalty):
    rng = np.random.default_rng(seed)
    graph = nefele.graphs.geometric(15, 0.5, seed=seed)
    ids = rng.choice(graph.ids, 150)
    X = rng.normal(size=(150, 3))
    y = X @ rng.normal(size=3) + rng.normal(size=150)
    model = nefele.GTVRegressor(graph, penalty=penalty, alpha=0.2, tol=1e-12)
    model.fit(X, y, node_ids=ids)
    for node in rng.choice(graph.ids, 4, replace=False):
        found = nefele.explain(model, node)
        whole = found.by_node.sum(axis=0) + found.common + found.pulls + found.remainder
        np.testing.assert_allclose(whole, found.total, rtol=0, atol=1e-10)
        assert np.abs(found.remainder).max() < 1e-5
        assert found.share.sum() == pytest.approx(1, abs=1e-8)


EVERY = [
    *({"penalty": name} for name in ("squared_l2", "l2", "l1", "linf", "huber")),
    *({"penalty": nefele.penalties.Lp(p)} for p in (1, 2, 3.5, np.inf)),
    {"penalty": "l2", "loss": "huber"},
    {"penalty": "linf", "hub": 0.4},
    {"penalty": "l1", "couple": [0]},
    {"penalty": "linf", "couple_intercept": False},
    {"scale": [1.0, 0.0, 2.0], "hub": 0.5},
]


@pytest.mark.parametrize("options", EVERY, ids=str)
def test_at_the_default_tolerance_parts_add_up_to_the_optimum(options):
    """The optimum to 1e-10, whatever the fit left; the difference is the remainder."""
    given = {"penalty": "squared_l2", "alpha": 0.3, **options}
    rough, best = fitted(**{**given, "tol": 1e-4})[0], fitted(**{**given, "tol": 1e-13})[0]
    for node in (0, 3):
        found, exact = nefele.explain(rough, node), nefele.explain(best, node)
        whole = found.by_node.sum(axis=0) + found.common + found.pulls
        np.testing.assert_allclose(whole, exact.optimum, rtol=0, atol=1e-10)
        true = np.append(best.coef_[node], best.intercept_[node])
        np.testing.assert_allclose(whole, true, rtol=0, atol=1e-7)
        np.testing.assert_allclose(whole + found.remainder, found.total, rtol=0, atol=1e-14)
        assert found.share.sum() == pytest.approx(1, abs=1e-9)
        if found.own_part is not None and np.isfinite(found.own_part).all():
            direct = found.own_part + found.neighbour_parts.sum(axis=0) + found.shared_part
            np.testing.assert_allclose(direct, found.optimum, rtol=0, atol=1e-10)


@pytest.mark.parametrize("penalty", ["l2", "l1", "linf"])
def test_weights_on_the_active_set_are_derivatives_of_refits(penalty):
    options = {"penalty": penalty, "tol": 1e-13, "standardize": False, "weighting": "nodes"}
    model, X, y, ids = fitted(alpha=0.3, **options)
    step, row = 1e-5, 26
    found = nefele.explain(model, 3)
    ends = []
    for sign in (1, -1):
        moved = y.copy()
        moved[row] += sign * step
        again = nefele.GTVRegressor(nefele.graphs.chain(6), alpha=0.3, **options)
        ends.append(nefele.explain(again.fit(X, moved, node_ids=ids), 3).optimum)
    slope = (ends[0] - ends[1]) / (2 * step)
    share = found._parts.system.Z[ids[row]].T @ np.append(X[row], 1.0) * 2 / 8
    np.testing.assert_allclose(slope, found._parts.fit.to_units(share), atol=1e-6)
    assert np.abs(slope).max() > 1e-3


@pytest.mark.parametrize("hub", [0.3, 1.0])
def test_what_is_common_is_split_by_rows_as_refits_say(hub):
    """Labels of one node set to zero: everything is estimated again, and moves by its part."""
    options = {"scale": [1.0, 0.0, 2.0], "hub": hub}
    model, X, y, ids = fitted(**options)
    found = nefele.explain(model, 2)
    assert found.shared_part.any() and np.abs(found.common).max() < 1e-9
    for node in (2, 4):
        other = np.where(ids == node, 0.0, y)
        again = nefele.GTVRegressor(
            nefele.graphs.chain(6), penalty="squared_l2", alpha=0.5, tol=1e-14, **options
        ).fit(X, other, node_ids=ids)
        refit = nefele.explain(again, 2).optimum
        np.testing.assert_allclose(found.optimum - refit, found.by_node[node], atol=1e-8)


def test_curves_and_common_slopes_of_the_default_search_are_split_by_rows():
    """Nothing but rounding is left beside what the rows of the nodes add."""
    rng = np.random.default_rng(0)
    ids, X = np.repeat(np.arange(6), 40), rng.uniform(-2, 2, size=(240, 1))
    y = np.sin(2 * X[:, 0]) + 0.5 * rng.normal(size=6)[ids] + 0.1 * rng.normal(size=240)
    model = nefele.GTVRegressorCV().fit(X, y, node_ids=ids)
    found = nefele.explain(model, 1)
    assert found.shared_part.any()
    np.testing.assert_allclose(found.by_node.sum(axis=0), found.total, rtol=0, atol=1e-10)
    for x in X[:3]:
        one = found.prediction(x)
        assert one.curves.any() and abs(one.rest) < 1e-10
        assert one.by_node.sum() == pytest.approx(
            model.predict(x[None], node_ids=[1])[0], abs=1e-10
        )


THREE = [
    {},
    {"penalty": "l1"},
    {"penalty": "squared_l2"},
    {"penalty": "linf"},
    {"penalty": "squared_l2", "hub": 0.5},
    {"couple_intercept": False, "alpha": 0.5},
    {"loss": nefele.losses.Logistic(l2=0.01)},
]


def three_classes():
    X, y, ids = network(n_rows=40)
    cut = [np.quantile(y[ids == i], [0.33, 0.66]) for i in range(6)]  # all classes everywhere
    label = np.array([np.searchsorted(cut[i], t) for i, t in zip(ids, y, strict=True)])
    swap = np.random.default_rng(1).random(len(y)) < 0.2
    label[swap] = (label[swap] + 1) % 3
    return X, np.array(["a", "b", "c"])[label], ids


@pytest.mark.parametrize("options", THREE, ids=str)
def test_three_classes_are_explained_by_their_scores(options):
    X, label, ids = three_classes()
    given = {"alpha": 0.05, "tol": 1e-4, **options}
    model = nefele.GTVClassifier(nefele.graphs.chain(6), **given).fit(X, label, node_ids=ids)
    found = nefele.explain(model, 2)
    tight = nefele.GTVClassifier(nefele.graphs.chain(6), **{**given, "tol": 1e-11})
    exact = nefele.explain(tight.fit(X, label, node_ids=ids), 2)
    np.testing.assert_allclose(found.optimum, exact.optimum, rtol=0, atol=1e-10)
    assert np.abs(exact.remainder).max() < 1e-5 and np.abs(found.remainder).max() < 0.05
    assert found.names[:3] == ["x0 [a]", "x1 [a]", "intercept [a]"] and len(found.total) == 9
    assert found.share.sum() + found.ridge_share == pytest.approx(1, abs=1e-8)
    assert (found.ridge_share > 1e-6) == ("loss" in options)
    scores = model.decision_function(X[:1], node_ids=[2])[0]
    for k, name in enumerate("abc"):
        one = found.prediction(X[0], label=name)
        if "loss" not in options:
            assert one.value == pytest.approx(scores[k] - scores.mean(), abs=1e-9)
        assert one.base + one.features.sum() == pytest.approx(one.value, abs=1e-10)
        assert one.by_node.sum() + one.rest == pytest.approx(one.value, abs=1e-10)
    likely = found.prediction(X[0])
    assert likely.value == pytest.approx(
        max(found.prediction(X[0], label=name).value for name in "abc")
    )
    assert set(found.row_frame(30)["target"]) == set("abc") and found.frame().width == 11
    assert likely.label in "abc" and likely.similar(1)["target"][0] in "abc"
    with pytest.raises(ValueError, match="label must be a class"):
        found.prediction(X[0], label="d")


def test_without_a_node_three_classes_are_those_of_the_refit():
    X, label, ids = three_classes()
    options = {"alpha": 0.05, "tol": 1e-12, "standardize": False, "weighting": "nodes"}
    model = nefele.GTVClassifier(nefele.graphs.chain(6), **options).fit(X, label, node_ids=ids)
    on = ids != 3
    left = nefele.Graph.from_edges([(0, 1), (1, 2), (4, 5)])
    again = nefele.GTVClassifier(left, **options).fit(X[on], label[on], node_ids=ids[on])
    at = again.nodes_.tolist().index(2)
    refit = np.column_stack([again.coef_[at], again.intercept_[at]])
    refit -= refit.mean(axis=0)
    np.testing.assert_allclose(
        nefele.explain(model, 2).without(3), refit.ravel(), rtol=0, atol=1e-6
    )
