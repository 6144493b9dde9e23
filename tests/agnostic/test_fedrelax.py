"""Model-agnostic FedRelax: its fixed point, its rows and weights, kinds of models, faults."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.parallel import Parallel

from nefele import DataWarning, Graph, LocalData, Problem, solve
from nefele.agnostic import FedRelaxClassifier, FedRelaxRegressor
from nefele.agnostic._discrepancy import Discrepancy
from nefele.agnostic._models import continues, resample, train, weight_parameter
from nefele.agnostic._rounds import Relaxation
from nefele.agnostic._site import Site
from nefele.graphs import chain
from nefele.penalties import HuberPenalty
from nefele.runtime import Faults
from tests.agnostic.data import GRAPH, SHARED, TOWNS, classifier, core, fedrelax, parameters, rows

# -- the fixed point --------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["jacobi", "gauss-seidel", "random"])
@pytest.mark.parametrize("alpha", [0.05, 0.5])
@pytest.mark.parametrize("estimator", [LinearRegression(), Ridge(1e-9)], ids=str)
def test_linear_models_reach_the_core_optimum(estimator, alpha, schedule):
    X, y = rows()
    model = fedrelax(estimator, alpha=alpha, schedule=schedule, rounds=2000, tol=1e-11).fit(X, y)
    best = core(X, y, alpha)
    assert model.converged_
    np.testing.assert_allclose(parameters(model), best.w, rtol=0, atol=1e-6)
    assert model.history_[-1].objective == pytest.approx(best.objective, rel=1e-9)


@pytest.mark.parametrize("init", ["local", "zero"])
def test_without_intercept_with_weights_and_from_zero(init):
    X, y = rows()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = fedrelax(LinearRegression(fit_intercept=False), alpha=0.2, init=init, rounds=999)
    model.set_params(tol=1e-11).fit(X, y, sample_weight=weight)
    best = core(X, y, 0.2, intercept=False, sample_weight=weight)
    np.testing.assert_allclose(parameters(model, intercept=False), best.w, rtol=0, atol=1e-6)


def test_the_objective_falls_in_every_sweep():
    X, y = rows()
    model = fedrelax(alpha=0.5, schedule="gauss-seidel", rounds=30, tol=None).fit(X, y)
    values = [record.objective for record in model.history_]
    assert np.isfinite(values).all() and (np.diff(values) <= 1e-12).all()
    assert values[0] - values[-1] > 1e-3


def test_huber_reaches_the_core_optimum():
    """Models that are constants: the discrepancy is the core's Huber penalty, lam = 2 alpha."""
    X, y = rows()
    model = fedrelax(
        DummyRegressor(), alpha=0.4, discrepancy=("huber", 0.3), rounds=1000, tol=1e-8
    ).fit(X, y)
    data = LocalData.from_long(np.ones((len(X), 1)), y, X["town"], GRAPH.ids)
    best = solve(Problem(GRAPH, data, penalty=HuberPenalty(0.3), lam=0.8), tol=1e-12)
    found = [model.estimators_[town].constant_.item() for town in TOWNS]
    np.testing.assert_allclose(found, best.w[:, 0], atol=1e-5)
    assert model.history_[-1].objective == pytest.approx(best.objective, rel=1e-7)


def test_absolute_comes_near_the_core_optimum():
    """By no more than the rounding of its corner: alpha sum_e A_e times 1% of the spread."""
    X, y = rows()
    model = fedrelax(DummyRegressor(), alpha=0.4, discrepancy="absolute", tol=1e-5, rounds=300)
    model.set_params(schedule="gauss-seidel").fit(X, y)
    data = LocalData.from_long(np.ones((len(X), 1)), y, X["town"], GRAPH.ids)
    problem = Problem(GRAPH, data, penalty="l1", lam=0.8)
    best = solve(problem, tol=1e-12).objective
    found = problem.objective([model.estimators_[town].constant_.ravel() for town in TOWNS])
    assert best <= found <= best + 0.4 * GRAPH.weight.sum() * 0.01 * np.std(y)


# -- rows and weights -------------------------------------------------------------------------

REGRESSORS = [
    LinearRegression(),
    Ridge(),
    DecisionTreeRegressor(random_state=0),
    RandomForestRegressor(5, random_state=0),
    HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=2),
    SVR(),
    KNeighborsRegressor(3),
    make_pipeline(StandardScaler(), Ridge()),
    SGDRegressor(random_state=0),
]
CLASSIFIERS = [
    LogisticRegression(),
    DecisionTreeClassifier(random_state=0),
    HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=2, learning_rate=0.5),
    KNeighborsClassifier(3),
    GaussianNB(),
]


