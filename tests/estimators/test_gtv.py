"""The estimators solve the core's problem: limits, weighting, scaling, partial coupling."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import nefele
from nefele import GTVClassifier, GTVRegressor
from nefele.losses import HuberLoss, Logistic, Multinomial, Squared
from nefele.penalties import HuberPenalty, Quadratic
from tests.estimators.data import PLAIN, ROADS, TOWNS, core, parameters, towns

TIGHT = {"node": "town", "tol": 1e-12}


@pytest.mark.parametrize("penalty", ["l2", "l1", "squared_l2", "huber", HuberPenalty(0.3)])
@pytest.mark.parametrize("alpha", [0.05, 0.7])
def test_agrees_with_the_core(penalty, alpha):
    X, y = towns()
    model = GTVRegressor(ROADS, alpha=alpha, penalty=penalty, **PLAIN, **TIGHT).fit(X, y)
    result = core(X, y, alpha, penalty=penalty)
    np.testing.assert_allclose(parameters(model), result.w, atol=1e-8)
    assert model.nodes_.tolist() == result.problem.graph.ids.tolist()
    np.testing.assert_array_equal(model.clusters_, result.clusters())
    assert model.dual_gap_ <= 1e-12 and model.status_ == "optimal"


@pytest.mark.parametrize("loss", ["huber", "absolute", "poisson", HuberLoss(delta=0.2, l2=0.1)])
def test_other_losses_agree_with_the_core(loss):
    X, y = towns()
    y = np.round(np.abs(y))
    model = GTVRegressor(ROADS, alpha=0.3, loss=loss, node="town", tol=1e-6, **PLAIN).fit(X, y)
    result = core(X, y, 0.3, loss=loss, tol=1e-6)
    np.testing.assert_allclose(parameters(model), result.w, atol=1e-6)
    own = model.graph_.positions(X["town"])
    z = (X[["tmin", "wind"]].to_numpy() * model.coef_[own]).sum(axis=1) + model.intercept_[own]
    np.testing.assert_allclose(model.predict(X), np.exp(z) if loss == "poisson" else z)


def test_fitted_attributes():
    X, y = towns()
    model = GTVRegressor(ROADS, node="town", alpha=0.3).fit(X, y)
    assert model.coef_.shape == (6, 2) and model.intercept_.shape == (6,)
    assert model.feature_names_in_.tolist() == ["tmin", "wind"] and model.n_features_in_ == 2
    assert model.n_iter_ >= 1 and model.history_ and model.graph_ == nefele.as_graph(ROADS)
    assert model.dual_gap_ <= 1e-4
    place = model.nodes_.tolist().index("Kemi")  # no rows: the model of its only neighbour
    np.testing.assert_allclose(
        model.coef_[place], model.coef_[model.nodes_.tolist().index("Oulu")], atol=1e-6
    )


@pytest.mark.filterwarnings("ignore::nefele.DataWarning")
def test_alpha_zero_is_least_squares_of_minimum_norm_at_each_node():
    X, y = towns()
    few = X.index[X["town"] == "Pori"][2:]  # two rows for three parameters
    X, y = X.drop(few), np.delete(y, few)
    model = GTVRegressor(ROADS, alpha=0.0, node="town", **PLAIN).fit(X, y)
    for name in TOWNS:
        own = (X["town"] == name).to_numpy()
        design = np.column_stack([X["tmin"], X["wind"], np.ones(len(X))])[own]
        least = np.linalg.lstsq(design, y[own], rcond=None)[0] if own.any() else np.zeros(3)
        np.testing.assert_allclose(
            parameters(model)[model.nodes_.tolist().index(name)], least, atol=1e-9
        )


@pytest.mark.parametrize("weighting", ["nodes", "rows"])
def test_large_alpha_is_the_pooled_fit_with_the_same_weighting(weighting):
    X, y = towns()
    rng = np.random.default_rng(3)
    weight = rng.uniform(0.5, 2, len(y))
    model = GTVRegressor(ROADS, alpha=1e4, weighting=weighting, unseen="pooled", **TIGHT)
    model.fit(X, y, sample_weight=weight)
    share = weight
    if weighting == "nodes":
        share = weight / pd.Series(weight).groupby(X["town"]).transform("sum").to_numpy()
    pooled = LinearRegression().fit(X[["tmin", "wind"]], y, sample_weight=share)
    np.testing.assert_allclose(model.coef_, np.tile(pooled.coef_, (6, 1)), atol=1e-8)
    np.testing.assert_allclose(model.intercept_, pooled.intercept_, atol=1e-8)
    np.testing.assert_allclose(model.pooled_coef_, pooled.coef_, atol=1e-8)
    np.testing.assert_allclose(model.pooled_intercept_, pooled.intercept_, atol=1e-8)
    assert set(model.clusters_.tolist()) == {0}


def test_weighting_by_rows_against_cvxpy():
    """(n / m) sum over all rows, written out: each row counts once."""
    X, y = towns(30)
    alpha, graph = 0.4, nefele.as_graph(ROADS)
    options = {"alpha": alpha, "weighting": "rows", "standardize": False}
    model = GTVRegressor(ROADS, **options, **TIGHT).fit(X, y)
    w = cp.Variable((6, 3))
    design = np.column_stack([X["tmin"], X["wind"], np.ones(len(X))])
    owner = graph.positions(X["town"])
    residual = cp.sum(cp.multiply(design, w[owner]), axis=1) - y
    factor = len(np.unique(owner)) / len(y)
    edges = [cp.norm2(w[int(i)] - w[int(j)]) for i, j in zip(graph.head, graph.tail, strict=True)]
    problem = cp.Problem(cp.Minimize(factor * cp.sum_squares(residual) + alpha * sum(edges)))
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-11, tol_gap_abs=1e-11, tol_feas=1e-11)
    np.testing.assert_allclose(parameters(model), w.value, atol=1e-5)


def test_both_weightings_agree_when_all_nodes_have_equally_many_rows():
    X, y = towns(60)
    keep = X.groupby("town").head(3).index
    X, y = X.loc[keep], y[keep]
    models = [
        GTVRegressor(ROADS, alpha=0.3, weighting=kind, **TIGHT).fit(X, y)
        for kind in ("nodes", "rows")
    ]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-10)


@pytest.mark.parametrize("weighting", ["nodes", "rows"])
def test_sample_weight_counts_rows(weighting):
    X, y = towns(40)
    times = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"alpha": 0.3, "weighting": weighting, **TIGHT}
    weighted = GTVRegressor(ROADS, **options).fit(X, y, sample_weight=times)
    again = np.repeat(np.arange(len(y)), times)
    repeated = GTVRegressor(ROADS, **options).fit(X.iloc[again], y[again])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)
    scaled = GTVRegressor(ROADS, **options).fit(X, y, sample_weight=7.0 * times)
    np.testing.assert_allclose(weighted.coef_, scaled.coef_, atol=1e-8)


def test_standardize_is_a_scaled_problem_in_the_units_of_X():
    X, y = towns()
    X = X.assign(wind=50 + 10 * X["wind"])
    model = GTVRegressor(ROADS, alpha=0.3, standardize=True, **TIGHT).fit(X, y)
    mean, spread = X[["tmin", "wind"]].mean(), X[["tmin", "wind"]].std(ddof=0)
    scaled = X.assign(**((X[["tmin", "wind"]] - mean) / spread))
    other = GTVRegressor(ROADS, alpha=0.3, standardize=False, **TIGHT).fit(scaled, y)
    np.testing.assert_allclose(model.predict(X), other.predict(scaled), atol=1e-8)
    np.testing.assert_allclose(model.coef_ * spread.to_numpy(), other.coef_, atol=1e-8)


def test_standardize_without_intercept_shifts_nothing():
    X, y = towns()
    model = GTVRegressor(ROADS, alpha=0.0, standardize=True, fit_intercept=False, **TIGHT)
    with pytest.warns(nefele.DataWarning):
        model.fit(X, y)
    assert (model.intercept_ == 0).all()
    own = (X["town"] == "Oulu").to_numpy()
    least = LinearRegression(fit_intercept=False).fit(X.loc[own, ["tmin", "wind"]], y[own])
    np.testing.assert_allclose(
        model.coef_[model.nodes_.tolist().index("Oulu")], least.coef_, atol=1e-8
    )


def test_constant_target_and_constant_feature():
    X, y = towns()
    model = GTVRegressor(ROADS, node="town", standardize=True)
    model.fit(X.assign(same=4.0), np.full(len(y), 2.5))
    np.testing.assert_allclose(model.predict(X.assign(same=4.0)), 2.5, atol=1e-6)


# -- partial coupling ---------------------------------------------------------------------------


def test_equal_slopes_and_free_intercepts_at_large_alpha():
    X, y = towns(empty=())
    model = GTVRegressor(ROADS, alpha=1e4, couple_intercept=False, weighting="rows", **TIGHT)
    model.fit(X, y)
    dummies = pd.get_dummies(X["town"])[model.nodes_.tolist()].to_numpy(float)
    fixed = np.linalg.lstsq(np.hstack([X[["tmin", "wind"]], dummies]), y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, np.tile(fixed[:2], (6, 1)), atol=1e-7)
    np.testing.assert_allclose(model.intercept_, fixed[2:], atol=1e-7)
    assert set(model.clusters_.tolist()) == {0}  # the coupled parameters are equal


@pytest.mark.parametrize("penalty", ["l2", "l1", "linf", "huber", "squared_l2", Quadratic([[2.0]])])
@pytest.mark.parametrize("couple", [["wind"], [1]])
def test_partial_coupling_against_cvxpy(penalty, couple):
    X, y = towns(40, empty=())
    alpha = 0.5
    model = GTVRegressor(ROADS, alpha=alpha, penalty=penalty, couple=couple, **PLAIN, **TIGHT)
    model.set_params(couple_intercept=False, tol=1e-9).fit(X, y)
    graph = model.graph_
    w = cp.Variable((6, 3))
    design = np.column_stack([X["tmin"], X["wind"], np.ones(len(X))])
    owner = graph.positions(X["town"])
    terms = [
        cp.sum_squares(design[owner == i] @ w[i] - y[owner == i]) / (owner == i).sum()
        for i in range(6)
    ]
    diff = [w[int(i), 1] - w[int(j), 1] for i, j in zip(graph.head, graph.tail, strict=True)]
    shape = {"squared_l2": lambda v: v**2 / 2, "huber": lambda v: cp.huber(v, 1.0) / 2}
    phi = shape.get(penalty, cp.abs) if isinstance(penalty, str) else (lambda v: v**2)
    problem = cp.Problem(cp.Minimize(sum(terms) + alpha * sum(phi(v) for v in diff)))
    problem.solve(solver=cp.CLARABEL, tol_gap_rel=1e-11, tol_gap_abs=1e-11, tol_feas=1e-11)
    np.testing.assert_allclose(parameters(model), w.value, atol=2e-4)
    at = problem.value
    assert model.status_ == "optimal" and model.dual_gap_ <= 1e-9
    fitted = [
        ((design[owner == i] @ parameters(model)[i] - y[owner == i]) ** 2).mean() for i in range(6)
    ]
    w.value = parameters(model)
    assert sum(fitted) + alpha * sum(phi(v).value for v in diff) == pytest.approx(at, rel=1e-7)


def test_nothing_coupled_is_alpha_zero():
    X, y = towns(empty=())
    alone = GTVRegressor(ROADS, alpha=0.0, **TIGHT).fit(X, y)
    none = GTVRegressor(ROADS, alpha=5.0, couple=[], couple_intercept=False, **TIGHT).fit(X, y)
    np.testing.assert_allclose(alone.coef_, none.coef_, atol=1e-10)


def test_everything_coupled_by_name_is_the_plain_penalty():
    X, y = towns()
    plain = GTVRegressor(ROADS, alpha=0.3, **TIGHT).fit(X, y)
    named = GTVRegressor(ROADS, alpha=0.3, couple=["wind", "tmin"], **TIGHT).fit(X, y)
    np.testing.assert_array_equal(plain.coef_, named.coef_)


# -- classifier ---------------------------------------------------------------------------------


def labels(X, y, classes=2):
    """Overlapping classes from the regression target."""
    noisy = y + 3 * np.random.default_rng(1).normal(size=len(y))
    return np.digitize(noisy, np.quantile(noisy, np.arange(1, classes) / classes))


def test_binary_agrees_with_the_core():
    X, y = towns(90)
    code = labels(X, y)
    model = GTVClassifier(ROADS, alpha=0.1, **PLAIN, **TIGHT).fit(X, np.array(["no", "yes"])[code])
    result = core(X, 2.0 * code - 1, 0.1, loss="logistic")
    np.testing.assert_allclose(parameters(model), result.w, atol=1e-6)
    assert model.classes_.tolist() == ["no", "yes"]
    chance = model.predict_proba(X)
    np.testing.assert_allclose(chance.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(chance), model.predict_log_proba(X))
    assert (model.predict(X) == np.array(["no", "yes"])[chance.argmax(axis=1)]).all()
    np.testing.assert_array_equal(model.decision_function(X) > 0, chance[:, 1] > 0.5)


def test_multiclass_agrees_with_the_core():
    X, y = towns(120)
    code = labels(X, y, 3)
    options = {"loss": Logistic(l2=0.01), "tol": 1e-10, **PLAIN}
    model = GTVClassifier(ROADS, alpha=0.1, node="town", **options).fit(X, code * 10)
    result = core(X, code, 0.1, loss=Multinomial(n_classes=3, l2=0.01), tol=1e-10)
    assert model.coef_.shape == (6, 3, 2) and model.intercept_.shape == (6, 3)
    stacked = np.concatenate([model.coef_, model.intercept_[..., None]], axis=2).reshape(6, -1)
    expected = result.w.reshape(6, 3, 3)
    expected[:, :, 2] -= expected[:, :, 2].mean()  # the same more for all classes says nothing
    np.testing.assert_allclose(stacked, expected.reshape(6, -1), atol=1e-5)
    assert model.predict_proba(X).shape == (120, 3)
    assert set(model.predict(X)) <= {0, 10, 20}


def test_one_pooled_node_is_logistic_regression():
    X, y = towns(90)
    code = labels(X, y, 3)
    Z = X[["tmin", "wind"]].to_numpy()
    model = GTVClassifier(tol=1e-10).fit(Z, code)
    other = LogisticRegression(C=np.inf, tol=1e-10, max_iter=2000).fit(Z, code)
    np.testing.assert_allclose(model.predict_proba(Z), other.predict_proba(Z), atol=1e-5)


def test_a_node_with_a_single_class_is_legal():
    X, y = towns(90)
    code = labels(X, y)
    code[(X["town"] == "Pori").to_numpy()] = 1
    model = GTVClassifier(ROADS, node="town", alpha=0.1).fit(X, code)
    assert model.status_ == "optimal" and np.isfinite(model.coef_).all()


def test_partial_coupling_of_a_multiclass_model():
    X, y = towns(150, empty=())
    code = np.array(labels(X, y, 3))
    for name in TOWNS:  # every town has every class, or its own intercepts would run away
        code[np.flatnonzero(X["town"] == name)[:3]] = np.unique(code)
    model = GTVClassifier(
        ROADS, node="town", alpha=100.0, couple_intercept=False, loss=Logistic(l2=0.01), tol=1e-6
    ).fit(X, code)
    assert np.ptp(model.coef_, axis=0).max() < 1e-6
    assert np.ptp(model.intercept_, axis=0).max() > 0.1


def test_hinge_has_no_probabilities():
    X, y = towns(60)
    model = GTVClassifier(ROADS, node="town", alpha=0.1, loss="hinge", tol=1e-3)
    assert not hasattr(model, "predict_proba")
    assert model.fit(X, labels(X, y)).score(X, labels(X, y)) > 0.5
    with pytest.raises(ValueError, match=r"Only binary classification is .* got 3 classes"):
        model.fit(X, labels(X, y, 3))


def test_separable_classes_warn_and_l2_helps():
    X, _ = towns(60)
    code = (X["tmin"] > 0).astype(int)
    with pytest.warns(nefele.DataWarning, match="l2"):
        GTVClassifier(ROADS, node="town").fit(X, code)
    model = GTVClassifier(ROADS, node="town", loss=Logistic(l2=0.01)).fit(X, code)
    assert model.score(X, code) > 0.9 and np.abs(model.coef_).max() < 100


def test_not_converged_is_a_warning_and_a_status():
    X, y = towns()
    model = GTVRegressor(ROADS, node="town", penalty="linf", tol=1e-13, max_iter=2)
    with pytest.warns(nefele.ConvergenceWarning):
        model.fit(X, y)
    assert model.status_ == "max_iter" and model.n_iter_ == 2


@pytest.mark.parametrize("options", [{}, {"scale": "auto"}, {"features": "spline"}], ids=repr)
def test_a_target_outside_of_the_loss_is_named(options):
    X, y = towns()
    with pytest.raises(ValueError, match="Labels of the Poisson loss must be >= 0"):
        GTVRegressor(ROADS, node="town", loss="poisson", **options).fit(X, y - 5.0)


def test_local_ridge_of_the_loss():
    X, y = towns(empty=())
    model = GTVRegressor(ROADS, alpha=0.0, loss=Squared(l2=0.5), **PLAIN, **TIGHT).fit(X, y)
    result = core(X, y, 0.0, loss=Squared(l2=0.5))
    np.testing.assert_allclose(parameters(model), result.w, atol=1e-9)


@pytest.mark.parametrize("standardize", [False, True])
def test_what_is_not_coupled_is_the_mean_at_nodes_without_rows(standardize):
    """Of the nodes with rows of the component, or of the graph, in the units of X."""
    X, y = towns()
    X["tmin"] = 5.0 + 3.0 * X["tmin"]
    graph = nefele.Graph([*TOWNS, "Ivalo"], np.arange(5), np.arange(1, 6))
    model = GTVRegressor(
        graph,
        node="town",
        alpha=0.3,
        couple=["wind"],
        couple_intercept=False,
        standardize=standardize,
        tol=1e-8,
    )
    with pytest.warns(nefele.DataWarning, match="'Ivalo': their coupled parameters are set to 0"):
        model.fit(X, y)
    assert np.allclose(model.coef_[5:, 0], model.coef_[:5, 0].mean())
    assert np.allclose(model.intercept_[5:], model.intercept_[:5].mean())
    assert model.coef_[5, 1] == pytest.approx(model.coef_[4, 1], abs=1e-3)


def test_the_means_are_those_of_the_component():
    X, y = towns(empty=("Pori", "Kemi"))
    graph = nefele.Graph(TOWNS, [0, 1, 3, 4], [1, 2, 4, 5])
    model = GTVRegressor(graph, node="town", alpha=0.3, couple_intercept=False).fit(X, y)
    assert model.intercept_[2] == pytest.approx(model.intercept_[:2].mean())
    assert model.intercept_[5] == pytest.approx(model.intercept_[3:5].mean())
