"""The coupling that the CV estimators choose by themselves."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold

import nefele
from nefele import GTVClassifierCV, GTVRegressorCV, graphs
from nefele.estimators.components import components_of

N, ROWS = 30, 14


def made(level=1.0, slope=0.0, seed=0):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(N), ROWS)
    X = rng.normal(size=(N * ROWS, 2))
    y = X @ [1.0, -1.0] + level * rng.normal(size=N)[ids] + rng.normal(size=N * ROWS)
    return X, y + slope * rng.normal(size=N)[ids] * X[:, 0], ids


def test_without_a_graph_the_centre_joins_the_nodes():
    X, y, ids = made(level=2.0, slope=1.0)
    model = GTVRegressorCV().fit(X, y, node_ids=ids)
    assert model.hub_ == 1.0 and model.graph_.n_edges == 0
    assert "slopes by the centre" in model.coupling_
    assert model.status_ == "optimal" and model.dual_gap_ <= model.tol
    assert model.coupling_helps_ and "Coupling helps" in model.summary()
    assert model.baseline_scores_["own"] < model.best_score_
    assert model.baseline_scores_["pooled"] < model.best_score_
    assert model.candidates_[0]["coupling"] == "one model"


def test_nodes_that_are_alike_get_one_model_and_no_praise():
    X, y, ids = made(level=0.0)
    model = GTVRegressorCV().fit(X, y, node_ids=ids)
    assert model.coupling_ == "one model"
    assert not model.coupling_helps_
    assert np.ptp(model.coef_, axis=0).max() < 1e-3


def test_the_final_fit_can_be_made_again_from_its_parameters():
    X, y, ids = made(level=2.0, slope=1.0)
    model = GTVRegressorCV(features="linear").fit(X, y, node_ids=ids)
    again = clone(model.best_estimator_).fit(X, y, node_ids=ids)
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-4)
    np.testing.assert_allclose(again.intercept_, model.intercept_, atol=1e-4)


def test_scores_are_those_of_left_out_rows():
    X, y, ids = made(level=2.0)
    model = GTVRegressorCV(features="linear").fit(X, y, node_ids=ids)
    given = clone(model.best_estimator_)
    errors = []
    for r in range(0, len(y), 35):
        keep = np.arange(len(y)) != r
        fitted = clone(given).fit(X[keep], y[keep], node_ids=ids[keep])
        errors.append((fitted.predict(X[r : r + 1], node_ids=ids[r : r + 1])[0] - y[r]) ** 2)
    assert len(errors) == 12
    folds = GTVRegressorCV(features="linear", cv=5).fit(X, y, node_ids=ids)
    assert abs(folds.best_score_ / model.best_score_ - 1) < 0.1


def test_a_given_splitter_and_score_are_used():
    X, y, ids = made(level=2.0)
    new = GTVRegressorCV(cv=GroupKFold(3)).fit(X, y, node_ids=ids)
    inside = GTVRegressorCV(cv=3).fit(X, y, node_ids=ids)
    assert new.best_score_ < inside.best_score_  # nodes never seen are harder
    assert np.isnan(new.baseline_scores_["own"])
    scored = GTVRegressorCV(cv=3, scoring="r2").fit(X, y, node_ids=ids)
    assert 0 < scored.best_score_ < 1


def test_a_graph_that_carries_information_is_used_and_another_is_not_praised():
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(N), 5)
    X = rng.normal(size=(5 * N, 1))
    y = X[:, 0] + np.cumsum(rng.normal(size=N))[ids] + 2 * rng.normal(size=5 * N)
    model = GTVRegressorCV(graphs.chain(N)).fit(X, y, node_ids=ids)
    assert model.hub_ < 1 and "graph" in model.coupling_
    alone = GTVRegressorCV().fit(X, y, node_ids=ids)
    assert model.best_score_ > alone.best_score_


@pytest.mark.parametrize("kind", ["two classes", "three classes", "counts", "huber", "absolute"])
def test_every_kind_of_target(kind):
    X, y, ids = made(level=2.0)
    if kind == "counts":
        model = GTVRegressorCV(loss="poisson")
        y = np.random.default_rng(0).poisson(np.exp(y / 2))
    elif "classes" in kind:
        model = GTVClassifierCV()
        y = np.digitize(y, [0.0] if kind == "two classes" else [-1.0, 1.0])
    else:
        model = GTVRegressorCV(loss=kind)
    model.fit(X, y, node_ids=ids)
    assert model.status_ == "optimal"
    assert model.coef_.shape[0] == N
    assert np.isfinite(model.predict(X, node_ids=ids)).all()
    assert isinstance(model.summary(), str)


@pytest.mark.parametrize(
    "options", [{"alphas": [1.0]}, {"scale": "auto"}, {"hub": 0.5}, {"couple": [0]}]
)
def test_what_is_chosen_cannot_be_given(options):
    X, y, ids = made()
    with pytest.raises(ValueError, match="penalty by name"):
        GTVRegressorCV(**options).fit(X, y, node_ids=ids)


def test_variance_components_in_the_units_of_the_coefficients():
    X, y, ids = made(level=2.0)
    found = components_of(GTVRegressorCV(features="linear").fit(X * [10.0, 1.0], y, node_ids=ids))
    assert found.names == ["x0", "x1", "intercept"]
    assert 1.4 < found.deviation[-1] < 2.8 and abs(found.noise - 1) < 0.15
    assert (
        abs(
            found.intraclass
            - found.deviation[-1] ** 2 / (found.deviation[-1] ** 2 + found.noise**2)
        )
        < 1e-9
    )
    assert ((found.shrinkage > 0) & (found.shrinkage < 0.1)).all()
    np.testing.assert_allclose(found.variance, found.deviation**2)
    np.testing.assert_allclose(found.covariance.diagonal(), found.variance)
    classes = components_of(GTVClassifierCV().fit(X, y > 0, node_ids=ids))
    assert classes.noise is None and classes.shrinkage is None and classes.deviation[-1] > 0
    with pytest.raises(ValueError, match="need a model with a scale"):
        components_of(nefele.GTVRegressor(graphs.chain(N)).fit(X, y, node_ids=ids))


@pytest.mark.filterwarnings("ignore::nefele.ConvergenceWarning")
def test_a_target_without_a_minimiser_is_said():
    X, y, ids = made()
    model = GTVRegressorCV(loss="poisson", n_alphas=2, cv=2)
    with pytest.warns(nefele.DataWarning):
        model.fit(X, np.zeros(len(y)), node_ids=ids)
    assert model.predict(X, node_ids=ids).max() < 1e-3


@pytest.mark.parametrize("total", [1.0, 20.0])
def test_small_weights_are_relative(total):
    X, y, ids = made(level=2.0)
    plain = GTVRegressorCV().fit(X, y, node_ids=ids)
    weight = np.full(len(y), total / len(y))
    found = GTVRegressorCV().fit(X, y, weight, node_ids=ids)
    assert found.coupling_ == plain.coupling_
    np.testing.assert_allclose(found.coef_, plain.coef_, atol=1e-6)


def test_an_estimator_that_is_fitted_again_forgets():
    X, y, ids = made(level=2.0)
    model = GTVRegressorCV().fit(X, y, node_ids=ids)
    model.set_params(penalty="l2", n_alphas=3, cv=2).fit(X, y, node_ids=ids)
    assert not hasattr(model, "coupling_") and "alpha" in model.summary()


def test_a_target_of_text_is_refused_with_advice():
    X, y, ids = made()
    with pytest.raises(ValueError, match=r"y must be numbers .*'u'.* use a classifier"):
        GTVRegressorCV().fit(X, np.array(["u", "v"] * len(y))[: len(y)], node_ids=ids)


def test_far_beyond_a_curve_is_said():
    rng = np.random.default_rng(0)
    ids, x = np.repeat(np.arange(20), 15), rng.uniform(0, 10, (300, 1))
    y = rng.normal(size=20)[ids] + 3 * x[:, 0] + 4 * np.sin(x[:, 0]) + rng.normal(size=300)
    model = GTVRegressorCV().fit(x, y, node_ids=ids)
    assert "curves" in model.coupling_
    model.predict([[10.2]], node_ids=[0])
    with pytest.warns(nefele.DataWarning, match="1 of 2 rows are far outside .* x0 know"):
        model.predict([[5.0], [30.0]], node_ids=[0, 0])
    plain = GTVRegressorCV(features="linear").fit(x, y, node_ids=ids)
    near, far = plain.predict([[10.0], [30.0]], node_ids=[0, 0])
    assert far > near + 20


@pytest.mark.parametrize("seed", range(4))
def test_own_data_do_not_look_good_where_a_class_is_rare(seed):
    """Most nodes have one class only: their models are sure of it, and wrong at left-out rows."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(30), 20)
    x = rng.normal(size=600)
    eta = -3.2 + 0.5 * rng.normal(size=30)[ids] + 0.7 * x
    y = rng.random(600) < 1 / (1 + np.exp(-eta))
    model = nefele.GTVClassifierCV(features="linear").fit(x[:, None], y, node_ids=ids)
    alone = (np.bincount(ids, y) == 1).sum()  # without it a model is as sure as 19 rows allow
    assert -model.baseline_scores_["own"] > alone * np.log(20.0) / 600
    assert model.baseline_scores_["own"] < model.best_score_


