"""Estimators with privacy: what they see, what they promise, what they refuse."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import nefele
from nefele import GTVClassifier, GTVClassifierCV, GTVRegressor, GTVRegressorCV
from nefele.losses import Poisson
from nefele.privacy import Bounds, Budget, BudgetError, Privacy
from nefele.privacy.ledger import LedgerError
from nefele.privacy.statistics import Moments, moments, release, repaired
from tests.privacy.data import two_clusters
from tests.privacy.worst import QUIET, Silent

BOUNDS = Bounds(x=3.5, y=(-4, 4))


def promise(epsilon=1.0, **more):
    return Privacy(epsilon, 1e-6, **{"bounds": BOUNDS, **more})


def seeded(epsilon=1.0, seed=0, **more):
    """For tests of accuracy, which luck must not decide."""
    return promise(epsilon, insecure_testing=True, seed=seed, **more)


def error(model, X, y, ids):
    return float(np.mean((model.predict(X, node_ids=ids) - y) ** 2))


@pytest.fixture(scope="module")
def towns():
    return two_clusters(500)


@pytest.fixture(scope="module")
def few():
    return two_clusters(30, nodes=6)


def test_statistics_cost_at_most_half_of_the_error_at_500_rows():
    X, y, ids, graph = two_clusters(700)
    held = np.tile(np.arange(700) >= 500, 20)
    train = (X[~held], y[~held])

    def held_out_error(**more):
        model = GTVRegressor(graph, alpha=0.3, **more).fit(*train, node_ids=ids[~held])
        return error(model, X[held], y[held], ids[held])

    errors = [held_out_error(privacy=seeded(seed=k)) for k in range(6)]
    assert np.mean(errors) <= 1.5 * held_out_error()


def test_without_noise_the_moments_are_the_rows(few):
    X, y, ids, _ = few
    one = ids == 0
    box = Bounds(x=100.0, y=100.0).fixed(5)
    found = repaired(release(X[one], y[one], box, QUIET, "record", Silent()), box, 30)
    shown = Moments(*vars(found).values()).rows_alike()
    assert shown[2].sum() == pytest.approx(30)
    assert np.allclose(moments(shown[0], shown[1]), moments(X[one], y[one]), atol=1e-6)


def test_noisy_moments_are_repaired_to_a_covariance():
    rng = np.random.default_rng(0)
    box = Bounds(x=1.0, y=1.0).fixed(4)
    for k in range(50):
        X, y = rng.normal(size=(3, 4)), rng.normal(size=3)
        found = repaired(release(X, y, box, 5.0, "record", np.random.default_rng(k)), box, 3)
        assert np.linalg.eigvalsh(found.covariance).min() >= -1e-12
        assert np.isfinite(found.rows_alike()[0]).all()


def test_the_fit_is_made_of_the_release_alone(few):
    X, y, ids, graph = few
    same = seeded(10.0, seed=1)
    first = GTVRegressor(graph, alpha=0.1, privacy=same).fit(X, y, node_ids=ids)
    # Rows with the same moments, but other rows: turned among themselves, and signs about the mean.
    other_X, other_y = X.copy(), y.copy()
    for i in range(6):
        own = np.flatnonzero(ids == i)
        other_X[own], other_y[own] = X[own[::-1]], y[own[::-1]]
    second = GTVRegressor(graph, alpha=0.1, privacy=same).fit(other_X, other_y, node_ids=ids)
    assert np.allclose(first.coef_, second.coef_, atol=1e-6)
    assert len(first._rows.y) == 6 * 2 * 6
    assert not np.isin(first._rows.X, X).any()


def test_noise_is_fresh_in_every_fit(few):
    X, y, ids, graph = few
    model = GTVRegressor(graph, alpha=0.1, privacy=promise())
    coefs = [model.fit(X, y, node_ids=ids).coef_ for _ in range(2)]
    assert not np.allclose(*coefs)


def test_a_learnt_graph_is_free_after_statistics_and_outside_for_updates(few):
    X, y, ids, _ = few
    model = GTVRegressor(alpha=0.1, privacy=promise()).fit(X, y, node_ids=ids)
    with pytest.raises(ValueError, match=r"the graph was learnt from raw rows.*Nothing"):
        GTVClassifier(nefele.graph_learning.MomentsKNN(), privacy=promise()).fit(
            X, y > 0, node_ids=ids
        )
    allowed = promise(allow_outside=True)
    model = GTVClassifier(nefele.graph_learning.MomentsKNN(), privacy=allowed)
    model.fit(X, y > 0, node_ids=ids)
    assert "outside the accountant: the graph was learnt" in model.summary()


@pytest.mark.parametrize("loss", ["huber", "absolute"])
@pytest.mark.parametrize("step", ["gradient", "prox"])
def test_updates_of_regressions(towns, loss, step):
    X, y, ids, graph = towns
    model = GTVRegressor(graph, alpha=0.1, loss=loss, privacy=seeded(10.0, step=step, rounds=150))
    if (loss, step) == ("absolute", "prox"):
        with pytest.raises(ValueError, match="smooth loss"):
            model.fit(X, y, node_ids=ids)
        return
    model.fit(X, y, node_ids=ids)
    plain = GTVRegressor(graph, alpha=0.1, loss=loss).fit(X, y, node_ids=ids)
    assert error(model, X, y, ids) < 1.5 * error(plain, X, y, ids)
    assert model.status_ == "uncertified"
    assert getattr(model, "_rows", None) is None


def test_updates_of_a_classifier(towns):
    X, y, ids, graph = towns
    model = GTVClassifier(graph, alpha=0.1, privacy=seeded(3.0)).fit(X, y > 0, node_ids=ids)
    plain = GTVClassifier(graph, alpha=0.1).fit(X, y > 0, node_ids=ids)
    assert model.score(X, y > 0, node_ids=ids) > plain.score(X, y > 0, node_ids=ids) - 0.05
    assert 'private by "updates": epsilon 3, delta 1e-06' in model.summary()
    assert model.privacy_.releases == 100


def test_three_classes(few):
    X, y, ids, graph = few
    labels = np.digitize(y, [-0.5, 0.5])
    model = GTVClassifier(graph, alpha=0.1, privacy=seeded(20.0, rounds=20))
    model.fit(X, labels, node_ids=ids)
    assert model.coef_.shape == (6, 3, 5)
    assert model.score(X, labels, node_ids=ids) > 0.5


def test_the_squared_loss_with_a_clip(few):
    X, y, ids, graph = few
    with pytest.raises(ValueError, match="bounded slopes"):
        GTVRegressor(graph, privacy=promise(mechanism="updates")).fit(X, y, node_ids=ids)
    with pytest.raises(ValueError, match="bounded slopes"):
        GTVRegressor(graph, loss=Poisson(), privacy=promise()).fit(X, abs(y), node_ids=ids)
    model = GTVRegressor(graph, privacy=promise(mechanism="updates", clip=2.0))
    model.fit(X, y, node_ids=ids)
    assert model.privacy_.mechanism == "updates"


def test_whole_nodes_get_more_noise(few):
    X, y, ids, graph = few
    away = {}
    for unit in ("record", "node"):
        model = GTVRegressor(graph, alpha=5.0, privacy=seeded(5.0, unit=unit)).fit(
            X, y, node_ids=ids
        )
        away[unit] = error(model, X, y, ids)
        assert model.privacy_.unit == unit
    assert away["node"] > away["record"]


def test_the_share_of_clipped_rows_stays_here(few, tmp_path):
    X, y, ids, graph = few
    tight = promise(bounds=Bounds(x=2.0, y=(-4, 4)))
    model = GTVRegressor(graph, privacy=tight).fit(X, y, node_ids=ids)
    outside = np.linalg.norm(X, axis=1) > 2
    assert model.clipped_share_[2] == pytest.approx(outside[ids == 2].mean())
    model.save(tmp_path / "model.nefele", rows=True)
    with pytest.raises(AttributeError, match="in this process"):
        _ = nefele.load(tmp_path / "model.nefele").clipped_share_
    with pytest.raises(AttributeError, match="in this process"):
        _ = pickle.loads(pickle.dumps(model)).clipped_share_
    assert model.clipped_share_
    search = GTVRegressorCV(graph, n_alphas=3, privacy=tight).fit(X, y, node_ids=ids)
    with pytest.raises(AttributeError, match="in this process"):
        _ = pickle.loads(pickle.dumps(search)).best_estimator_.clipped_share_


@pytest.mark.parametrize("kind", ["statistics", "updates"])
def test_a_saved_model_says_what_it_cost(few, tmp_path, kind):
    X, y, ids, graph = few
    budget = Budget(3.0, 1e-6, path=tmp_path / "b")
    model = GTVRegressor(
        graph,
        loss="squared" if kind == "statistics" else "huber",
        privacy=promise(0.5, budget=budget, bounds=Bounds(x=[(-2, 2)] * 5, y=4.0)),
    ).fit(X, y, node_ids=ids)
    model.save(tmp_path / "model.nefele", rows=True)
    again = nefele.load(tmp_path / "model.nefele")
    assert again.privacy_ == model.privacy_
    assert model.privacy_.text() in again.summary()
    assert np.array_equal(again.coef_, model.coef_)
    again.fit(X, y, node_ids=ids)  # charged to the same file
    assert len(budget.releases) == 2


def test_two_fits_on_one_budget_add_up_and_the_third_is_refused(few):
    X, y, ids, graph = few
    budget = Budget(1.0, 1e-6)
    model = GTVRegressor(graph, privacy=promise(0.65, budget=budget))
    model.fit(X, y, node_ids=ids)
    clone(model).fit(X, y, node_ids=ids)
    assert 0.65 < budget.spent <= 1.0
    with pytest.raises(BudgetError):
        clone(model).fit(X, y, node_ids=ids)
    assert len(budget.releases) == 2


def test_an_older_account_is_refused_by_the_model(few, tmp_path):
    X, y, ids, graph = few
    path = tmp_path / "b"
    Budget(3.0, 1e-6, path=path)
    model = GTVRegressor(graph, privacy=promise(0.5, budget=path)).fit(X, y, node_ids=ids)
    for name in ("b", "b.head"):
        (tmp_path / name).unlink()
    Budget(3.0, 1e-6, path=path)
    with pytest.raises(LedgerError):
        model.fit(X, y, node_ids=ids)
    model.set_params(privacy=promise(0.5))
    with pytest.raises(ValueError, match="charged to a budget"):
        model.fit(X, y, node_ids=ids)


@pytest.mark.parametrize("kind", [GTVRegressor, GTVRegressorCV])
def test_a_fit_without_privacy_does_not_make_the_account_forgotten(few, tmp_path, kind):
    X, y, ids, graph = few
    budget = Budget(3.0, 1e-6, path=tmp_path / "b")
    model = kind(graph, privacy=promise(0.5, budget=budget)).fit(X, y, node_ids=ids)
    for _ in range(2):
        model.set_params(privacy=None).fit(X, y, node_ids=ids)
        assert not hasattr(model, "privacy_")
    model.set_params(privacy=promise(0.5))
    with pytest.raises(ValueError, match="charged to a budget"):
        model.fit(X, y, node_ids=ids)
    model.set_params(privacy=promise(0.5, budget=budget)).fit(X, y, node_ids=ids)
    assert len(budget.releases) == 2


def test_a_last_refit_stays_at_the_node(few, tmp_path):
    X, y, ids, graph = few
    noisy = GTVRegressor(graph, alpha=0.01, privacy=seeded()).fit(X, y, node_ids=ids)
    model = GTVRegressor(graph, alpha=0.01, privacy=seeded(refit=True)).fit(X, y, node_ids=ids)
    own = GTVRegressor(graph, alpha=0.0).fit(X, y, node_ids=ids)
    assert error(model, X, y, ids) < error(noisy, X, y, ids)
    assert error(model, X, y, ids) < 1.5 * error(own, X, y, ids)
    assert "they stay at their nodes" in model.summary()
    model.save(tmp_path / "model.nefele", rows=True)
    assert nefele.load(tmp_path / "model.nefele").privacy_.refit
    with pytest.raises(ValueError, match="refit=True needs"):
        GTVRegressor(graph, loss="huber", privacy=promise(refit=True)).fit(X, y, node_ids=ids)
    with pytest.raises(ValueError, match="fixed alpha"):
        GTVRegressorCV(graph, privacy=promise(refit=True)).fit(X, y, node_ids=ids)


def test_cross_validation_on_folds_that_share_no_rows(towns):
    X, y, ids, graph = towns
    budget = Budget(1.0, 1e-6)
    search = GTVRegressorCV(graph, n_alphas=10, privacy=seeded(1.0, budget=budget))
    search.fit(X, y, node_ids=ids)
    assert [release.count for release in budget.releases] == [1]
    assert search.privacy_ == search.best_estimator_.privacy_
    assert "epsilon 1" in search.summary()
    assert search.alpha_ > 0
    assert error(search, X, y, ids) < float(np.var(y))
    first = search._estimator(graph, alpha=0.0, privacy=seeded()).fit(X, y, node_ids=ids)
    assert error(search, X, y, ids) < error(first, X, y, ids)  # noise alone, without coupling


@pytest.mark.parametrize(("unit", "count"), [("record", 1), ("node", 3)])
def test_a_node_is_in_all_folds_and_pays_for_each(few, unit, count):
    X, y, ids, graph = few
    budget = Budget(1.0, 1e-6, unit=unit)
    GTVRegressorCV(graph, cv=3, n_alphas=3, privacy=promise(1.0, unit=unit, budget=budget)).fit(
        X, y, node_ids=ids
    )
    assert [release.count for release in budget.releases] == [count]
    assert budget.spent == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("step", ["gradient", "prox"])
def test_unequal_nodes_with_a_ridge(few, step):
    X, y, ids, graph = few
    kept = (ids > 0) | (np.arange(len(ids)) < 5)
    loss = nefele.losses.Logistic(l2=0.1)
    model = GTVClassifier(graph, alpha=0.1, loss=loss, privacy=seeded(30.0, step=step))
    model.fit(X[kept], y[kept] > 0, node_ids=ids[kept])
    plain = GTVClassifier(graph, alpha=0.1, loss=loss).fit(X[kept], y[kept] > 0, node_ids=ids[kept])
    assert model.score(X, y > 0, node_ids=ids) > plain.score(X, y > 0, node_ids=ids) - 0.2


def test_cross_validation_refuses_what_would_see_raw_rows(few):
    X, y, ids, graph = few
    with pytest.raises(ValueError, match="scoring and groups"):
        GTVRegressorCV(graph, scoring="r2", privacy=promise()).fit(X, y, node_ids=ids)
    with pytest.raises(ValueError, match="cv with privacy"):
        GTVRegressorCV(graph, cv=[([0], [1])], privacy=promise()).fit(X, y, node_ids=ids)
    with pytest.raises(ValueError, match="alpha was chosen by cross-validation on raw rows"):
        GTVClassifierCV(graph, privacy=promise()).fit(X, y > 0, node_ids=ids)
    search = GTVClassifierCV(graph, n_alphas=3, privacy=promise(allow_outside=True))
    search.fit(X, y > 0, node_ids=ids)
    assert search.privacy_.outside[0] == "alpha was chosen by cross-validation on raw rows"
    for name in ("alphas_", "cv_results_", "best_score_", "baseline_scores_", "verdict_"):
        assert hasattr(search, name)
        assert name in search.summary()


BAD = [
    ({"epsilon": 0.0}, "epsilon must be above 0"),
    ({"epsilon": -1.0}, "epsilon must be"),
    ({"delta": 0.0}, "delta must be"),
    ({"delta": 1.0}, "delta must be"),
    ({"bounds": None}, "Privacy needs bounds"),
    ({"bounds": 3.0}, "Privacy needs bounds"),
    ({"unit": "row"}, "unit of privacy"),
    ({"mechanism": "magic"}, "mechanism"),
    ({"seed": 1}, "insecure_testing"),
    ({"clip": 0.0}, "clip"),
    ({"rounds": 0}, "rounds"),
    ({"budget": 3.0}, "budget must be"),
    ({"step": "jump"}, "step"),
]


@pytest.mark.parametrize(("change", "match"), BAD)
def test_promises_that_promise_nothing(change, match):
    values = {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS}
    with pytest.raises(ValueError, match=match):
        Privacy(**values | change)


@pytest.mark.parametrize(
    ("params", "given", "match"),
    [
        ({}, {"sample_weight": np.arange(180) + 1.0}, "sample_weight"),
        ({"features": "spline"}, {}, "features"),
        ({"privacy": "yes"}, {}, "must be a nefele.privacy.Privacy"),
        ({"privacy": promise(bounds=Bounds(x=1.0))}, {}, "target must have bounds"),
        ({"privacy": promise(bounds=Bounds(x=[(0, 1)] * 4, y=1))}, {}, "each of the 5 features"),
        ({"privacy": promise(mechanism="predictions")}, {}, "is for FedRelax"),
        ({"loss": "huber", "hub": 0.5}, {}, "hub"),
        (
            {"privacy": promise(bounds=Bounds(x=0.1, y=4, outside="raise"))},
            {},
            "inside the declared bounds",
        ),
    ],
)
def test_nothing_is_charged_for_what_is_refused(few, params, given, match):
    X, y, ids, graph = few
    budget = Budget(1.0, 1e-6)
    params = {"privacy": promise(), **params}
    if isinstance(params["privacy"], Privacy):
        params["privacy"] = Privacy(**{**vars(params["privacy"]), "budget": budget})
    with pytest.raises(ValueError, match=match):
        GTVRegressor(graph, **params).fit(X, y, node_ids=ids, **given)
    assert budget.releases == ()


FREE = [
    (GTVRegressor, {"solver": "nonsense"}, "solver"),
    (GTVRegressor, {"penalty": "nonsense"}, "penalty"),
    (GTVRegressor, {"couple": ["zzz"]}, "zzz"),
    (GTVRegressor, {"tol": -1}, "tol"),
    (GTVRegressor, {"max_iter": -5}, "max_iter"),
    (GTVRegressor, {"graph": pd.DataFrame({"source": [0, 1], "target": [1, 2]})}, "graph"),
    (GTVRegressor, {"graph": [(0, 1), (1, 2)]}, "graph"),
    (GTVRegressorCV, {"alphas": [-1]}, "alphas"),
    (GTVRegressorCV, {"alphas": "x"}, "alphas"),
    (GTVRegressorCV, {"solver": "nonsense"}, "solver"),
]


@pytest.mark.parametrize(("kind", "params", "match"), FREE)
def test_parameters_are_checked_before_anything_is_charged(few, kind, params, match):
    X, y, ids, graph = few
    budget = Budget(1.0, 1e-6)
    model = kind(**{"graph": graph, "privacy": promise(budget=budget), **params})
    with pytest.raises(ValueError, match=match):
        model.fit(X, y, node_ids=ids)
    assert budget.releases == ()
    assert not hasattr(model, "privacy_")


def test_graphs_are_not_compared_on_rows_that_were_promised_privacy(few):
    X, y, ids, graph = few
    budget = Budget(1.0, 1e-6)
    search = GTVRegressorCV(n_alphas=3, privacy=promise(budget=budget))
    with pytest.raises(ValueError, match="privacy of the estimator must be None"):
        nefele.GraphSelectorCV({"mine": graph}, estimator=search).fit(X, y, node_ids=ids)
    assert budget.releases == ()


def test_tables_with_text_are_refused():
    table = pd.DataFrame({"town": list("abab"), "kind": list("xyxy"), "t": range(4)})
    with pytest.raises(ValueError, match="numbers only with privacy"):
        GTVRegressor(node="town", privacy=promise()).fit(table, [1.0, 2.0, 3.0, 4.0])


def test_more_rows_by_partial_fit_are_refused(few):
    X, y, ids, graph = few
    with pytest.raises(ValueError, match="partial_fit"):
        GTVRegressor(graph, privacy=promise()).partial_fit(X, y, node_ids=ids)


def test_seeded_noise_is_named_as_no_guarantee(few):
    X, y, ids, graph = few
    model = GTVRegressor(graph, privacy=seeded()).fit(X, y, node_ids=ids)
    assert "no guarantee: insecure_testing=True" in model.summary()


def test_what_needs_rows_refuses_a_private_fit(few):
    X, y, ids, graph = few
    model = GTVRegressor(graph, penalty="squared_l2", privacy=promise()).fit(X, y, node_ids=ids)
    for ask in (
        lambda: model.coef_frame(level=0.9),
        model.common_frame,
        lambda: nefele.plot_residuals(model),
        lambda: nefele.bootstrap_intervals(model),
    ):
        with pytest.raises(ValueError, match="a model fitted with privacy has noisy moments only"):
            ask()
    assert len(model.coef_frame()) == len(model.nodes_)


def test_weights_of_zero_are_weights(few):
    X, y, ids, graph = few
    weight = np.ones(len(y))
    weight[0] = 0.0
    model = GTVRegressor(graph, penalty="squared_l2", privacy=promise())
    with pytest.raises(ValueError, match="sample_weight must be left out with privacy"):
        model.fit(X, y, weight, node_ids=ids)
