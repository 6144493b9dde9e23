"""The choice of alpha: held-out scores, baselines, clusters, the conventions of scikit-learn."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import nefele
from nefele.estimators import GTVRegressor, MomentsKNN
from nefele.estimators.cv import GTVClassifierCV, GTVRegressorCV
from nefele.losses import Logistic, Squared
from nefele.selection.splits import ForwardWithinNode, WithinNodeKFold

STATES = nefele.datasets.load_states()


# check_array_api_input runs only where SCIPY_ARRAY_API is set and skips itself elsewhere.
# Their classes can be separated, a warning without l2, and small folds may then not converge.
@pytest.mark.filterwarnings("ignore::nefele.DataWarning")
@pytest.mark.filterwarnings("ignore::nefele.ConvergenceWarning")
@parametrize_with_checks(
    [
        GTVRegressorCV(cv=2),
        GTVClassifierCV(cv=2, loss=Logistic(l2=1e-3)),
        GTVRegressorCV(penalty="l2", n_alphas=3, cv=2),
        GTVClassifierCV(penalty="l2", n_alphas=3, cv=2, loss=Logistic(l2=1e-3)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def groups_problem(seed=0, rows=8, noise=1.0):
    """Twelve nodes in two groups that differ, joined inside and by two edges across."""
    rng = np.random.default_rng(seed)
    graph = nefele.graphs.sbm([6, 6], p_in=0.7, p_out=0.05, seed=0)
    ids = np.repeat(np.arange(12), rows)
    X = pd.DataFrame(rng.normal(size=(len(ids), 2)), columns=["a", "b"])
    slope = np.where(ids < 6, 2.0, -2.0)
    y = slope * X["a"].to_numpy() + X["b"].to_numpy() + noise * rng.normal(size=len(ids))
    X.insert(0, "node", [f"n{i:02d}" for i in ids])
    return nefele.Graph([f"n{i:02d}" for i in range(12)], graph.head, graph.tail), X, y


@pytest.fixture(scope="module")
def fitted():
    graph, X, y = groups_problem()
    return GTVRegressorCV(graph, penalty="l2", node="node", n_alphas=12, cv=4).fit(X, y)


def test_scores_are_those_of_single_fits(fitted):
    """Every number of cv_results_, and both baselines, from GTVRegressor in a plain loop."""
    graph, X, y = groups_problem()
    splits = list(WithinNodeKFold(4, node="node").split(X))

    def mean_score(alpha):
        model = GTVRegressor(graph, node="node", alpha=alpha, tol=1e-6)
        return np.mean(
            [
                -mean_squared_error(y[test], model.fit(X.iloc[a], y[a]).predict(X.iloc[test]))
                for a, test in splits
            ]
        )

    for k in (0, 5, 11):
        found = fitted.cv_results_["mean_test_score"][k]
        assert found == pytest.approx(mean_score(fitted.alphas_[k]), rel=5e-3)
    assert fitted.baseline_scores_["own"] == pytest.approx(mean_score(0.0), rel=1e-3)
    assert fitted.baseline_scores_["pooled"] == pytest.approx(mean_score(1e4), rel=1e-3)


def test_choice_and_final_fit(fitted):
    _, X, y = groups_problem()
    mean = fitted.cv_results_["mean_test_score"]
    assert fitted.alpha_ == fitted.best_alpha_ == fitted.alphas_[np.argmax(mean)]
    assert fitted.cv_results_["rank_test_score"][np.argmax(mean)] == 1
    assert fitted.best_score_ == mean.max()
    best = fitted.best_estimator_
    again = clone(best).fit(X, y)
    assert best.alpha == fitted.alpha_
    assert np.allclose(best.coef_, again.coef_, atol=1e-2)
    assert (fitted.coef_ == best.coef_).all()
    assert (fitted.predict(X) == best.predict(X)).all()
    assert fitted.score(X, y) == best.score(X, y)


def test_coupling_helps_and_the_groups_are_clearest(fitted):
    assert fitted.coupling_helps_ and fitted.gain_ > 0
    assert fitted.best_score_ > max(fitted.baseline_scores_.values())
    assert "Coupling helps" in fitted.summary()
    count = len(np.unique(fitted.clearest_clusters_))
    assert 1 < count < 12 and fitted.clearest_alpha_ in fitted.alphas_
    first, second = fitted.clearest_clusters_[:6], fitted.clearest_clusters_[6:]
    assert not set(first) & set(second)
    assert fitted.cv_results_["n_clusters"][0] == 1


def test_says_plainly_when_coupling_does_not_help():
    """One relation everywhere: nothing beats the pooled model by much, and unrelated nodes."""
    rng = np.random.default_rng(0)
    ids, X = np.repeat(np.arange(6), 60), rng.normal(size=(360, 1))
    y = 5.0 * (-1.0) ** ids * X[:, 0] + 0.1 * rng.normal(size=360)
    model = GTVRegressorCV(nefele.graphs.chain(6), penalty="l2", alphas=[10.0, 1.0, 0.1], cv=3)
    model.fit(X, y, node_ids=ids)
    assert not model.coupling_helps_ and model.gain_ <= 0
    assert "Coupling does not help here: own data only" in model.summary()


def test_the_gain_is_that_of_alphas_chosen_by_the_other_folds(fitted):
    """Own fits and errors of each node by hand; the standard error is over the nodes."""
    graph, X, y = groups_problem()
    splits = list(WithinNodeKFold(4, node="node").split(X))
    scores = np.stack([fitted.cv_results_[f"split{k}_test_score"] for k in range(4)])
    own, coupled = np.empty(len(y)), np.empty(len(y))
    for k, (train, test) in enumerate(splits):
        alpha = fitted.alphas_[np.delete(scores, k, axis=0).mean(axis=0).argmax()]
        for errors, strength in ((own, 0.0), (coupled, alpha)):
            model = GTVRegressor(graph, node="node", alpha=strength, tol=1e-8)
            model.fit(X.iloc[train], y[train])
            errors[test] = (model.predict(X.iloc[test]) - y[test]) ** 2
    gain = pd.Series(own - coupled).groupby(X["node"].to_numpy()).mean()
    assert fitted.gain_ == pytest.approx(gain.mean(), rel=5e-3)
    assert fitted.gain_se_ == pytest.approx(gain.std() / np.sqrt(12), rel=2e-2)
    assert fitted.verdict_.text() in fitted.summary()


def test_a_score_of_the_user_has_its_standard_error_over_the_folds():
    graph, X, y = groups_problem()
    model = GTVRegressorCV(graph, penalty="l2", node="node", alphas=[0.1], cv=4, scoring="r2").fit(
        X, y
    )
    scores = np.array([model.cv_results_[f"split{k}_test_score"][0] for k in range(4)])
    assert model.gain_ == pytest.approx(scores.mean() - max(model.baseline_scores_.values()))
    assert model.verdict_.part == "fold" and "over the folds" in model.summary()
    assert model.gain_se_ > 0


def test_one_standard_error_takes_a_larger_alpha():
    graph, X, y = groups_problem()
    model = GTVRegressorCV(graph, penalty="l2", node="node", n_alphas=12, cv=4, one_se=True).fit(
        X, y
    )
    mean = model.cv_results_["mean_test_score"]
    assert model.alpha_ >= model.best_alpha_ == model.alphas_[np.argmax(mean)]
    assert "one standard error" in model.summary()


def test_munnell_beats_both_baselines_on_held_out_rows():
    wins = 0
    for seed in range(5):
        train, test = nefele.datasets.split_states(STATES, seed)
        model = GTVRegressorCV(
            STATES.graph, penalty="l2", fit_intercept=False, n_alphas=8, cv=3, tol=1e-3
        )
        model.fit(train.X, train.y, node_ids=train.ids[train.row_node])
        ids = test.ids[test.row_node]

        def error(fit, X=test.X, y=test.y, ids=ids):
            return mean_squared_error(y, fit.predict(X, node_ids=ids))

        own = clone(model.best_estimator_).set_params(alpha=0.0)
        pooled = clone(model.best_estimator_).set_params(alpha=100.0)
        for fit in (own, pooled):
            fit.fit(train.X, train.y, node_ids=train.ids[train.row_node])
        wins += error(model) < min(error(own), error(pooled))
        assert model.coupling_helps_
    assert wins >= 4


def test_pandas_polars_and_node_ids_agree():
    graph, X, y = groups_problem()
    params = {"alphas": [1.0, 0.1], "cv": 2}
    table = pl.DataFrame({name: X[name].to_list() for name in X.columns})
    one = GTVRegressorCV(graph, penalty="l2", node="node", **params).fit(X, y)
    two = GTVRegressorCV(graph, penalty="l2", node="node", **params).fit(table, pl.Series(y))
    three = GTVRegressorCV(graph, penalty="l2", **params).fit(X[["a", "b"]], y, node_ids=X["node"])
    assert (one.coef_ == two.coef_).all() and (one.coef_ == three.coef_).all()
    assert list(one.feature_names_in_) == ["a", "b"]
    scores = cross_val_score(one, X, y, cv=WithinNodeKFold(2, node="node"))
    assert len(scores) == 2 and (scores > 0).all()


@pytest.mark.parametrize(
    "cv", [ForwardWithinNode(3, node="node"), GroupKFold(3), [(np.arange(48), np.arange(48, 96))]]
)
def test_other_splitters(cv):
    graph, X, y = groups_problem()
    model = GTVRegressorCV(graph, penalty="l2", node="node", alphas=[1.0, 0.1], cv=cv).fit(X, y)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()


def test_a_graph_learnt_in_each_fold_sees_training_rows_only():
    _, X, y = groups_problem()
    seen = []

    class Spy(MomentsKNN):
        def fit_graph(self, rows):
            seen.append(len(rows.X))
            return super().fit_graph(rows)

    GTVRegressorCV(Spy(k=2), penalty="l2", node="node", alphas=[1.0], cv=4).fit(X, y)
    assert seen == [96, 72, 72, 72, 72]


def test_rows_of_nodes_that_a_learnt_graph_lacks_are_counted():
    _, X, y = groups_problem()
    X = pd.concat([X, X.iloc[:1].assign(node="alone")], ignore_index=True)
    model = GTVRegressorCV(MomentsKNN(k=2), penalty="l2", node="node", alphas=[1.0], cv=4)
    model.fit(X, np.append(y, 0.0))
    assert model.n_left_out_ == 1 and "1 held-out rows were not judged" in model.summary()


def test_scoring_and_sample_weight():
    graph, X, y = groups_problem()
    model = GTVRegressorCV(graph, penalty="l2", node="node", alphas=[1.0, 0.1], cv=2, scoring="r2")
    weight = np.where(np.arange(len(y)) % 8 < 4, 1.0, 2.0)
    assert model.fit(X, y, weight).best_score_ < 1.0
    on = np.arange(len(y)) % 8 != 3
    none = model.fit(X, y, on.astype(float)).cv_results_["mean_test_score"]
    dropped = model.fit(X[on], y[on]).cv_results_["mean_test_score"]
    assert np.allclose(none, dropped)


def test_partial_coupling():
    graph, X, y = groups_problem()
    model = GTVRegressorCV(
        graph, penalty="l2", node="node", couple=["b"], couple_intercept=False, n_alphas=6
    )
    model.fit(X, y)
    assert np.isfinite(model.alphas_).all() and model.coupling_helps_


def test_classifier_with_text_labels_and_three_classes():
    graph, X, y = groups_problem(rows=12)
    label = np.array(["low", "mid", "high"])[np.digitize(y, [-1.0, 1.0])]
    loss = Logistic(l2=0.03)
    model = GTVClassifierCV(graph, penalty="l2", node="node", loss=loss, n_alphas=5, cv=3).fit(
        X, label
    )
    assert model.classes_.tolist() == ["high", "low", "mid"]
    assert model.coupling_helps_ and model.predict_proba(X).shape == (144, 3)
    assert model.score(X, label) > 0.5
    hinge = GTVClassifierCV(
        graph, penalty="l2", node="node", loss="hinge", alphas=[1.0], cv=2, tol=1e-2
    )
    assert not hasattr(hinge, "predict_proba")
    hinge.fit(X, label == "low")
    assert 0 < hinge.best_score_ <= 1


def test_clone_pickle_and_save(fitted, tmp_path):
    _, X, _ = groups_problem()
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(X) == fitted.predict(X)).all()
    assert clone(fitted).get_params()["n_alphas"] == 12
    fitted.save(tmp_path / "model.nefele")
    assert np.allclose(nefele.load(tmp_path / "model.nefele").predict(X), fitted.predict(X))


def test_a_loaded_model_knows_what_it_was_compared_with(tmp_path):
    graph, X, y = groups_problem()
    search = GTVRegressorCV(graph, node="node").fit(X, y)
    search.save(tmp_path / "model.nefele")
    again = nefele.load(tmp_path / "model.nefele")
    assert again.coupling_ == search.coupling_ and again.candidates_ == search.candidates_
    assert again.coupling_ in [one["coupling"] for one in again.candidates_]
    assert f"coupling: {again.coupling_}, chosen among {len(again.candidates_)}" in again.summary()
    again.fit(X, y)  # a fit of its own was chosen by nobody
    assert not hasattr(again, "coupling_") and not hasattr(again, "candidates_")
    named = GTVRegressorCV(graph, node="node", penalty="l2", alphas=[1.0], cv=2).fit(X, y)
    assert not hasattr(named, "coupling_")
    assert not hasattr(search.set_params(penalty="l2", alphas=[1.0]).fit(X, y), "candidates_")


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"alphas": []}, "alphas must be finite and >= 0, at least one"),
        ({"alphas": [1.0, -1.0]}, "alphas must be finite and >= 0"),
        ({"cv": 1}, "cv must be an integer >= 2; got 1"),
        ({"node": "nod"}, 'Did you mean "node"'),
        ({"n_alphas": 0}, "n_alphas must be an integer >= 1"),
    ],
)
def test_errors(params, match):
    graph, X, y = groups_problem()
    with pytest.raises(ValueError, match=match):
        GTVRegressorCV(graph, penalty="l2", **{"node": "node", **params}).fit(X, y)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"alphas": [1.0]}, "alphas must go with a penalty by name"),
        ({"scale": "auto"}, "scale, hub, couple and couple_intercept must go with a penalty"),
        ({"hub": 0.5}, "scale, hub, couple and couple_intercept must go with a penalty"),
        ({"couple": ["a"]}, "scale, hub, couple and couple_intercept must go with a penalty"),
        ({"couple_intercept": False}, "scale, hub, couple and couple_intercept must go with"),
        ({"features": "curves"}, 'No kind of features "curves"'),
        ({"loss": "poisson"}, "Labels of the Poisson loss must be >= 0"),
    ],
)
def test_errors_of_the_choice_of_a_coupling(params, match):
    graph, X, y = groups_problem()
    with pytest.raises(ValueError, match=match):
        GTVRegressorCV(graph, **{"node": "node", **params}).fit(X, y)


def test_the_chosen_coupling_and_what_it_was_chosen_from():
    X, y, ids = STATES.X[:, :4], STATES.y, STATES.node_ids
    model = GTVRegressorCV(STATES.graph, features="linear").fit(X, y, node_ids=ids)
    errors = {tried["coupling"]: tried["error"] for tried in model.candidates_}
    assert model.coupling_ in errors and model.coupling_ in model.summary()
    assert errors[model.coupling_] == pytest.approx(-model.best_score_)
    assert errors["one model"] == pytest.approx(-model.baseline_scores_["pooled"])
    assert all(set(tried) == {"coupling", "error", "aic"} for tried in model.candidates_)
    assert model.scale_.shape == (5, 5) and 0 <= model.hub_ <= 1
    assert model.centre_coef_.shape == (4,) and model.coupling_helps_
    again = clone(model.best_estimator_).fit(X, y, node_ids=ids)
    np.testing.assert_allclose(
        again.predict(X, node_ids=ids), model.predict(X, node_ids=ids), atol=1e-3
    )
    model.set_params(penalty="l2", n_alphas=2, cv=2).fit(X, y, node_ids=ids)
    assert not any(
        hasattr(model, name) for name in ("coupling_", "candidates_", "hub_", "centre_coef_")
    )


@pytest.mark.parametrize("loss", [Squared(l2=0.01), Squared(l1=0.01)], ids=repr)
def test_a_ridge_or_lasso_term_goes_with_the_chosen_coupling(loss):
    """Deviations that depend on each other are not tried: the terms have no meaning there."""
    model = GTVRegressorCV(STATES.graph, loss=loss, tol=1e-3)
    model.fit(STATES.X[:, :2], STATES.y, node_ids=STATES.node_ids)
    assert model.status_ == "optimal" and "correlated" not in model.coupling_
    plain = GTVRegressorCV(STATES.graph).fit(STATES.X[:, :2], STATES.y, node_ids=STATES.node_ids)
    assert any("correlated" in tried["coupling"] for tried in plain.candidates_)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_nodes_that_agree_exactly_still_get_a_grid(loss):
    rng = np.random.default_rng(0)
    ids, X = np.repeat(np.arange(4), 6), rng.normal(size=(24, 2))
    model = GTVRegressorCV(nefele.graphs.chain(4), penalty="l2", n_alphas=4, cv=2, loss=loss)
    model.fit(X, X @ [1.0, 2.0] + 3.0, node_ids=ids)
    assert len(model.alphas_) == 4 and model.alpha_ > 1e-6
    model.fit(X, np.zeros(24), node_ids=ids)
    assert len(model.alphas_) == 4 and model.alpha_ > 0


def test_own_data_only_is_not_possible_for_held_out_nodes():
    graph, X, y = groups_problem()
    model = GTVRegressorCV(
        graph, penalty="l2", node="node", alphas=[1.0, 0.1], cv=GroupKFold(3)
    ).fit(X, y)
    assert np.isnan(model.baseline_scores_["own"]) and np.isfinite(model.gain_)
    assert "own data only: not possible" in model.summary()
    few = (X["node"] != "n00") | (X.index == 0)
    model.set_params(cv=4).fit(X[few], y[few])
    assert np.isfinite(model.baseline_scores_["own"])
    assert "1 of 89 held-out rows, of nodes without training rows" in model.summary()


def test_groups_go_to_the_splitter():
    graph, X, y = groups_problem()
    week = np.tile(np.arange(8), 12)
    model = GTVRegressorCV(graph, penalty="l2", node="node", alphas=[1.0, 0.1], cv=GroupKFold(4))
    model.fit(X, y, groups=week)
    plain = clone(model).set_params(cv=list(GroupKFold(4).split(X, y, week))).fit(X, y)
    assert (
        model.cv_results_["mean_test_score"] == plain.cv_results_["mean_test_score"]
    ).all() and np.isfinite(model.baseline_scores_["own"])
    with pytest.raises(ValueError, match="groups must come with a splitter"):
        model.set_params(cv=3).fit(X, y, groups=week)