@pytest.mark.parametrize("unit", [0.01, 0.5])
def test_components_do_not_depend_on_the_unit_of_small_weights(unit):
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(30), 10)
    x = rng.normal(size=300)
    y = rng.normal(size=30)[ids] + x + rng.normal(size=300)
    found = []
    for weight in (np.ones(300), np.full(300, unit)):
        model = GTVRegressorCV(features="linear")
        found.append(components_of(model.fit(x[:, None], y, node_ids=ids, sample_weight=weight)))
    for name in ("deviation", "noise", "intraclass", "shrinkage"):
        np.testing.assert_allclose(getattr(found[1], name), getattr(found[0], name), rtol=1e-6)


@pytest.mark.parametrize("loss", ["huber", "absolute"])
def test_robust_losses_are_judged_by_themselves(loss):
    """Rows that are far out say little by them, and their scores are those of their own fit."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(30), 10)
    x = rng.normal(size=300)
    y = x + 3 * rng.normal(size=30)[ids] + rng.normal(size=300)
    y += 30.0 * (rng.random(300) < 0.05)
    model = GTVRegressorCV(loss=loss, features="linear").fit(x[:, None], y, node_ids=ids)
    squared = GTVRegressorCV(features="linear").fit(x[:, None], y, node_ids=ids)
    away = np.abs(model.predict(x[:, None], node_ids=ids) - y)
    cost = away if loss == "absolute" else np.where(away <= 1, away**2 / 2, away - 0.5)
    assert cost.mean() < -model.best_score_ < 2 * cost.mean()
    assert -model.best_score_ < 0.2 * -squared.best_score_
    assert model.verdict_.total(model.verdict_.coupled) == pytest.approx(-model.best_score_)
