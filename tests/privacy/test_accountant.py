"""Noise is calibrated by privacy loss distributions, and many releases cost more than one."""

import math
import sys

import pytest
from scipy.stats import norm

from nefele.privacy import calibrate, epsilon_of


def delta_of(multiplier, epsilon):
    """The exact delta of one Gaussian release (Balle and Wang, 2018)."""
    a, b = 1 / (2 * multiplier), epsilon * multiplier
    return norm.cdf(a - b) - math.exp(epsilon) * norm.cdf(-a - b)


def test_numbers_of_dp_accounting():
    assert epsilon_of([(10.0, 100)], 1e-5) == pytest.approx(4.37718, abs=1e-5)
    assert calibrate(1.0, 1e-5, 100) == pytest.approx(37.30632, abs=1e-5)


def test_the_library_composes_rounds_to_the_same():
    from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant()
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(12.0), 30))
    accountant.compose(GaussianDpEvent(4.0))
    together = epsilon_of([(12.0, 30), (4.0, 1)], 1e-6)
    assert together == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_calibrated_noise_keeps_the_exact_delta_and_little_more(epsilon, delta):
    z = calibrate(epsilon, delta)
    assert delta_of(z, epsilon) <= delta
    assert delta_of(0.99 * z, epsilon) > delta


def test_rounds_cost_more_than_one_message_and_less_than_their_sum():
    z = calibrate(1.0, 1e-6)
    one, many = epsilon_of([(z, 1)], 1e-6), epsilon_of([(z, 50)], 1e-6)
    assert one == pytest.approx(1.0, abs=1e-3)
    assert 5 * one < many < 50 * one


def test_nothing_released_costs_nothing_and_no_noise_costs_everything():
    assert epsilon_of([], 1e-6) == 0.0
    assert epsilon_of([(5.0, 1), (0.0, 1)], 1e-6) == math.inf


@pytest.mark.parametrize("multiplier", [math.nan, math.inf, -1.0, "5"])
def test_noise_that_is_no_number_is_refused(multiplier):
    with pytest.raises(ValueError, match="noise multiplier must be"):
        epsilon_of([(multiplier, 1)], 1e-6)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf])
def test_epsilon_must_be_above_zero(epsilon):
    with pytest.raises(ValueError, match="epsilon must be"):
        calibrate(epsilon, 1e-6)


@pytest.mark.parametrize("delta", [0, 1.0, 2, -1e-6, math.nan])
def test_delta_must_be_between_zero_and_one(delta):
    with pytest.raises(ValueError, match="delta must be"):
        calibrate(1.0, delta)


def test_the_package_is_named_when_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match=r'pip install "nefele\[privacy\]"'):
        epsilon_of([(7.7, 1)], 1.234e-6)


def test_a_delta_beyond_the_accountants_digits_is_refused():
    with pytest.raises(ValueError, match="delta must be at least 1e-14"):
        calibrate(1.0, 1e-20)
