"""Fits near a user's signals, and what a computation costs."""

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

import nefele
from nefele._threads import processor_seconds
from nefele.accountable import Cost, fit_explainable, measure_cost
from nefele.privacy import Bounds, Privacy
from tests.accountable.data import network


def posed(penalty="squared_l2", **options):
    return nefele.GTVRegressor(
        nefele.graphs.chain(6), penalty=penalty, alpha=0.5, standardize=False, tol=1e-13, **options
    )


def test_the_objective_is_labels_plus_strength_times_signals():
    """Against a dense solve of the stated objective."""
    X, y, ids = network()
    signal = np.where(np.arange(len(y)) % 3 == 0, X[:, 0], np.nan)
    found = fit_explainable(posed(), X, y, signal, strength=0.7, node_ids=ids)
    on = ~np.isnan(signal)
    Z, n, d = np.column_stack([X, np.ones(len(X))]), 6, 3
    A, b = np.zeros((n * d, n * d)), np.zeros(n * d)
    for i in range(n):
        at, own, told = slice(i * d, i * d + d), ids == i, (ids == i) & on
        A[at, at] = 2 * (Z[own].T @ Z[own] + 0.7 * Z[told].T @ Z[told]) / 8
        b[at] = 2 * (Z[own].T @ y[own] + 0.7 * Z[told].T @ signal[told]) / 8
    L = np.diag([1.0, 2, 2, 2, 2, 1]) - np.eye(n, k=1) - np.eye(n, k=-1)
    w = np.linalg.solve(A + 0.5 * np.kron(L, np.eye(d)), b).reshape(n, d)
    mine = np.column_stack([found.model.coef_, found.model.intercept_])
    np.testing.assert_allclose(mine, w, atol=1e-6)
    assert found.model.status_ == "optimal" and found.model.dual_gap_ <= 1e-12


def test_more_strength_brings_predictions_nearer_at_the_cost_of_error():
    X, y, ids = network()
    runs = [
        fit_explainable(posed("l2"), X, y, X[:, 1], strength=s, node_ids=ids) for s in (0, 1, 9)
    ]
    distances, errors = [r.distance for r in runs], [r.error for r in runs]
    assert distances == sorted(distances, reverse=True) and errors == sorted(errors)
    assert runs[0].distance == pytest.approx(runs[0].free_distance)
    assert runs[0].error == pytest.approx(runs[0].free_error)


def test_signals_in_other_units_are_calibrated():
    """Any line through the signals gives the same fit."""
    X, y, ids = network()
    runs = [
        fit_explainable(posed(), X, y, signal, calibrate=True, node_ids=ids)
        for signal in (X[:, 0], 1000.0 - 3.0 * X[:, 0])
    ]
    np.testing.assert_allclose(runs[0].model.coef_, runs[1].model.coef_, atol=1e-6)
    line = np.polyval(np.polyfit(X[:, 0], y, 1), X[:, 0])
    plain = fit_explainable(posed(), X, y, line, node_ids=ids)
    np.testing.assert_allclose(runs[0].model.coef_, plain.model.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="must vary"):
        fit_explainable(posed(), X, y, np.ones(len(y)), calibrate=True, node_ids=ids)


def test_tables_keep_their_node_column():
    X, y, ids = network()
    table = pd.DataFrame(X, columns=["a", "b"]).assign(node=ids)
    one = fit_explainable(posed(node="node"), table, y, X[:, 0])
    two = fit_explainable(posed(), X, y, X[:, 0], node_ids=ids)
    np.testing.assert_allclose(one.model.coef_, two.model.coef_)
    assert nefele.explain(one.model, 2).exact


def test_bad_signals_are_refused():
    X, y, ids = network()
    for wrong, words in (
        ({"signal": y[:3]}, "one entry per row"),
        ({"signal": np.full(len(y), np.nan)}, "at least one"),
        ({"signal": np.full(len(y), np.inf)}, "finite"),
        ({"strength": -1.0}, "strength"),
        ({"y": None}, "y must have one label per row"),
        ({"y": None, "calibrate": True}, "y must have one label per row"),
        ({"model": "model"}, "GTVRegressor or GTVClassifier"),
    ):
        given = {"model": posed(), "X": X, "y": y, "signal": y, "node_ids": ids, **wrong}
        with pytest.raises(ValueError, match=words):
            fit_explainable(**given)


