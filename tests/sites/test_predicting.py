"""FedRelax between sites with models of any kind: the same as in one process."""

import hashlib

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

from nefele.agnostic import FedRelaxClassifier, FedRelaxRegressor
from nefele.estimators.design import Rows
from nefele.sites.carriers.memory import Hub
from nefele.sites.config import Model, SiteConfig
from nefele.sites.consent import ConsentError, Guard, consent_of
from nefele.sites.example import coast
from nefele.sites.learning import Learner
from nefele.sites.links import network
from nefele.sites.members import Target
from nefele.sites.models import keep, maker
from nefele.sites.predicting import Predictor
from nefele.sites.results import answers
from nefele.sites.rows import read_shared
from tests.sites.together import by_sites, in_process

HASH = "0" * 64


def agreed(**changes):
    usual = {
        "method": "predictions",
        "penalty": "squared_l2",
        "shared": HASH,
        "standardize": "none",
        "weighting": "nodes",
        "alpha": 0.3,
        "tol": 1e-6,
        "rounds": 100,
    }
    return coast(**usual | changes)


def rows_of(federation, empty=(), seed=0):
    """By member: rows within the bounds, near their middle."""
    rng, found, classes = np.random.default_rng(seed), {}, federation.target.classes
    for member in federation.members:
        ids = np.repeat([n for n in member.nodes if n not in empty], 12)
        X = np.column_stack([rng.uniform(0, 4, len(ids)), rng.uniform(999, 1001, len(ids))])
        y = X[:, 0] - (X[:, 1] - 1000) + 3 * (ids == "kemi") + 0.1 * rng.normal(size=len(ids))
        if classes:
            code = np.clip(y, 0, len(classes) - 0.5).astype(int)
            y = 2.0 * code - 1 if len(classes) == 2 else code.astype(float)
        found[member.name] = Rows(X, y, ids, np.ones(len(y)))
    return found


def shared_rows(m=15):
    rng = np.random.default_rng(1)
    return np.column_stack([rng.uniform(0, 4, m), rng.uniform(999, 1001, m)])


def predictors(federation, make, rows=None, shared=None):
    rows = rows or rows_of(federation)
    shared = shared_rows() if shared is None else shared
    return {
        name: Predictor(Learner(federation, name, own), make, shared) for name, own in rows.items()
    }


def programs(*args, **kwargs):
    return {name: one.run() for name, one in predictors(*args, **kwargs).items()}


def at_once(federation, estimator, rows, kind=FedRelaxRegressor, **changes):
    """The same in one process, from all rows; classes by their names."""
    y = np.concatenate([own.y for own in rows.values()])
    if federation.target.classes:
        code = (y > 0) if len(federation.target.classes) == 2 else y
        y = np.array(federation.target.classes)[code.astype(int)]
    edges = federation.graph()
    model = kind(
        estimator, graph=edges, alpha=federation.alpha, X_shared=shared_rows(),
        rounds=federation.rounds, tol=federation.tol, random_state=0, **changes,
    )  # fmt: skip
    X = np.concatenate([own.X for own in rows.values()])
    ids = np.concatenate([own.node_ids for own in rows.values()])
    return model.fit(X, y, node_ids=ids)


