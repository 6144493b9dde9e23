"""Which member of the family is taken, when counts vary more than Poisson's or rows depend."""

import numpy as np
import pytest

from nefele.mixed.columns import Table
from nefele.mixed.family import CORRELATED, INTERCEPTS, ONE, SLOPES, Family
from nefele.mixed.response import Classes, Counts, Numbers, extra_variance


def counts(seed, slope=0.0, n=60, rows=4, k=0.3, mean=2.0):
    """Counts of variance mean + k mean^2 whose levels differ by node, and perhaps whose slopes."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n), rows)
    X = rng.normal(size=(n * rows, 2))
    eta = mean + 0.3 * X[:, 0] + rng.normal(scale=0.8, size=n)[owner]
    eta += slope * rng.normal(size=n)[owner] * X[:, 0]
    y = rng.poisson(np.exp(eta) * rng.gamma(1 / k, k, size=len(eta))).astype(float)
    return Table(X, y, np.ones(len(y)), owner, n, True, np.zeros(2, dtype=bool))


def names(response=None, **made):
    found = [Family(counts(seed, **made), response or Counts()).choose() for seed in range(20)]
    return [best.name for best in found]


def test_levels_of_widely_spread_counts_are_all_that_is_personal():
    assert names().count(INTERCEPTS) >= 16


def test_slopes_of_widely_spread_counts_are_seen():
    found = names(slope=0.8, rows=10)
    assert sum(name in (SLOPES, CORRELATED) for name in found) >= 18


def test_a_few_large_counts_do_not_decide():
    """One node of large counts hides slopes that many small ones have, by Poisson's deviance."""
    given = counts(0, slope=0.8, rows=10, mean=1.0, n=80)
    y = given.y.copy()
    rng = np.random.default_rng(1)
    y[given.owner == 0] = rng.poisson(3000 * rng.gamma(3.0, 1 / 3.0, size=10))
    found = Family(Table(**{**vars(given), "y": y}), Counts()).choose()
    assert found.name in (SLOPES, CORRELATED)


@pytest.mark.parametrize("k", [0.0, 0.1, 1.0])
def test_the_variance_beyond_poissons_is_found(k):
    rng = np.random.default_rng(0)
    mean = np.exp(rng.normal(2.0, 1.0, size=20_000))
    wide = rng.gamma(1 / k, k, size=len(mean)) if k else 1.0
    y = rng.poisson(mean * wide).astype(float)
    assert extra_variance(y, mean, np.ones(len(y))) == pytest.approx(k, rel=0.1, abs=0.005)


def test_a_row_of_weight_two_is_two_rows():
    rng = np.random.default_rng(0)
    y, mean = rng.poisson(20.0, size=50) * 2.0, np.full(50, 40.0)
    twice = extra_variance(np.tile(y, 2), np.tile(mean, 2), np.ones(100))
    assert extra_variance(y, mean, np.full(50, 2.0)) == pytest.approx(twice)


def test_costs_of_counts_that_are_poissons_are_their_errors():
    mean = np.array([1.0, 2.0, 3.0])
    etas = [np.log(mean), np.log(mean + 1)]
    y, response = np.array([1.0, 2.0, 3.0]), Counts()
    for eta, cost in zip(etas, response.costs(etas, y, np.ones(3)), strict=True):
        np.testing.assert_allclose(cost, response.errors(eta, y))


def test_costs_of_widely_spread_counts_rank_predictors_and_are_less_than_poissons():
    rng = np.random.default_rng(2)
    y = rng.poisson(50 * rng.gamma(1.0, 1.0, size=200)).astype(float)
    etas = [np.full(200, np.log(mean)) for mean in (y.mean(), 3 * y.mean())]
    at, off = Counts().costs(etas, y, np.ones(200))
    assert (at >= -1e-12).all() and at.sum() < off.sum()
    assert at.sum() < 0.2 * Counts().errors(etas[0], y).sum()


def test_classes_are_compared_by_their_errors():
    eta, y = np.array([0.5, -1.0]), np.array([1.0, -1.0])
    np.testing.assert_array_equal(
        Classes().costs([eta], y, np.ones(2))[0], Classes().errors(eta, y)
    )


def test_unequal_noise_is_not_taken_for_personal_slopes():
    """Rows far out are noisier, and no node has a slope of its own: the likelihood sees slopes."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        owner = np.repeat(np.arange(48), 6)
        x = rng.standard_t(3, size=len(owner))
        y = x + (0.2 + np.abs(x)) * 0.5 * rng.standard_t(4, size=len(owner))
        table = Table(x[:, None], y, np.ones(len(y)), owner, 48, True, np.zeros(1, dtype=bool))
        found.append(Family(table, Numbers()).choose().name)
    assert sum(name in (ONE, INTERCEPTS) for name in found) >= 14


def noisy_nodes(seed, slope=0.0):
    """Levels, and perhaps slopes, of nodes whose noise differs."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(40), 8)
    x = rng.normal(size=len(owner))
    b, sd = rng.normal(size=40), np.exp(rng.normal(size=40))
    y = b[owner] + x + rng.normal(size=len(owner)) * sd[owner]
    y += slope * rng.normal(size=40)[owner] * x
    return Table(x[:, None], y, np.ones(len(y)), owner, 40, True, np.zeros(1, dtype=bool))


def test_one_noisy_node_does_not_choose_slopes_for_all():
    found = [Family(noisy_nodes(1000 + k), Numbers()).choose().name for k in range(20)]
    assert sum(name in (SLOPES, CORRELATED) for name in found) <= 3


def test_slopes_of_nodes_whose_noise_differs_are_seen():
    found = [Family(noisy_nodes(k, slope=3.0), Numbers()).choose().name for k in range(20)]
    assert sum(name in (SLOPES, CORRELATED) for name in found) >= 17


def test_a_member_that_only_one_node_wants_is_left_out():
    given = noisy_nodes(1010)
    family = Family(given, Numbers())
    best = family.choose()
    slopes = [t for t in family.tried if t.name in (SLOPES, CORRELATED)]
    gains = [np.bincount(given.owner, best.errors - t.errors) for t in slopes]
    assert best.name in (ONE, INTERCEPTS)
    assert all(gain.sum() > 0 > gain.sum() - gain.max() for gain in gains)