LOSSES = {
    "squared": lambda z, u: cp.sum_squares(z - u),
    "absolute": lambda z, u: cp.norm1(z - u),
    "huber": lambda z, u: cp.sum(cp.huber(z - u)) / 2,
    "poisson": lambda z, u: cp.sum(cp.exp(z) - cp.multiply(u, z)),
}
PENALTIES = {
    "l2": lambda v: cp.norm(v, 2),
    "l1": lambda v: cp.norm(v, 1),
    "linf": lambda v: cp.norm(v, "inf"),
    "squared_l2": lambda v: cp.sum_squares(v) / 2,
}


def oracle(terms, penalty, alpha, k=1):
    """Optimal value and parameters of mean losses over a chain, by CVXPY."""
    w = cp.Variable((6, 3 * k))
    coupling = sum(PENALTIES[penalty](w[i] - w[i + 1]) for i in range(5))
    problem = cp.Problem(cp.Minimize(sum(term(w) for term in terms) + alpha * coupling))
    problem.solve(solver="CLARABEL")
    return problem.value, w.value


@pytest.mark.parametrize("penalty", ["l2", "l1", "linf"])
@pytest.mark.parametrize("loss", LOSSES)
def test_signals_against_a_solver_of_the_stated_objective(loss, penalty):
    X, y, ids = network()
    y = np.floor(np.abs(y)) if loss == "poisson" else y
    u = np.where(np.arange(len(y)) % 3 == 0, np.abs(X[:, 0]) + 1, np.nan)
    Z, on = np.column_stack([X, np.ones(len(X))]), ~np.isnan(u)

    def own(i):
        mine, told = ids == i, (ids == i) & on
        f = LOSSES[loss]
        return lambda w: (f(Z[mine] @ w[i], y[mine]) + 0.7 * f(Z[told] @ w[i], u[told])) / 8

    value, _ = oracle([own(i) for i in range(6)], penalty, 0.3)
    model = nefele.GTVRegressor(
        nefele.graphs.chain(6), penalty=penalty, alpha=0.3, loss=loss, standardize=False,
        tol=1e-8, explainable=0.7,
    ).fit(X, y, node_ids=ids, signal=u)  # fmt: skip
    problem, w, flow = model.solution()
    base = problem.objective(w)
    assert base == pytest.approx(value, rel=1e-6, abs=1e-6)
    assert model.status_ == "optimal" and problem.certificate(w, flow).gap_abs <= 1e-7 * abs(base)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_classes_against_a_solver(n_classes):
    X, y, ids = network(n_rows=12)
    label = np.searchsorted(np.quantile(y, np.arange(1, n_classes) / n_classes), y)
    rng = np.random.default_rng(1)
    share = rng.dirichlet(np.ones(n_classes), len(y))
    on = np.arange(len(y)) % 2 == 0
    share[~on] = np.nan
    Z = np.column_stack([X, np.ones(len(X))])

    def entropy(z, p):
        return cp.sum(cp.log_sum_exp(z, axis=1)) - cp.sum(cp.multiply(p, z))

    def own(i):
        mine, told = ids == i, (ids == i) & on

        def scores(w, rows):
            if n_classes == 2:
                return cp.vstack([np.zeros(int(rows.sum())), Z[rows] @ w[i]]).T
            return Z[rows] @ cp.reshape(w[i], (3, n_classes), order="F")

        hot = np.eye(n_classes)[label[mine]]
        return lambda w: (
            (entropy(scores(w, mine), hot) + 0.5 * entropy(scores(w, told), share[told])) / 12
        )

    value, _ = oracle([own(i) for i in range(6)], "l2", 0.1, 1 if n_classes == 2 else 3)
    model = nefele.GTVClassifier(
        nefele.graphs.chain(6), alpha=0.1, standardize=False, tol=1e-8, explainable=0.5
    )
    signal = share[:, 1] if n_classes == 2 else share
    model.fit(X, label, node_ids=ids, signal=signal)
    problem, w, _ = model.solution()
    assert problem.objective(w) == pytest.approx(value, rel=1e-6)
    assert model.status_ == "optimal"
    found = fit_explainable(model, X, label, signal, strength=20.0, node_ids=ids)
    assert found.distance < 0.8 * found.free_distance


