"""Points between two others of a path: averages that prove themselves."""

import numpy as np
import pytest

import nefele
from nefele import Problem, path, solve
from nefele.certificate import certify_feasible
from nefele.losses.quadratic import BoundQuadratic
from nefele.paths import follow as following
from nefele.paths.between import average, bent, moved_clusters


def quadratic_problem(seed=0, penalty="l2", sizes=(12, 12), d=3):
    """Two blocks; fewer rows than parameters, and nodes without any."""
    rng = np.random.default_rng(seed)
    graph = nefele.graphs.sbm(sizes, 0.6, 0.1, seed=seed)
    true = 2 * rng.standard_normal((len(sizes), d))[np.repeat(np.arange(len(sizes)), sizes)]
    H, b, c = np.zeros((len(true), d, d)), np.zeros((len(true), d)), np.zeros(len(true))
    for i in range(len(true)):
        X = rng.standard_normal((0 if i % 5 == 0 else 2, d))
        y = X @ true[i] + 0.3 * rng.standard_normal(len(X))
        H[i], b[i], c[i] = X.T @ X, X.T @ y, y @ y / 2
    return Problem(graph, None, loss=BoundQuadratic(H, b, c), penalty=penalty, lam=1.0)


@pytest.mark.parametrize("penalty", ["l2", "l1", "linf", "squared_l2"])
@pytest.mark.parametrize("seed", range(3))
def test_averages_of_flows_prove_a_bound_without_a_system(seed, penalty):
    problem = quadratic_problem(seed, penalty)
    above, middle, below = (solve(problem.with_lam(lam), tol=1e-9) for lam in (0.22, 0.21, 0.2))
    w, u = average(middle.problem, above, below, 1e-9)
    found = certify_feasible(middle.problem, w, u)
    assert found.objective == pytest.approx(middle.problem.objective(w), rel=1e-12)
    assert found.lower <= middle.objective * (1 + 1e-9)
    assert found.gap_abs <= 0.02 * middle.objective


def test_a_flow_that_is_not_feasible_proves_nothing():
    problem = quadratic_problem()
    result = solve(problem, tol=1e-9)
    spoilt = 0.9 * result.u
    spoilt[problem.graph.head == 0] += 0.01  # node 0 has no data: what leaves it must come in
    assert certify_feasible(problem, result.w, result.u.copy()).gap_abs < 1e-6 * result.objective
    assert certify_feasible(problem, result.w, spoilt) is None


def three_solutions(penalty, lams=(0.012, 0.01, 0.008)):
    """Solutions at three lams, few enough that all nodes differ, with flows that are feasible."""
    problem = quadratic_problem(penalty=penalty)
    return [solve(problem.with_lam(lam), tol=1e-9) for lam in lams]


@pytest.mark.parametrize("penalty", ["l2", "squared_l2"])
def test_flows_bent_towards_a_parabola_prove_more_than_averages(penalty):
    solved = three_solutions(penalty)
    problem = solved[0].problem.with_lam(0.009)
    w, u = average(problem, *solved[1:], 1e-9)
    better, flow = bent(problem, u, *solved)
    assert (problem.penalty.domain_ratio(flow, problem.scale) <= 1 + 1e-9).all()
    assert problem.objective(better) < problem.objective(w)
    best = solve(problem, tol=1e-9).objective
    found = certify_feasible(problem, better, flow)
    assert found.lower <= best * (1 + 1e-9)
    assert found.gap_abs < certify_feasible(problem, w, u).gap_abs


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", "squared_l2"])
def test_flows_bend_only_inside_their_balls(penalty):
    solved = three_solutions(penalty, (0.012, 0.006, 0.003))
    problem = solved[0].problem.with_lam(0.004)
    found = bent(problem, average(problem, *solved[1:], 1e-9)[1], *solved)
    if found is not None:
        assert (problem.penalty.domain_ratio(found[1], problem.scale) <= 1 + 1e-9).all()


