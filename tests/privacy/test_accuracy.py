"""What is made of noisy moments: post-processing that costs nothing and helps."""

import numpy as np
import pytest

import nefele
from nefele.privacy import Bounds, Privacy
from nefele.privacy.statistics import CONSTANT, drawn_together

N, M = 150, 30
SLOPES = np.array([1.0, -1.5, 0.5])


def clinics(seed):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(N), M)
    X = rng.uniform(-1, 1, (len(ids), 3))
    return X, X @ SLOPES + rng.normal(size=len(ids)), ids


def error(model, X, y, ids):
    return float(np.mean((model.predict(X, node_ids=ids) - y) ** 2))


@pytest.mark.parametrize("seed", range(3))
def test_many_small_nodes_that_are_alike_gain_by_sharing_at_epsilon_3(seed):
    X, y, ids = clinics(seed)
    held = clinics(seed + 100)
    bounds = Bounds(x=[(-1, 1)] * 3, y=(-4, 4))
    promise = Privacy(3.0, 1e-6, bounds=bounds, seed=seed, insecure_testing=True)
    options = {"penalty": "squared_l2", "alpha": 3.0}
    private = nefele.GTVRegressor(nefele.graphs.star(N), privacy=promise, **options)
    own = nefele.GTVRegressor(nefele.graphs.star(N), penalty="squared_l2", alpha=0.0)
    found = error(private.fit(X, y, node_ids=ids), *held)
    assert found < 0.96 * error(own.fit(X, y, node_ids=ids), *held)


def test_nodes_that_differ_by_more_than_noise_stay_apart():
    rng = np.random.default_rng(0)
    true = rng.normal(size=(40, 3, 3))
    true = true + true.transpose(0, 2, 1)
    true[:, -1, -1] = CONSTANT**2
    found = drawn_together(true, np.full(40, 1e-3))
    np.testing.assert_allclose(found, true, atol=1e-4)


def test_it_is_nearer_to_the_truth_and_keeps_what_is_known():
    rng = np.random.default_rng(1)
    true = 1.0 + 0.2 * rng.normal(size=(200, 2, 2))
    true[:, -1, -1] = CONSTANT**2
    spread = rng.uniform(0.2, 1.0, 200)
    noise = true + spread[:, None, None] * rng.normal(size=true.shape)
    noise[:, -1, -1] = CONSTANT**2
    found = drawn_together(noise, spread)
    assert ((found - true) ** 2).mean() < 0.3 * ((noise - true) ** 2).mean()
    assert (found[:, -1, -1] == CONSTANT**2).all()
    few = noise[:3]
    assert drawn_together(few, spread[:3]) is few
