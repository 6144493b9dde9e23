import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.losses import Hinge, HuberLoss, Logistic, Multinomial, Poisson, Squared
from nefele.penalties import HuberPenalty, L1Norm, L2Norm, LinfNorm, Lp, Quadratic, SquaredL2
from nefele.runtime import pass_messages
from nefele.solvers import PrimalDual

LOSSES = [
    (Squared(), "real"),
    (Squared(l1=0.1, l2=0.1), "real"),
    (HuberLoss(delta=0.5), "real"),
    (Logistic(l2=0.01), "sign"),
    (Hinge(l2=0.1), "sign"),
    (Poisson(l2=0.01), "count"),
    (Multinomial(n_classes=3, l2=0.01), "class"),
]
PENALTIES = [
    L2Norm(),
    L1Norm(),
    LinfNorm(),
    Lp(3),
    SquaredL2(),
    HuberPenalty(0.2),
]


def network(kind, seed=0):
    rng = np.random.default_rng(seed)
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "f")]
    graph = Graph.from_edges(edges, weight=rng.uniform(0.2, 3, 5), nodes=list("abcdefg"))
    rows = []
    for m in (3, 0, 1, 8, 2, 4, 5):
        X = rng.standard_normal((m, 2))
        y = {
            "real": X @ [1.0, -1.0] + 0.1 * rng.standard_normal(m),
            "sign": rng.choice([-1.0, 1.0], m),
            "count": rng.poisson(1.0, m),
            "class": rng.integers(0, 3, m),
        }[kind]
        rows.append((X, y) if m else None)
    return graph, LocalData.from_list(rows, nodes=list("abcdefg"))


@pytest.mark.parametrize(("loss", "kind"), LOSSES, ids=lambda x: str(x))
@pytest.mark.parametrize("solver", [PrimalDual.as_printed(), PrimalDual(gamma=0.7, polish=False)])
def test_equals_the_vectorised_solver(loss, kind, solver):
    graph, data = network(kind)
    problem = Problem(graph, data, loss=loss, penalty="l2", lam=0.1)
    run = pass_messages(problem, 60, solver)
    result = solve(problem, solver=solver, tol=None, max_iter=60)
    np.testing.assert_allclose(run.w, result.w, rtol=0, atol=1e-12)


@pytest.mark.parametrize("penalty", [*PENALTIES, Quadratic(np.diag([1.0, 0.0]))], ids=str)
def test_equals_the_vectorised_solver_for_every_penalty(penalty):
    graph, data = network("real")
    problem = Problem(graph, data, penalty=penalty, lam=0.3)
    run = pass_messages(problem, 60)
    result = solve(problem, solver="algorithm1", tol=None, max_iter=60)
    np.testing.assert_allclose(run.w, result.w, rtol=0, atol=1e-12)


def test_one_loss_per_node():
    graph, data = network("real")
    losses = {k: HuberLoss() if k in "ab" else Squared() for k in "abcdefg"}
    problem = Problem(graph, data, loss=losses, lam=0.3)
    run = pass_messages(problem, 60)
    result = solve(problem, solver="algorithm1", tol=None, max_iter=60)
    np.testing.assert_allclose(run.w, result.w, rtol=0, atol=1e-12)


def test_counts_messages_and_bytes():
    graph, data = network("real")
    run = pass_messages(Problem(graph, data, lam=0.1), 10)
    assert run.n_messages == 10 * 2 * graph.n_edges
    assert run.n_bytes == run.n_messages * 2 * 8


def test_a_loss_that_cannot_be_split_says_so():
    class Own:
        d = 1

        def value(self, w):
            return (w**2).sum(axis=1)

        def grad(self, w):
            return 2 * w

    problem = Problem(Graph.from_edges([(0, 1)]), None, loss=Own(), lam=1.0)
    with pytest.raises(TypeError, match="cannot be split by node"):
        pass_messages(problem, 3)
