"""The interior-point method: its formulas, its limits, and who takes over where it fails."""

import itertools
import warnings

import numpy as np
import pytest

from nefele import DataWarning, Graph, LocalData, Problem, path, solve
from nefele._systems.direct import SmallGraph
from nefele.graphs import chain, grid, sbm, star
from nefele.losses import Hinge, HuberLoss, Logistic, Multinomial, Poisson, Squared
from nefele.penalties import HuberPenalty, L1Norm, L2Norm, Lp
from nefele.solvers import Newton, PrimalDual, QuadraticCG, as_solver, run
from nefele.solvers.interior_point.cones import Cones, _central
from tests.contracts.cases import N_NODES, Tripled, UserGrad
from tests.problems import chain_problem, random_data
from tests.reference.oracle import oracle
from tests.solvers.problems import name, quiet, wooded
from tests.systems.forests import dense, product, psd

PENALTIES = [L2Norm(), L1Norm(), HuberPenalty(0.3)]
LOSSES = [
    Squared(),
    Squared(l2=0.1),
    Logistic(l2=0.01),
    Poisson(l2=0.01),
    HuberLoss(0.5),
    Multinomial(n_classes=3, l2=0.01),
]


def started(problem, total=1.0, seed=1):
    """Cones at a random central point."""
    rng = np.random.default_rng(seed)
    shape = problem.graph.n_edges, problem.d
    v, u = rng.standard_normal(shape), 0.1 * rng.standard_normal(shape)
    penalty = problem.penalty
    soft = {"delta": getattr(penalty, "delta", 0.0), "entrywise": penalty.entrywise}
    return Cones(problem.scale, v, u, total, **soft)


@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("shape", ["tree", "chain", "star"])
def test_agrees_with_the_primal_dual_method(shape, loss, penalty):
    problem = wooded(loss, penalty, shape=shape)
    found, other = quiet(problem, tol=1e-9), quiet(problem, PrimalDual(), tol=1e-7)
    assert found.converged and found.gap <= 1e-9 and found.certificate == "dual"
    assert found.n_iter <= 80
    rounding = 1e-14 * abs(found.objective)
    assert abs(found.objective - other.objective) <= found.gap_abs + other.gap_abs + rounding


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
def test_agrees_with_a_cone_solver(penalty, wide):
    problem = wooded(penalty=penalty, n=8, wide=wide, seed=3)
    found = quiet(problem, tol=1e-9)
    value, point = oracle(problem.graph, problem.data, Squared(), penalty, problem.lam)
    assert found.objective == pytest.approx(min(point, value or point), rel=1e-6)
    assert found.objective - found.gap_abs <= point


@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
@pytest.mark.parametrize("graph", [grid(3, 4), sbm([6, 6], 0.9, 0.3, seed=0)], ids=["grid", "sbm"])
def test_small_graphs_with_cycles(graph, penalty):
    data = random_data(np.random.default_rng(0), [6, 0, 1] * 4, 2)
    problem = Problem(graph, data, penalty=penalty, lam=0.2)
    found, other = solve(problem, "newton", tol=1e-7), solve(problem, PrimalDual(), tol=1e-7)
    assert found.converged
    assert abs(found.objective - other.objective) <= found.gap_abs + other.gap_abs


@pytest.mark.parametrize("neighbours", [4, 8, None])
def test_factors_solve_the_system(neighbours):
    """Of grids, and of a graph in which all are neighbours."""
    rng, pairs = np.random.default_rng(0), itertools.combinations(range(9), 2)
    graph = grid(3, 3, neighbors=neighbours) if neighbours else Graph.from_edges(pairs)
    metric, C = psd(rng, 9, 2), psd(rng, graph.n_edges, 2)
    metric[2] = 0.0
    right = rng.standard_normal((9, 2))
    x, change, flow = SmallGraph(graph, 2).factorise(metric, C).solve(right)
    expected = np.linalg.solve(dense(graph, metric, C), right.ravel()).reshape(9, 2)
    np.testing.assert_allclose(x, expected, atol=1e-9)
    np.testing.assert_allclose(change, graph.diff(x))
    np.testing.assert_allclose(flow, product(C, change))


