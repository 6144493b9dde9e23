"""Interior-point steps for kinks without a reduced solve: linf, absolute and hinge."""

import numpy as np
import pytest

from nefele import ConvexClustering, DataWarning, Graph, LocalData, Problem, path, solve
from nefele._systems.direct import SmallGraph
from nefele.graphs import chain, grid, sbm
from nefele.losses import Absolute, Hinge, HuberLoss, Logistic, Squared
from nefele.penalties import (
    HuberPenalty,
    L1Norm,
    L2Norm,
    LinfNorm,
    Lp,
    Partial,
    Quadratic,
    SquaredL2,
)
from nefele.solvers import Newton, PrimalDual, as_solver
from nefele.solvers.interior_point.faces import Faces, _sum_of_others
from nefele.solvers.interior_point.kinks import Smooth, sources
from nefele.solvers.interior_point.reach import pays
from nefele.solvers.interior_point.rows import RowCones
from nefele.solvers.interior_point.terms import Terms
from nefele.solvers.primal_dual.quotient import same_clusters
from tests.contracts.cases import Tripled
from tests.problems import chain_problem, kind_of, random_data, random_graph, random_problem
from tests.reference.oracle import oracle
from tests.solvers.problems import name, quiet, wooded
from tests.systems.forests import product

KINKED = [Absolute(), Absolute(l2=0.1), Hinge(), Hinge(l2=0.05)]
EDGES = [
    L2Norm(),
    L1Norm(),
    LinfNorm(),
    HuberPenalty(0.3),
    SquaredL2(),
    Quadratic(np.diag([1.0, 0.3])),
]
PAIRS = [(loss, penalty) for loss in KINKED for penalty in EDGES]
PAIRS += [(loss, LinfNorm()) for loss in (Squared(), Squared(l2=0.1), Logistic(l2=0.01))]


