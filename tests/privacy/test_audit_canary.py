"""The canary: below what was promised when it is kept, above it when the mechanism is broken."""

import matplotlib
import numpy as np
import pytest
from scipy.stats import binom, norm

from nefele.privacy.audit import canary, gaussian_delta, gaussian_epsilon, gaussian_mu
from nefele.privacy.audit.lower_bound import upper

matplotlib.use("agg")

DELTA = 1e-5
EPSILONS = [0.5, 1.0, 3.0, 10.0]
ENOUGH = [(0.5, 20_000), (1.0, 8000), (3.0, 4000), (10.0, 4000)]  # runs to see half of the noise


def test_gaussian_privacy_is_that_of_two_normal_distributions():
    rng = np.random.default_rng(0)
    for mu, epsilon in zip(rng.uniform(0.2, 4, 20), rng.uniform(0, 6, 20), strict=True):
        # The largest P(S) - e^epsilon Q(S), over half lines, is the definition of delta.
        at = np.linspace(-8, 12, 20_001)
        excess = norm.sf(at - mu) - np.exp(epsilon) * norm.sf(at)
        assert gaussian_delta(mu, epsilon) == pytest.approx(excess.max(), abs=1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_epsilon_and_mu_are_inverse(epsilon):
    mu = gaussian_mu(epsilon, DELTA)
    assert gaussian_epsilon(mu, DELTA) == pytest.approx(epsilon, rel=1e-6)
    assert gaussian_delta(mu, epsilon) == pytest.approx(DELTA, rel=1e-6)


def test_known_numbers():
    # dp-accounting, noise multiplier 10 and 100 releases: mu = sqrt(100) / 10 = 1.
    assert gaussian_epsilon(1.0, 1e-5) == pytest.approx(4.37718, abs=1e-4)
    assert 10 / gaussian_mu(1.0, 1e-5) == pytest.approx(37.30632, rel=1e-4)


@pytest.mark.parametrize(("errors", "n"), [(0, 50), (3, 50), (49, 50), (50, 50)])
def test_upper_bounds_are_clopper_pearson(errors, n):
    p = upper(errors, n, 0.025)
    assert p == 1.0 if errors == n else binom.cdf(errors, n, p) == pytest.approx(0.025)


def gaussian(mu, factor=1.0):
    def release(value, rng):
        return value + rng.normal(scale=factor / mu)

    return release


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("family", ["any", "gaussian"])
def test_a_kept_promise_is_not_refuted(epsilon, family):
    release = gaussian(gaussian_mu(epsilon, DELTA))
    for seed in range(5):
        options = dict(score=float, delta=DELTA, runs=4000, family=family, claimed=epsilon)
        found = canary(release, 1.0, 0.0, confidence=0.999, seed=seed, **options)
        assert not found.refuted and found.epsilon <= epsilon


@pytest.mark.parametrize(("epsilon", "runs"), ENOUGH)
def test_half_of_the_noise_is_caught(epsilon, runs):
    options = dict(score=float, delta=DELTA, runs=runs, family="gaussian", claimed=epsilon)
    mu = gaussian_mu(epsilon, DELTA)
    found = canary(gaussian(mu, 0.5), 1.0, 0.0, confidence=0.999, **options)
    assert found.refuted and "refuted" in str(found) and "not refuted" not in str(found)
    assert found.epsilon <= gaussian_epsilon(2 * mu, DELTA)
    assert not canary(gaussian(mu), 1.0, 0.0, confidence=0.999, **options).refuted


@pytest.mark.parametrize(("epsilon", "runs"), [(1.0, 100_000), (3.0, 40_000)])
def test_half_of_the_noise_is_caught_without_any_assumption(epsilon, runs):
    options = dict(score=float, delta=DELTA, runs=runs, claimed=epsilon)
    mu = gaussian_mu(epsilon, DELTA)
    assert canary(gaussian(mu, 0.5), 1.0, 0.0, **options).refuted
    assert not canary(gaussian(mu), 1.0, 0.0, **options).refuted


@pytest.mark.slow
def test_half_of_the_noise_is_caught_without_any_assumption_at_epsilon_10():
    mu = gaussian_mu(10.0, DELTA)
    options = dict(score=float, delta=DELTA, runs=2_000_000, claimed=10.0)
    assert canary(gaussian(mu, 0.5), 1.0, 0.0, **options).refuted
    assert not canary(gaussian(mu), 1.0, 0.0, **options).refuted


@pytest.mark.slow
@pytest.mark.parametrize("family", ["any", "gaussian"])
def test_the_confidence_is_kept(family):
    """At the true epsilon at most 10% of the bounds may be wrong; those near it are the test."""
    mu, wrong = 1.5, 0
    true = gaussian_epsilon(mu, 0.05)
    for seed in range(400):
        options = dict(score=float, delta=0.05, confidence=0.9, runs=400, family=family)
        wrong += canary(gaussian(mu), 1.0, 0.0, seed=seed, **options).epsilon > true
    assert wrong <= binom.ppf(0.999, 400, 0.1)


# -- a mechanism of many rounds, and three ways to break it ---------------------------------------

ROUNDS, NEIGHBOURS = 10, 8


def steps(sigma, *, feedback="noisy", draws=1):
    """Noisy gradient steps of one node: the gradient of its record is clipped to [-1, 1].

    The record of the one dataset pulls one way, that of the other one the other way: 2 apart.
    """

    def release(record, rng):
        w, seen = 0.0, []
        for _ in range(ROUNDS):
            raw = w + np.clip(record, -1.0, 1.0)
            said = raw + sigma * rng.standard_normal(draws)
            w = raw if feedback == "raw" else said[0]
            seen.append(said)
        return np.array(seen)

    return release


BROKEN = {
    "noise halved": lambda sigma: steps(sigma / 2),
    "raw iterates fed back": lambda sigma: steps(sigma, feedback="raw"),
    "one draw per neighbour": lambda sigma: steps(sigma, draws=NEIGHBOURS),
}


def calibrated(epsilon):
    """sqrt(rounds) * 2 / sigma = mu."""
    return 2 * np.sqrt(ROUNDS) / gaussian_mu(epsilon, DELTA)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_rounds_that_keep_their_promise(epsilon):
    options = dict(delta=DELTA, runs=4000, family="gaussian", claimed=epsilon)
    found = canary(steps(calibrated(epsilon)), 9.0, -9.0, confidence=0.999, **options)
    assert not found.refuted
    assert found.epsilon > 0.4 * epsilon or epsilon < 3  # and the attack is no straw man


LONG = [pytest.param(*pair, marks=pytest.mark.slow) for pair in ENOUGH[:2]]


@pytest.mark.parametrize("twin", BROKEN)
@pytest.mark.parametrize(("epsilon", "runs"), [*LONG, *ENOUGH[2:]])
def test_broken_twins_are_caught(twin, epsilon, runs):
    release = BROKEN[twin](calibrated(epsilon))
    options = dict(delta=DELTA, runs=runs, family="gaussian", claimed=epsilon)
    found = canary(release, 9.0, -9.0, confidence=0.999, **options)
    assert found.refuted, str(found)


def test_many_rounds_say_more_than_one():
    """The epsilon of one message is not that of the run."""
    sigma = calibrated(3.0)
    options = dict(delta=DELTA, runs=4000, family="gaussian")
    whole = canary(steps(sigma), 9.0, -9.0, **options)
    one = gaussian_epsilon(2 / sigma, DELTA)
    assert whole.epsilon > one


# -- its manners ----------------------------------------------------------------------------------


def test_both_sides_are_tried():
    """A release that hides one dataset in noise and shows the other at times."""

    def release(rare, rng):
        return 1.0 if rare and rng.random() < 0.4 else 0.0

    found = canary(release, True, False, score=float, delta=0.0, runs=2000)
    assert found.epsilon > 3
    found = canary(release, False, True, score=lambda sent: -sent, delta=0.0, runs=2000)
    assert found.epsilon > 3


def test_a_mechanism_without_noise_is_as_bad_as_can_be_counted():
    found = canary(lambda x, rng: np.array([x, 3.0]), 1.0, 0.0, runs=400)
    assert found.epsilon == pytest.approx(np.log(1 / upper(0, 200, 0.025) - 1), abs=0.01)


def test_what_says_nothing_proves_nothing():
    found = canary(lambda x, rng: rng.normal(size=3), 1.0, 0.0, runs=400, claimed=0.1)
    assert found.epsilon == 0.0 and "not refuted, which proves nothing" in str(found)
    assert canary(lambda x, rng: 0.0, 1.0, 0.0, runs=40).epsilon == 0.0


def test_runs_are_reproducible_and_drawn():
    found = canary(gaussian(1.0), 1.0, 0.0, score=float, runs=300, seed=3)
    again = canary(gaussian(1.0), 1.0, 0.0, score=float, runs=300, seed=3)
    assert found.epsilon == again.epsilon
    ax = found.plot()
    assert ax.get_title() == f"epsilon at least {found.epsilon:.2f}"
    assert len(ax.get_legend().get_texts()) == 2


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (dict(runs=5), "runs must be an integer >= 20"),
        (dict(delta=-0.1), "delta must be finite and >= 0"),
        (dict(delta=1.0), "must be below 1"),
        (dict(confidence=1.0), "must be below 1"),
        (dict(family="normal"), "No family"),
        (dict(family="gaussian", delta=0.0), "delta must be finite and > 0"),
        (dict(claimed=-1), "claimed must be"),
        (dict(score=lambda sent: np.nan), "Scores must be finite"),
    ],
)
def test_bad_input(options, text):
    with pytest.raises(ValueError, match=text):
        canary(gaussian(1.0), 1.0, 0.0, **{"runs": 40, **options})


@pytest.mark.parametrize("family", ["any", "gaussian"])
def test_a_release_without_noise_is_always_caught(family):
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = rng.normal(size=20)
        other = x.copy()
        other[0] += 1
        found = canary(lambda d, r: d.mean(), x, other, runs=200, family=family, claimed=1.0)
        assert found.refuted
    tiny = canary(lambda v, r: v, 1e-3, 0.0, runs=200, family=family, claimed=1.0)
    hidden = canary(
        lambda v, r: [v * 1e-6, 1e6 * r.normal()], 1.0, 0.0, runs=200, family=family, claimed=1.0
    )
    assert tiny.refuted and hidden.refuted