def test_signals_leave_scales_and_the_weight_of_labels_alone():
    """A signal that says what the model says anyway changes nothing."""
    X, y, ids = network()
    options = {"penalty": "squared_l2", "alpha": 0.5, "tol": 1e-13}
    free = nefele.GTVRegressor(nefele.graphs.chain(6), **options).fit(X, y, node_ids=ids)
    said = free.predict(X, node_ids=ids)
    said[np.arange(len(y)) % 4 > 0] = np.nan
    again = nefele.GTVRegressor(nefele.graphs.chain(6), **options, explainable=5.0)
    again.fit(X, y, node_ids=ids, signal=said)
    np.testing.assert_allclose(again.coef_, free.coef_, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"scale": [1.0, 0.0, 2.0], "hub": 0.5}, {"hub": 1.0}])
def test_signals_go_with_weights_saving_and_more_rows(options, tmp_path):
    X, y, ids = network()
    weight = np.arange(len(y)) % 3.0
    signal = np.where(np.arange(len(y)) % 2 == 0, y + 1.0, np.nan)
    given = {"penalty": "squared_l2", "alpha": 0.5, "tol": 1e-12, "explainable": 2.0, **options}
    model = nefele.GTVRegressor(nefele.graphs.chain(6), **given)
    model.fit(X, y, weight, node_ids=ids, signal=signal)
    on = weight > 0
    same = nefele.GTVRegressor(nefele.graphs.chain(6), **given)
    same.fit(X[on], y[on], weight[on], node_ids=ids[on], signal=signal[on])
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-7)
    model.save(tmp_path / "model.nefele", rows=True)
    back = nefele.load(tmp_path / "model.nefele")
    assert back.explainable == 2.0 and back.status_ == "optimal"
    np.testing.assert_array_equal(back._rows.signals, model._rows.signals)
    found = nefele.explain(back, 2)
    table = found.row_frame(40)
    assert table["signal"].any() and not table["signal"].all()
    first = table.filter(table["signal"])
    assert first["target"][0] == pytest.approx(y[on][first["row"][0]] + 1.0)
    if not options:
        back.partial_fit(X[:1], y[:1], node_ids=ids[:1])
        assert len(back._rows.signals) == len(model._rows.signals)