@pytest.mark.parametrize("estimator", REGRESSORS, ids=str)
def test_alpha_zero_is_a_local_fit_to_the_bit(estimator):
    X, y = rows()
    towns = Graph(TOWNS[:5], [0, 1], [1, 2])
    model = FedRelaxRegressor(estimator, graph=towns, node="town", alpha=0.0).fit(X, y)
    for town in TOWNS[:5]:
        own = (X["town"] == town).to_numpy()
        values = X.loc[own, ["a", "b"]].to_numpy().copy()
        alone = clone(estimator).fit(values, y[own])
        np.testing.assert_array_equal(
            model.estimators_[town].predict(values), alone.predict(values)
        )
        np.testing.assert_array_equal(model.predict(X[own]), alone.predict(values))
    assert (model.rounds_, model.converged_, model.ledger_.messages) == (0, True, 0)


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=str)
def test_alpha_zero_is_a_local_classifier_to_the_bit(estimator):
    X, y = rows(classes=3)
    keep = ((X["town"] != "Pori") | (y != "low")).to_numpy()
    X, y = X[keep], y[keep]
    towns = Graph(TOWNS[:5], [0, 1], [1, 2])
    model = FedRelaxClassifier(estimator, graph=towns, node="town", alpha=0.0).fit(X, y)
    for town in TOWNS[:5]:
        own = (X["town"] == town).to_numpy()
        values = X.loc[own, ["a", "b"]].to_numpy().copy()
        alone = clone(estimator).fit(values, y[own])
        assert (model.predict(X[own]) == alone.predict(values)).all()
        seen = np.isin(model.classes_, alone.classes_)
        found = model.predict_proba(X[own])
        np.testing.assert_array_equal(found[:, seen], alone.predict_proba(values))
        assert not found[:, ~seen].any()


def naive_round(X, y, alpha, models):
    """One round without collapsing: a block of rows for every neighbour."""
    out = {}
    for town in TOWNS:
        own = (X["town"] == town).to_numpy()
        parts = [(X.loc[own, ["a", "b"]].to_numpy(), y[own], np.ones(own.sum()))]
        for near in GRAPH.neighbors(town):
            e = [
                k
                for k in range(GRAPH.n_edges)
                if {TOWNS[GRAPH.head[k]], TOWNS[GRAPH.tail[k]]} == {town, near}
            ]
            size = max(own.sum(), 1) * alpha * GRAPH.weight[e[0]] / len(SHARED)
            if near not in models:
                continue
            if y.dtype.kind == "f":
                label = models[near].predict(SHARED)
                parts.append((SHARED, label, np.full(len(SHARED), size)))
            else:
                for k, name in enumerate(models[near].classes_):
                    share = models[near].predict_proba(SHARED)[:, k]
                    parts.append((SHARED, np.full(len(SHARED), name), size * share))
        out[town] = [np.concatenate(x) for x in zip(*parts, strict=True)]
    return out


def test_one_round_equals_a_naive_one():
    X, y = rows()
    local = {
        t: LinearRegression().fit(X.loc[X["town"] == t, ["a", "b"]].to_numpy(), y[X["town"] == t])
        for t in TOWNS[:5]
    }
    model = fedrelax(alpha=0.3, rounds=1, tol=None).fit(X, y)
    for town, (values, target, weight) in naive_round(X, y, 0.3, local).items():
        naive = LinearRegression().fit(values, target, weight)
        np.testing.assert_allclose(model.estimators_[town].coef_, naive.coef_, atol=1e-10)
        np.testing.assert_allclose(model.estimators_[town].intercept_, naive.intercept_)


def test_one_round_of_soft_labels_equals_a_naive_one():
    X, y = rows(classes=3)
    strict = LogisticRegression(tol=1e-10, max_iter=1000)
    local = {
        t: clone(strict).fit(X.loc[X["town"] == t, ["a", "b"]].to_numpy(), y[X["town"] == t])
        for t in TOWNS[:5]
    }
    model = classifier(strict, alpha=0.3, rounds=1, tol=None).fit(X, y)
    for town, (values, target, weight) in naive_round(X, y, 0.3, local).items():
        if town != "Kemi":  # without own rows the weights have another unit
            naive = clone(strict).fit(values, target, weight)
            found = model.estimators_[town].predict_proba(SHARED)
            np.testing.assert_allclose(found, naive.predict_proba(SHARED), atol=1e-5)