def tangled(loss, penalty, seed, n=8):
    """Cycles, several components, nodes without rows and without edges, and sample weights."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, n, wide=seed % 2 == 1, density=0.3)
    counts = rng.choice([0, 1, 6, 8], n)
    counts[0] = 8
    plain = random_data(rng, counts, 2, kind_of(loss))
    weight = rng.choice([0.0, 0.5, 2.0], plain.n_rows)
    weight[plain.ptr[:-1][counts > 0]] = 1.0
    data = LocalData.from_long(plain.X, plain.y, plain.row_node, sample_weight=weight)
    return Problem(graph, data, loss=loss, penalty=penalty, lam=float(10 ** rng.uniform(-2, 0)))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("loss", "penalty"), PAIRS, ids=name)
def test_agrees_with_a_cone_solver(loss, penalty, seed):
    problem = tangled(loss, penalty, seed)
    found = quiet(problem, tol=1e-7)
    assert found.converged and found.certificate == "dual" and found.n_iter <= 40
    value, point = oracle(problem.graph, problem.data, loss, penalty, problem.lam)
    best = point if value is None else min(value, point)
    size = max(abs(best), 1e-6 * problem.objective_at_zero)
    assert found.objective <= best + 1e-6 * size
    assert found.objective - found.gap_abs <= point + 1e-9 * size  # the bound is one


@pytest.mark.parametrize("shape", ["tree", "chain", "star"])
@pytest.mark.parametrize(("loss", "penalty"), PAIRS, ids=name)
def test_converges_over_trees(loss, penalty, shape):
    found = quiet(wooded(loss, penalty, shape=shape), tol=1e-8)
    assert found.converged and found.certificate == "dual" and found.n_iter <= 40


@pytest.mark.parametrize(
    "graph", [grid(6, 6), sbm([15, 15], 0.5, 0.1, seed=0)], ids=["grid", "sbm"]
)
@pytest.mark.parametrize(("loss", "penalty"), PAIRS[::3], ids=name)
def test_the_gap_bounds_what_is_left(loss, penalty, graph):
    data = random_data(np.random.default_rng(0), [6, 0, 1] * (graph.n_nodes // 3), 2, kind_of(loss))
    problem = Problem(graph, data, loss=loss, penalty=penalty, lam=0.2)
    best = solve(problem, "newton", tol=1e-8)
    for tol in (1e-1, 1e-3):
        rough = solve(problem, "newton", tol=tol)
        assert rough.gap <= tol and rough.objective >= best.objective - best.gap_abs
        assert rough.objective - best.objective <= rough.gap_abs + 1e-12 * best.objective


def test_agrees_with_linear_programming():
    """Absolute losses with the linf norm, written out as min c^T x."""
    from scipy.optimize import linprog

    problem = tangled(Absolute(), LinfNorm(), 2)
    graph, data, n = problem.graph, problem.data, problem.graph.n_nodes
    D = np.kron(graph.incidence_t.toarray().T, np.eye(2))
    X = np.zeros((data.n_rows, 2 * n))
    for r, i in enumerate(data.row_node):
        X[r, 2 * i : 2 * i + 2] = data.X[r]
    rows, edges = np.eye(data.n_rows), np.kron(np.eye(graph.n_edges), np.ones((2, 1)))
    none = np.zeros((data.n_rows, graph.n_edges)), np.zeros((len(edges), data.n_rows))
    upper = [np.hstack([s * X, -rows, none[0]]) for s in (1, -1)]
    upper += [np.hstack([s * D, none[1], -edges]) for s in (1, -1)]
    right = np.concatenate([data.y, -data.y, np.zeros(2 * len(edges))])
    cost = np.concatenate([np.zeros(2 * n), data.row_weight, problem.scale])
    free = [(None, None)] * (2 * n) + [(0, None)] * (len(cost) - 2 * n)
    best = linprog(cost, A_ub=np.vstack(upper), b_ub=right, bounds=free).fun
    assert quiet(problem, tol=1e-9).objective == pytest.approx(best, rel=1e-8)


def test_medians_over_a_chain_that_is_pulled_together():
    """At a large lam all nodes share the weighted median of all labels."""
    y = np.array([0.0, 1.0, 2.0, 7.0, 100.0])
    data = LocalData.from_list([([[1.0]], [value]) for value in y])
    for penalty in ("l2", "l1", "linf"):
        found = solve(Problem(chain(5), data, loss="absolute", penalty=penalty, lam=10.0), "newton")
        np.testing.assert_allclose(found.w, 2.0, atol=1e-4)
        assert len(np.unique(found.w)) == 1


def started(problem, seed=1):
    """Faces at a random point inside, off the central path, with everything scaled."""
    rng = np.random.default_rng(seed)
    faces = Faces(problem.scale, rng.standard_normal((problem.graph.n_edges, problem.d)), 1.0)
    for x in (faces.p, faces.q):
        x *= rng.uniform(0.5, 1.5, x.shape)
    both = (faces.p + faces.q).sum(axis=1, keepdims=True)
    faces.p *= faces.s[:, None] / both
    faces.q *= faces.s[:, None] / both
    faces.v += 0.5 * faces.t[:, None] * rng.uniform(-1, 1, faces.v.shape)
    return faces


@pytest.mark.parametrize("d", [1, 3])
def test_a_step_of_faces_solves_the_linearised_conditions(d):
    problem, rng = wooded(penalty="linf", n=6, d=d), np.random.default_rng(2)
    faces = started(problem)
    C = faces.scale()
    a, b = faces.t[:, None] - faces.v, faces.t[:, None] + faces.v
    second = 0.0, 0.0
    for level, rest, bend in ((0.0, 1.0, 0.0), (0.03, 0.7, 0.6)):
        change = rng.standard_normal(faces.v.shape)
        pull = faces.aim(level, rest, bend)
        faces.direct(change, product(C, change), rest)
        np.testing.assert_allclose(faces.dv, change + rest * faces.off)
        np.testing.assert_allclose(faces.dt[:, None] - faces.dv, faces.da, atol=1e-10)
        np.testing.assert_allclose(faces.dt[:, None] + faces.dv, faces.db, atol=1e-10)
        np.testing.assert_allclose(faces.dp - faces.dq, product(C, change) + pull, atol=1e-10)
        np.testing.assert_allclose((faces.dp + faces.dq).sum(axis=1), 0.0, atol=1e-10)
        for x, dx, z, dz, bent in (
            (a, faces.da, faces.p, faces.dp, second[0]),
            (b, faces.db, faces.q, faces.dq, second[1]),
        ):
            np.testing.assert_allclose(x * dz + z * dx, level / 2 - x * z - bend * bent, atol=1e-10)
        second = faces.da * faces.dp, faces.db * faces.dq


def test_faces_end_where_they_say():
    problem = wooded(penalty="linf", n=9, d=3)
    faces, rng = started(problem), np.random.default_rng(5)
    C, change = faces.scale(), rng.standard_normal((problem.graph.n_edges, 3))
    faces.aim(0.0, 1.0, 0.0)
    faces.direct(change, product(C, change), 1.0)

    def room(step):
        t, v = (faces.t + step * faces.dt)[:, None], faces.v + step * faces.dv
        duals = faces.p + step * faces.dp, faces.q + step * faces.dq
        return min((t - np.abs(v)).min(), *(x.min() for x in duals))

    assert room(0.999 * faces.longest) > 0 > room(1.001 * faces.longest)
    step = 0.5 * faces.longest
    expected, flow = faces.ahead(step), faces.ahead_flow(step)
    faces.move(step, 1.0)
    assert faces.total == expected
    assert expected == pytest.approx(faces.s @ faces.t - np.vdot(faces.flow, faces.v))
    np.testing.assert_allclose(faces.flow, flow, atol=1e-12)
    assert (problem.penalty.domain_ratio(flow, problem.scale) < 1 + 1e-12).all()


def test_faces_of_one_entry_are_cones_of_one_entry():
    linf, l1 = (wooded(penalty=p, n=40, d=1, lam=0.5) for p in ("linf", "l1"))
    first, second = (quiet(problem, tol=1e-9) for problem in (linf, l1))
    assert first.objective == pytest.approx(second.objective, rel=1e-8)


def test_sums_of_others_do_not_cancel():
    values = np.array([[1e20, 1.0, 2.0], [3.0, 4.0, 5.0]])
    np.testing.assert_array_equal(_sum_of_others(values)[:, 0], [3.0, 9.0])
    np.testing.assert_array_equal(_sum_of_others(values)[1], [9.0, 8.0, 7.0])
    np.testing.assert_array_equal(_sum_of_others(np.ones((2, 1))), np.zeros((2, 1)))


@pytest.mark.parametrize("loss", [Absolute(), Hinge()], ids=name)
def test_rows_give_the_loss_and_slopes_inside_their_boxes(loss):
    """f(z) = (high - low)/2 |z - y| + (high + low)/2 (z - y), and its gradient away from kinks."""
    problem = tangled(loss, L2Norm(), 0)
    bound, rng = problem.loss, np.random.default_rng(0)
    w = rng.standard_normal((problem.graph.n_nodes, 2))
    found = sources(problem, np.ones(len(w), dtype=bool))
    rows = RowCones(found, w, 1e-13)
    assert rows.count == len(found[0].s) < bound.data.n_rows
    gap = rows.off_labels(w)[:, 0]
    linear = (
        bound.data.row_weight * (bound.low + bound.high) / 2 * (bound.predict(w) - bound.data.y)
    )
    value = rows.s @ np.abs(gap) + linear.sum()
    assert value == pytest.approx(bound.value(w).sum())
    smooth = Smooth(problem)
    slope = smooth.grad(np.zeros_like(w)) + rows.to_nodes(rows.s * np.sign(gap))
    np.testing.assert_allclose(slope, bound.grad(w), atol=1e-12)


@pytest.mark.parametrize("penalty", [L1Norm(), LinfNorm(), SquaredL2()], ids=name)
def test_a_correction_lengthens_or_is_taken_back(penalty):
    problem = wooded(Absolute(), penalty, n=30, seed=2)
    solver = Newton()
    zero = np.zeros((30, 2)), np.zeros((problem.graph.n_edges, 2))
    state = solver.init(problem, *zero)
    terms = state.terms
    while terms.total > 1e-8 * terms.first:
        solver.step(problem, state)
        assert (terms.rows.t > np.abs(terms.rows.v[:, 0])).all()
        assert (np.abs(terms.rows.u[:, 0]) < terms.rows.s).all()
        assert (problem.penalty.domain_ratio(state.u, problem.scale) <= 1 + 1e-12).all()
        saved = terms.save()
        flow, ahead = terms.edges.ahead_flow(0.3), terms.ahead(0.3)
        terms.restore(saved)
        np.testing.assert_array_equal(terms.edges.ahead_flow(0.3), flow)
        assert terms.ahead(0.3) == ahead
    assert state.steps < 40


@pytest.mark.parametrize("penalty", [L2Norm(), L1Norm(), LinfNorm()], ids=name)
@pytest.mark.parametrize("loss", [Absolute(), Hinge(l2=0.01)], ids=name)
def test_a_huge_lam_gives_the_pooled_fit(loss, penalty):
    problem = random_problem(3, loss, penalty)
    for lam in (1e2, 1e6):
        found = quiet(problem.with_lam(lam))
        assert found.converged and found.n_iter < 40
        spread = [np.ptp(found.w[problem.parts == k], axis=0).max() for k in set(problem.parts)]
        assert max(spread) == 0


def test_data_only_at_nodes_without_edges():
    """No cones at all: quadratic edges between nodes that have no rows."""
    graph = Graph.from_edges([(0, 1)], nodes=np.arange(3))
    data = LocalData.from_list([None, None, ([[1.0], [1.0], [1.0]], [0.0, 1.0, 5.0])])
    problem = Problem(graph, data, loss="absolute", penalty="squared_l2", lam=1.0)
    with pytest.warns(DataWarning, match="not connected to any data"):
        result = solve(problem, "newton")
    np.testing.assert_allclose(result.w[:, 0], [0.0, 0.0, 1.0], atol=1e-6)


@pytest.mark.parametrize("penalty", ["l2", "squared_l2", "linf"])
def test_separable_labels_reach_zero(penalty):
    """The hinge loss of separable rows is zero far enough out, and there are many optima."""
    data = LocalData.from_list([(np.eye(2), np.ones(2)), (2 * np.eye(2), np.ones(2))] * 3)
    result = solve(Problem(chain(6), data, loss="hinge", penalty=penalty, lam=0.1), "newton")
    assert result.converged and result.objective <= 1e-6
    assert np.abs(result.w).max() < 100


def test_a_perfect_fit():
    X, true = np.random.default_rng(0).standard_normal((5, 4, 2)), np.array([1.0, -2.0])
    data = LocalData.from_list([(x, x @ true) for x in X])
    result = solve(Problem(chain(5), data, loss="absolute", lam=1.0), "newton")
    assert result.converged
    np.testing.assert_allclose(result.w, np.tile(true, (5, 1)), atol=1e-3)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_units_do_not_matter(scale):
    problem = wooded(Absolute(), n=30)
    data = LocalData(problem.data.X, scale * problem.data.y, problem.data.ptr)
    first = solve(problem, "newton", tol=1e-8)
    second = solve(
        Problem(problem.graph, data, loss="absolute", lam=problem.lam), "newton", tol=1e-8
    )
    assert second.converged
    assert second.objective == pytest.approx(scale * first.objective, rel=1e-6)


def test_given_starts_do_no_harm():
    problem = wooded(Hinge(l2=0.01), "linf", n=40)
    cold, rng = solve(problem, "newton"), np.random.default_rng(0)
    again = solve(problem, "newton", w0=cold.w, u0=cold.u)
    assert again.converged and again.n_iter <= cold.n_iter
    assert abs(again.objective - cold.objective) <= again.gap_abs + cold.gap_abs
    wild = {"w0": 1e3 * rng.standard_normal(cold.w.shape), "u0": rng.standard_normal(cold.u.shape)}
    far = solve(problem, "newton", **wild)
    assert far.converged
    assert abs(far.objective - cold.objective) <= far.gap_abs + cold.gap_abs


def test_a_path_with_the_linf_norm_keeps_clusters_and_agrees():
    rng, true = np.random.default_rng(0), np.repeat([[0.0, 1.0], [3.0, -1.0]], 20, axis=0)
    X = rng.standard_normal((40, 6, 2))
    y = np.einsum("irj,ij->ir", X, true) + 0.1 * rng.standard_normal((40, 6))
    data = LocalData.from_list(list(zip(X, y, strict=True)))
    problem = Problem(chain(40), data, penalty="linf", lam=1.0)
    found = path(problem, n_lams=12, tol=1e-6)
    assert found.converged and found.n_clusters[0] == 1 < found.n_clusters[-1]
    assert any(result.n_iter == 0 for result in found.results[1:])  # the clusters before sufficed
    for result in found.results[::4]:
        cold = solve(result.problem, "newton", tol=1e-8)
        assert abs(cold.objective - result.objective) <= cold.gap_abs + result.gap_abs


def test_the_best_point_with_given_clusters():
    """The quotient's optimum, spread over its clusters, has the same objective and a flow."""
    problem = chain_problem(n=9, penalty="linf", lam=0.3)
    w = np.repeat(np.arange(3.0), 3)[:, None] * np.ones((1, 2))
    smaller = []

    def reduced(small):
        smaller.append((small, solve(small, "newton", tol=1e-10)))
        return smaller[0][1].w, smaller[0][1].u

    point, flow = same_clusters(problem, reduced, w, np.zeros((8, 2)))
    small, result = smaller[0]
    assert small.graph.n_nodes == 3 and len(np.unique(point, axis=0)) == 3
    assert problem.objective(point) == pytest.approx(result.objective)
    np.testing.assert_array_equal(flow[[2, 5]], result.u)
    assert not flow[[0, 1, 3, 4, 6, 7]].any()
    # any other point with these clusters is worse
    for seed in range(5):
        other = point + 0.1 * np.repeat(
            np.random.default_rng(seed).standard_normal((3, 2)), 3, axis=0
        )
        assert problem.objective(other) > problem.objective(point)
    assert same_clusters(problem, reduced, np.arange(18.0).reshape(9, 2), flow) is None


