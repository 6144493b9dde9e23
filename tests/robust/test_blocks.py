"""A stochastic block model of 40 nodes with 8 captured ones, under every attack of the list."""

from dataclasses import replace

import numpy as np
import pytest

from nefele import LocalData
from nefele.graphs import sbm
from nefele.losses import Squared
from nefele.robust import Backdoor
from nefele.runs.attacking import Scene, attacks, defences, play
from tests.robust.networks import honest_error

CAPTURED = [0, 1, 2, 3, 20, 21, 22, 23]
ROWS = 20
BYZANTINE = ("constant", "random", "sign flipped", "alie", "inner product")


def scene(seed, unspanned=False):
    """Two clusters; with `unspanned` a third feature that is zero in all clean rows."""
    rng = np.random.default_rng(seed)
    true = np.repeat([[2.0, 1.0], [-1.0, 2.0]], 20, axis=0)
    if unspanned:
        true = np.column_stack([true, np.zeros(40)])
    rows = []
    for i in range(40):
        X = rng.standard_normal((ROWS, true.shape[1]))
        X[:, 2:] = 0.0
        rows.append((X, X @ true[i] + 0.3 * rng.standard_normal(ROWS)))
    trigger = np.zeros(true.shape[1])
    trigger[-1] = 1.0 if unspanned else 3.0
    door = Backdoor(CAPTURED, trigger=trigger, label=20.0, seed=seed)
    honest = np.setdiff1d(np.arange(40), CAPTURED)

    def opened(w):
        z = np.concatenate([door.stamp(rows[i][0]) @ w[i] for i in honest])
        y = np.concatenate([rows[i][1] for i in honest])
        return float(np.mean(np.abs(z - door.label) < np.abs(z - y)))

    def judge(w):
        return honest_error(w[:, :2], true[:, :2], CAPTURED)

    lam = {"l2": 0.012, "huber": 0.012, "squared_l2": 0.1}
    graph, data = sbm([20, 20], 0.5, 0.02, seed=seed), LocalData.from_list(rows)
    ridge = Squared(l2=1e-3 if unspanned else 0.0)
    return Scene(graph, data, ridge, lam, CAPTURED, judge, door, opened, seed=seed)


def check(seed, names=None):
    """Under l2 the honest error stays within twice the attack-free one, and within the bound."""
    at, shield = scene(seed), defences()["l2"]
    found = attacks(at)
    clean = play(at, found["nobody"], shield)
    for name in list(found)[1:] if names is None else names:
        outcome = play(at, found[name], shield)
        assert outcome.error <= 2 * clean.error, (seed, name)
        assert outcome.moved <= outcome.bound, (seed, name)


def test_l2_holds_against_poisoned_rows_and_a_constant():
    check(0, ["labels flipped", "labels shifted", "features", "backdoor", "constant"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_l2_holds_against_every_attack(seed):
    check(seed)


def test_the_quadratic_penalty_without_a_defence_fails():
    at = replace(scene(0), relaxed=30)
    found, shield = attacks(at), defences()["none (quadratic)"]
    clean = play(at, found["nobody"], shield)
    for name in ("labels flipped", "labels shifted", *BYZANTINE):
        assert play(at, found[name], shield).error > 2 * clean.error, name


@pytest.mark.parametrize("shield", ["none (quadratic)", "l2", "huber"])
def test_a_backdoor_on_an_unspanned_feature_is_not_stopped(shield):
    at = scene(0, unspanned=True)
    outcome = play(at, attacks(at)["backdoor"], defences()[shield])
    assert outcome.opened > 0.6
    assert play(at, attacks(at)["nobody"], defences()[shield]).opened == 0.0


@pytest.mark.parametrize("shield", ["median", "geometric median", "krum"])
def test_it_is_stopped_where_most_neighbours_are_honest_and_one_combines_them(shield):
    """The combination of mostly honest neighbours does not know the trigger."""
    at = replace(scene(0, unspanned=True), relaxed=20)
    assert play(at, attacks(at)["backdoor"], defences()[shield]).opened < 0.1


@pytest.mark.parametrize("shield", list(defences()))
def test_the_same_seed_gives_the_same_outcome(shield):
    at = replace(scene(1), relaxed=5, rounds=20)
    first, again = (play(at, attacks(at)["random"], defences()[shield]) for _ in range(2))
    assert np.array_equal(first.w, again.w) and np.isfinite(first.w).all()
