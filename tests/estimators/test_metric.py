"""A metric for the coefficients, a centre, common curves: against mixed models and CVXPY."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import nefele
from nefele import GTVClassifier, GTVRegressor, graphs
from nefele.estimators.layout import with_centre
from tests.mixed.rows import grouped, long

N = 8


@pytest.fixture(scope="module")
def rows():
    return long(grouped(n=N, rows=10))


def mixed(rows, slopes):
    X, y, ids = rows
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "node": ids})
    formula = "~ a" if slopes else "~ 1"
    return sm.MixedLM.from_formula("y ~ a + b", frame, groups="node", re_formula=formula).fit()


@pytest.mark.parametrize("slopes", [False, True])
def test_at_the_same_variances_the_models_are_mixedlms_predictions(slopes):
    rows = X, y, ids = long(grouped(n=40, rows=12))
    theirs = mixed(rows, slopes)
    mean = X[:, 0].mean()
    scale = np.zeros((3, 3))  # of a, b and the intercept at the mean of the features
    if slopes:
        turn = np.array([[1.0, mean], [0.0, 1.0]])
        at_mean = turn @ theirs.cov_re.to_numpy() @ turn.T
        scale[np.ix_([2, 0], [2, 0])] = at_mean
    else:
        scale[2, 2] = theirs.cov_re.iloc[0, 0]
    alpha = 2 * theirs.scale / (len(y) / 40)
    model = GTVRegressor(alpha=alpha, penalty="squared_l2", scale=scale, hub=1.0, tol=1e-12)
    model.fit(X, y, node_ids=ids)
    common = theirs.fe_params
    for k, node in enumerate(model.nodes_):
        own = theirs.random_effects[node]
        slope = common["a"] + (own["a"] if slopes else 0.0)
        expected = [slope, common["b"], common["Intercept"] + own.iloc[0]]
        found = [*model.coef_[k], model.intercept_[k]]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.centre_coef_, common[["a", "b"]], atol=1e-6)
    np.testing.assert_allclose(model.centre_intercept_, common["Intercept"], atol=1e-6)


def test_estimated_variances_agree_with_mixedlm():
    X, y, ids = long(grouped(n=80, rows=15))
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "node": ids})
    frame["a"] -= frame["a"].mean()
    theirs = sm.MixedLM.from_formula("y ~ a + b", frame, groups="node").fit()
    model = GTVRegressor(penalty="squared_l2", scale="auto", hub=1.0)
    found = model.fit(X, y, node_ids=ids)
    deviation = np.sqrt((found._layout.F**2).sum(axis=1))
    assert abs(deviation[-1] / np.sqrt(theirs.cov_re.iloc[0, 0]) - 1) < 0.1


def optimum(rows, graph, F, penalty, alpha):
    """The least objective, phi(F^-1 (w_i - w_j)), by a cone solver in the units of the rows."""
    X, y, ids = rows
    X = np.column_stack([X - X.mean(axis=0), np.ones(len(y))])
    w = cp.Variable((graph.n_nodes, 3))
    loss = cp.sum_squares(y - cp.sum(cp.multiply(X, w[ids]), axis=1)) / (len(y) / N)
    inverse = np.linalg.inv(F)
    total = 0
    for i, j, weight in zip(graph.head, graph.tail, graph.weight, strict=True):
        v = inverse @ (w[int(i)] - w[int(j)])
        total += weight * PHI[penalty](v)
    problem = cp.Problem(cp.Minimize(loss + alpha * total))
    return problem.solve(solver=cp.CLARABEL)


PHI = {
    "l2": lambda v: cp.norm(v, 2),
    "l1": lambda v: cp.norm(v, 1),
    "linf": lambda v: cp.norm(v, "inf"),
    "squared_l2": lambda v: cp.sum_squares(v) / 2,
    "huber": lambda v: cp.huber(cp.norm(v, 2), 1.0) / 2,
}


@pytest.mark.parametrize("hub", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("penalty", PHI)
def test_the_certificate_holds_in_any_metric(rows, penalty, hub):
    X, y, ids = rows
    rng = np.random.default_rng(len(penalty))
    F = np.tril(rng.uniform(-1, 1, (3, 3)), -1) + np.diag(rng.uniform(0.3, 2.0, 3))
    chain = graphs.chain(N)
    model = GTVRegressor(chain, alpha=0.7, penalty=penalty, scale=F @ F.T, hub=hub, tol=1e-7)
    model.fit(X, y, node_ids=ids)
    problem, w, u = model.solution()
    found = problem.objective(w)
    least = optimum(rows, with_centre(chain, hub), F, penalty, 0.7)
    gap = problem.certificate(w, u).gap_abs
    assert found <= least + gap + 1e-5 * abs(least)
    assert found >= least - 1e-5 * abs(least)


@pytest.mark.parametrize("penalty", ["l2", "squared_l2"])
@pytest.mark.parametrize("features", ["linear", "spline"])
def test_units_of_features_change_nothing_in_predictions(penalty, features):
    X, y, ids = long(grouped(n=N, rows=20))
    options = {"penalty": penalty, "alpha": 0.5, "scale": "auto", "hub": 0.5, "tol": 1e-9}
    options["features"] = features
    chain = graphs.chain(N)
    found = GTVRegressor(chain, **options).fit(X, y, node_ids=ids).predict(X, node_ids=ids)
    other = X * [1e3, 1e-4] + [5.0, -1.0]
    again = GTVRegressor(chain, **options).fit(other, y, node_ids=ids)
    np.testing.assert_allclose(again.predict(other, node_ids=ids), found, rtol=1e-4, atol=1e-4)


def test_a_hub_is_a_node_joined_to_all(rows):
    X, y, ids = rows
    options = {"penalty": "l2", "alpha": 0.3, "tol": 1e-9}
    model = GTVRegressor(graphs.chain(N), hub=0.25, **options).fit(X, y, node_ids=ids)
    joined = with_centre(graphs.chain(N), 0.25)
    plain = GTVRegressor(joined, **options).fit(X, y, node_ids=ids)
    np.testing.assert_allclose(model.coef_, plain.coef_[:N], atol=1e-5)
    np.testing.assert_allclose(model.centre_coef_, plain.coef_[N], atol=1e-5)


def test_nodes_never_seen_get_the_model_of_the_centre(rows):
    X, y, ids = rows
    model = GTVRegressor(penalty="squared_l2", scale="auto", hub=1.0, unseen="centre")
    model.fit(X, y, node_ids=ids)
    expected = X[:3] @ model.centre_coef_ + model.centre_intercept_
    np.testing.assert_allclose(model.predict(X[:3], node_ids=[90, 91, 92]), expected)
    bare = GTVRegressor(graphs.chain(N), unseen="centre").fit(X, y, node_ids=ids)
    with pytest.raises(ValueError, match="needs a centre"):
        bare.predict(X[:1], node_ids=[90])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": [1.0, 1.0]}, "one for the intercept"),
        ({"scale": [1.0, -1.0, 1.0]}, "scale must be >= 0"),
        ({"scale": [0.0, 0.0, 0.0]}, "at least one coefficient"),
        ({"scale": [1.0, np.nan, 1.0]}, "scale must be finite"),
        ({"scale": np.ones((3, 3)) - 2 * np.eye(3)}, "at least one coefficient|positive"),
        ({"scale": np.triu(np.ones((3, 3)))}, "symmetric"),
        ({"scale": "much"}, "scale"),
        ({"hub": 1.5}, "share from 0"),
        ({"hub": -0.1}, "hub must be"),
        ({"features": "forest"}, "features"),
        ({"scale": "auto", "couple": [0]}, "couple and couple_intercept"),
        ({"scale": np.eye(3) + 0.5, "loss": nefele.losses.Squared(l2=1.0)}, "full matrix"),
    ],
)
def test_what_makes_no_metric_is_refused(rows, options, message):
    X, y, ids = rows
    with pytest.raises(ValueError, match=message):
        GTVRegressor(graphs.chain(N), **options).fit(X, y, node_ids=ids)


def test_a_ridge_sees_coefficients_not_parameters(rows):
    X, y, ids = rows
    loss = nefele.losses.Squared(l2=0.5)
    options = {"alpha": 0.3, "penalty": "squared_l2", "loss": loss, "tol": 1e-11}
    plain = GTVRegressor(graphs.chain(N), standardize=False, **options)
    plain.fit(X - X.mean(axis=0), y, node_ids=ids)
    metric = GTVRegressor(graphs.chain(N), scale=[1.0, 1.0, 1.0], **options)
    metric.fit(X - X.mean(axis=0), y, node_ids=ids)
    deviation = X.std(axis=0)
    shrunk = GTVRegressor(graphs.chain(N), scale=[1.0, 1.0, 1.0], **options)
    shrunk.set_params(loss=nefele.losses.Squared(l2=1e6))
    assert np.abs(shrunk.fit(X, y, node_ids=ids).coef_).max() < 1e-3
    assert deviation.shape == (2,) and np.isfinite(metric.coef_).all()


def test_classes_with_a_common_part_and_curves():
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(20), 30)
    X = rng.normal(size=(600, 2))
    eta = rng.normal(size=20)[ids] + np.sin(2 * X[:, 0]) * 2
    y = np.where(rng.random(600) < 1 / (1 + np.exp(-eta)), "yes", "no")
    options = {"penalty": "squared_l2", "alpha": 1 / 30, "hub": 1.0, "scale": [0.0, 0.0, 1.0]}
    straight = GTVClassifier(**options).fit(X, y, node_ids=ids)
    bent = GTVClassifier(features="spline", **options).fit(X, y, node_ids=ids)
    assert straight.status_ == bent.status_ == "optimal"
    assert bent.score(X, y, node_ids=ids) > straight.score(X, y, node_ids=ids) + 0.02
    assert np.ptp(straight.coef_, axis=0).max() < 0.01 * np.abs(straight.coef_).max()


@pytest.mark.parametrize("features", ["linear", "spline"])
def test_a_saved_model_predicts_the_same_and_keeps_its_certificate(rows, tmp_path, features):
    X, y, ids = long(grouped(n=N, rows=20))
    model = GTVRegressor(
        graphs.chain(N), penalty="squared_l2", scale="auto", hub=0.5, features=features
    ).fit(X, y, node_ids=ids)
    model.save(tmp_path / "model.nefele", rows=True)
    again = nefele.load(tmp_path / "model.nefele")
    same = again.predict(X, node_ids=ids) == model.predict(X, node_ids=ids)
    assert same.all() and again.dual_gap_ <= 1e-4
    more = again.partial_fit(X[:5], y[:5], node_ids=ids[:5])
    assert more.status_ == "optimal"


def test_coefficients_that_move_together_without_noise():
    """A factor with columns that nearly agree: coordinates of size 1e6 that cancel."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(6), 10)
    X = rng.normal(size=(60, 1))
    own = ids - 2.5
    y = np.round((2.0 + 0.5 * own) * X[:, 0] + own, 4)
    model = nefele.GTVRegressorCV(max_iter=2000).fit(X, y, node_ids=ids)
    assert model.status_ == "optimal"
    np.testing.assert_allclose(model.predict(X, node_ids=ids), y, atol=1e-3)


def test_a_model_of_correlated_slopes_is_read_again(tmp_path):
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(20), 12)
    X, own = rng.normal(size=(240, 1)), rng.normal(size=20)[ids]
    y = own + (1 + own) * X[:, 0] + 0.5 * rng.normal(size=240)
    model = nefele.GTVRegressorCV(features="linear").fit(X, y, node_ids=ids)
    assert "correlated" in model.coupling_
    model.best_estimator_.save(tmp_path / "model.nefele")
    again = nefele.load(tmp_path / "model.nefele")
    np.testing.assert_array_equal(again.predict(X, node_ids=ids), model.predict(X, node_ids=ids))