def test_nothing_bends_where_clusters_differ_or_a_lam_comes_twice():
    problem = quadratic_problem()
    apart, near, joined = (solve(problem.with_lam(lam), tol=1e-6) for lam in (0.01, 0.02, 20.0))
    assert bent(problem.with_lam(0.015), near.u, joined, near, apart) is None
    assert bent(problem.with_lam(0.01), apart.u, near, apart, apart) is None


def test_a_bound_that_the_edges_alone_rule_out_is_not_computed():
    problem = quadratic_problem()
    result = solve(problem, tol=1e-9)
    flow = 0.5 * result.u
    gap = certify_feasible(problem, result.w, flow).gap_abs / result.objective
    assert certify_feasible(problem, result.w, flow, 2 * gap).gap_abs > 0
    assert certify_feasible(problem, result.w, flow, 1e-6) is None


@pytest.fixture
def leaping(monkeypatch):
    """Leaps on small problems too, and the lams of the solves."""
    solved = []

    def noted(problem, *args, **options):
        solved.append(problem.lam)
        return solve(problem, *args, **options)

    monkeypatch.setattr(following, "_LARGE", 0)
    monkeypatch.setattr(following, "solve", noted)
    return solved


@pytest.mark.parametrize("penalty", ["l2", "l1", "squared_l2"])
def test_a_path_by_leaps_is_as_good_as_single_solves(leaping, penalty):
    problem, told = quadratic_problem(penalty=penalty), []
    found = path(problem, np.geomspace(2.0, 0.02, 60), callback=told.append, tol=1e-3)
    assert len(leaping) < 45
    assert found.converged and (found.gaps <= 1e-3).all()
    assert [result.problem.lam for result in told] == found.lams.tolist()
    for result in found.results[::7]:
        best = solve(result.problem, tol=1e-9).objective
        assert best * (1 - 1e-9) <= result.objective <= best * (1 + 1e-3)
        again = result.problem.certificate(result.w, result.u)
        assert again.gap_abs <= 1.01e-3 * result.objective


def test_averages_join_what_their_flow_holds_together(leaping):
    problem = quadratic_problem()
    lams = np.geomspace(2.0, 0.02, 60)
    found = path(problem, lams, tol=1e-3)
    leaping.clear()
    alone = [len(np.unique(solve(problem.with_lam(lam), tol=1e-8).clusters())) for lam in lams]
    near = np.abs(np.log(found.n_clusters / np.array(alone)))
    assert np.median(near) == 0 and near.max() <= np.log(2.5)


def test_a_path_by_leaps_ends_where_the_callback_says(leaping):
    told = []

    def enough(result):
        told.append(result.problem.lam)
        return len(told) == 10

    found = path(quadratic_problem(), np.geomspace(2.0, 0.02, 60), callback=enough, tol=1e-3)
    assert len(found) == 10 and found.lams.tolist() == told


@pytest.mark.parametrize("seed", range(3))
def test_clusters_that_stay_are_moved_without_iterations(seed):
    problem = quadratic_problem(seed)
    near = solve(problem.with_lam(0.5), tol=1e-6)
    moved = moved_clusters(problem.with_lam(0.45), near, 1e-4)
    assert moved.n_iter == 0 and moved.gap <= 1e-4
    best = solve(moved.problem, tol=1e-9)
    assert best.objective * (1 - 1e-9) <= moved.objective <= best.objective * (1 + 1e-4)
    assert np.array_equal(moved.clusters(), near.clusters())


def test_clusters_that_fall_apart_are_not_moved():
    problem = quadratic_problem()
    one = solve(problem.with_lam(20.0), tol=1e-6)
    assert one.clusters().max() == 0
    assert solve(problem.with_lam(0.2), tol=1e-6).clusters().max() > 0
    assert moved_clusters(problem.with_lam(0.2), one, 1e-4) is None


def test_a_path_solves_few_points_while_clusters_stay(leaping):
    problem = quadratic_problem()
    lams = np.geomspace(0.6, 0.4, 12)
    found = path(problem, lams, tol=1e-4)
    assert found.converged and len(leaping) <= 3
