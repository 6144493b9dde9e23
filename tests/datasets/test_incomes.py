import csv
from importlib import resources

import numpy as np
import pytest

from nefele.datasets import load_incomes, load_states, split_incomes


@pytest.fixture(scope="module")
def incomes():
    return load_incomes()


def test_rows_are_states_by_years(incomes):
    assert incomes.X.shape == (48 * 81, 2) and len(incomes.y) == 48 * 81
    assert (incomes.years.reshape(48, 81) == np.arange(1929, 2010)).all()
    assert incomes.node_ids.tolist() == np.repeat(incomes.graph.ids, 81).tolist()
    states = load_states().graph
    assert incomes.graph.ids.tolist() == states.ids.tolist()
    assert (incomes.graph.head == states.head).all() and (incomes.graph.tail == states.tail).all()


def test_the_target_is_relative_to_the_mean_of_each_year(incomes):
    np.testing.assert_allclose(incomes.y.reshape(48, 81).mean(axis=0), 0, atol=1e-12)
    file = resources.files("nefele.datasets") / "data" / "incomes.csv"
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    ratio = float(rows[1]["2009"]) / float(rows[0]["2009"])
    at = incomes.y.reshape(48, 81)[:2, -1]
    assert np.exp(at[1] - at[0]) == pytest.approx(ratio)


def test_time_goes_from_minus_one_to_one(incomes):
    time = incomes.X[:81]
    assert time[0].tolist() == [-1, 1] and time[-1].tolist() == [1, 1]


def test_splits(incomes):
    train = split_incomes(incomes, seed=3, n_train=5, n_bare=10).reshape(48, 81)
    count = train.sum(axis=1)
    assert sorted(set(count.tolist())) == [0, 5] and (count == 0).sum() == 10
    assert (train.ravel() != split_incomes(incomes, seed=4, n_train=5, n_bare=10)).any()
    for bad in ({"n_train": 81}, {"n_bare": 48}, {"n_train": 0}, {"n_bare": -1}):
        with pytest.raises(ValueError, match=r"n_train|n_bare"):
            split_incomes(incomes, seed=0, **bad)
