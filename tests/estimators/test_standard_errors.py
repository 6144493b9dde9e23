"""Standard errors and intervals of personal and common coefficients."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import norm
from statsmodels.regression.mixed_linear_model import MixedLM

import nefele
from nefele import GTVClassifier, GTVRegressor, GTVRegressorCV, graphs
from nefele.estimators.standard_errors import standard_errors
from nefele.mixed import posterior
from tests.estimators.data import ROADS, towns

N = 7


def rows(seed=0, n=N, least=3, most=9, x=2):
    """Features, target and node of each row; levels and slopes differ between nodes."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n), rng.integers(least, most, n))
    X = rng.normal(size=(len(ids), x)) + rng.normal(size=x)
    own = rng.normal(size=(n, x + 1)) + 1
    y = (X * own[ids, :x]).sum(axis=1) + own[ids, x] + 0.7 * rng.normal(size=len(ids))
    return X, y, ids


def dense(X, y, ids, precision, n, weight=None):
    """Posterior covariance of all models (n x (d + 1), intercept last) and the REML noise.

    `precision` is that of all coefficients of raw X and may be singular, in units of the noise;
    its null space is flat.
    """
    weight = np.ones(len(y)) if weight is None else weight
    k = X.shape[1] + 1
    A = np.zeros((len(y), n * k))
    for j in range(k):
        A[np.arange(len(y)), ids * k + j] = np.append(X, np.ones((len(X), 1)), axis=1)[:, j]
    M = (A.T * weight) @ A + precision
    w = np.linalg.solve(M, A.T @ (weight * y))
    flat = n * k - np.linalg.matrix_rank(precision, tol=1e-9)
    rest = weight @ (y - A @ w) ** 2 + w @ precision @ w
    return np.linalg.inv(M), rest / (weight.sum() - flat), w


def laplacian(graph):
    L = np.zeros((graph.n_nodes,) * 2)
    for i, j, a in zip(graph.head, graph.tail, graph.weight, strict=True):
        L[i, i] += a
        L[j, j] += a
        L[i, j] -= a
        L[j, i] -= a
    return L


def in_raw_units(F, X):
    """Covariance of raw coefficients and intercept at zero; F is for x, intercept at the mean."""
    d = X.shape[1]
    T = np.eye(d + 1)
    T[d, :d] = -X.mean(axis=0)
    return T @ F @ T.T


@pytest.mark.parametrize("hub", [0.0, 0.3])
def test_a_graph_with_and_without_a_centre_has_the_dense_posterior(hub):
    X, y, ids = rows()
    ring = nefele.Graph.from_edges([(i, (i + 1) % N) for i in range(N)])
    S = np.array([[0.5, 0.1, 0.2], [0.1, 0.4, 0.0], [0.2, 0.0, 1.0]])
    model = GTVRegressor(ring, penalty="squared_l2", scale=S, hub=hub, alpha=0.2, tol=1e-13)
    model.fit(X, y, node_ids=ids)
    table = model.coef_frame(level=0.9)
    whole = laplacian(ring) * (1 - hub)
    if hub:  # the centre has the weight of the mean degree, 2
        whole = np.block([[whole + 2 * hub * np.eye(N), -2 * hub * np.ones((N, 1))]])
        whole = np.vstack([whole, np.append(-2 * hub * np.ones(N), 2 * hub * N)])
    inner = np.linalg.inv(in_raw_units(S, X))
    precision = 0.2 * len(y) / N / 2 * np.kron(whole, inner)
    covariance, s2, w = dense(X, y, ids, precision, len(whole))
    errors = np.sqrt(s2 * covariance.diagonal()).reshape(-1, 3)
    np.testing.assert_allclose(table.select("x0", "x1", "intercept"), w.reshape(-1, 3), atol=1e-5)
    found = table.select("x0_se", "x1_se", "intercept_se").to_numpy()
    np.testing.assert_allclose(found, errors, rtol=1e-8)
    half = table["x1_high"] - table["x1"]
    np.testing.assert_allclose(half, norm.ppf(0.95) * errors[:, 1], rtol=1e-8)
    np.testing.assert_allclose(table["x1"] - table["x1_low"], half)


def test_a_plain_squared_penalty_estimates_its_noise():
    X, y, ids = rows(1)
    chain = graphs.chain(N)
    model = GTVRegressor(chain, penalty="squared_l2", standardize=False, alpha=0.1, tol=1e-13)
    model.fit(X, y, node_ids=ids)
    precision = 0.1 * len(y) / N / 2 * np.kron(laplacian(chain), np.eye(3))
    covariance, s2, _ = dense(X, y, ids, precision, N)
    errors = np.sqrt(s2 * covariance.diagonal()).reshape(-1, 3)
    found = model.coef_frame(0.9).select("x0_se", "x1_se", "intercept_se").to_numpy()
    np.testing.assert_allclose(found, errors, rtol=1e-8)


