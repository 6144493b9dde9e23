import numpy as np
import pytest

from nefele import Certificate, Graph, LocalData, Problem, solve
from nefele.graphs import chain, trend
from nefele.losses import Absolute, Hinge, Logistic, Multinomial, Poisson, Squared
from nefele.penalties import ByEdge, HuberPenalty, L1Norm, L2Norm, Lp, Partial, Quadratic, SquaredL2
from tests.problems import chain_problem, random_problem


class Bowl:
    """sum_j c (w_j - a_j)^2 / 2: a user's own loss with a gradient."""

    d = 2

    def __init__(self, n=4, c=1.0):
        self.a, self.c = np.random.default_rng(0).standard_normal((n, self.d)), c

    def value(self, w):
        return 0.5 * self.c * ((w - self.a) ** 2).sum(axis=1)

    def grad(self, w):
        return self.c * (w - self.a)


class StrongBowl(Bowl):
    def strong_convexity(self):
        return np.full(len(self.a), self.c)


def own(loss, lam=0.3):
    return Problem(Graph.from_edges([(i, i + 1) for i in range(3)]), None, loss=loss, lam=lam)


def test_gap_is_never_negative():
    below = Certificate(objective=1.0, lower=1.0 + 1e-15, form="dual", leak=0.0, u=np.zeros((0, 1)))
    assert below.gap_abs == 0.0
    assert Certificate(3.0, 1.0, "dual", 0.0, np.zeros((0, 1))).gap_abs == 2.0


HARD = [
    ("squared", "l2"),
    ("squared", "l1"),
    ("squared", "linf"),
    ("squared", Lp(3)),
    ("squared", "squared_l2"),
    ("squared", HuberPenalty(0.2)),
    (Squared(l2=0.1, l1=0.1), "l2"),
    (Logistic(l2=0.01), "l2"),
    (Poisson(l2=0.01), "l1"),
    ("huber", "l2"),
    (Absolute(), "l2"),
    (Hinge(), "l1"),
    (Multinomial(n_classes=3, l2=0.01), "l2"),
]


@pytest.mark.parametrize(("loss", "penalty"), HARD, ids=repr)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore::nefele.DataWarning")
def test_bound_holds_at_any_point_and_any_flow(seed, loss, penalty):
    """objective(w) - gap is below the best objective that is known, far from the solution too."""
    problem = random_problem(seed, loss, penalty, wide=seed % 2 == 1)
    best = solve(problem, tol=1e-8)
    rng = np.random.default_rng(seed)
    for size in (0.0, 1e-3, 0.1, 1.0, 10.0):
        w = best.w + size * rng.standard_normal(best.w.shape)
        u = best.u + size * rng.standard_normal(best.u.shape)
        for firm in (False, True):
            found = problem.certificate(w, u, firm=firm)
            assert found.form == "dual"
            assert found.objective == problem.objective(w)
            slack = 1e-9 * max(abs(best.objective), 1e-3 * problem.objective_at_zero)
            assert found.lower <= best.objective + slack


@pytest.mark.parametrize(("loss", "penalty"), HARD, ids=repr)
@pytest.mark.filterwarnings("ignore::nefele.DataWarning")
def test_bound_is_finite_near_the_solution_whatever_the_data_lack(loss, penalty):
    problem = random_problem(2, loss, penalty)
    assert (problem.data.counts == 0).any()
    best = solve(problem, tol=1e-8)
    w = best.w + 1e-6 * np.random.default_rng(0).standard_normal(best.w.shape)
    found = problem.certificate(w, best.u)
    assert np.isfinite(found.lower)
    assert found.gap_abs <= 0.01 * problem.objective_at_zero


@pytest.mark.parametrize(("loss", "penalty"), HARD, ids=repr)
@pytest.mark.filterwarnings("ignore::nefele.DataWarning")
def test_flow_of_the_bound_is_feasible(loss, penalty):
    problem = random_problem(3, loss, penalty)
    best = solve(problem, tol=1e-6)
    assert np.isfinite(problem.penalty.conjugate(best.u, problem.scale)).all()


def test_singular_quadratic_penalty_keeps_the_flow_in_its_range():
    problem = chain_problem(penalty=Quadratic([[1.0, 0.0], [0.0, 0.0]]))
    result = solve(problem, tol=1e-9)
    assert result.certificate == "dual"
    np.testing.assert_allclose(result.u[:, 1], 0, atol=1e-12)


