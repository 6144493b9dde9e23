"""Noise of the system is normal, fresh in every draw, and leaves no low bits."""

import numpy as np
import pytest
from scipy.stats import kstest

from nefele.privacy.noise import SystemNoise, grid, noisy, source_of


def test_draws_are_normal_and_fresh():
    draws = SystemNoise().standard_normal((200, 100))
    assert draws.shape == (200, 100)
    assert kstest(draws.ravel(), "norm").pvalue > 1e-6
    assert len(np.unique(draws)) == draws.size
    assert not np.array_equal(draws, SystemNoise().standard_normal((200, 100)))


def test_tails_reach_beyond_eight_deviations_on_both_sides(monkeypatch):
    low = (0).to_bytes(8, "little")  # the smallest tail, and the sign bit off
    high = (1).to_bytes(8, "little")
    monkeypatch.setattr("nefele.privacy.noise.os.urandom", lambda n: low + high)
    found = SystemNoise().standard_normal(2)
    assert found[0] == -found[1]
    assert np.abs(found).min() > 8.5


def test_every_result_is_a_multiple_of_a_public_power_of_two():
    rng = np.random.default_rng(0)
    for deviation in (1e-6, 0.3, 1.0, 7e4):
        step = float(grid(deviation))
        assert np.log2(step) == np.rint(np.log2(step))
        assert deviation / 8192 <= step <= deviation / 4096
        found = noisy(rng.normal(size=500) * 1e3 * deviation, deviation, SystemNoise())
        assert np.array_equal(found, np.rint(found / step) * step)


def test_two_inputs_have_the_same_possible_outputs():
    one = noisy(np.full(4000, 1 / 3), 1e-3, SystemNoise())
    two = noisy(np.full(4000, 1 / 3 + 1e-9), 1e-3, SystemNoise())
    assert len(np.intersect1d(one, two)) > 100  # without the grid there would be none


@pytest.mark.parametrize("deviation", [0.0, -1.0, np.nan, np.inf])
def test_a_deviation_that_is_none_is_refused(deviation):
    with pytest.raises(ValueError, match="above 0"):
        noisy(np.zeros(2), deviation, SystemNoise())


def test_what_is_not_finite_is_not_released():
    with pytest.raises(ValueError, match="must be finite"):
        noisy(np.array([1.0, np.nan]), 1.0, SystemNoise())


def test_a_seed_is_for_tests_only():
    with pytest.raises(ValueError, match="insecure_testing"):
        source_of(False, 1)
    draws = [source_of(True, 1).standard_normal(3) for _ in range(2)]
    assert np.array_equal(*draws)