@pytest.mark.parametrize("empty", [(), ("inari",), ("kemi", "inari"), ("oulu-1", "oulu-2")])
def test_ridge_models_are_those_of_one_process(empty):
    federation = agreed()
    rows = rows_of(federation, empty)
    whole = at_once(federation, Ridge(), rows)
    found = in_process(federation, programs(federation, Ridge, rows))
    for learnt in found.values():
        assert learnt.fitted.rounds == whole.rounds_
        assert learnt.fitted.change == pytest.approx(whole.history_[-1].change, rel=1e-6)
        assert learnt.fitted.converged(federation.tol) == whole.converged_
        assert (
            learnt.fitted.certificate is None
            and learnt.fitted.reason == "no certificate: any model"
        )
        for node, model in learnt.models.items():
            other = whole.estimators_[node]
            np.testing.assert_allclose(model.coef_, other.coef_, rtol=0, atol=1e-12)
            answer = other.predict(shared_rows())
            mine = learnt.shared[learnt.nodes.index(node)]
            np.testing.assert_allclose(mine, answer, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("classes", [("warm", "cold"), ("warm", "cold", "mild")])
def test_classifiers_are_those_of_one_process(classes):
    loss = "logistic" if len(classes) == 2 else "multinomial"
    federation = agreed(
        task="classification", loss=loss, l2=1e-3, target=Target("tmax", classes=classes), rounds=5
    )
    rows = rows_of(federation)
    tree = DecisionTreeClassifier(max_depth=2, random_state=3)
    with pytest.warns(UserWarning, match="stopped after 5 rounds"):
        whole = at_once(federation, tree, rows, FedRelaxClassifier)
    found = in_process(federation, programs(federation, lambda: tree, rows))
    for learnt in found.values():
        assert learnt.classes.tolist() == sorted(classes)
        for node, answer in zip(learnt.nodes, learnt.shared, strict=True):
            other = whole.estimators_[node].predict_proba(shared_rows())
            seen = np.searchsorted(learnt.classes, whole.estimators_[node].classes_)
            np.testing.assert_allclose(answer[:, seen], other, rtol=0, atol=1e-12)


def forest():
    return RandomForestRegressor(5, max_depth=3)


def test_forests_over_the_driver_are_those_in_process_bit_for_bit(tmp_path):
    federation = agreed(rounds=4, standardize="bounds", weighting="rows", seed=7)
    near = in_process(federation, programs(federation, forest))
    hub = Hub(loss=0.1, duplicate=0.1, reorder=0.1, seed=2)
    far, drivers = by_sites(federation, programs(federation, forest), tmp_path, 15, hub)
    for name, learnt in near.items():
        assert np.array_equal(learnt.shared, far[name].shared)
        assert np.array_equal(learnt.scores.error, far[name].scores.error, equal_nan=True)
        assert learnt.fitted.change == far[name].fitted.change > federation.tol
        contents = {content for _, _, content in drivers[name].ledger.by_way}
        assert contents <= {"predictions", "sums"}


def test_a_stopped_site_goes_on_and_a_model_without_a_seed_is_refused(tmp_path):
    federation = agreed(rounds=3)
    first, _ = by_sites(federation, programs(federation, forest), tmp_path, 15)
    again, _ = by_sites(federation, programs(federation, forest), tmp_path, 15)
    assert all(np.array_equal(first[q].shared, again[q].shared) for q in first)
    other = programs(federation, lambda: RandomForestRegressor(5, random_state=99))
    with pytest.raises(ValueError, match="give the model a random_state"):
        by_sites(federation, other, tmp_path, 15)


def test_open_random_states_come_from_the_agreed_seed():
    federation = agreed(rounds=2, seed=7)
    found = in_process(federation, programs(federation, forest))
    states = {n: m.random_state for learnt in found.values() for n, m in learnt.models.items()}
    assert sorted(states.values()) == [7, 8, 9, 10]
    fixed = in_process(
        federation, programs(federation, lambda: forest().set_params(random_state=1))
    )
    assert {m.random_state for learnt in fixed.values() for m in learnt.models.values()} == {1}


def test_alpha_is_chosen_by_errors_at_all_sites_and_compared():
    federation = agreed(alpha="auto", alphas=(1.0, 0.1, 1e-3), folds=2, tol=1e-4)
    found = in_process(federation, programs(federation, Ridge))
    learnt = list(found.values())
    assert {one.alpha for one in learnt} <= {1.0, 0.1, 1e-3} and len({o.alpha for o in learnt}) == 1
    assert learnt[0].alphas.tolist() == [1.0, 0.1, 1e-3]
    assert np.array_equal(learnt[0].errors, learnt[1].errors) and (learnt[0].errors > 0).all()
    assert learnt[0].alpha == learnt[0].alphas[learnt[0].errors.argmin()]
    count = sum(one.scores.count.sum() for one in learnt)
    for k in (0, 2):
        total = sum(one.scores.error[k].sum() for one in learnt)
        assert learnt[0].everywhere[0, k] == pytest.approx(total / count)
    assert np.isnan(learnt[0].everywhere[:, 1]).all() and np.isnan(learnt[0].scores.error[1]).all()


def test_candidates_without_a_list_and_alpha_zero():
    federation = agreed(alpha="auto", n_alphas=4)
    grid = predictors(federation, Ridge)["oulu"].grid()
    assert len(grid) == 4 and (np.diff(grid) < 0).all()
    federation = agreed(alpha=0.0)
    rows = rows_of(federation, ("inari",))
    found = in_process(federation, programs(federation, Ridge, rows))
    own = Ridge().fit(rows["kemi"].X, rows["kemi"].y)
    assert np.array_equal(found["kemi"].models["kemi"].coef_, own.coef_)
    assert not found["inari"].shared.any() and found["kemi"].fitted.converged(0.0)


def test_weighting_by_rows_lets_nodes_with_many_rows_follow_less():
    rows = rows_of(agreed())
    kemi = rows["kemi"]
    rows["kemi"] = kemi.then(kemi).then(kemi)
    apart = []
    for weighting in ("nodes", "rows"):
        federation = agreed(weighting=weighting, tol=1e-9, rounds=300)
        found = in_process(federation, programs(federation, Ridge, rows))["kemi"]
        own = Ridge().fit(rows["kemi"].X, rows["kemi"].y).predict(shared_rows())
        apart.append(np.abs(found.shared[0] - own).max())
    assert apart[1] < 0.7 * apart[0]


def test_what_leaves_is_what_was_agreed():
    federation = agreed(rounds=5)
    items = {(i.content, i.to): i for i in consent_of(federation, "oulu", None, 15).items}
    assert set(items) == {("predictions", "kemi"), ("sums", "kemi")}
    item = items["predictions", "kemi"]
    assert item.numbers == 15 and item.times == 12
    assert "predictions at the 15 agreed rows of 1 node" in item.words
    text = consent_of(federation, "oulu", None, 15).text()
    assert "local models of any kind" in text and "certified" not in text
    guard = Guard(consent_of(federation, "oulu", None, 15))
    with pytest.raises(ConsentError, match="at most 15"):
        guard("predictions", "kemi", np.zeros((1, 16)))
    with pytest.raises(ConsentError, match="nobody agreed"):
        guard("parameters", "kemi", np.zeros((1, 3)))


def test_consent_is_enough_for_a_whole_run(tmp_path):
    federation = agreed(alpha="auto", alphas=(1.0, 0.1), folds=2, rounds=3, tol=1e-9)
    found, _ = by_sites(federation, programs(federation, Ridge), tmp_path, 15)
    assert {learnt.fitted.rounds for learnt in found.values()} == {3}


# -- files --------------------------------------------------------------------------------------


def shared_file(folder, text, federation=agreed):
    path = folder / "shared.csv"
    path.write_text(text, encoding="utf-8")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return federation(shared=digest), SiteConfig("kemi", shared=path)


def test_shared_rows_are_in_the_agreed_order(tmp_path):
    federation, config = shared_file(tmp_path, "pressure,wind\n1000,3\n990,4\n")
    assert read_shared(federation, config).tolist() == [[3.0, 1000.0], [4.0, 990.0]]
    assert read_shared(coast(), config).shape == (0, 2)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("wind,pressure\n3,1e6\n", r'"pressure" must be within the agreed 900 to 1100; got 1e\+06'),
        ("wind\n3\n", 'No column "pressure"'),
        ("wind,pressure,tmax\n3,1000,1\n", "and no others; got tmax"),
        ("wind,pressure\n", "at least one row"),
    ],
)
def test_shared_rows_that_do_not_fit_are_refused(tmp_path, text, match):
    federation, config = shared_file(tmp_path, text)
    with pytest.raises(ValueError, match=match):
        read_shared(federation, config)


