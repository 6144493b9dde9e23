"""What releases with Gaussian noise cost together, by privacy loss distributions (dp-accounting).

A release adds noise of deviation z * Delta to what changes by at most Delta, in the Euclidean
norm, when one record (or one node) is replaced; z is its noise multiplier. Delta is already the
distance between neighbours, so the accountant must see each release as one Gaussian of
sensitivity 1: told of replacement as well, it would double it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from nefele._checks import check_count, check_number

_TOL = 1e-9  # of a calibrated multiplier, relative
_LEAST_DELTA = 1e-14
_AGREES = 1e-7  # of epsilon, relative: rounding of the accountant


def calibrate(epsilon: float, delta: float, rounds: int = 1) -> float:
    """The least noise multiplier with which `rounds` releases are (epsilon, delta)-private.

    Parameters
    ----------
    epsilon, delta : float
    rounds : int
        Number of releases, fixed beforehand.

    Examples
    --------
    >>> round(calibrate(1.0, 1e-5, rounds=100), 4)
    37.3063
    """
    check_target(epsilon, delta)
    check_count(rounds, "rounds", low=1)
    # Gaussians compose to a Gaussian: k of multiplier z are one of z / sqrt(k).
    return _single(float(epsilon), float(delta)) * math.sqrt(rounds)


def epsilon_of(releases: Iterable[tuple[float, int]], delta: float) -> float:
    """Epsilon at `delta` of releases, given as (noise multiplier, how many times).

    Parameters
    ----------
    releases : iterable of (float, int)
        Noise multipliers (deviation over sensitivity) and how many releases have each.
    delta : float
        In (0, 1).

    Examples
    --------
    >>> round(epsilon_of([(10.0, 100)], 1e-5), 4)
    4.3772
    """
    check_target(1.0, delta)
    total = 0.0
    for multiplier, count in releases:
        # Not a number as noise would count as nothing spent.
        z = check_number(multiplier, "noise multiplier", low=0.0)
        if z == 0:
            return math.inf
        total += check_count(count, "number of releases") / z**2
    return _composed(_plain(1 / math.sqrt(total)), float(delta)) if total > 0 else 0.0


def check_target(epsilon: Any, delta: Any) -> None:
    """Raise ValueError unless epsilon > 0 and 0 < delta < 1."""
    if check_number(epsilon, "epsilon", low=0.0) == 0:
        raise ValueError("epsilon must be above 0; got 0, which allows to say nothing at all.")
    found = check_number(delta, "delta", low=0.0)
    if not 0 < found < 1:
        raise ValueError(
            f"delta must be above 0 and below 1; got {delta!r}. Take less than 1 / the number of "
            "records, such as 1e-6."
        )
    if found < _LEAST_DELTA:
        raise ValueError(
            f"delta must be at least {_LEAST_DELTA:g}, below which the accountant has no digits; "
            f"got {delta!r}."
        )


@lru_cache(maxsize=256)
def _single(epsilon: float, delta: float) -> float:
    # The accountant takes a second for one look where epsilon is large: it confirms the exact
    # formula, and searches by itself only where it does not.
    near = _analytic(epsilon, delta) * (1 + _TOL)
    if _composed(_plain(near), delta) <= epsilon * (1 + _AGREES):
        return near
    accounting = _library()
    found = accounting.calibrate_dp_mechanism(
        accounting.pld.PLDAccountant, accounting.GaussianDpEvent, epsilon, delta, tol=_TOL
    )
    return float(found) * (1 + _TOL)  # on the safe side of the tolerance


def _plain(multiplier: float) -> float:
    """Without the last digits, so that what was computed before is found again."""
    return float(f"{multiplier:.11e}")


def _analytic(epsilon: float, delta: float) -> float:
    """The multiplier by the exact formula of one Gaussian (Balle and Wang, 2018)."""

    def excess(log_z: float) -> float:
        a, b = 0.5 * math.exp(-log_z), epsilon * math.exp(log_z)
        with np.errstate(over="ignore", under="ignore"):
            return float(ndtr(a - b) - np.exp(epsilon + log_ndtr(-a - b))) - delta

    return math.exp(brentq(excess, -20.0, 20.0))


@lru_cache(maxsize=1024)
def _composed(multiplier: float, delta: float) -> float:
    accounting = _library()
    accountant = accounting.pld.PLDAccountant()
    accountant.compose(accounting.GaussianDpEvent(multiplier))
    return float(accountant.get_epsilon(delta))


def _library() -> Any:
    try:
        import dp_accounting
        import dp_accounting.pld
    except ImportError:
        raise ImportError(
            "Privacy needs the package dp-accounting, which counts what releases cost. Install "
            'it by: pip install "nefele[privacy]"'
        ) from None
    return dp_accounting