def test_reweighted_blocks_collapse_row_by_row():
    rng = np.random.default_rng(0)
    weights, news, own = rng.uniform(1, 2, 3), list(rng.normal(size=(3, 7))), rng.normal(size=7)
    target, total = Discrepancy("huber", 0.5).block(weights, news, own)
    for r in range(7):
        pull = [a / max(abs(own[r] - p[r]), 0.5) for a, p in zip(weights, news, strict=True)]
        assert total[r] == pytest.approx(sum(pull))
        mean = sum(a * p[r] for a, p in zip(pull, news, strict=True)) / sum(pull)
        assert target[r] == pytest.approx(mean)


def test_a_node_without_rows_fits_the_shared_rows_only():
    X, y = rows()
    model = fedrelax(DecisionTreeRegressor(random_state=0), rounds=3, tol=None).fit(X, y)
    tree = model.estimators_["Kemi"]
    assert tree.tree_.n_node_samples[0] == len(SHARED)
    assert tree.tree_.weighted_n_node_samples[0] == len(SHARED)


# -- kinds of local models --------------------------------------------------------------------


def test_resampled_rows_follow_the_weights():
    X, y = np.arange(40.0)[:, None], np.arange(40.0)
    weight = np.concatenate([np.ones(20), np.linspace(0.0, 2.5, 20)])
    counts = np.zeros(40)
    for seed in range(300):
        picked = resample(X, y, weight, seed)[1].astype(int)
        times = np.bincount(picked, minlength=40)
        assert (times[:20] == 1).all() and (np.abs(times - weight) < 1 + 1e-6).all()
        counts += times
    np.testing.assert_allclose(counts / 300, weight, atol=0.15)
    one, two = (resample(X, y, weight, 5)[1] for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert 700 < len(resample(X, y, 1e4 * np.ones(40), 0)[1]) <= 800  # not 400,000 rows


def test_models_without_weights_settle_since_their_rows_stay():
    X, y = rows()
    model = fedrelax(KNeighborsRegressor(3), alpha=0.3, rounds=200, tol=1e-6).fit(X, y)
    assert model.converged_
    again = fedrelax(KNeighborsRegressor(3), alpha=0.3, rounds=200, tol=1e-6).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    alone = fedrelax(KNeighborsRegressor(3), alpha=1e-12, rounds=1, tol=None).fit(X, y)
    own = (X["town"] == "Oulu").to_numpy()
    local = KNeighborsRegressor(3).fit(X.loc[own, ["a", "b"]].to_numpy(), y[own])
    np.testing.assert_allclose(alone.predict(X[own]), local.predict(X.loc[own, ["a", "b"]].values))


def test_pipelines_get_the_weights_at_their_last_step():
    X, y = rows()
    pipeline = make_pipeline(StandardScaler(), LinearRegression())
    assert weight_parameter(pipeline) == "linearregression__sample_weight"
    assert weight_parameter(make_pipeline(StandardScaler(), KNeighborsRegressor())) is None
    options = {"alpha": 0.1, "rounds": 200, "tol": 1e-9}
    one, two = (fedrelax(e, **options).fit(X, y) for e in (pipeline, LinearRegression()))
    np.testing.assert_allclose(one.predict(X), two.predict(X), atol=1e-7)


def test_linear_models_start_from_their_last_parameters():
    X, y = rows(classes=2)
    options = {"alpha": 0.3, "rounds": 60, "tol": 1e-7}
    model = classifier(LogisticRegression(tol=1e-9, max_iter=500), **options).fit(X, y)
    last = model.estimators_["Oulu"]
    assert last.warm_start is False  # as it was given
    assert last.n_iter_[0] <= 3


def test_what_does_and_does_not_continue():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0)
    assert continues(SGDRegressor().fit(X, y), y)
    assert not continues(Ridge().fit(X, y), y)
    boosted = HistGradientBoostingRegressor(max_iter=2, warm_start=True).fit(X, y)
    assert not continues(boosted, y)
    assert not continues(RandomForestRegressor(2, warm_start=True).fit(X, y), y)
    labels = (y > 9).astype(int)
    logistic = LogisticRegression().fit(X, labels)
    assert continues(logistic, labels) and not continues(logistic, labels + (y > 20))
    for warm in (True, False):
        net = MLPRegressor(
            hidden_layer_sizes=3, max_iter=2000, tol=1e-2, warm_start=warm, random_state=0
        )
        assert continues(net.fit(X, y / 30), y) is warm