def test_weights_of_rows_count_as_rows_and_coupled_columns_may_be_some():
    X, y, ids = rows(2, least=5)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    chain = graphs.chain(N)
    model = GTVRegressor(
        chain, penalty="squared_l2", couple=[0], couple_intercept=False, alpha=0.3, tol=1e-13
    )
    again = nefele.GTVRegressor(**model.get_params())
    model.set_params(standardize=False).fit(X, y, weight, node_ids=ids)
    precision = 0.3 * weight.sum() / N / 2 * np.kron(laplacian(chain), np.diag([1.0, 0, 0]))
    covariance, s2, _ = dense(X, y, ids, precision, N, weight)
    errors = np.sqrt(s2 * covariance.diagonal()).reshape(-1, 3)
    np.testing.assert_allclose(standard_errors(model).nodes, errors, rtol=1e-8)
    k = np.repeat(np.arange(len(y)), weight.astype(int))
    again.set_params(standardize=False).fit(X[k], y[k], node_ids=ids[k])
    np.testing.assert_allclose(standard_errors(again).nodes, errors, rtol=1e-8)


def test_a_ridge_of_the_loss_is_part_of_the_prior():
    X, y, ids = rows(3)
    chain = graphs.chain(N)
    model = GTVRegressor(
        chain,
        penalty="squared_l2",
        loss=nefele.losses.Squared(l2=0.2),
        standardize=False,
        alpha=0.3,
        tol=1e-13,
    ).fit(X, y, node_ids=ids)
    m = len(y) / N
    precision = 0.3 * m / 2 * np.kron(laplacian(chain), np.eye(3))
    precision += 0.2 * m * np.kron(np.eye(N), np.diag([1.0, 1.0, 0.0]))
    covariance, s2, _ = dense(X, y, ids, precision, N)
    errors = np.sqrt(s2 * covariance.diagonal()).reshape(-1, 3)
    np.testing.assert_allclose(standard_errors(model).nodes, errors, rtol=1e-8)


def test_a_ridge_by_column_is_the_ridge_of_these_columns():
    rng = np.random.default_rng(5)
    ids, X = np.repeat(np.arange(4), 15), rng.standard_normal((60, 2))
    y = X @ [1.0, -1.0] + 0.1 * rng.standard_normal(60)

    def errors(l2):
        loss = nefele.losses.Squared(l2=l2)
        model = GTVRegressor(graphs.chain(4), loss=loss, penalty="squared_l2")
        return standard_errors(model.fit(X, y, node_ids=ids)).nodes

    np.testing.assert_allclose(errors((0.1, 0.1, 0.0)), errors(0.1), rtol=1e-6)
    ratio = [e[:, 0] / e[:, 1] for e in (errors((0.5, 0.0, 0.0)), errors(0.0))]
    assert (ratio[0] < 0.9 * ratio[1]).all()


def test_own_models_have_the_errors_of_least_squares():
    X, y, ids = rows(4, least=6)
    model = GTVRegressor(graphs.chain(N), alpha=0.0, tol=1e-13).fit(X, y, node_ids=ids)
    covariance, s2, _ = dense(X, y, ids, np.zeros((3 * N, 3 * N)), N)
    errors = np.sqrt(s2 * covariance.diagonal()).reshape(-1, 3)
    np.testing.assert_allclose(standard_errors(model).nodes, errors, rtol=1e-7)


def schools(seed=0, n=40):
    rng = np.random.default_rng(seed)
    counts = rng.integers(4, 25, n)
    school = np.repeat(np.arange(n), counts)
    x, z = rng.normal(size=(2, len(school)))
    x, z = x - x.mean(), z - z.mean()
    level, slope = rng.multivariate_normal([3.0, 1.5], [[1.0, 0.3], [0.3, 0.25]], n).T
    y = level[school] + slope[school] * x + 0.1 * z + rng.normal(size=len(x))
    return pd.DataFrame({"school": [f"s{i:03}" for i in school], "x": x, "z": z}), y, counts


@pytest.fixture(scope="module")
def mixed():
    """MixedLM with a personal level and slope of x, and the same at its variances."""
    X, y, counts = schools()
    theirs = MixedLM.from_formula("y ~ x + z", X.assign(y=y), groups="school", re_formula="~ x")
    theirs = theirs.fit()
    S = np.zeros((3, 3))
    S[np.ix_([2, 0], [2, 0])] = theirs.cov_re
    alpha = 2 * theirs.scale / counts.mean()
    ours = GTVRegressor(node="school", penalty="squared_l2", hub=1.0, scale=S, alpha=alpha)
    return theirs, ours.set_params(tol=1e-13).fit(X, y), X, y


