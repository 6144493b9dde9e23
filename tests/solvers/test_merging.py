"""Merging: against a cone solver, its bound against plain sums, wrong merges, what it refuses."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import make_moons

from nefele import Graph, LocalData, Problem, solve
from nefele.estimators.point_graph import neighbour_graph
from nefele.graphs import chain
from nefele.losses.quadratic import BoundQuadratic
from nefele.paths.rising import rising
from nefele.solvers import Merging, PrimalDual, as_solver
from nefele.solvers.merging.flows import _Potentials, bound, settle
from nefele.solvers.merging.ladder import Merged, lams


def pulled(points, lam, weight=None, graph=None):
    n, d = points.shape
    h = np.full(n, 2.0) if weight is None else weight
    loss = BoundQuadratic(
        h[:, None, None] * np.eye(d), h[:, None] * points, 0.5 * h * (points**2).sum(axis=1)
    )
    graph = neighbour_graph(points, 6, "exp", None) if graph is None else graph
    return Problem(graph, None, loss=loss, penalty="l2", lam=lam)


def moons(n, seed=0):
    return make_moons(n, noise=0.05, random_state=seed)[0]


def by_cones(problem):
    graph, loss = problem.graph, problem.loss
    w = cp.Variable((graph.n_nodes, problem.d))
    h = loss.H[:, 0, 0]
    root = np.sqrt(h)[:, None]
    fits = 0.5 * cp.sum_squares(cp.multiply(root, w) - loss.b / root)
    apart = cp.norm(w[graph.head] - w[graph.tail], 2, axis=1)
    goal = fits + problem.lam * cp.sum(cp.multiply(graph.weight, apart))
    tight = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
    return cp.Problem(cp.Minimize(goal)).solve(solver=cp.CLARABEL, **tight)


@pytest.mark.parametrize("lam", [0.03, 0.3, 3.0, 30.0, 3000.0])
def test_optimum_is_that_of_a_cone_solver(lam):
    points = moons(250)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, 250)
    problem = pulled(points, lam, weight)
    best = by_cones(problem)
    result = solve(problem, "merging", tol=1e-6)
    assert result.converged and result.certificate == "dual"
    assert result.gap <= 1e-6
    assert result.objective <= best * (1 + 2e-6)
    assert result.objective - result.gap_abs <= best * (1 + 1e-7)


@pytest.mark.parametrize("d", [1, 3])
def test_other_dimensions_and_parts_that_nothing_joins(d):
    rng = np.random.default_rng(d)
    points = rng.normal(size=(60, d)) + 4.0 * rng.integers(0, 2, size=(60, 1))
    head, tail = np.triu_indices(29, 1)
    graph = Graph(np.arange(60), np.r_[head, head + 30], np.r_[tail, tail + 30])
    problem = pulled(points, 0.05, graph=graph)  # nodes 29 and 59 are alone
    result = solve(problem, "merging", tol=1e-7)
    assert result.converged
    assert np.isclose(result.objective, by_cones(problem), rtol=1e-6)
    assert np.allclose(result.w[[29, 59]], points[[29, 59]])


def test_auto_takes_it_for_many_points_only():
    assert type(as_solver("auto", pulled(moons(400), 1.0))) is Merging
    assert type(as_solver("auto", pulled(moons(30), 1.0))) is not Merging


def test_ends_where_the_primal_dual_method_does():
    problem = pulled(moons(600), 5.0)
    merged, other = solve(problem, tol=1e-8), solve(problem, PrimalDual(), tol=1e-8)
    assert np.isclose(merged.objective, other.objective, rtol=1e-8)
    assert np.allclose(merged.w, other.w, atol=1e-3)
    again = solve(problem, tol=1e-8)
    assert np.array_equal(again.w, merged.w)


def test_every_flow_inside_its_balls_is_a_bound():
    problem = pulled(moons(80), 0.7)
    rng = np.random.default_rng(0)
    best = by_cones(problem)
    graph, loss = problem.graph, problem.loss
    for _ in range(5):
        u = problem.inside(rng.normal(size=(graph.n_edges, 2)))
        out = np.zeros((80, 2))
        for e in range(graph.n_edges):
            out[graph.head[e]] += u[e]
            out[graph.tail[e]] -= u[e]
        plain = sum(
            loss.c[i] - ((loss.b[i] - out[i]) ** 2).sum() / (2 * loss.H[i, 0, 0]) for i in range(80)
        )
        assert np.isclose(bound(problem, u), plain)
        assert bound(problem, u) <= best * (1 + 1e-9)


def test_a_settled_flow_is_inside_its_balls_and_proves_the_optimum():
    problem = pulled(moons(200), 3.0)
    w = solve(problem, PrimalDual(), tol=1e-10).w
    goal = problem.objective(w) * (1 - 1e-7)
    found = settle(problem, w, np.zeros((problem.graph.n_edges, 2)), goal, 60)
    assert (problem.penalty.dual_norm(found.u) <= problem.scale * (1 + 1e-12)).all()
    assert np.isclose(found.lower, problem.objective(w), rtol=1e-3)


def test_flows_by_conjugate_gradients_where_factors_fill():
    problem = pulled(moons(200), 3.0)
    problem.known["dissected"] = np.inf
    result = solve(problem, "merging", tol=1e-6)
    assert result.converged
    assert np.isclose(result.objective, by_cones(problem), rtol=2e-6)


def test_clusters_that_were_merged_wrongly_fall_apart():
    problem = pulled(moons(300), 0.3)
    one = np.tile(problem.loss.minimise().mean(axis=0), (300, 1))
    start = {"w0": one, "u0": np.zeros((problem.graph.n_edges, 2))}
    result = solve(problem, Merging(ladder=False), tol=1e-6, **start)
    assert result.converged
    assert np.isclose(result.objective, by_cones(problem), rtol=2e-6)


def test_merged_problem_has_the_objective_of_its_clusters():
    problem = pulled(moons(150), 2.0)
    found = Merged(problem)
    solver = Merging(ladder=False)
    for lam in (0.1, 0.5, 2.0):
        w, flow = found.at(lam, solver.rung)
        whole = problem.with_lam(lam)
        assert np.isclose(found.small.objective(found.w), whole.objective(w))
        small = found.small.graph
        assert small.n_nodes < 150 and np.array_equal(found.w[found.labels], w)
        between = found.labels[problem.graph.head] != found.labels[problem.graph.tail]
        assert np.isclose(small.weight.sum(), problem.graph.weight[between].sum())
        assert (whole.penalty.dual_norm(flow) <= whole.scale * (1 + 1e-9)).all()


def test_a_small_lam_needs_no_ladder():
    assert not len(lams(pulled(moons(100), 1e-3)))


def test_rising_path_is_certified_at_every_lam():
    problem = pulled(moons(400), 1.0)
    lams = [0.0, 0.02, 0.2, 2.0, 20.0, 200.0]
    results = list(rising(problem, lams, 1e-6))
    assert [result.problem.lam for result in results] == lams
    for result in results:
        assert result.converged
        other = solve(result.problem, PrimalDual() if result.problem.lam else "local", tol=1e-7)
        assert np.isclose(result.objective, other.objective, rtol=2e-6, atol=1e-12)


@pytest.mark.parametrize(("lam", "steps"), [(2.0, 30), (300.0, 1), (300.0, 30)])
def test_a_resumed_solve_comes_to_the_same_optimum(lam, steps, tmp_path):
    problem = pulled(moons(300), lam)
    whole = solve(problem, Merging(), tol=1e-9)
    file = tmp_path / "state.npz"
    solve(problem, Merging(), tol=None, max_iter=steps, checkpoint=file)  # whatever its gap is
    result = solve(problem, Merging(), tol=1e-9, resume=file)
    assert result.converged
    assert np.isclose(result.objective, whole.objective, rtol=1e-8)


@pytest.mark.parametrize(
    "problem",
    [
        Problem(chain(2), LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])]), lam=1.0),
        Problem(chain(2), None, loss=pulled(np.eye(2), 1.0).loss, penalty="l1", lam=1.0),
    ],
    ids=["rows", "l1"],
)
def test_says_what_it_needs(problem):
    with pytest.raises(ValueError, match=r"Merging needs losses h_i/2 .* Use solver=\"auto\"\."):
        solve(problem, "merging")


def test_factors_of_other_weights_lead_to_potentials_of_these():
    problem, rng = pulled(moons(600), 1.0), np.random.default_rng(0)
    graph = problem.graph
    potentials = _Potentials(problem, np.ones(graph.n_edges, dtype=bool))
    potentials.direct = True
    give, factors = rng.uniform(0.5, 1.0, graph.n_edges), []
    near, far = (give * rng.uniform(low, 1.0, graph.n_edges) ** 4 for low in (0.9, 0.05))
    for weights in (give, near, far):
        right = graph.div(rng.standard_normal((graph.n_edges, problem.d)))
        x = potentials.solve(weights, right, 0.03)
        left = right - graph.div(weights[:, None] * graph.diff(x))
        assert np.linalg.norm(left) <= 0.04 * np.linalg.norm(right)
        factors.append(potentials.factor)
    assert factors[0] is factors[1] and factors[1] is not factors[2]


def test_it_merges_as_finely_as_is_asked():
    problem = pulled(moons(400), 300.0)
    asked = []

    class Watched(Merging):
        def rung(self, problem, w, u, tol):
            asked.append(tol)
            return super().rung(problem, w, u, tol)

    for tol in (1e-2, 1e-7):
        asked.clear()
        result = solve(problem, Watched(), tol=tol)
        assert result.converged and 0 <= result.gap <= tol
        assert asked and min(asked) == (1e-3 if tol == 1e-2 else 1e-5)


def test_without_a_tolerance_points_are_merged_as_well():
    problem = pulled(moons(300), 300.0)
    best = solve(problem, Merging(), tol=1e-9)
    result = solve(problem, Merging(), tol=None, max_iter=1)
    assert result.n_iter == 1
    assert np.isclose(result.objective, best.objective, rtol=1e-3)
    guessed = solve(problem, Merging(), tol=1e-6, certify=False)
    assert np.isclose(guessed.objective, best.objective, rtol=1e-5)


def test_iterations_go_on_from_where_merging_has_led():
    problem = pulled(moons(300), 300.0)
    method = Merging()
    zero = np.zeros((300, 2)), np.zeros((problem.graph.n_edges, 2))
    state = method.init(problem, *zero)
    method.step(problem, state)
    assert method.promising(problem, state, 1e-6)
    w, found = method.certify(problem, state, tol=1e-3, exact=False)
    before, flow = w.copy(), found.u.copy()
    assert not method.promising(problem, state, 1e-6)
    for _ in range(3):
        method.step(problem, state)
    np.testing.assert_array_equal(w, before)
    np.testing.assert_array_equal(found.u, flow)
    after, _ = state.iteration.unrelaxed(method.relax)
    assert problem.objective(after) <= 1.01 * found.objective
