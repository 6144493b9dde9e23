"""What is proven about problems, after a plain install."""

import numpy as np
import pytest

import nefele
from nefele import theory


def problem(penalty):
    states = nefele.datasets.load_states()
    data, _ = nefele.datasets.split_states(states, 0)
    return nefele.Problem(states.graph, data, penalty=penalty, lam=1e-3)


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
def test_the_critical_lambda_makes_all_models_equal(penalty):
    found = problem(penalty)
    critical = theory.critical_lambda(found)
    assert critical.lower <= critical.value < np.inf
    above = nefele.solve(found.with_lam(1.01 * critical.value), tol=1e-9)
    assert np.ptp(above.w, axis=0).max() < 1e-3 * np.abs(above.w).max()