def test_common_coefficients_have_the_errors_of_mixedlm(mixed):
    theirs, ours, _, _ = mixed
    table = ours.common_frame(0.95)
    assert table["coefficient"].to_list() == ["x", "z", "intercept"]
    # Its block of the fixed effects, at its variances; `bse_fe` has their uncertainty too.
    information = -theirs.model.hessian(theirs.params_object)[0][:3, :3]
    exact = np.sqrt(np.linalg.inv(information).diagonal())[[1, 2, 0]]
    np.testing.assert_allclose(table["se"], exact, rtol=1e-4)
    np.testing.assert_allclose(table["se"], theirs.bse_fe[["x", "z", "Intercept"]], rtol=2e-3)
    np.testing.assert_allclose(table["estimate"], theirs.fe_params[["x", "z", "Intercept"]], 1e-6)
    np.testing.assert_allclose(table["z"], table["estimate"] / table["se"])
    np.testing.assert_allclose(table["p"], 2 * norm.cdf(-np.abs(table["z"])), rtol=1e-9)
    np.testing.assert_allclose(table["high"] - table["low"], 2 * 1.959964 * table["se"], rtol=1e-6)
    centre = ours.coef_frame(0.95).row(-1, named=True)
    assert [centre["x_se"], centre["z_se"], centre["intercept_se"]] == table["se"].to_list()


def test_personal_coefficients_have_the_conditional_variance_and_that_of_the_common_part(mixed):
    theirs, ours, X, y = mixed
    names, place = np.unique(X["school"], return_inverse=True)
    n = len(names)
    x, z, one = X["x"].to_numpy(), X["z"].to_numpy(), np.ones(len(X))
    A = np.zeros((len(X), 3 + 2 * n))
    A[:, :3] = np.column_stack([x, z, one])
    A[np.arange(len(X)), 3 + 2 * place] = x
    A[np.arange(len(X)), 4 + 2 * place] = one
    prior = np.zeros((3 + 2 * n, 3 + 2 * n))
    prior[3:, 3:] = np.kron(np.eye(n), np.linalg.inv(theirs.cov_re.to_numpy()[::-1, ::-1]))
    covariance = np.linalg.inv(A.T @ A / theirs.scale + prior)
    table = ours.coef_frame(0.9)
    for i in (0, 7, n - 1):
        slope = np.zeros(3 + 2 * n)
        slope[[0, 3 + 2 * i]] = 1.0
        row = table.row(i, named=True)
        np.testing.assert_allclose(row["x_se"], np.sqrt(slope @ covariance @ slope), rtol=1e-8)
        np.testing.assert_allclose(row["z_se"], np.sqrt(covariance[1, 1]), rtol=1e-8)
    assert len(y) == len(X)


def test_nominal_intervals_of_the_automatic_choice_cover_as_often_as_they_say():
    own = common = total = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        ids = np.repeat(np.arange(50), rng.integers(3, 20, 50))
        X = rng.normal(size=(len(ids), 1))
        w = np.array([1.0, -2.0]) + rng.normal(size=(50, 2)) * [0.5, 1.0]
        y = X[:, 0] * w[ids, 0] + w[ids, 1] + rng.normal(size=len(ids))
        model = GTVRegressorCV(features="linear").fit(X, y, node_ids=ids)
        table = model.coef_frame(0.9)[:-1]
        low = table.select("x0_low", "intercept_low").to_numpy()
        high = table.select("x0_high", "intercept_high").to_numpy()
        own += ((low < w) & (w < high)).mean() / 20
        low, high = model.common_frame(0.9).select("low", "high").to_numpy().T
        common += int(((low < [1.0, -2.0]) & (high > [1.0, -2.0])).sum())
        total += 2
    assert 0.85 <= own <= 0.95
    assert common / total >= 0.8  # 40 intervals: within three standard errors of 0.9


def test_classes_and_counts_have_the_curvature_at_the_fit():
    X, y, ids = rows(5, least=12, most=20)
    S = np.array([0.5, 0.5, 1.0])
    m = len(y) / N
    raw = np.append(X, np.ones((len(X), 1)), axis=1)
    inner = np.linalg.inv(in_raw_units(np.diag(S**2), X))
    whole = np.block([[np.eye(N), -np.ones((N, 1))], [-np.ones((1, N)), np.array([[N]])]])
    common = {"penalty": "squared_l2", "scale": S, "hub": 1.0, "alpha": 1 / m, "tol": 1e-12}
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * y.clip(-3, 4)))
    fits = {
        "classes": (GTVClassifier(**common), (y > y.mean()).astype(int)),
        "counts": (GTVRegressor(**common, loss="poisson"), counts),
    }
    for kind, (model, target) in fits.items():
        model.fit(X, target, node_ids=ids)
        w = np.append(model.coef_, model.intercept_[:, None], axis=1)
        eta = (raw * w[ids]).sum(axis=1)
        mean = expit(eta) if kind == "classes" else np.exp(eta)
        bend = mean * (1 - mean) if kind == "classes" else mean
        A = np.zeros((len(y), 3 * (N + 1)))
        for j in range(3):
            A[np.arange(len(y)), 3 * ids + j] = raw[:, j]
        prior = np.kron(whole, inner)
        covariance = np.linalg.inv((A.T * bend) @ A + prior)
        s2 = 1.0
        if kind == "counts":
            all_w = np.vstack([w, np.append(model.centre_coef_, model.centre_intercept_)]).ravel()
            s2 = ((target - mean) ** 2 / mean).sum() + all_w @ prior @ all_w
            s2 /= len(y) - 3
        errors = np.sqrt(s2 * covariance.diagonal()).reshape(-1, 3)
        found = standard_errors(model)
        np.testing.assert_allclose(found.nodes, errors[:-1], rtol=1e-5)
        np.testing.assert_allclose(found.common, errors[-1], rtol=1e-5)