def scaling(x, z):
    """Nesterov and Todd's W by its definition: symmetric with W z = W^-1 x, so W^2 z = x."""
    J = np.diag([1.0] + [-1.0] * (len(x) - 1))
    a, b = np.sqrt(x @ J @ x), np.sqrt(z @ J @ z)
    y = x / a + J @ z / b
    y /= np.sqrt(y @ J @ y)
    square = a / b * (2 * np.outer(y, y) - J)
    values, vectors = np.linalg.eigh(square)
    assert (values > 0).all()
    return vectors @ np.diag(np.sqrt(values)) @ vectors.T


def jordan(a, b):
    return np.concatenate([[a @ b], a[0] * b[1:] + b[0] * a[1:]])


def arrow(a):
    matrix = a[0] * np.eye(len(a))
    matrix[0, 1:] = matrix[1:, 0] = a[1:]
    return matrix


@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
def test_a_step_solves_the_linearised_conditions(penalty):
    """Each cone's W^2 dz + dx = -x + level z^-1 - W (l \\ (W^-1 dx o W dz)), written out."""
    problem = wooded(penalty=penalty, n=5, d=3)
    cones, rng = started(problem), np.random.default_rng(2)
    cones.u *= 0.9  # off the central path
    soft = cones.soft[:, None]
    C, shape = cones.scale(), cones.shape
    predictor = None
    for level, rest, bend in ((0.0, 1.0, 0.0), (0.3, 0.7, 0.6)):
        change = rng.standard_normal(shape)
        pull = cones.aim(level, rest, bend)
        cones.direct(change, product(C, change), rest)
        moved = change.reshape(cones.v.shape) + rest * cones.off - soft * cones.du
        np.testing.assert_allclose(cones.dv, moved, atol=1e-10)
        np.testing.assert_allclose(
            cones.du, (product(C, change) + pull).reshape(cones.du.shape), atol=1e-10
        )
        for e in range(len(cones.t)):
            x, z = np.r_[cones.t[e], cones.v[e]], np.r_[cones.s[e], -cones.u[e]]
            dx, dz = np.r_[cones.dt[e], cones.dv[e]], np.r_[0.0, -cones.du[e]]
            W = scaling(x, z)
            np.testing.assert_allclose(W @ z, np.linalg.solve(W, x), atol=1e-10)
            inverse = np.r_[z[0], -z[1:]] / (z[0] ** 2 - z[1:] @ z[1:])
            q = -x + level * inverse
            if predictor is not None:
                before = predictor[e]
                bent = jordan(np.linalg.solve(W, before[0]), W @ before[1])
                q -= bend * W @ np.linalg.solve(arrow(W @ z), bent)
            np.testing.assert_allclose(W @ W @ dz + dx, q, atol=1e-8)
        columns = zip(cones.dt, cones.dv, cones.du, strict=True)
        predictor = [(np.r_[t, v], np.r_[0.0, -u]) for t, v, u in columns]


@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
def test_the_longest_step_ends_at_a_boundary(penalty):
    cones = started(wooded(penalty=penalty, n=9), seed=4)
    change = np.random.default_rng(5).standard_normal(cones.shape)
    C = cones.scale()
    cones.aim(0.0, 1.0, 0.0)
    cones.direct(change, product(C, change), 1.0)

    def room(step):
        v, u = cones.v + step * cones.dv, cones.u + step * cones.du
        left = cones.t + step * cones.dt - np.linalg.norm(v, axis=1)
        return min(left.min(), (cones.s - np.linalg.norm(u, axis=1)).min())

    assert room(0.999 * cones.longest) > 0 > room(1.001 * cones.longest)
    step = 0.5 * cones.longest
    expected = cones.ahead(step)
    cones.move(step, 1.0)
    total = cones.t @ cones.s - np.vdot(cones.u, cones.v)
    assert cones.total == expected == pytest.approx(total)


