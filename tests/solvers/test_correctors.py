"""Steps of the interior-point method that are corrected again."""

import numpy as np
import pytest

from nefele import LocalData, Problem, solve
from nefele.graphs import grid
from nefele.solvers import Newton
from nefele.solvers.interior_point import correctors


def counted(side, loss, seed=0):
    """Labels or counts of random models of all nodes of a grid."""
    rng = np.random.default_rng(seed)
    n = side * side
    X = rng.standard_normal((6 * n, 3))
    z = np.einsum("rj,rj->r", X, np.repeat(rng.standard_normal((n, 3)), 6, axis=0))
    y = np.where(rng.random(6 * n) < 1 / (1 + np.exp(-z)), 1.0, -1.0)
    if loss == "poisson":
        y = rng.poisson(np.exp(np.clip(z, -3, 3))).astype(float)
    data = LocalData(X, y, np.arange(0, 6 * n + 1, 6))
    return Problem(grid(side, side), data, loss=loss, penalty="l2", lam=0.1)


def steps(problems):
    return [solve(problem, Newton(), tol=1e-6).n_iter for problem in problems]


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_second_order_terms_taken_anew_save_steps(loss, monkeypatch):
    problems = [counted(20, loss, seed) for seed in range(4)]
    found = steps(problems)
    monkeypatch.setattr(correctors, "_BENDS", 0)
    assert sum(found) <= 0.9 * sum(steps(problems))


def test_they_do_not_lead_cones_ahead_of_curved_losses(monkeypatch):
    """Where slopes do not follow, cones that are long at their end wait for them."""
    problems = [counted(20, "poisson", seed) for seed in (6, 7)]
    found = steps(problems)
    monkeypatch.setattr(correctors, "_FOLLOWED", -np.inf)
    assert max(found) < max(steps(problems))