def test_large_graphs_are_solved_column_by_column(monkeypatch):
    X, y, ids = rows(6)
    model = GTVRegressor(graphs.chain(N), penalty="squared_l2", alpha=0.1).fit(X, y, node_ids=ids)
    whole = standard_errors(model).nodes
    monkeypatch.setattr(posterior, "INVERTED", 3)
    monkeypatch.setattr(posterior, "_AT_ONCE", 7)
    np.testing.assert_allclose(standard_errors(model).nodes, whole, rtol=1e-10)
    monkeypatch.setattr(posterior, "MOST", 20)
    with pytest.raises(ValueError, match=r"at most 20 unknowns .* got 21\. Use .*bootstrap"):
        model.coef_frame(0.9)


def test_curves_and_ridges_widen_the_errors_and_survive_a_file(tmp_path):
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(20), 15)
    X = rng.uniform(-2, 2, size=(300, 1))
    y = np.sin(2 * X[:, 0]) + rng.normal(size=20)[ids] + 0.3 * rng.normal(size=300)
    model = GTVRegressorCV(features="spline").fit(X, y, node_ids=ids)
    assert model.best_estimator_._layout.smooth is not None
    table = model.coef_frame(0.9)
    assert np.isfinite(table.select("x0_se", "intercept_se").to_numpy()).all()
    model.save(tmp_path / "model", rows=True)
    assert nefele.load(tmp_path / "model").coef_frame(0.9).equals(table)


def test_nodes_that_no_data_reach_and_columns_that_say_nothing_have_none():
    X, y, ids = rows(7)
    X = np.column_stack([X, np.ones(len(X))])
    apart = nefele.Graph([*range(N), 90, 91], [*range(N - 1), N], [*range(1, N), N + 1])
    model = GTVRegressor(apart, penalty="squared_l2", alpha=0.1)
    with pytest.warns(nefele.DataWarning):
        model.fit(X, y, node_ids=ids)
    found = standard_errors(model).nodes
    assert np.isfinite(found[:N][:, [0, 1, 3]]).all()
    assert np.isnan(found[N:]).all() and np.isnan(found[:, 2]).all()


def test_what_has_no_formula_is_refused_with_advice(tmp_path):
    X, y = towns()
    model = GTVRegressor(ROADS, node="town", alpha=0.3).fit(X, y)
    with pytest.raises(ValueError, match=r"squared penalty.*got .*L2Norm\..*bootstrap_intervals"):
        model.coef_frame(level=0.9)
    model.set_params(penalty="squared_l2", loss="huber").fit(X, y)
    with pytest.raises(ValueError, match="squared, logistic or Poisson"):
        model.coef_frame(level=0.9)
    model.set_params(loss=nefele.losses.Squared(l1=0.1)).fit(X, y)
    with pytest.raises(ValueError, match="l1"):
        model.coef_frame(level=0.9)
    model.set_params(loss="squared").fit(X, y)
    with pytest.raises(ValueError, match="no common coefficient"):
        model.common_frame()
    for level in (0.0, 1.0, -1, "much"):
        with pytest.raises(ValueError, match="level must be"):
            model.coef_frame(level=level)
    model.save(tmp_path / "bare")
    with pytest.raises(ValueError, match="training rows"):
        nefele.load(tmp_path / "bare").coef_frame(0.9)


def test_taken_names_of_columns_are_underlined():
    X, y, ids = rows(8)
    frame = pd.DataFrame(X, columns=["a", "a_se"])
    model = GTVRegressor(graphs.chain(N), penalty="squared_l2").fit(frame, y, node_ids=ids)
    table = model.coef_frame(0.9)
    assert {"a_se", "a_se_", "a_se_se"} <= set(table.columns)
    np.testing.assert_array_equal(table["a_se"], model.coef_[:, 1])