def test_squared_bound_is_tight_at_the_solution():
    problem = chain_problem(n=2, d=1, lam=0.1)
    result = solve(problem, tol=1e-12)
    found = problem.certificate(result.w, result.u)
    assert found.gap_abs <= 1e-9 * result.objective
    assert found.leak <= found.gap_abs + 1e-15


def test_strong_convexity_form_is_a_proven_bound():
    problem = own(StrongBowl())
    best = solve(problem, tol=1e-10)
    assert best.certificate == "strong convexity"
    rng = np.random.default_rng(1)
    for size in (1e-3, 0.1, 2.0):
        w = best.w + size * rng.standard_normal(best.w.shape)
        found = problem.certificate(w, best.u + size * rng.standard_normal(best.u.shape))
        assert found.form == "strong convexity"
        assert found.lower <= best.objective + 1e-12


def test_estimated_radius_form_without_strong_convexity():
    result = solve(own(Bowl()), tol=1e-6)
    assert result.certificate == "estimated radius" and result.converged
    strong = solve(own(StrongBowl()), tol=1e-9)
    np.testing.assert_allclose(result.w, strong.w, atol=1e-4)


class Kinked:
    """||w - a||_1 by its prox: certified at the prox point, where it has a subgradient."""

    d = 2

    def __init__(self):
        self.a = np.random.default_rng(0).standard_normal((4, 2))

    def value(self, w):
        return np.abs(w - self.a).sum(axis=1)

    def prox(self, v, step):
        shift = v - self.a
        return self.a + np.sign(shift) * np.maximum(np.abs(shift) - step[:, None], 0.0)


def test_a_loss_without_gradient_is_certified_at_its_prox_point():
    result = solve(own(Kinked(), lam=0.3), tol=1e-6)
    assert result.converged and result.certificate in ("estimated radius", "strong convexity")
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = result.w + 0.1 * rng.standard_normal(result.w.shape)
        assert result.problem.objective(other) >= result.objective - result.gap_abs


def test_all_data_proven_means_dual():
    mixed = {0: "squared", 1: Logistic(l2=0.1), 2: "huber", 3: "zero"}
    X = np.eye(2)
    data = LocalData.from_list([(X, [1.0, -1.0])] * 4)
    problem = Problem(Graph.from_edges([(0, 1), (1, 2), (2, 3)]), data, loss=mixed, lam=0.1)
    assert solve(problem).certificate == "dual"


def test_disconnected_components_do_not_spoil_each_other():
    """Scaling into the domain is per component: a bad flow in one leaves the other tight."""
    graph = Graph.from_edges([(0, 1), (2, 3)])
    data = chain_problem().data
    problem = Problem(graph, data, lam=0.1)
    best = solve(problem, tol=1e-12)
    u = best.u.copy()
    u[1] = 0.0
    alone = Problem(Graph.from_edges([(0, 1)]), data.subset(np.array([0, 1])), lam=0.1)
    other = Problem(Graph.from_edges([(2, 3)]), data.subset(np.array([2, 3])), lam=0.1)
    split = alone.gap(best.w[:2], u[:1]) + other.gap(best.w[2:], u[1:])
    assert problem.gap(best.w, u) == pytest.approx(split, rel=0.5)


KINDS = [L1Norm(), SquaredL2(), Partial(L2Norm(), [1]), Quadratic([[2.0, 1.0], [1.0, 0.5]])]


@pytest.mark.parametrize("coupling", [chain(12), trend(chain(12), 2)], ids=["edges", "maps"])
@pytest.mark.parametrize("by_edge", [False, True])
def test_factors_and_gradients_give_nearly_the_same_bound(coupling, by_edge):
    rng = np.random.default_rng(0)
    data = LocalData.from_list([(rng.normal(size=(4, 2)), rng.normal(size=4)) for _ in range(12)])
    penalty = ByEdge(KINDS, np.arange(coupling.n_edges) % 4) if by_edge else Partial(L2Norm(), [1])
    problem = Problem(coupling, data, penalty=penalty, lam=0.3)
    best = solve(problem, tol=1e-9)
    w = best.w + 1e-3 * rng.normal(size=best.w.shape)
    for u in (best.u, best.u + 1e-3 * rng.normal(size=best.u.shape)):
        found = [problem.certificate(w, u, direct=direct) for direct in (False, True)]
        for one in found:
            assert one.lower <= best.objective
            assert np.isfinite(penalty.conjugate(one.u, problem.scale)).all()
        assert found[0].lower == pytest.approx(found[1].lower, rel=1e-5)