def test_signals_that_do_not_fit_are_refused():
    X, y, ids = network()
    label = y > np.median(y)
    regression, classes = nefele.GTVRegressor(nefele.graphs.chain(6)), nefele.GTVClassifier
    chain = nefele.graphs.chain(6)
    half = np.full(len(y), 0.5)
    for model, target, signal, words in (
        (classes(chain), label, half + 1, "from 0 to 1"),
        (classes(chain), ids % 3, half, "shape \\(48, 3\\)"),
        (classes(chain), ids % 3, np.full((len(y), 3), 0.5), "sum to 1"),
        (classes(chain, loss="hinge"), label, half, "hinge loss has none"),
        (nefele.GTVRegressor(chain, loss="poisson"), np.abs(y), -half, "signal must be >= 0"),
        (nefele.GTVRegressor(chain, explainable=-1.0), y, half, "explainable"),
        (regression, y, half[:3], "one entry per row"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(X, target, node_ids=ids, signal=signal)
        assert not hasattr(model, "coef_")
    model = regression.fit(X, y, node_ids=ids, signal=half)
    with pytest.raises(ValueError, match="without signals"):
        nefele.bootstrap_intervals(model)
    private = Privacy(1.0, 1e-6, bounds=Bounds(x=3.0, y=(-9, 9)))
    with pytest.raises(ValueError, match="left out with privacy"):
        nefele.GTVRegressor(chain, privacy=private).fit(X, y, node_ids=ids, signal=half)


def test_a_choice_of_alpha_sees_signals_in_fits_and_labels_in_scores():
    """Fold by fold the same as fits by hand."""
    X, y, ids = network()
    signal = np.where(np.arange(len(y)) % 3 == 0, y + 2.0, np.nan)
    options = {"penalty": "squared_l2", "tol": 1e-13, "explainable": 3.0}
    search = nefele.GTVRegressorCV(nefele.graphs.chain(6), alphas=[1.0, 0.1], cv=2, **options)
    search.fit(X, y, node_ids=ids, signal=signal)

    def by_hand(alpha, rows=slice(None)):
        model = nefele.GTVRegressor(nefele.graphs.chain(6), alpha=alpha, **options)
        return model.fit(X[rows], y[rows], node_ids=ids[rows], signal=signal[rows])

    for k, (train, held) in enumerate(nefele.WithinNodeKFold(2).split(X, None, ids)):
        for j, alpha in enumerate([1.0, 0.1]):
            said = by_hand(alpha, train).predict(X[held], node_ids=ids[held])
            score = search.cv_results_[f"split{k}_test_score"][j]
            assert score == pytest.approx(-np.mean((said - y[held]) ** 2), rel=1e-6)
    same = by_hand(search.alpha_)
    np.testing.assert_allclose(search.coef_, same.coef_, atol=1e-6)
    free = nefele.GTVRegressorCV(nefele.graphs.chain(6), alphas=[1.0, 0.1], cv=2, **options)
    free.set_params(explainable=0.0).fit(X, y, node_ids=ids, signal=signal)
    assert search.baseline_scores_["own"] < free.baseline_scores_["own"]  # signals are off by 2
    assert nefele.explain(search, 2).row_frame(40)["signal"].any()


def test_a_choice_of_alpha_for_classes_takes_probabilities():
    X, y, ids = network()
    search = nefele.GTVClassifierCV(
        nefele.graphs.chain(6), penalty="l2", alphas=[0.1], cv=2, explainable=50.0
    )
    said = np.where(np.arange(len(y)) % 2 == 0, 0.9, np.nan)
    near = search.fit(X, y > np.median(y), node_ids=ids, signal=said).predict_proba(X, node_ids=ids)
    free = search.set_params(explainable=0.0).fit(X, y > np.median(y), node_ids=ids, signal=said)
    away = free.predict_proba(X, node_ids=ids)
    assert np.abs(near[::2, 1] - 0.9).mean() < 0.5 * np.abs(away[::2, 1] - 0.9).mean()


def test_signals_go_with_a_penalty_by_name():
    X, y, ids = network()
    search = nefele.GTVRegressorCV(nefele.graphs.chain(6))
    with pytest.raises(ValueError, match="signal must go with a penalty by name"):
        search.fit(X, y, node_ids=ids, signal=y)
    assert not hasattr(search, "coef_")
    private = Privacy(1.0, 1e-6, bounds=Bounds(x=3.0, y=(-9, 9)))
    search = nefele.GTVRegressorCV(nefele.graphs.chain(6), penalty="l2", privacy=private)
    with pytest.raises(ValueError, match="left out with privacy"):
        search.fit(X, y, node_ids=ids, signal=y)


def test_cost_is_counted_also_when_the_work_fails():
    def fail():
        while processor_seconds() < 0.05 + before:
            np.linalg.svd(np.eye(50))
        raise RuntimeError

    before = processor_seconds()
    with pytest.raises(RuntimeError), measure_cost() as cost:
        fail()
    assert cost.cpu_seconds > 0
    assert cost.watt_hours == pytest.approx(cost.cpu_seconds * 15 / 3600)
    assert Cost(3600.0, watts=10.0).watt_hours == 10.0
    with pytest.raises(ValueError, match="watts"), measure_cost(-1.0):
        pass
