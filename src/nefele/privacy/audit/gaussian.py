"""Gaussian differential privacy: what telling two normal distributions apart means in epsilon.

Balle and Wang, "Improving the Gaussian mechanism for differential privacy" (2018), Theorem 8; Dong,
Roth and Su, "Gaussian differential privacy" (2022), Corollary 2.13.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from nefele._checks import check_number

_WIDE = 1e4  # largest mu that is looked at


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The delta of telling N(0, 1) from N(mu, 1) at some epsilon.

    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu). T Gaussian releases of
    sensitivity Delta with noise of deviation sigma have mu = sqrt(T) Delta / sigma.

    Parameters
    ----------
    mu : float
        Distance of the means in deviations, > 0.
    epsilon : float

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    check_number(mu, "mu", low=0.0)
    check_number(epsilon, "epsilon", low=0.0)
    if mu == 0:
        return 0.0
    a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return max(float(ndtr(a) - math.exp(min(epsilon + float(log_ndtr(b)), 0.0))), 0.0)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon at which `gaussian_delta` is at most delta.

    Parameters
    ----------
    mu : float
        Distance of the means in deviations, > 0.
    delta : float
        In (0, 1).

    Examples
    --------
    >>> round(gaussian_epsilon(1.0, 1e-5), 3)
    4.377
    """
    _check_delta(delta)
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    top = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1  # beyond the answer
    return float(brentq(lambda e: gaussian_delta(mu, e) - delta, 0.0, top, xtol=1e-12))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu that epsilon and delta allow: noise of deviation Delta / mu is enough.

    Parameters
    ----------
    epsilon : float
    delta : float
        In (0, 1).

    Examples
    --------
    >>> round(gaussian_mu(1.0, 1e-5), 4)
    0.2681
    """
    check_number(epsilon, "epsilon", low=0.0, strict=True)
    _check_delta(delta)
    return float(brentq(lambda mu: gaussian_delta(mu, epsilon) - delta, 0.0, _WIDE, xtol=1e-13))


def _check_delta(delta: float) -> None:
    check_number(delta, "delta", low=0.0, strict=True, advice="Gaussian noise has no delta of 0.")
    if delta >= 1:
        raise ValueError(f"delta must be below 1; got {delta!r}. Use about 1e-5.")
