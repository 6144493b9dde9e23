"""Reports of fitted models, from Python."""

import numpy as np
import pytest

import nefele
from nefele.estimators.reporting import view_of
from nefele.report.view import check_view


@pytest.fixture(scope="module")
def states():
    return nefele.datasets.load_states()


def fitted(model, states):
    return model.fit(states.X[:, :2], states.y, node_ids=states.node_ids)


def test_a_chosen_coupling_with_the_errors_of_its_verdict(states, tmp_path):
    model = fitted(nefele.GTVRegressorCV(states.graph), states)
    view = view_of(model.best_estimator_, model)
    check_view(view)
    assert view.verdict == model.verdict_.text() and view.scores == model.verdict_.scores
    assert ("Coupling", model.coupling_) in view.facts
    place = {name: k for k, name in enumerate(view.nodes)}
    at = [place[name] for name in model.verdict_.nodes]
    np.testing.assert_array_equal(view.node_error[0, at], model.verdict_.coupled)
    np.testing.assert_array_equal(view.coef[0, :, :2], model.coef_)
    model.report(tmp_path / "r.html", title="The states")
    assert "<title>The states</title>" in (tmp_path / "r.html").read_text()


def test_a_path_has_its_models_at_every_alpha(states, tmp_path):
    model = fitted(nefele.GTVRegressorCV(states.graph, penalty="l2", n_alphas=4), states)
    seen = {}

    def kept(view, path):
        seen["view"] = view

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nefele.estimators.reporting.write_report", kept)
        model.report(tmp_path / "r.html")
    view = seen["view"]
    check_view(view)
    np.testing.assert_array_equal(view.alphas, model.alphas_)
    np.testing.assert_array_equal(view.coef[view.chosen, :, :2], model.coef_)
    np.testing.assert_allclose(view.cv_error, -model.cv_results_["mean_test_score"])
    counts = view.clusters.max(axis=1) + 1
    np.testing.assert_array_equal(counts, model.cv_results_["n_clusters"])


def test_a_given_alpha_says_that_nothing_was_held_out(states, tmp_path):
    model = fitted(nefele.GTVRegressor(states.graph, alpha=0.01), states)
    view = view_of(model)
    check_view(view)
    assert "No rows were held out" in view.verdict and np.isnan(view.own_error).all()
    model.report(tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size > 10_000


def test_classes_have_parameters_of_their_own(tmp_path):
    rng = np.random.default_rng(0)
    ids, X = np.repeat(np.arange(4), 20), rng.normal(size=(80, 2))
    lines = X @ rng.normal(size=(2, 3)) + rng.gumbel(size=(80, 3))
    y = np.array(["a", "b", "c"])[np.argmax(lines, axis=1)]
    model = nefele.GTVClassifier(nefele.graphs.chain(4), alpha=0.1).fit(X, y, node_ids=ids)
    view = view_of(model)
    check_view(view)
    assert view.parameters[:4] == ["x0 [a]", "x1 [a]", "intercept [a]", "x0 [b]"]
    model.report(tmp_path / "r.html", positions={k: (k, 0.0) for k in range(4)})


def test_bad_places_and_folders_are_refused_and_nothing_is_written(states, tmp_path):
    model = fitted(nefele.GTVRegressor(states.graph, alpha=0.01), states)
    with pytest.raises(ValueError, match="folder of a report"):
        model.report(tmp_path / "no" / "r.html")
    with pytest.raises(ValueError, match="positions must hold every node id"):
        model.report(tmp_path / "r.html", positions={"Ohio": (0, 0)})
    assert not any(tmp_path.iterdir())


def test_a_model_that_was_read_again_has_its_report(states, tmp_path):
    fitted(nefele.GTVRegressor(states.graph, alpha=0.01), states).save(tmp_path / "m.nefele")
    again = nefele.load(tmp_path / "m.nefele")
    again.report(tmp_path / "r.html")
    assert (tmp_path / "r.html").is_file()
