"""A solve that is interrupted and resumed gives the same bits as one that is not."""

import shutil
import warnings

import numpy as np
import pytest

from nefele import ConvergenceWarning, Graph, LocalData, Problem, Status, solve
from nefele.losses import Absolute, HuberLoss, Logistic, Squared
from nefele.penalties import L2Norm, Lp, Partial, Quadratic
from nefele.solvers import PrimalDual, StochasticPrimalDual
from nefele.solvers.interior_point import solver as newton
from nefele.solvers.loop import checkpoint


def problem(loss="squared", penalty="l2", n=24, cycle=True, lam=0.3, seed=1, d=2):
    """A ring with chords; one node has no rows, another no edges."""
    rng = np.random.default_rng(seed)
    edges = [(i, i + 1) for i in range(n - 2)]
    if cycle:
        edges += [(0, n - 2), (2, n // 2), (5, n - 5)]
    names = list(range(n))
    rows = []
    for i in names:
        X = rng.standard_normal((6, d))
        y = X @ ([2.0, 1.0] if i < n // 2 else [-1.0, 2.0])[:d] + 0.5 * rng.standard_normal(6)
        labels = np.where(y > 0, 1.0, -1.0) if loss in ("hinge", "logistic") else y
        labels = np.where(y > 0, 1.0, -1.0) if isinstance(loss, Logistic) else labels
        rows.append(None if i == 3 else (X, labels))
    graph = Graph.from_edges(edges, weight=rng.uniform(0.5, 2.0, len(edges)), nodes=names)
    return Problem(graph, LocalData.from_list(rows, nodes=names), loss, penalty, lam=lam)


def mixed():
    names = range(24)
    return problem({i: Absolute() if i % 3 == 0 else Squared(l2=0.01) for i in names})


def large(penalty="l2"):
    """Large enough for the compiled iteration."""
    rng = np.random.default_rng(0)
    edges = [(i, i + 1) for i in range(699)] + [(0, 350), (100, 600)]
    rows = [(rng.standard_normal((5, 3)), rng.standard_normal(5)) for _ in range(700)]
    return Problem(Graph.from_edges(edges), LocalData.from_list(rows), "squared", penalty, lam=0.3)


SPRING = Quadratic(np.array([[2.0, 0.3], [0.3, 0.5]]))
CASES = {
    "admm": ("admm", problem, 150),
    "admm, kinks": ("admm", lambda: problem("absolute"), 150),
    "admm, mixed": ("admm", mixed, 150),
    "spdhg": ("spdhg", problem, 150),
    "spdhg, few edges": (StochasticPrimalDual(0.1, seed=5), lambda: problem("huber"), 150),
    "pd_gradient": ("pd_gradient", problem, 150),
    "pd_gradient, logistic": ("pd_gradient", lambda: problem(Logistic(l2=0.01)), 150),
    "primal_dual": ("primal_dual", lambda: problem(penalty="linf"), 400),
    "primal_dual, plain": (PrimalDual(polish=False), problem, 400),
    "primal_dual, kinks": ("primal_dual", lambda: problem("hinge"), 150),
    "primal_dual, lasso": ("primal_dual", lambda: problem(Squared(l1=0.01)), 150),
    "compiled": (PrimalDual(polish=False), large, 250),
    "compiled, polished": ("primal_dual", lambda: large("l1"), 250),
    "compiled, printed": ("algorithm1", lambda: large("huber"), 150),
    "algorithm1": ("algorithm1", problem, 150),
    "fedrelax": ("fedrelax", lambda: problem(penalty="squared_l2"), 150),
    "fedrelax, logistic": ("fedrelax", lambda: problem(Logistic(l2=0.1), SPRING), 150),
    "quadratic_cg": ("quadratic_cg", lambda: problem(penalty="squared_l2"), 150),
    "quadratic_cg, matrix": ("quadratic_cg", lambda: problem(penalty=SPRING), 150),
    "quadratic_cg, compiled": ("quadratic_cg", lambda: large("squared_l2"), 150),
    "newton": ("newton", lambda: problem(cycle=False), 80),
    "newton, cycles": ("newton", lambda: problem(HuberLoss(delta=0.5), "l1"), 80),
    "newton, faces": ("newton", lambda: problem(penalty="linf"), 80),
    "newton, huber": ("newton", lambda: problem(Logistic(l2=0.01), "huber"), 80),
    "newton, rows": ("newton", lambda: problem("absolute"), 80),
    "newton, springs": ("newton", lambda: problem("hinge", "squared_l2"), 80),
    "newton, powers": ("newton", lambda: problem(penalty=Lp(3)), 80),
    "newton, some": ("newton", lambda: problem(Squared(l1=0.1), Partial(L2Norm(), [0])), 80),
    "auto": ("auto", lambda: problem(cycle=False), 80),
    "local": ("local", lambda: problem(Logistic(l2=1e-6), lam=0.0), 20),
}
every_case = pytest.mark.parametrize("name", CASES)


def run(name, tol=1e-10, **options):
    solver, make, most = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solve(make(), solver, tol=tol, **{"max_iter": most, **options})


def assert_same(one, two):
    assert one.n_iter == two.n_iter and one.status is two.status
    assert one.w.tobytes() == two.w.tobytes()
    assert one.u.tobytes() == two.u.tobytes()
    for a, b in zip(one.history, two.history, strict=True):
        assert (a.iteration, a.objective, a.gap) == (b.iteration, b.objective, b.gap)


def some(iterations):
    """A few of them, early ones and late ones."""
    keep = sorted(set(iterations))
    places = {0, 1, len(keep) // 3, len(keep) // 2, len(keep) - 2, len(keep) - 1}
    return [keep[i] for i in sorted(places) if 0 <= i < len(keep)]


@every_case
def test_from_a_checkpoint_of_any_iteration(name, tmp_path, monkeypatch):
    """As after a kill: files that were written by the clock, in the middle of the solve."""
    whole, copies, save = run(name), {}, checkpoint.Checkpoint.save

    def keep(self, saved):
        save(self, saved)
        k = saved.facts["iteration"]
        copies.setdefault(k, shutil.copy(self.path, tmp_path / f"{k}.npz"))

    monkeypatch.setattr(checkpoint.Checkpoint, "save", keep)
    watched = run(name, checkpoint=tmp_path / "run.npz", checkpoint_every=0.0)
    assert_same(watched, whole)
    monkeypatch.undo()
    for k in some(copies):
        assert_same(run(name, resume=copies[k]), whole)


@every_case
def test_after_a_stop_at_any_iteration(name, tmp_path):
    """The point where a solve stops is examined once more; that leaves no trace."""
    whole, file = run(name), tmp_path / "run.npz"
    for k in some([*range(1, whole.n_iter), *(r.iteration for r in whole.history)]):
        run(name, max_iter=max(k, 1), checkpoint=file)
        assert_same(run(name, resume=file), whole)


@every_case
def test_without_a_tolerance(name, tmp_path):
    whole, file = run(name, tol=None, max_iter=17), tmp_path / "run.npz"
    for k in (1, 10, 16):
        run(name, tol=None, max_iter=k, checkpoint=file)
        resumed = run(name, tol=None, max_iter=17, resume=file)
        assert_same(resumed, whole)


@every_case
@pytest.mark.parametrize("how", ["stop", "interrupt"])
def test_from_a_callback(name, how, tmp_path):
    whole, file = run(name), tmp_path / "run.npz"

    def end(record):
        if how == "stop":
            return True
        raise KeyboardInterrupt

    first = run(name, checkpoint=file, callback=end)
    assert first.status in (Status.STOPPED, Status.INTERRUPTED, whole.status)
    assert_same(run(name, resume=file), whole)


def test_twice_and_without_certificates(tmp_path):
    file = tmp_path / "run.npz"
    for name in ("admm", "primal_dual", "compiled", "newton"):
        whole = run(name, certify=False)
        run(name, certify=False, max_iter=5, checkpoint=file)
        run(name, certify=False, max_iter=9, checkpoint=file, resume=file)
        assert_same(run(name, certify=False, resume=file), whole)


@pytest.mark.parametrize("k", [1, 4, 5, 30, 60])
def test_newton_that_left_the_rest_to_the_primal_dual_method(k, tmp_path, monkeypatch):
    monkeypatch.setattr(newton, "_SLOW", (2, 0.0))
    file = tmp_path / "run.npz"
    whole = run("newton, cycles", max_iter=150)
    assert whole.n_iter > 50
    run("newton, cycles", max_iter=k, checkpoint=file)
    assert_same(run("newton, cycles", max_iter=150, resume=file), whole)


def test_a_warm_start_that_is_resumed(tmp_path):
    file, start = tmp_path / "run.npz", solve(problem(lam=0.2, cycle=False))
    for solver in ("newton", "admm", "primal_dual"):
        options = {"solver": solver, "tol": 1e-11, "max_iter": 60}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            target = problem(cycle=False)
            whole = solve(target, w0=start.w, u0=start.u, **options)
            first = {**options, "max_iter": 3}
            solve(problem(cycle=False), w0=start.w, u0=start.u, checkpoint=file, **first)
            assert_same(solve(problem(cycle=False), resume=file, **options), whole)
