"""What a result certifies about neighbours, against tight solves."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.losses import Logistic
from nefele.penalties import L2Norm, Partial
from nefele.theory import certify_clusters
from tests.theory.problems import linear_data, planted, random_regression

PENALTIES = ("l2", "l1", "linf", "squared_l2", "huber", Partial(L2Norm(), on=[0]))


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_bounds_hold_at_the_optimum(penalty):
    """Loose results; the differences at a tight optimum lie between the bounds."""
    finite = differ = 0
    for seed in range(6 if penalty == "linf" else 20):
        problem = random_regression(seed, penalty, n=7, d=2, m=4, density=0.3, lam=0.3)
        best = solve(problem, tol=1e-12)
        diff = problem.graph.diff(best.w)
        rounding = 1e-6 * (1 + np.abs(best.w).max())
        for tol in (1e-2, 1e-5):
            found = certify_clusters(solve(problem, tol=tol))
            assert found.proven
            apart = np.sqrt((diff**2).sum(axis=1))
            size = problem.penalty.value(diff) if problem.penalty.is_norm else apart
            assert (size <= found.upper + rounding).all()
            assert (apart >= found.lower - rounding).all()
            finite += np.isfinite(found.upper).sum()
            differ += found.differs.sum()
    assert differ > 0
    assert finite > 0


def test_radius_holds():
    for seed in range(30):
        problem = random_regression(seed, "l2", n=6, d=2, m=5, lam=0.3)
        best = solve(problem, tol=1e-13).w
        early = solve(problem, tol=1e-3)
        away = np.sqrt(((early.w - best) ** 2).sum(axis=1))
        assert (away <= certify_clusters(early).radius + 1e-6).all()


@pytest.mark.parametrize("penalty", ["l2", "l1", "linf"])
def test_any_two_nodes_of_a_group_are_close(penalty):
    """Along a path the bounds do not add up."""
    grouped = 0
    for seed in range(8):
        problem, _ = planted(seed, penalty)
        best = solve(problem, tol=1e-12).w
        found = certify_clusters(solve(problem, tol=1e-6), tol=1e-2)
        for c in range(found.groups.max() + 1):
            mine = best[found.groups == c]
            pairs = (mine[:, None] - mine[None]).reshape(-1, problem.d)
            assert problem.penalty.value(pairs).max() <= 1e-2 + 1e-6
            grouped += len(mine) > 1
    assert grouped > 8


def test_clusters_are_separated_for_certain():
    rng = np.random.default_rng(0)
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)], weight=[1.0, 0.1, 1.0])
    true = np.array([[1.0, 1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]])
    problem = Problem(graph, linear_data(rng, true, 6, noise=0.01), lam=0.2)
    found = certify_clusters(solve(problem, tol=1e-9))
    assert found.groups.tolist() == [0, 0, 1, 1]
    assert found.differs.tolist() == [False, True, False]
    assert (found.upper[[0, 2]] < 1e-4).all() and found.lower[1] > 1
    assert found.summary.startswith("proven: 2 edges within")


def test_nodes_without_data_have_no_radius():
    data = LocalData.from_list([([[1.0]], [0.0]), None, ([[1.0]], [4.0])])
    result = solve(Problem(Graph.from_edges([(0, 1), (1, 2)]), data, lam=0.1), tol=1e-9)
    found = certify_clusters(result)
    assert np.isfinite(found.radius).tolist() == [True, False, True]
    assert not found.differs.any()


def test_the_default_tolerance_and_an_estimate():
    problem = random_regression(0, "l2", n=5, lam=0.3)
    result = solve(problem, tol=1e-8)
    found = certify_clusters(result)
    assert found.tol == pytest.approx(1e-3 * np.ptp(result.w, axis=0).max())

    class Own:
        """Squared loss by value and gradient only: its certificate is an estimate."""

        d = 2

        def value(self, w):
            return problem.loss.value(w)

        def grad(self, w):
            return problem.loss.grad(w)

    own = solve(Problem(problem.graph, None, Own(), lam=0.3), tol=1e-4)
    assert own.certificate == "estimated radius"
    assert not certify_clusters(own).proven
    assert certify_clusters(own).summary.startswith("estimated")


def test_logistic_has_its_ridge_as_modulus():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 12, 2))
    y = np.where(X[..., 0] > 0, 1.0, -1.0)
    data = LocalData.from_list([(X[i], y[i]) for i in range(3)])
    problem = Problem(Graph.from_edges([(0, 1), (1, 2)]), data, Logistic(l2=0.1), lam=0.01)
    result = solve(problem, tol=1e-7)
    gap = max(result.gap_abs, 1e-15 * result.objective)  # not below rounding errors
    assert certify_clusters(result).radius == pytest.approx(np.sqrt(2 * gap / 0.2), rel=1e-6)


def test_clear_errors():
    problem = random_regression(0, "l2", n=5)
    with pytest.raises(ValueError, match="result must be a Result; got Problem"):
        certify_clusters(problem)
    with pytest.raises(ValueError, match="Solve with certify=True"):
        certify_clusters(solve(problem, tol=1e-3, certify=False))
    with pytest.raises(ValueError, match="tol must be finite and >= 0"):
        certify_clusters(solve(problem), tol=-1)