@pytest.mark.parametrize("weights", [None, 0.01])
def test_bags_of_forests_leave_rows_out_beside_many_shared_ones(weights):
    # A forest that draws as many rows as there are would have each own row in every bag, and its
    # training error would jump from that of alpha = 0 to nothing.
    rng = np.random.default_rng(0)
    ids, X = np.repeat(np.arange(4), 25), rng.normal(size=(100, 2))
    y = X[:, 0] + rng.normal(size=100)
    weight = None if weights is None else np.full(100, weights)

    def error(alpha):
        forest = make_pipeline(StandardScaler(), RandomForestRegressor(20, random_state=0))
        model = FedRelaxRegressor(
            forest, graph=chain(4), alpha=alpha, n_shared=400, rounds=2, tol=None
        ).fit(X, y, weight, node_ids=ids)
        assert model.estimators_[0][-1].max_samples is None
        return np.mean((model.predict(X, node_ids=ids) - y) ** 2)

    assert 0.5 * error(0.0) < error(0.05) < 2 * error(0.0)


def test_a_size_of_bags_that_the_user_chose_stays():
    X, y = rows()
    forest = RandomForestRegressor(2, max_samples=3, random_state=0)
    model = fedrelax(forest, alpha=0.3, rounds=2, tol=None).fit(X, y)
    assert {one.max_samples for one in model.estimators_.values()} == {3}
    assert max(len(np.unique(i)) for i in model.estimators_["Oulu"].estimators_samples_) <= 3


def test_forests_are_grown_anew():
    X, y = rows()
    forest = RandomForestRegressor(4, warm_start=True, random_state=0)
    model = fedrelax(forest, alpha=0.3, rounds=3, tol=None).fit(X, y)
    assert all(len(model.estimators_[town].estimators_) == 4 for town in TOWNS)


def test_random_states_are_set_only_where_they_are_open():
    X, y = rows()
    forests = {"Oulu": RandomForestRegressor(2, random_state=7), None: RandomForestRegressor(2)}
    options = {"rounds": 2, "tol": None}
    one, two = (fedrelax(forests, **options).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    assert one.estimators_["Oulu"].random_state == 7
    assert one.estimators_["Pori"].random_state != one.estimators_["Turku"].random_state
    free = fedrelax(forests, random_state=None, **options).fit(X, y)
    assert free.estimators_["Pori"].random_state is None


def test_estimators_by_id_by_rule_and_by_default():
    X, y = rows()
    tree, line = DecisionTreeRegressor(random_state=0), LinearRegression()
    by_dict = fedrelax({"Oulu": tree, None: line}, rounds=2, tol=None).fit(X, y)
    by_rule = fedrelax(lambda town: tree if town == "Oulu" else line, rounds=2, tol=None).fit(X, y)
    kinds = [type(m).__name__ for m in by_dict.estimators_.values()]
    assert kinds.count("DecisionTreeRegressor") == 1 and list(by_dict.estimators_) == TOWNS
    np.testing.assert_array_equal(by_dict.predict(X), by_rule.predict(X))
    assert not hasattr(tree, "tree_")  # copies are fitted


def test_anything_with_fit_and_predict_will_do():
    class Median:
        def fit(self, X, y):
            self.value = np.median(y)
            return self

        def predict(self, X):
            return np.full(len(X), self.value)

    X, y = rows()
    model = fedrelax({"Pori": Median(), None: LinearRegression()}, rounds=3, tol=None).fit(X, y)
    assert len(set(model.predict(X[X["town"] == "Pori"]).tolist())) == 1


# -- classes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, SVC()], ids=str)
def test_a_node_with_one_class_or_none_learns_of_the_others(estimator):
    X, y = rows(n=120, classes=3)
    keep = (X["town"] != "Oulu") | (y == "top")
    X, y = X[keep], y[keep]
    model = classifier(estimator, alpha=1.0, rounds=4, tol=None).fit(X, y)
    assert model.classes_.tolist() == ["low", "mid", "top"]
    for town in ("Oulu", "Kemi"):
        assert len(set(model.estimators_[town].predict(SHARED))) > 1
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-6)
    assert model.score(X, y) > 0.6


def test_a_single_class_is_a_constant_until_others_come():
    X, y = rows(classes=2)
    keep = (X["town"] != "Oulu") | (y == "mid")
    alone = classifier(alpha=0.0)
    with pytest.warns(DataWarning, match="'Kemi': they predict all classes alike"):
        alone.fit(X[keep], y[keep])
    oulu = X[X["town"] == "Oulu"]
    assert alone.predict_proba(oulu).tolist() == [[0.0, 1.0]] * len(oulu)
    np.testing.assert_allclose(alone.estimators_["Kemi"].predict_proba(SHARED), 0.5)
    coupled = classifier(alpha=1.0, rounds=2, tol=None).fit(X[keep], y[keep])
    assert type(coupled.estimators_["Oulu"]) is LogisticRegression