def test_starts_are_central_and_near():
    rng = np.random.default_rng(0)
    s = 10 ** rng.uniform(-3, 3, 50)
    v, u = rng.standard_normal((2, 50, 3))
    v[:20] = 0.0
    u *= (s / np.linalg.norm(u, axis=1))[:, None]
    u[:20] *= 0.5
    u[20:] = s[20:, None] * v[20:] / np.linalg.norm(v[20:], axis=1, keepdims=True)
    for level in (1.0, 1e-9):
        t, v1, u1 = _central(s, v, u, level)
        room = s**2 - (u1**2).sum(axis=1)
        np.testing.assert_allclose(t * s - (u1 * v1).sum(axis=1), level, rtol=1e-3)
        np.testing.assert_allclose(v1 * s[:, None], t[:, None] * u1, atol=1e-9 * s.max())
        assert (room > 0).all() and (t > np.linalg.norm(v1, axis=1)).all()
    np.testing.assert_allclose(v1, v, atol=1e-5)
    np.testing.assert_allclose(u1 / s[:, None], u / s[:, None], atol=1e-5)


@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Poisson(l2=0.1)], ids=name)
def test_every_iterate_is_inside(loss, penalty):
    problem = wooded(loss, penalty, wide=True)
    zero = np.zeros((problem.graph.n_nodes, 2)), np.zeros((problem.graph.n_edges, 2))
    solver = Newton()
    state = solver.init(problem, *zero)
    cones = state.terms.edges.cores[0]
    while cones.total > 1e-9 * cones.first:
        before = cones.total
        solver.step(problem, state)
        assert (cones.t > np.linalg.norm(cones.v, axis=1)).all()
        assert (problem.penalty.domain_ratio(state.u, problem.scale) < 1).all()
        assert cones.total < 1.5 * before
    assert state.steps < 40


def test_nodes_out_of_reach_and_alone():
    graph = Graph.from_edges([(0, 1), (1, 2), (4, 5)], nodes=np.arange(6))
    data = LocalData.from_list(
        [([[1.0]], [0.0]), None, ([[1.0]], [4.0]), ([[2.0]], [6.0]), None, None]
    )
    with pytest.warns(DataWarning, match="not connected to any data"):
        result = solve(Problem(graph, data, lam=1.0), "newton", w0=np.ones((6, 1)))
    np.testing.assert_allclose(result.w[[0, 2, 3, 4, 5], 0], [0.5, 3.5, 3, 0, 0], atol=1e-3)
    assert 0.5 - 1e-3 <= result.w[1, 0] <= 3.5 + 1e-3


def test_fused_nodes_are_exactly_equal():
    rng = np.random.default_rng(0)
    true = np.repeat([[0.0, 1.0], [3.0, -1.0]], 150, axis=0)
    X = rng.standard_normal((300, 4, 2))
    y = np.einsum("irj,ij->ir", X, true) + 0.1 * rng.standard_normal((300, 4))
    data = LocalData.from_list(list(zip(X, y, strict=True)))
    for lam in (0.5, 5.0):
        result = solve(Problem(chain(300), data, lam=lam), "newton")
        few = len(np.unique(result.clusters()))
        assert 1 < few < 20
        assert len(np.unique(result.w, axis=0)) == len(np.unique(result.clusters(tol=0))) == few


def test_a_perfect_fit_and_labels_that_are_zero():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 4, 2))
    for true in (np.zeros(2), np.array([1.0, -2.0])):
        data = LocalData.from_list([(x, x @ true) for x in X])
        result = solve(Problem(chain(5), data, lam=1.0), "newton")
        assert result.converged
        np.testing.assert_allclose(result.w, np.tile(true, (5, 1)), atol=1e-3)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_units_do_not_matter(scale):
    problem = wooded(n=30)
    other = problem.data
    scaled = LocalData(other.X, scale * other.y, other.ptr)
    first = solve(problem, "newton", tol=1e-8)
    second = solve(Problem(problem.graph, scaled, lam=scale * problem.lam), "newton", tol=1e-8)
    assert second.n_iter == first.n_iter
    np.testing.assert_allclose(second.w / scale, first.w, atol=1e-3)


