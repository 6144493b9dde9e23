"""Pictures of residuals and of the nodes' deviations: what they show."""

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import norm

import nefele
from nefele import GTVClassifier, GTVRegressor, GTVRegressorCV, graphs, plot_residuals
from nefele.estimators import residual_plots

matplotlib.use("agg")
CENTRE = {"penalty": "squared_l2", "hub": 1.0, "alpha": 0.1}


def made(n=12, rows=20, seed=0, loud=None):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n), rows)
    X = rng.normal(size=(len(ids), 2)) + 3
    noise = np.where(ids == loud, 4.0, 1.0) * rng.normal(size=len(ids))
    return X, X[:, 0] + rng.normal(size=n)[ids] + noise, np.array([f"n{i}" for i in ids])


def points(ax):
    return np.asarray(ax.collections[0].get_offsets())


def test_residuals_against_predictions():
    X, y, ids = made()
    model = GTVRegressor(**CENTRE).fit(X, y, node_ids=ids)
    ax = Figure().subplots()
    assert plot_residuals(model, "fitted", ax) is ax
    predicted = model.predict(X, node_ids=ids)
    np.testing.assert_allclose(points(ax), np.column_stack([predicted, y - predicted]))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("prediction", "residual")


def test_quantiles_of_the_residuals():
    X, y, ids = made()
    model = GTVRegressor(**CENTRE).fit(X, y, node_ids=ids)
    left = y - model.predict(X, node_ids=ids)
    ax = plot_residuals(model, "normal", Figure().subplots())
    found = points(ax)
    np.testing.assert_allclose(found[:, 1], np.sort(left))
    shares = (np.arange(len(y)) + 0.5) / len(y)
    np.testing.assert_allclose(norm.cdf(found[:, 0]), shares)
    x, line = ax.lines[0].get_data()
    np.testing.assert_allclose(line, left.mean() + left.std() * np.asarray(x))


def test_deviations_from_the_centre_and_without_one_from_the_mean():
    X, y, ids = made()
    model = GTVRegressor(**CENTRE).fit(X, y, node_ids=ids)
    ax = plot_residuals(model, "effects", Figure().subplots(), coefficient="x0")
    np.testing.assert_allclose(
        points(ax)[:, 1], np.sort(model.coef_[:, 0] - model.centre_coef_[0]), atol=1e-12
    )
    assert ax.get_ylabel() == "deviation of x0"
    at_mean = model.intercept_ + model.coef_ @ X.mean(axis=0)
    centre = model.centre_intercept_ + model.centre_coef_ @ X.mean(axis=0)
    ax = plot_residuals(model, "effects", Figure().subplots())
    np.testing.assert_allclose(points(ax)[:, 1], np.sort(at_mean - centre), atol=1e-12)
    ring = GTVRegressor(graphs.chain(12), alpha=0.1).fit(X, y, node_ids=np.repeat(range(12), 20))
    own = ring.coef_[:, 1]
    ax = plot_residuals(ring, "effects", Figure().subplots(), coefficient="x1")
    np.testing.assert_allclose(points(ax)[:, 1], np.sort(own - own.mean()), atol=1e-12)


def test_a_loud_node_is_above_the_band_and_named():
    X, y, ids = made(loud=7)
    model = GTVRegressorCV(features="linear").fit(X, y, node_ids=ids)
    ax = plot_residuals(model, "nodes", Figure().subplots())
    assert [text.get_text() for text in ax.texts] == ["n7"]
    left = y - model.predict(X, node_ids=ids)
    own = np.sqrt(np.mean(left[ids == "n7"] ** 2))
    assert points(ax)[:, 1].max() == pytest.approx(own) and set(points(ax)[:, 0]) == {20.0}
    upper = max(line.get_ydata().max() for line in ax.lines)
    assert (points(ax)[:, 1] > upper).sum() == 1


def test_classes_and_counts_have_the_residuals_of_pearson():
    X, y, ids = made()
    model = GTVClassifier(**CENTRE).fit(X, y > y.mean(), node_ids=ids)
    ax = plot_residuals(model, "fitted", Figure().subplots())
    p = model.predict_proba(X, node_ids=ids)[:, 1]
    expected = ((y > y.mean()) - p) / np.sqrt(p * (1 - p))
    np.testing.assert_allclose(points(ax), np.column_stack([p, expected]), rtol=1e-6)
    counts = np.random.default_rng(0).poisson(np.exp(0.2 * y.clip(-3, 5)))
    model = GTVRegressor(**CENTRE, loss="poisson").fit(X, counts, node_ids=ids)
    ax = plot_residuals(model, "fitted", Figure().subplots())
    mean = model.predict(X, node_ids=ids)
    np.testing.assert_allclose(points(ax)[:, 1], (counts - mean) / np.sqrt(mean))
    assert ax.get_ylabel() == "Pearson residual"


def test_all_four_in_new_axes_or_in_given_ones():
    X, y, ids = made()
    model = GTVRegressor(**CENTRE).fit(X, y, node_ids=ids)
    four = plot_residuals(model)
    assert len({ax.get_ylabel() for ax in four}) == 3  # two of residuals
    matplotlib.pyplot.close(four[0].figure)
    given = Figure().subplots(2, 2)
    assert list(plot_residuals(model, ax=given)) == list(given.ravel())


def test_many_rows_are_thinned_always_in_the_same_way(monkeypatch):
    X, y, ids = made()
    model = GTVRegressor(**CENTRE).fit(X, y, node_ids=ids)
    monkeypatch.setattr(residual_plots, "_MOST_POINTS", 50)
    first, again = (points(plot_residuals(model, "normal", Figure().subplots())) for _ in "ab")
    assert len(first) == 50
    np.testing.assert_array_equal(first, again)


def test_bad_input_is_refused(tmp_path):
    X, y, ids = made()
    model = GTVRegressor(**CENTRE).fit(X, y, node_ids=ids)
    with pytest.raises(ValueError, match="kind of picture"):
        plot_residuals(model, "box")
    with pytest.raises(ValueError, match="four Axes"):
        plot_residuals(model, ax=Figure().subplots(1, 2))
    with pytest.raises(ValueError, match="one matplotlib Axes"):
        plot_residuals(model, "fitted", ax=3)
    with pytest.raises(ValueError, match="coefficient"):
        plot_residuals(model, "effects", coefficient="x7")
    common = GTVRegressor(penalty="squared_l2", hub=1.0, scale=[0.0, 1.0, 1.0], alpha=0.1)
    with pytest.raises(ValueError, match="'x0' is common"):
        plot_residuals(common.fit(X, y, node_ids=ids), "effects", coefficient="x0")
    model.save(tmp_path / "bare")
    with pytest.raises(ValueError, match="training rows"):
        plot_residuals(nefele.load(tmp_path / "bare"))
    three = GTVClassifier(**CENTRE).fit(X, np.digitize(y, [2, 4]), node_ids=ids)
    with pytest.raises(ValueError, match="two classes"):
        plot_residuals(three)