def test_wrong_parameters_of_a_model_are_not_taken_for_a_single_class():
    with pytest.raises(ValueError, match="'C' parameter"):
        train(LogisticRegression(C=-1.0), np.ones((3, 1)), np.zeros(3), None, 0)


# -- messages and faults ----------------------------------------------------------------------


@pytest.mark.parametrize(("init", "first"), [("local", 1), ("zero", 0)])
def test_the_ledger_counts_every_exchange(init, first):
    X, y = rows()
    model = fedrelax(init=init, rounds=5, tol=None).fit(X, y)
    # Kemi, without rows, has nothing to say until it has a model.
    assert model.ledger_.messages == (5 + first) * 2 * GRAPH.n_edges - first
    assert model.ledger_.floats == model.ledger_.messages * len(SHARED)
    assert set(model.ledger_.by_content) == {"predictions"}
    assert model.ledger_.rounds == model.rounds_ == 5


def test_classifiers_send_probabilities():
    X, y = rows(classes=3)
    model = classifier(rounds=2, tol=None).fit(X, y)
    sums = model.ledger_.by_content["probabilities"]
    assert sums.bytes == sums.messages * len(SHARED) * 3 * 8


@pytest.mark.parametrize("schedule", ["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("init", ["local", "zero"])
def test_the_optimum_is_reached_after_lossy_rounds(schedule, init):
    X, y = rows()
    faults = Faults(link_loss=0.3, node_dropout=0.1, delay=2, stragglers=["Pori"], until=60)
    model = fedrelax(
        alpha=0.1, schedule=schedule, init=init, rounds=600, tol=1e-11, faults=faults
    ).fit(X, y)
    assert min(model.ledger_.missing.values()) > 50
    np.testing.assert_allclose(parameters(model), core(X, y, 0.1).w, rtol=0, atol=1e-6)


def test_permanent_losses_only_slow_it_down():
    X, y = rows()
    faults = Faults(link_loss=0.3, seed=1)
    model = fedrelax(alpha=0.1, rounds=600, tol=1e-10, faults=faults).fit(X, y)
    assert model.converged_
    np.testing.assert_allclose(parameters(model), core(X, y, 0.1).w, rtol=0, atol=1e-6)
    assert model.rounds_ > fedrelax(alpha=0.1, rounds=600, tol=1e-10).fit(X, y).rounds_


def test_silence_is_not_convergence():
    X, y = rows()
    dead = Faults(link_loss=1.0, until=20)
    model = fedrelax(alpha=0.1, rounds=300, tol=1e-8, init="zero", faults=dead).fit(X, y)
    assert model.history_[10].change == 0.0 and model.rounds_ > 20
    np.testing.assert_allclose(parameters(model), core(X, y, 0.1).w, rtol=0, atol=1e-5)


def test_late_news_are_used_late():
    X, y = rows()
    on_time, late = (
        fedrelax(alpha=0.3, rounds=2, tol=None, faults=faults).fit(X, y)
        for faults in (None, Faults(delay=1))
    )
    assert late.ledger_.late > 5
    assert np.abs(on_time.predict(X) - late.predict(X)).max() > 1e-3


def relaxation(faults):
    """The state inside a fit, to be driven round by round."""
    X, y = rows()
    sites = {}
    for i, town in enumerate(TOWNS):
        own = (X["town"] == town).to_numpy()
        values = X.loc[own, ["a", "b"]].to_numpy()
        sites[i] = Site(town, values, y[own], None, LinearRegression(), 0)
    squared, pool = Discrepancy("squared"), Parallel()
    return Relaxation(GRAPH, sites, SHARED, 0.3, squared, 1.0, None, pool, faults, "jacobi", 0)


def test_older_news_never_replace_newer_ones():
    run = relaxation(Faults(delay=4, seed=1))
    run.driver.start()
    before, late = {}, 0
    for k in range(1, 25):
        run.round(k)
        made = {link: news[0] for link, news in run.driver.news.items()}
        assert all(made[link] >= before[link] for link in before)
        late += sum(made[link] < k - 1 for link in made)
        before = made
    assert late > 20


def test_convergence_needs_news_of_all_and_moves_of_all():
    run = relaxation(None)
    driver = run.driver
    driver.start()
    for k in (1, 2, 3):
        run.round(k)
    assert driver.heard_since(3) and not driver.heard_since(4)
    town = TOWNS[2]
    driver.moved[town] = 1
    assert not driver.heard_since(3)
    driver.moved[town] = 3
    link = next(iter(driver.news))
    driver.news[link] = (1, driver.news[link][1])
    assert not driver.heard_since(3)
