"""What every solver must do: reach the optimum that the others reach, and prove it."""

import numpy as np
import pytest

from nefele import DataWarning, Graph, Problem, Status, solve
from nefele.losses import Logistic, Squared
from nefele.losses.quadratic import BoundQuadratic
from nefele.penalties import Quadratic
from nefele.solvers import Local, QuadraticCG
from tests.contracts.cases import LOSSES, PENALTIES, SOLVERS
from tests.problems import chain_problem, random_data, random_graph


def problem(loss="squared", penalty="l2", lam=0.3, seed=0, labels="real"):
    """Nine nodes, one with fewer rows than features, one isolated, two without data if coupled."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 9, density=0.5)
    keep = (graph.head != 8) & (graph.tail != 8)
    graph = type(graph)(graph.ids, graph.head[keep], graph.tail[keep], graph.weight[keep])
    none = 0 if lam > 0 else 3
    data = random_data(rng, [6, none, 8, 1, 7, none, 6, 6, 8], 2, labels)
    return Problem(graph, data, loss=loss, penalty=penalty, lam=lam)


def points(lam=0.3):
    """Points that are pulled together, one of them by nothing."""
    rng = np.random.default_rng(0)
    a, graph = rng.normal(size=(9, 2)), random_graph(rng, 9, density=0.5)
    keep = (graph.head != 8) & (graph.tail != 8)
    graph = type(graph)(graph.ids, graph.head[keep], graph.tail[keep], graph.weight[keep])
    H = np.broadcast_to(2.0 * np.eye(2), (9, 2, 2)).copy()
    return Problem(graph, None, BoundQuadratic(H, 2 * a, (a * a).sum(axis=1)), lam=lam)


PROBLEMS = {
    "points l2": points,
    "squared l2": lambda: problem(),
    "squared l1": lambda: problem(penalty="l1"),
    "squared squared_l2": lambda: problem(penalty="squared_l2"),
    "squared quadratic": lambda: problem(penalty=Quadratic([[2.0, 1.0], [1.0, 0.5]])),
    "ridge huber": lambda: problem(Squared(l2=0.1), "huber"),
    "logistic l2": lambda: problem(Logistic(l2=0.01), labels="sign", lam=0.05),
    "squared lam 0": lambda: problem(lam=0.0),
    "absolute l2 lam 0": lambda: problem("absolute", lam=0.0),
}
QUADRATIC = {"squared squared_l2", "squared quadratic"}
FITS = {
    "fedrelax": QUADRATIC,
    "fedrelax by colours": QUADRATIC,
    "primal dual gradient": set(PROBLEMS) - {"absolute l2 lam 0"},
    "quadratic cg": QUADRATIC,
    "local": {name for name in PROBLEMS if name.endswith("lam 0")},
    "merging": {"points l2"},
    "newton": set(PROBLEMS) - QUADRATIC - {"absolute l2 lam 0"},
}
PAIRS = [(s, p) for s in SOLVERS for p in PROBLEMS if s not in FITS or p in FITS[s]]


@pytest.mark.parametrize(("solver", "name"), PAIRS)
def test_every_solver_reaches_the_certified_optimum(solver, name):
    target = PROBLEMS[name]()
    best = solve(target, tol=1e-8)
    result = solve(target, SOLVERS[solver], tol=1e-5)
    assert result.status is Status.OPTIMAL and result.gap <= 1e-5
    assert result.certificate == "dual"
    assert result.objective == pytest.approx(target.objective(result.w), rel=1e-14)
    # The two bracket the same optimum.
    assert best.objective - best.gap_abs <= result.objective
    assert result.objective - result.gap_abs <= best.objective
    bound = target.certificate(result.w, result.u)
    assert bound.lower <= best.objective


@pytest.mark.parametrize(("solver", "name"), PAIRS)
def test_every_solver_does_without_certificates(solver, name):
    target = PROBLEMS[name]()
    best = solve(target, tol=1e-8)
    result = solve(target, SOLVERS[solver], tol=1e-5, certify=False)
    assert result.status is Status.UNCERTIFIED and result.certificate == "none"
    assert result.gap == result.gap_abs == np.inf
    assert result.objective - best.objective <= 1e-5 * abs(best.objective)
    if target.coupled:
        assert (target.penalty.domain_ratio(result.u, target.scale) <= 1 + 1e-12).all()


@pytest.mark.parametrize("certify", [True, False])
@pytest.mark.parametrize(("solver", "name"), [p for p in PAIRS if p[0] != "local"])
def test_a_start_that_is_good_enough_needs_no_iteration(solver, name, certify):
    target = PROBLEMS[name]()
    first = solve(target, SOLVERS[solver], tol=1e-5, certify=certify)
    again = solve(target, SOLVERS[solver], tol=1e-5, w0=first.w, u0=first.u, certify=certify)
    assert again.n_iter == 0 and again.status is first.status
    assert again.objective <= first.objective + 1e-5 * abs(first.objective)


@pytest.mark.parametrize(("solver", "name"), PAIRS)
def test_every_solver_goes_on_from_a_checkpoint(solver, name, tmp_path):
    target, file = PROBLEMS[name](), tmp_path / "run.npz"
    first = 1 if solver == "local" else 7
    solve(target, SOLVERS[solver], tol=None, max_iter=first, checkpoint=file)
    result = solve(target, SOLVERS[solver], tol=1e-5, resume=file)
    assert result.converged and result.n_iter >= first
    best = solve(target, tol=1e-8)
    assert abs(result.objective - best.objective) <= result.gap_abs + best.gap_abs


@pytest.mark.parametrize(("solver", "name"), PAIRS)
def test_inputs_are_not_changed(solver, name):
    target = PROBLEMS[name]()
    w0 = np.ones((target.graph.n_nodes, target.d))
    u0 = np.zeros((target.graph.n_edges, target.d))
    for array in (w0, u0):
        array.flags.writeable = False
    solve(target, SOLVERS[solver], tol=None, max_iter=3, w0=w0, u0=u0)
    assert (w0 == 1).all() and (u0 == 0).all()


@pytest.mark.parametrize(("solver", "name"), PAIRS)
def test_the_same_call_gives_the_same_bits(solver, name):
    first, second = (
        solve(PROBLEMS[name](), SOLVERS[solver], tol=None, max_iter=20) for _ in range(2)
    )
    np.testing.assert_array_equal(first.w, second.w)
    np.testing.assert_array_equal(first.u, second.u)


@pytest.mark.parametrize("case", LOSSES, ids=lambda c: c.name)
def test_every_loss_is_solved(case):
    """Five nodes, one empty, on a chain: within the tolerance, and certified."""
    graph = Graph.from_edges([(i, i + 1) for i in range(4)])
    target = Problem(graph, None if case.own else case.data(), loss=case.loss, lam=0.1)
    if case.name == "zero":
        with pytest.warns(DataWarning, match="not connected to any data"):
            result = solve(target)
        assert (result.w == 0).all() and result.undetermined.all()
        return
    result = solve(target, tol=1e-6)
    assert result.converged
    rng = np.random.default_rng(0)
    for scale in (1.0, 0.1, 0.01):
        for _ in range(20):
            other = result.w + scale * rng.standard_normal(result.w.shape)
            assert target.objective(other) >= result.objective - result.gap_abs


@pytest.mark.parametrize("make", PENALTIES.values(), ids=PENALTIES.keys())
def test_every_penalty_is_solved(make):
    target = chain_problem(n=5, lam=0.2, penalty=make(2))
    result = solve(target, tol=1e-7)
    assert result.converged and result.certificate == "dual"
    printed = solve(target, "algorithm1", tol=1e-4)
    assert abs(printed.objective - result.objective) <= printed.gap_abs + result.gap_abs


def test_a_solver_that_does_not_fit_names_both_sides():
    with pytest.raises(ValueError, match=r"QuadraticCG needs squared loss and SquaredL2 or Quadr"):
        solve(problem(), QuadraticCG())
    with pytest.raises(ValueError, match=r"QuadraticCG needs .* got .* Use solver=\"auto\"\."):
        solve(problem("logistic", "squared_l2", labels="sign"), "quadratic_cg")
    with pytest.raises(ValueError, match=r'Local needs lam = 0; got lam=0\.3\. Use solver="auto"'):
        solve(problem(), Local())