def test_a_warm_start_saves_steps_and_a_bad_one_does_no_harm():
    problem = wooded(n=200, lam=0.3)
    cold = solve(problem, "newton")
    near = solve(problem.with_lam(0.28), "newton", w0=cold.w, u0=cold.u)
    assert near.converged and near.n_iter < cold.n_iter
    rng = np.random.default_rng(0)
    w0 = 1e3 * rng.standard_normal(cold.w.shape)
    u0 = 1e3 * rng.standard_normal(cold.u.shape)
    for start in ({"w0": w0}, {"u0": u0}, {"w0": w0, "u0": u0}, {"w0": cold.w}):
        far = solve(problem, "newton", **start)
        assert far.converged
        assert abs(far.objective - cold.objective) <= far.gap_abs + cold.gap_abs


def test_a_given_start_is_kept_until_the_first_step():
    problem = wooded()
    best = solve(problem, "newton", tol=1e-10)
    state = Newton().init(problem, best.w, best.u)
    w, u = Newton().point(problem, state)
    np.testing.assert_array_equal(w, best.w)
    np.testing.assert_array_equal(u, best.u)
    assert problem.certificate(w, u).gap_abs <= 1e-9 * best.objective


def test_further_steps_at_the_end_change_nothing():
    problem = wooded()
    first, second = (run(problem, Newton(), tol=None, max_iter=k) for k in (60, 70))
    assert first.gap <= 1e-10
    np.testing.assert_array_equal(first.w, second.w)


def test_a_tolerance_out_of_reach_ends_all_the_same():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = solve(wooded(), "newton", tol=1e-300, max_iter=300)
    assert result.gap <= 1e-10


class Anchor:
    """||w - a||^2 with a gradient; the Hessian is what the caller says."""

    d = 2

    def __init__(self, n, factor):
        self.a = np.random.default_rng(0).standard_normal((n, 2))
        self.factor = factor

    def value(self, w):
        return ((w - self.a) ** 2).sum(axis=1)

    def grad(self, w):
        return 2 * (w - self.a)

    def hess(self, w):
        return np.tile(self.factor * 2 * np.eye(2), (len(w), 1, 1))


@pytest.mark.parametrize("factor", [1.0, -3.0, 30.0, 1e-6])
def test_a_wrong_hessian_is_survived(factor):
    """No certified gap for a user's loss, but the right point."""
    right = Problem(chain(6), None, loss=Anchor(6, 1.0), lam=0.3)
    best = solve(right, PrimalDual(), tol=None, max_iter=3000)
    wrong = Problem(chain(6), None, loss=Anchor(6, factor), lam=0.3)
    result = solve(wrong, "newton", tol=None, max_iter=3000)
    assert result.objective == pytest.approx(best.objective, rel=1e-5)


def test_separable_labels_are_told():
    data = LocalData.from_list([(np.eye(2), np.ones(2))] * 6)
    with pytest.warns(DataWarning, match="has no minimiser"):
        result = solve(Problem(chain(6), data, loss="logistic", lam=0.1), "newton", max_iter=300)
    assert np.isfinite(result.w).all() and result.objective <= 1e-3


