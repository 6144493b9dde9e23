"""Interior-point steps by the duals of logistic, multinomial and Poisson rows."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, Status
from nefele.graphs import chain, grid
from nefele.losses import Logistic, Multinomial, Poisson, Squared
from nefele.penalties import HuberPenalty, L1Norm, L2Norm, LinfNorm, Lp, Partial, SquaredL2
from nefele.solvers import Newton
from nefele.solvers.interior_point import solver as steps
from nefele.solvers.interior_point.chances import Chances, advisable, entropic
from nefele.solvers.interior_point.kinks import curved_parts
from tests.problems import random_problem
from tests.reference.oracle import oracle
from tests.solvers.problems import name, quiet, wooded

LOSSES = [Logistic(), Multinomial(n_classes=3), Poisson()]
EDGES = [L1Norm(), L2Norm(), LinfNorm(), Lp(1.5), HuberPenalty(0.3), Partial(SquaredL2(), [0])]


def rows_of(loss, seed=0, level=0.01):
    """A problem, its rows at a random point, that point and a direction."""
    rng = np.random.default_rng(seed)
    problem = random_problem(seed, loss, d=2)
    shape = problem.graph.n_nodes, problem.d
    on = np.ones(shape[0], dtype=bool)
    w, dw = 0.5 * rng.normal(size=(2, *shape))  # no prediction is extreme
    return problem, Chances(problem.loss, np.arange(shape[0]), w, on, level, "rows"), w, dw


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_directions_solve_the_linearised_equations(loss):
    _, rows, w, dw = rows_of(loss)
    rows.gram(w)
    p, q, z = rows.p, rows.q, rows.change(w)
    rows.aim(0.004, 0.7, 0.0)
    change = rows.change(dw)
    rows.direct(change, rows.give(change), 0.7)
    left = change + rows.dq - rows.dp / p + 0.7 * (z + q - np.log(p))
    if not isinstance(loss, Poisson):
        left -= left.mean(axis=1, keepdims=True)  # nu is free
        np.testing.assert_allclose(rows.dp.sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(left, 0.0, atol=1e-9)
    np.testing.assert_allclose(p * rows.dq + q * rows.dp, 0.002 / rows.weight - p * q, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_blocks_and_sums_belong_to_the_predictions(loss):
    problem, rows, w, dw = rows_of(loss, seed=1)
    blocks = rows.gram(w)
    change = rows.change(dw)
    np.testing.assert_allclose(
        np.einsum("ijk,ik->ij", blocks, dw), rows.to_nodes(rows.give(change)), atol=1e-12
    )
    values = np.random.default_rng(0).normal(size=rows.p.shape)
    np.testing.assert_allclose(
        (rows.to_nodes(values) * dw).sum(), (rows.weight * values * change).sum()
    )
    np.testing.assert_allclose(rows.to_nodes(rows.u), problem.loss.grad(w), atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_a_step_leaves_what_was_foretold(loss):
    _, rows, w, dw = rows_of(loss, seed=2)
    rows.gram(w)
    rows.aim(0.004, 1.0, 0.0)
    change = rows.change(dw)
    rows.direct(change, rows.give(change), 1.0)
    step = 0.5 * min(rows.longest, 1.0)
    after = rows.ahead(step)
    rows.move(step, 1.0)
    assert (rows.p > 0).all() and (rows.q > 0).all()
    np.testing.assert_allclose(rows.total, after)


@pytest.mark.parametrize("penalty", EDGES, ids=name)
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_both_kinds_of_steps_find_the_same_point(monkeypatch, loss, penalty):
    problem = wooded(loss, penalty, n=8, lam=0.3)
    monkeypatch.setattr(steps, "advisable", lambda *_: True)
    by_duals = quiet(problem, tol=1e-8)
    monkeypatch.setattr(steps, "advisable", lambda *_: False)
    plain = quiet(problem, tol=1e-8)
    assert by_duals.status is plain.status
    np.testing.assert_allclose(by_duals.objective, plain.objective, rtol=2e-8)


@pytest.mark.parametrize("penalty", EDGES, ids=name)
@pytest.mark.parametrize("lam", [1e-7, 1e-4])
def test_separable_nodes_that_hardly_anything_holds(lam, penalty):
    """Newton steps on parameters were hundreds here, and short ones."""
    rng = np.random.default_rng(3)
    parts = []
    for i in range(30):
        X = rng.normal(size=(2 if i % 3 else 12, 4))
        score = X @ rng.normal(size=(4, 3)) + rng.gumbel(size=(len(X), 3))
        parts.append((X, score.argmax(axis=1).astype(float)))
    data = LocalData.from_list(parts)
    problem = Problem(chain(30), data, Multinomial(n_classes=3), penalty, lam=lam)
    result = quiet(problem)
    assert result.status in (Status.OPTIMAL, Status.HELD) and result.n_iter <= 250


def test_counts_far_from_their_start():
    """Features of all sizes: exp(z) overflows on the way, its dual does not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3, 1)) * 1e3
    y = rng.poisson(3.0, size=(20, 3)).astype(float)
    data = LocalData.from_list(list(zip(X, y, strict=True)))
    loss = {i: Poisson() if i % 2 else Squared() for i in range(20)}
    result = quiet(Problem(chain(20), data, loss, Partial(LinfNorm(), [0]), lam=1.0))
    assert result.converged and result.n_iter <= 50