def test_other_bytes_of_the_shared_rows_are_refused(tmp_path):
    federation, config = shared_file(tmp_path, "wind,pressure\n3,1000\n")
    config.shared.write_text("wind,pressure\n3.0,1000\n", encoding="utf-8")
    with pytest.raises(ValueError, match="must be the shared rows that all agreed to"):
        read_shared(federation, config)
    config.shared.unlink()
    with pytest.raises(ValueError, match="No file"):
        read_shared(federation, config)


def test_models_are_made_from_names_and_files(tmp_path):
    assert maker(Model("sklearn.linear_model.Ridge", parameters={"alpha": 3.0}))().alpha == 3.0
    path = tmp_path / "mine.py"
    path.write_text(
        "from sklearn.linear_model import Ridge\ndef make_model(a=1.0):\n  return Ridge(a)\n"
    )
    assert maker(Model(file=path, parameters={"a": 4.0}))().alpha == 4.0
    path.write_text("def make_model():\n  return 3\n")
    with pytest.raises(ValueError, match="must have fit and predict"):
        maker(Model(file=path))
    path.write_text("x = 1\n")
    with pytest.raises(ValueError, match="must have a function make_model"):
        maker(Model(file=path))
    for use, match in (
        ("sklearn.nothing.Ridge", "can be imported"),
        ("sklearn.svm.Rigde", "can be"),
    ):
        with pytest.raises(ValueError, match=match):
            maker(Model(use))
    with pytest.raises(ValueError, match="parameters of the model"):
        maker(Model("sklearn.linear_model.Ridge", parameters={"alhpa": 1}))


def test_models_of_scikit_learn_are_kept_for_rows_in_their_own_units(tmp_path):
    import skops.io

    federation = agreed(rounds=2, standardize="bounds")
    learnt = in_process(federation, programs(federation, forest))["oulu"]
    words = keep(tmp_path, learnt.models, learnt.scales.shift, learnt.scales.scale)
    assert words.startswith("stored")
    model = skops.io.load(tmp_path / "model-oulu-1.skops", trusted=["sklearn.tree._tree.Tree"])
    assert np.array_equal(model.predict(shared_rows()), learnt.shared[0])

    class Other(Ridge):
        pass

    words = keep(tmp_path, {"a/b": Other()}, np.zeros(2), np.ones(2))
    assert "cannot be without pickle" in words and not list(tmp_path.glob("*b.skops"))
    keep(tmp_path, {"../up": Ridge()}, np.zeros(2), np.ones(2))
    assert (tmp_path / "model-..%2Fup.skops").exists()


def test_answers_are_a_table():
    federation = agreed(rounds=2)
    learnt = in_process(federation, programs(federation, Ridge))["oulu"]
    table = answers(learnt)
    assert table.columns == ["row", "node", "prediction"] and table.height == 30
    assert table.row(16)[:2] == (2, "oulu-2") and table.row(16)[2] == learnt.shared[1, 1]


def test_links_know_how_many_rows_a_neighbour_has():
    assert network(agreed()).of("oulu").rows == {"kemi": 1}


def test_a_classifier_for_a_regression_is_refused():
    federation = agreed()
    with pytest.raises(ValueError, match="must be a regressor"):
        in_process(federation, programs(federation, LogisticRegression))
