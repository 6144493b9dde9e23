"""ADMM, primal-dual gradient, stochastic primal-dual and FedRelax: formulas, limits, errors."""

import itertools

import numpy as np
import pytest

from nefele import DataWarning, Graph, LocalData, Problem, Status, solve
from nefele.losses import Absolute, HuberLoss, Logistic, Poisson, Squared
from nefele.penalties import HuberPenalty, L1Norm, L2Norm, Quadratic, SquaredL2
from nefele.solvers import ADMM, FedRelax, PrimalDualGradient, StochasticPrimalDual
from nefele.solvers.fedrelax import colours
from tests.problems import chain_problem, kind_of, random_data, random_graph

PENALTIES = [L2Norm(), L1Norm(), SquaredL2(), HuberPenalty(0.5)]
LOSSES = [Squared(), Logistic(l2=0.01), HuberLoss(0.5)]
Q = Quadratic([[2.0, 1.0], [1.0, 0.5]])
GENERAL = [ADMM(), PrimalDualGradient(), StochasticPrimalDual()]
RELAX = [FedRelax(), FedRelax("gauss-seidel")]


def name(thing):
    return type(thing).__name__


def network(loss="squared", penalty="l2", lam=0.2, seed=0):
    """Eight nodes: two without data, one with a single row, one (the last) without edges."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 8, density=0.5)
    keep = (graph.head != 7) & (graph.tail != 7)
    graph = Graph(graph.ids, graph.head[keep], graph.tail[keep], graph.weight[keep])
    data = random_data(rng, [6, 0, 8, 1, 7, 0, 6, 6], 2, kind_of(loss))
    return Problem(graph, data, loss=loss, penalty=penalty, lam=lam)


def started(solver, problem, seed=3):
    """State after init from a random point whose flow is inside its domain."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((problem.graph.n_nodes, problem.d))
    u = rng.standard_normal((problem.graph.n_edges, problem.d))
    u = problem.penalty.prox_conjugate(u, problem.scale, np.ones(len(u)))
    return solver.init(problem, w, u)


def node_prox(problem, i, v, step):
    return problem.loss.restrict(np.array([i])).prox(v[None], np.array([step]))[0]


def ends(problem):
    return list(zip(problem.graph.head.tolist(), problem.graph.tail.tolist(), strict=True))


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
@pytest.mark.parametrize("solver", GENERAL, ids=name)
def test_agrees_with_auto(solver, penalty, loss):
    problem = network(loss, penalty)
    best, result = solve(problem, tol=1e-7), solve(problem, solver, tol=1e-5)
    assert result.status is Status.OPTIMAL and result.gap <= 1e-5
    assert result.certificate == "dual"
    rounding = 1e-14 * abs(best.objective)
    assert best.objective - best.gap_abs <= result.objective + rounding
    assert result.objective <= best.objective + result.gap_abs + rounding
    assert result.objective - result.gap_abs <= best.objective


@pytest.mark.parametrize("loss", [*LOSSES, Squared(l1=0.1), Absolute()], ids=name)
@pytest.mark.parametrize("penalty", [SquaredL2(), Q], ids=name)
@pytest.mark.parametrize("solver", RELAX, ids=["jacobi", "gauss-seidel"])
def test_fedrelax_agrees_with_auto(solver, penalty, loss):
    problem = network(loss, penalty)
    best, result = solve(problem, tol=1e-7), solve(problem, solver, tol=1e-5)
    assert result.status is Status.OPTIMAL and result.gap <= 1e-5
    rounding = 1e-14 * abs(best.objective)
    assert best.objective - best.gap_abs <= result.objective + rounding
    assert result.objective <= best.objective + result.gap_abs + rounding


@pytest.mark.parametrize("solver", [ADMM(), StochasticPrimalDual()], ids=name)
@pytest.mark.parametrize("loss", [Squared(l1=0.1), Absolute()], ids=name)
def test_losses_without_gradient(solver, loss):
    problem = network(loss)
    best, result = solve(problem, tol=1e-6), solve(problem, solver, tol=1e-4)
    assert result.converged
    assert result.objective <= best.objective + result.gap_abs