@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_nodes_without_edges_are_solved_by_the_same_steps(loss):
    problem = wooded(loss, L2Norm(), n=6, lam=1e-5)
    alone = Graph(problem.graph.ids, problem.graph.head[:2], problem.graph.tail[:2], [1.0, 1.0])
    result = quiet(Problem(alone, problem.data, loss, L2Norm(), lam=1e-5))
    assert result.status in (Status.OPTIMAL, Status.HELD) and result.gap <= 1e-6


def test_a_bound_that_a_cone_solver_does_not_break():
    for seed in range(4):
        problem = wooded(Multinomial(n_classes=3), Lp(3.0), n=6, lam=0.01, seed=seed)
        result = quiet(problem)
        _, least = oracle(problem.graph, problem.data, Multinomial(n_classes=3), Lp(3.0), 0.01)
        assert result.gap <= 1e-6
        if result.held is None:
            assert result.objective - result.gap_abs <= least + 1e-9 * least


def test_slow_steps_begin_again_with_duals(monkeypatch):
    """Where nothing foretold that the rows can be separated."""
    seen = []
    begin = Newton._begin

    def note(self, problem, state, value):
        seen.append(state.duals)
        begin(self, problem, state, value)

    monkeypatch.setattr(Newton, "_begin", note)
    monkeypatch.setattr(steps, "advisable", lambda *_: False)
    monkeypatch.setattr(steps, "_SLOW_CURVED", (3, 1e-3))
    rng = np.random.default_rng(3)
    X = rng.normal(size=(10, 3, 4))
    data = LocalData.from_list([(x, np.where(x[:, 0] > 0, 1.0, -1.0)) for x in X])
    result = quiet(Problem(chain(10), data, Logistic(), L2Norm(), lam=1e-6))
    assert seen[:2] == [False, True]
    assert result.status in (Status.OPTIMAL, Status.HELD)


def test_where_duals_are_advisable():
    def asked(problem):
        return any(advisable(problem, *part) for part in curved_parts(problem))

    assert not asked(wooded(Logistic(l2=0.1), L2Norm(), lam=1e-6))
    assert asked(wooded(Logistic(), L2Norm(), lam=1e-6))
    assert asked(wooded(Logistic(), Partial(L2Norm(), [0]), lam=1.0))
    assert not asked(wooded(Poisson(), L2Norm(), lam=1e-6))
    rng = np.random.default_rng(0)
    data = LocalData.from_list([(rng.normal(size=(9, 2)), rng.choice([-1.0, 1], 9))] * 9)
    problem = Problem(grid(3, 3), data, Logistic(), lam=0.5)
    assert not asked(problem)
    assert asked(problem.hold(np.ones(9, dtype=bool))[0])
    assert not entropic(wooded("squared").loss)


def test_a_resumed_solve_takes_the_same_steps(tmp_path):
    problem = wooded(Logistic(), L2Norm(), n=10, lam=1e-6)
    file = tmp_path / "state.npz"
    whole = quiet(problem, tol=1e-9)
    quiet(problem, tol=None, max_iter=4, checkpoint=file)
    rest = quiet(problem, tol=1e-9, resume=file)
    np.testing.assert_array_equal(rest.w, whole.w)
    assert rest.status is whole.status