def test_a_path_over_a_chain():
    rng = np.random.default_rng(0)
    data = random_data(rng, [6] * 120, 2)
    problem = Problem(chain(120), data, lam=1.0)
    assert isinstance(as_solver("auto", problem), Newton)
    found = path(problem, n_lams=8, tol=1e-6)
    assert found.converged and found.n_clusters[0] <= 2 < found.n_clusters[-1]
    for result in found.results[1::3]:
        other = solve(result.problem, PrimalDual(), tol=1e-5)
        assert abs(other.objective - result.objective) <= other.gap_abs + result.gap_abs


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: chain_problem(n=200), Newton),
        (lambda: chain_problem(n=200, penalty="l1"), Newton),
        (lambda: chain_problem(n=200, penalty="huber"), Newton),
        (lambda: chain_problem(n=200, loss=Logistic()), Newton),
        (lambda: chain_problem(n=5), PrimalDual),
        (lambda: chain_problem(n=200, penalty="linf"), Newton),
        (lambda: chain_problem(n=200, loss=Squared(l1=0.1)), Newton),
        (lambda: chain_problem(n=200, loss="absolute"), Newton),
        (lambda: chain_problem(n=3, loss=Hinge(), penalty="squared_l2"), Newton),
        (lambda: chain_problem(n=3, loss=Hinge(), penalty=Lp(3)), Newton),
        (lambda: chain_problem(n=200, penalty="squared_l2"), QuadraticCG),
        (lambda: chain_problem(n=20, d=40), PrimalDual),
        (lambda: wooded(n=200, shape="forest"), Newton),
        (
            lambda: Problem(
                grid(20, 20), random_data(np.random.default_rng(0), [3] * 400, 2), lam=1.0
            ),
            Newton,
        ),
        (
            lambda: Problem(
                grid(30, 30), random_data(np.random.default_rng(0), [3] * 900, 3), lam=1.0
            ),
            Newton,
        ),
        (
            lambda: Problem(
                grid(50, 50), random_data(np.random.default_rng(0), [3] * 2500, 3), lam=1.0
            ),
            PrimalDual,
        ),
        (
            lambda: Problem(
                grid(50, 50), random_data(np.random.default_rng(0), [3, 0] * 1250, 3), lam=1.0
            ),
            Newton,
        ),
        (
            lambda: Problem(
                grid(90, 90), random_data(np.random.default_rng(0), [3] * 8100, 3), lam=1.0
            ),
            PrimalDual,
        ),
        (
            lambda: Problem(
                sbm([300], 0.06, 0.0, seed=0),
                random_data(np.random.default_rng(0), [3] * 300, 1),
                lam=1.0,
            ),
            PrimalDual,
        ),
        (
            lambda: Problem(
                sbm([300], 0.3, 0.0, seed=0),
                random_data(np.random.default_rng(0), [3] * 300, 4),
                lam=1.0,
            ),
            PrimalDual,
        ),
    ],
)
def test_when_auto_takes_it(make, expected):
    assert type(as_solver("auto", make())) is expected


def test_a_star_with_many_leaves():
    data = random_data(np.random.default_rng(0), [0] + [3] * 2000, 2)
    result = solve(Problem(star(2001), data, lam=0.3))
    assert result.converged and result.n_iter < 40


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: solve(Problem(chain(N_NODES), None, UserGrad(), lam=1.0), "newton"),
            "Newton needs one of nefele's penalties and losses with gradients and Hessians, or "
            "with kinks that it knows: those of nefele. Got L2Norm() and UserLoss.",
        ),
        (
            lambda: solve(wooded(penalty=Tripled()), "newton"),
            "Newton needs one of nefele's penalties",
        ),
        (
            lambda: solve(
                Problem(
                    sbm([300, 300], 0.5, 0.5, seed=0),
                    random_data(np.random.default_rng(0), [2] * 600, 7),
                    lam=1.0,
                ),
                "newton",
            ),
            "Newton needs a graph without cycles, n_nodes * d <= 4000, or (n_nodes + 2 n_edges)",
        ),
        (
            lambda: solve(chain_problem(n=60, d=500), "newton"),
            "Newton needs (n_nodes + n_edges) * d^2 <= 20000000; got 29750000.",
        ),
    ],
)
def test_errors(build, message):
    with pytest.raises(ValueError) as error:
        build()
    assert str(error.value).startswith(message)
    assert str(error.value).endswith('Use solver="auto".')