@pytest.mark.parametrize("penalty", [*PENALTIES, Q], ids=name)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_admm_equals_a_naive_loop(loss, penalty):
    """z and y for every edge end, the z-update by the penalty's prox."""
    problem, rho = network(loss, penalty), 0.7
    solver = ADMM(rho=rho, balance=False)
    state = started(solver, problem)
    w = state.w.copy()
    z = {(e, i): w[i] for e, edge in enumerate(ends(problem)) for i in edge}
    y = {}
    for e, (i, j) in enumerate(ends(problem)):
        y[e, i], y[e, j] = state.u[e] / rho, -state.u[e] / rho
    for _ in range(3):
        for i in range(7):
            mine = [z[key] - y[key] for key in z if key[1] == i]
            w[i] = node_prox(problem, i, np.mean(mine, axis=0), 1 / (rho * len(mine)))
        for e, (i, j) in enumerate(ends(problem)):
            a, b = w[i] + y[e, i], w[j] + y[e, j]
            gap = penalty.prox((a - b)[None], 2 * problem.scale[e : e + 1] / rho)[0]
            z[e, i], z[e, j] = (a + b + gap) / 2, (a + b - gap) / 2
            y[e, i], y[e, j] = a - z[e, i], b - z[e, j]
        solver.step(problem, state)
        np.testing.assert_allclose(state.w[:7], w[:7], rtol=1e-12, atol=1e-12)
        for e, (i, j) in enumerate(ends(problem)):
            np.testing.assert_allclose(state.u[e], rho * y[e, i], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(state.u[e], -rho * y[e, j], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_pd_gradient_equals_a_naive_loop(loss, penalty):
    problem, gamma = network(loss, penalty), 0.8
    solver = PrimalDualGradient(gamma=gamma)
    state = started(solver, problem)
    w, u, f = state.w.copy(), state.u.copy(), state.size
    solver.step(problem, state)
    steep = state.steep  # after backtracking
    after = w.copy()
    for i in range(7):
        grad = problem.loss.restrict(np.array([i])).grad(w[i : i + 1])[0]
        bend = steep[i]
        for e, (h, t) in enumerate(ends(problem)):
            grad = grad + u[e] * ((h == i) - (t == i))
            bend += f[e] / gamma * (i in (h, t))
        after[i] = w[i] - grad / bend
    np.testing.assert_allclose(state.w, after, rtol=1e-12, atol=1e-12)
    for e, (h, t) in enumerate(ends(problem)):
        sigma = f[e] / (2 * gamma)
        v = u[e] + sigma * (2 * after[h] - w[h] - 2 * after[t] + w[t])
        expected = penalty.prox_conjugate(v[None], problem.scale[e : e + 1], np.array([sigma]))[0]
        np.testing.assert_allclose(state.u[e], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("penalty", PENALTIES, ids=name)
@pytest.mark.parametrize("fraction", [0.01, 0.5, 1.0])
def test_spdhg_equals_a_naive_loop(fraction, penalty):
    problem = network("squared", penalty)
    solver = StochasticPrimalDual(fraction=fraction, gamma=0.8, seed=5)
    state = started(solver, problem)
    w, u, ahead = state.w.copy(), state.u.copy(), state.u.copy()
    m, rng = problem.graph.n_edges, np.random.default_rng(5)
    batch = max(1, round(fraction * m))
    tau, sigma = state.tau, state.sigma
    for _ in range(3):
        for i in range(7):
            out = sum(ahead[e] * ((h == i) - (t == i)) for e, (h, t) in enumerate(ends(problem)))
            w[i] = node_prox(problem, i, w[i] - tau[i] * out, tau[i])
        ahead = u.copy()
        for e in rng.choice(m, batch, replace=False):
            h, t = ends(problem)[e]
            v = (u[e] + sigma[e] * (w[h] - w[t]))[None]
            new = penalty.prox_conjugate(v, problem.scale[[e]], sigma[[e]])[0]
            ahead[e] = new + (new - u[e]) * m / batch
            u[e] = new
        solver.step(problem, state)
        np.testing.assert_allclose(state.w[:7], w[:7], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(state.u, u, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("schedule", ["jacobi", "gauss-seidel"])
def test_fedrelax_equals_a_naive_loop(schedule, loss):
    problem = network(loss, SquaredL2())
    solver = FedRelax(schedule)
    state = started(solver, problem)
    w = state.w.copy()
    order = [range(8)] if schedule == "jacobi" else colours(problem.graph)
    A = problem.graph.adjacency.toarray()
    for nodes in order:
        before = w.copy()
        for i in nodes:
            if A[i].any():
                mean = A[i] @ before / A[i].sum()
                w[i] = node_prox(problem, i, mean, 1 / (problem.lam * A[i].sum()))
    solver.step(problem, state)
    np.testing.assert_allclose(state.w[:7], w[:7], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("solver", RELAX, ids=["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("penalty", [SquaredL2(), Q], ids=name)
def test_fedrelax_stays_at_the_minimiser(solver, penalty):
    problem = network(Squared(l2=0.1), penalty)
    best = solve(problem, tol=1e-12)
    state = solver.init(problem, best.w, best.u)
    solver.step(problem, state)
    np.testing.assert_allclose(state.w, best.w, atol=1e-5)


def test_one_fedrelax_update_is_the_block_minimiser():
    problem = network(Logistic(l2=0.1), SquaredL2())
    state = started(FedRelax(), problem)
    w = state.w.copy()
    FedRelax().step(problem, state)
    rng = np.random.default_rng(0)
    for i in range(problem.graph.n_nodes):
        block = w.copy()
        block[i] = state.w[i]
        least = problem.objective(block)
        for scale in (1.0, 1e-2, 1e-4):
            other = block.copy()
            other[i] += scale * rng.standard_normal(problem.d)
            assert problem.objective(other) >= least - 1e-12


@pytest.mark.parametrize("lam", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("solver", RELAX, ids=["jacobi", "gauss-seidel"])
def test_fedrelax_contracts(solver, lam):
    """The largest error shrinks by max_i 1/(1 + sigma_i/(lam d_i)) at least."""
    rng = np.random.default_rng(4)
    graph = random_graph(rng, 12, density=0.4)
    data = random_data(rng, [6] * 12, 2)
    problem = Problem(graph, data, loss="squared", penalty="squared_l2", lam=lam)
    laplacian = np.diag(graph.weighted_degree) - graph.adjacency.toarray()
    system = lam * np.kron(laplacian, np.eye(2))
    for i, H in enumerate(problem.loss.H):
        system[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] += H
    exact = np.linalg.solve(system, problem.loss.b.ravel()).reshape(-1, 2)
    pull = lam * graph.weighted_degree
    kappa = (pull / (pull + problem.loss.strong_convexity())).max()
    assert kappa < 1
    state = started(solver, problem)

    def error():
        return np.linalg.norm(state.w - exact, axis=1).max()

    first = error()
    for _ in range(30):
        before = error()
        solver.step(problem, state)
        assert error() <= kappa * before + 1e-12
    assert error() < 0.9 * first


@pytest.mark.parametrize("penalty", [*PENALTIES, Q], ids=name)
@pytest.mark.parametrize("solver", GENERAL, ids=name)
def test_the_flow_is_inside_its_domain_after_every_iteration(solver, penalty):
    problem = network("squared", penalty)
    state = started(solver, problem)
    for _ in range(25):
        solver.step(problem, state)
        assert (penalty.domain_ratio(state.u, problem.scale) <= 1 + 1e-12).all()
        assert np.isfinite(penalty.conjugate(state.u, problem.scale)).all()


@pytest.mark.parametrize("solver", GENERAL, ids=name)
def test_a_flow_from_outside_the_domain_is_a_start_like_any_other(solver):
    problem = network("squared", Q)
    u0 = np.full((problem.graph.n_edges, 2), 1e3)
    assert solve(problem, solver, tol=1e-5, u0=u0).converged


@pytest.mark.parametrize("solver", GENERAL, ids=name)
def test_warm_start_is_kept(solver):
    problem = network(Squared(l2=0.1), "l2")
    best = solve(problem, tol=1e-10)
    result = solve(problem, solver, tol=None, max_iter=1, w0=best.w, u0=best.u)
    assert result.gap <= 1e-7


def dense_incidence(graph):
    return graph.incidence_t.toarray().T


def test_pd_gradient_steps_meet_the_condition():
    """1/tau - D^T sigma D - l/2 is positive definite where there are edges."""
    problem = network()
    solver = PrimalDualGradient()
    state = started(solver, problem)
    D = dense_incidence(problem.graph)
    sigma = state.size / (2 * state.gamma)
    bend = state.steep + state.through / state.gamma
    np.testing.assert_allclose(
        state.steep, np.linalg.norm(problem.loss.hess(np.zeros((8, 2))), 2, axis=(1, 2))
    )
    excess = np.diag(bend - state.steep / 2) - D.T @ (sigma[:, None] * D)
    assert np.linalg.eigvalsh(excess).min() >= -1e-12


@pytest.mark.parametrize("batch", [1, 2, 4, 6])
def test_spdhg_steps_meet_the_condition(batch):
    """E ||sum_S B_e z_e||^2 <= p v ||z||^2 with v < p, by all sets S of this size."""
    graph = Graph.from_edges(
        [(0, 1), (0, 2), (0, 3), (1, 2), (3, 4), (4, 5)], [1.0, 3.0, 0.2, 1.0, 2.0, 1.0]
    )
    data = random_data(np.random.default_rng(0), [4] * 6, 2)
    problem = Problem(graph, data, lam=0.3)
    state = started(StochasticPrimalDual(fraction=batch / 6), problem)
    assert state.batch == batch
    D = dense_incidence(graph)
    B = np.sqrt(state.sigma)[:, None] * D * np.sqrt(state.tau)
    sets = list(itertools.combinations(range(6), batch))
    mean = np.zeros((6, 6))
    for chosen in sets:
        keep = np.diag(np.isin(np.arange(6), chosen).astype(float))
        mean += keep @ B @ B.T @ keep / len(sets)
    p = batch / 6
    assert np.linalg.eigvalsh(mean).max() < p * p


@pytest.mark.parametrize("loss", [Poisson(l2=0.05), HuberLoss(0.01)], ids=name)
def test_pd_gradient_backtracks_where_the_hessian_grows(loss):
    problem = chain_problem(n=5, lam=0.1, loss=loss)
    solver = PrimalDualGradient()
    zero = np.zeros((5, 2))
    state = solver.init(problem, zero, np.zeros((4, 2)))
    first = state.steep
    for _ in range(100):
        solver.step(problem, state)
    assert (state.steep >= first).all() and (state.steep > first).any()
    assert solve(problem, solver, tol=1e-5).converged


def test_pd_gradient_takes_a_loss_without_hessian():
    class Cosh:
        d = 1

        def value(self, w):
            return np.log(np.cosh(3 * (w - 1))).sum(axis=1)

        def grad(self, w):
            return 3 * np.tanh(3 * (w - 1))

    problem = Problem(Graph.from_edges([(0, 1)]), None, loss=Cosh(), lam=0.1)
    result = solve(problem, "pd_gradient", tol=None, max_iter=300)
    np.testing.assert_allclose(result.w, 1, atol=1e-6)


@pytest.mark.parametrize("solver", [*GENERAL, *RELAX], ids=repr)
def test_isolated_nodes_get_their_local_minimisers(solver):
    problem = network(penalty="squared_l2")
    result = solve(problem, solver, tol=1e-6)
    np.testing.assert_allclose(result.w[7], problem.loss.minimise()[7], atol=1e-9)


@pytest.mark.parametrize("solver", [*GENERAL, *RELAX], ids=repr)
@pytest.mark.parametrize("loss", [Squared(), Logistic(l2=0.05)], ids=name)
def test_without_coupling_all_nodes_are_alone(solver, loss):
    target = chain_problem(lam=0.0, penalty="squared_l2", loss=loss)
    result = solve(target, solver, tol=1e-6)
    assert result.converged and (result.u == 0).all()
    np.testing.assert_allclose(result.w, target.loss.minimise(), atol=1e-6)
    edgeless = Problem(
        Graph(range(4), [], []), target.data, loss=loss, penalty="squared_l2", lam=1.0
    )
    np.testing.assert_allclose(solve(edgeless, solver).w, result.w, atol=1e-6)


@pytest.mark.parametrize("solver", [*GENERAL, *RELAX], ids=repr)
def test_nodes_without_data(solver):
    """In between: on the line from one neighbour to the other. Out of reach: zero, with a word."""
    graph = Graph.from_edges([(0, 1), (1, 2), (3, 4)])
    data = LocalData.from_list([([[1.0]], [0.0]), None, ([[1.0]], [4.0]), None, None])
    problem = Problem(graph, data, penalty="squared_l2", lam=1.0)
    with pytest.warns(DataWarning, match="not connected to any data"):
        result = solve(problem, solver, tol=1e-10, w0=np.ones((5, 1)))
    np.testing.assert_allclose(result.w[:, 0], [2 / 3, 2.0, 10 / 3, 0, 0], atol=1e-4)


def test_spdhg_is_seeded():
    problem = network()
    first, second, other = (
        solve(problem, StochasticPrimalDual(seed=seed), tol=None, max_iter=20) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.w, second.w)
    assert (first.w != other.w).any()


def test_admm_balances_rho():
    problem = network()
    far = ADMM(rho=1e4)
    result = solve(problem, far, tol=1e-5)
    assert result.converged
    state = started(far, problem)
    for _ in range(300):
        far.step(problem, state)
    assert state.rho < 1e3
    fixed = ADMM(rho=1e4, balance=False)
    state = started(fixed, problem)
    for _ in range(50):
        fixed.step(problem, state)
    assert state.rho == 1e4


def test_colours_are_proper_and_complete():
    graph = random_graph(np.random.default_rng(0), 30, density=0.3)
    groups = colours(graph)
    assert sorted(np.concatenate(groups).tolist()) == list(range(30))
    colour = np.empty(30, int)
    for c, nodes in enumerate(groups):
        colour[nodes] = c
    assert (colour[graph.head] != colour[graph.tail]).all()
    assert len(groups) <= graph.degree.max() + 1


def test_fedrelax_by_colours_takes_a_loss_that_cannot_be_split():
    class Anchor:
        d = 1

        def value(self, w):
            return ((w - [[0.0], [4.0]]) ** 2).sum(axis=1)

        def prox(self, v, step):
            t = 2 * step[:, None]
            return (v + t * [[0.0], [4.0]]) / (1 + t)

    problem = Problem(Graph.from_edges([(0, 1)]), None, loss=Anchor(), penalty="squared_l2", lam=1)
    result = solve(problem, FedRelax("gauss-seidel"), tol=None, max_iter=100)
    np.testing.assert_allclose(result.w, [[1.0], [3.0]], atol=1e-9)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ADMM(rho=0.0), "rho must be finite and > 0; got 0.0."),
        (lambda: PrimalDualGradient(gamma=-1.0), "gamma must be finite and > 0; got -1.0."),
        (lambda: StochasticPrimalDual(fraction=0.0), "fraction must be in (0, 1]; got 0.0."),
        (lambda: StochasticPrimalDual(fraction=1.5), "fraction must be in (0, 1]; got 1.5."),
        (lambda: StochasticPrimalDual(fraction="x"), "fraction must be a number; got 'x'."),
        (lambda: StochasticPrimalDual(gamma=0), "gamma must be finite and > 0; got 0."),
        (lambda: StochasticPrimalDual(seed=-1), "seed must be an integer >= 0; got -1."),
        (lambda: FedRelax("jacoby"), 'No schedule "jacoby". Did you mean "jacobi"?'),
        (
            lambda: solve(network(), "fedrelax"),
            'FedRelax needs SquaredL2 or Quadratic; got L2Norm. Use solver="auto".',
        ),
        (
            lambda: solve(network(Absolute()), "pd_gradient"),
            "PrimalDualGradient needs a differentiable loss; got ",
        ),
        (
            lambda: solve(network(Squared(l1=0.1)), "pd_gradient"),
            "PrimalDualGradient needs a differentiable loss; got ",
        ),
    ],
)
def test_errors(build, message):
    with pytest.raises(ValueError) as error:
        build()
    assert str(error.value).startswith(message)
