"""Mutual information of a secret with what was sent."""

import matplotlib
import numpy as np
import pytest
from scipy.stats import binom

from nefele import Graph, LocalData, Problem
from nefele.privacy.audit import mutual_information
from nefele.privacy.audit.information import ksg
from nefele.runtime import relax_messages

matplotlib.use("agg")


@pytest.mark.parametrize("r", [0.0, 0.5, 0.9])
def test_the_estimator_on_normal_pairs(r):
    rng = np.random.default_rng(0)
    x = rng.normal(size=5000)
    y = r * x + np.sqrt(1 - r * r) * rng.normal(size=5000)
    assert ksg(x, y) == pytest.approx(-0.5 * np.log(1 - r * r), abs=0.05)


def test_information_falls_as_noise_rises():
    rng = np.random.default_rng(0)
    secret, noise = rng.normal(size=400), rng.normal(size=400)
    found = [mutual_information(secret, secret + s * noise) for s in (0.1, 0.3, 1.0, 3.0, 30.0)]
    values = [float(one.values[0]) for one in found]
    assert values[:4] == sorted(values[:4], reverse=True)
    assert [one.leaks for one in found][:3] == [True] * 3 and not found[-1].leaks
    for value, s, one in zip(values, (0.1, 0.3, 1.0), found, strict=False):
        assert abs(value - 0.5 * np.log(1 + 1 / s**2)) < 4 * one.errors[0] + 0.05


@pytest.mark.parametrize("p", [1, 5])
def test_the_level_is_kept_on_independent_noise(p):
    """Of 100 draws about 5 may be called a leak."""
    called = 0
    for seed in range(100):
        rng = np.random.default_rng([seed, p])
        secret, sent = rng.normal(size=60), rng.normal(size=(60, p))
        called += mutual_information(secret, sent, permutations=39, seed=seed).leaks
    assert called <= binom.ppf(0.999, 100, 0.05)


def test_the_level_over_rounds_is_that_of_all_of_them():
    called = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sent = rng.normal(size=(4, 50, 2))
        called += mutual_information(rng.normal(size=50), sent, seed=seed).leaks
    assert called <= binom.ppf(0.999, 40, 0.05)


def trials(sigma, rounds=3, n=150):
    """FedRelax with perturbed updates; the secret is the target of one row of node 0."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 4))
    graph = Graph.from_edges([(0, 1), (1, 2)])
    secret = rng.normal(size=n) * 3
    sent = np.empty((rounds, n, 2))
    for t, value in enumerate(secret):
        y[0, 0] = value
        data = LocalData.from_list(list(zip(X, y, strict=True)))
        problem = Problem(graph, data, penalty="squared_l2", lam=1.0)
        run = relax_messages(problem, rounds, noise=sigma, seed=t, transcript=True)
        own = [m.payload.ravel() for m in run.ledger.transcript if m.sender == 0]
        sent[:, t] = own[:rounds]
    return secret, sent


def test_what_perturbed_updates_leak_falls_with_sigma():
    found = [mutual_information(*trials(sigma)) for sigma in (0.02, 0.1, 50.0)]
    most = [float(one.values.max()) for one in found]
    assert most[0] > most[1] > most[2]
    assert found[0].leaks and found[1].leaks and not found[2].leaks
    assert str(found[0]).startswith("Round ") and len(found[0].values) == 3
    ax = found[0].plot()
    assert len(ax.get_xticks()) == 3


def test_a_secret_of_two_values():
    rng = np.random.default_rng(0)
    secret = (rng.random(200) < 0.5).astype(float)
    assert mutual_information(secret, secret + 0.3 * rng.normal(size=200)).leaks
    assert not mutual_information(secret, rng.normal(size=200)).leaks


def test_what_never_changes_tells_nothing():
    secret = np.random.default_rng(0).normal(size=50)
    assert not mutual_information(secret, np.ones(50)).leaks


@pytest.mark.parametrize(
    ("secret", "sent", "text"),
    [
        (np.zeros(10), np.zeros(10), "at least 30 trials"),
        (np.zeros(40), np.zeros(39), "sent must have shape"),
        (np.zeros(40), np.zeros((2, 2, 40, 1)), "sent must have shape"),
        (np.full(40, np.nan), np.zeros(40), "secret, trial 0, must be finite"),
        (np.zeros(40), np.full(40, np.inf), "sent, round 0, trial 0, must be finite"),
    ],
)
def test_bad_input(secret, sent, text):
    with pytest.raises(ValueError, match=text):
        mutual_information(secret, sent)
