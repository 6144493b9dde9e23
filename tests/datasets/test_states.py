import csv
from importlib import resources

import numpy as np
import pytest

from nefele.cli._demo_fits import fit_own, fit_pooled, node_mse
from nefele.datasets import load_states, split_states


@pytest.fixture(scope="module")
def states():
    return load_states()


def test_shapes(states):
    assert states.graph.n_nodes == 48
    assert states.graph.n_edges == 107
    assert states.X.shape == (816, 5) == (len(states.y), len(states.feature_names))
    assert np.isfinite(states.X).all() and np.isfinite(states.y).all()


def test_each_state_has_each_year_once(states):
    years = states.years.reshape(48, 17)
    assert (years == np.arange(1970, 1987)).all()
    assert states.node_ids.tolist() == np.repeat(states.graph.ids, 17).tolist()


def test_features_are_standardised(states):
    logs = np.column_stack([states.X[:, :3], states.y])
    np.testing.assert_allclose(logs.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(logs.std(axis=0), 1, rtol=1e-12)
    assert (states.X[:, 4] == 1).all()


def test_figures_of_alabama_1970(states):
    row = _read("states.csv")[0]
    assert row == {
        "state": "Alabama",
        "year": "1970",
        "gsp": "28418",
        "public_capital": "15032.67",
        "private_capital": "35793.8",
        "employment": "1010.5",
        "unemployment": "4.7",
    }
    assert states.X[0, 3] == pytest.approx(0.47)


@pytest.mark.parametrize(
    ("state", "neighbours"),
    [
        ("Maine", "New Hampshire"),
        ("Rhode Island", "Connecticut, Massachusetts"),
        ("South Carolina", "Georgia, North Carolina"),
        ("Florida", "Alabama, Georgia"),
        ("Washington", "Idaho, Oregon"),
        ("California", "Arizona, Nevada, Oregon"),
        ("Michigan", "Indiana, Ohio, Wisconsin"),
        ("Delaware", "Maryland, New Jersey, Pennsylvania"),
        (
            "Tennessee",
            "Alabama, Arkansas, Georgia, Kentucky, Mississippi, Missouri, North Carolina, Virginia",
        ),
        (
            "Missouri",
            "Arkansas, Illinois, Iowa, Kansas, Kentucky, Nebraska, Oklahoma, Tennessee",
        ),
    ],
)
def test_known_borders(states, state, neighbours):
    assert states.graph.neighbors(state) == neighbours.split(", ")


def test_graph_is_connected_with_unit_weights(states):
    assert states.graph.components.max() == 0
    assert (states.graph.weight == 1).all()


def test_files_name_the_same_states(states):
    named = {name for row in _read("borders.csv") for name in row.values()}
    assert named == set(states.graph.ids.tolist())


def test_split_partitions_the_years_of_each_state(states):
    train, test = split_states(states, seed=3)
    assert train.ids.tolist() == test.ids.tolist() == states.graph.ids.tolist()
    assert set(train.counts.tolist()) == {6} and set(test.counts.tolist()) == {11}
    for i, state in enumerate(states.graph.ids):
        parts = [data.y[data.ptr[i] : data.ptr[i + 1]] for data in (train, test)]
        whole = states.y[states.node_ids == state]
        assert sorted(np.concatenate(parts)) == sorted(whole)


def test_split_draws_one_stream_for_all_states(states):
    train, _ = split_states(states, seed=0)
    random = np.random.RandomState(0)
    for i in range(48):
        rows = 17 * i + random.permutation(17)[:6]
        assert (train.y[6 * i : 6 * i + 6] == states.y[rows]).all()


def test_split_depends_on_the_seed_alone(states):
    first, again, other = (split_states(states, seed)[0] for seed in (1, 1, 2))
    assert (first.X == again.X).all()
    assert (first.X != other.X).any()


@pytest.mark.parametrize(("seed", "n_train"), [(-1, 6), (0.5, 6), (0, 0), (0, 17)])
def test_split_rejects_bad_input(states, seed, n_train):
    with pytest.raises(ValueError, match="must"):
        split_states(states, seed, n_train)


def test_own_data_and_pooled_errors(states):
    own, pooled = [], []
    for seed in range(5):
        train, test = split_states(states, seed)
        own.append(node_mse(fit_own(train), test).mean())
        pooled.append(node_mse(fit_pooled(train), test).mean())
    # Published with two to three digits: .0120 and .0073.
    assert np.mean(own) == pytest.approx(0.0120, rel=2e-3)
    assert np.mean(pooled) == pytest.approx(0.0073, rel=5e-3)


def _read(name):
    text = (resources.files("nefele.datasets") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