def test_convex_clustering_with_the_linf_norm():
    rng = np.random.default_rng(0)
    points = np.concatenate(
        [c + 0.3 * rng.standard_normal((15, 2)) for c in ((0, 0), (4, 0), (0, 5))]
    )
    model = ConvexClustering(n_clusters=3, penalty="linf").fit(points)
    np.testing.assert_array_equal(model.labels_, np.repeat([0, 1, 2], 15))
    assert model.path_.converged and model.dual_gap_ <= 1e-6


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: random_problem(0, Absolute(), "l2"), Newton),
        (lambda: random_problem(0, Hinge(), "squared_l2"), Newton),
        (lambda: random_problem(0, Squared(), "linf"), Newton),
        (lambda: random_problem(0, Squared(l1=0.1), "linf"), Newton),
        (lambda: random_problem(0, Squared(), Lp(np.inf)), Newton),
        (lambda: random_problem(0, Absolute(), Lp(3)), Newton),
        (lambda: random_problem(0, Squared(), Lp(3)), Newton),
        (lambda: random_problem(0, Squared(), Partial(L2Norm(), [0])), Newton),
        (lambda: random_problem(0, HuberLoss(), "l2"), Newton),
        (lambda: random_problem(0, Logistic(), "squared_l2"), PrimalDual),
        (
            lambda: Problem(
                sbm([300, 300], 0.3, 0.3, seed=0),
                random_data(np.random.default_rng(0), [1] * 600, 8),
                loss="absolute",
                lam=1.0,
            ),
            PrimalDual,
        ),
    ],
)
def test_when_auto_takes_it(make, expected):
    problem = make()
    assert type(as_solver("auto", problem)) is expected
    assert pays(problem) is (expected is Newton)


def test_the_guess_of_the_time_knows_bands_from_dense_graphs():
    wide, narrow = sbm([400, 400], 0.02, 0.02, seed=0), grid(2, 400)
    assert SmallGraph.seconds(narrow, 2) < 1e-2 * SmallGraph.seconds(wide, 2)
    assert SmallGraph.seconds(sbm([300, 300], 0.5, 0.5, seed=0), 7) == np.inf  # check would raise


def test_what_fits():
    for loss in (Squared(), Absolute(), Squared(l1=0.1), HuberLoss(), Logistic()):
        for penalty in ("l2", "linf", "squared_l2", Lp(3), Partial(Lp(1.5), [0, 1])):
            problem = chain_problem(loss=loss, penalty=penalty)
            assert Terms.fit(problem) and Newton.fits(problem)
    assert not Terms.fit(chain_problem(penalty=Tripled()))
