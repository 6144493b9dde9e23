"""Interior-point steps on small problems end at the optimum itself."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.graphs import grid
from nefele.losses import Logistic, Multinomial, Poisson, Squared
from nefele.penalties import HuberPenalty, L1Norm, L2Norm, Partial


def squares(loss, penalty, lam, side=6, d=2, seed=0):
    """Four squares of a grid with parameters of their own: strictly convex, so one optimum."""
    rng = np.random.default_rng(seed)
    n = side * side
    row, column = np.divmod(np.arange(n), side)
    true = rng.standard_normal((4, d))[2 * (2 * row // side) + 2 * column // side]
    counts = np.where(rng.random(n) < 0.7, 8, 3)
    owner = np.repeat(np.arange(n), counts)
    X = rng.standard_normal((len(owner), d))
    z = np.einsum("rj,rj->r", X, true[owner])
    if isinstance(loss, Logistic):
        y = np.where(rng.random(len(z)) < 1 / (1 + np.exp(-z)), 1.0, -1.0)
    elif isinstance(loss, Poisson):
        y = rng.poisson(np.exp(np.clip(z, -2, 2))).astype(float)
    elif isinstance(loss, Multinomial):
        y = (z > 0) + (rng.random(len(z)) < 0.3).astype(float)
    else:
        y = z + 0.3 * rng.standard_normal(len(z))
    data = LocalData(X, y, np.concatenate([[0], np.cumsum(counts)]))
    return Problem(grid(side, side), data, loss=loss, penalty=penalty, lam=lam)


LOSSES = [Squared(l2=1e-3), Logistic(l2=1e-2), Poisson(l2=1e-2), Multinomial(3, l2=1e-2)]
PENALTIES = [L2Norm(), L1Norm(), HuberPenalty(0.1), Partial(L2Norm(), on=[0])]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("lam", [0.03, 0.3])
def test_a_coarse_tolerance_ends_where_a_fine_one_does(loss, penalty, lam):
    problem = squares(loss, penalty, lam)
    coarse = solve(problem, "newton", tol=1e-4)
    fine = solve(problem, "newton", tol=1e-11)
    assert coarse.converged
    assert coarse.objective - fine.objective <= 1e-11 * abs(fine.objective)
    np.testing.assert_allclose(coarse.w, fine.w, atol=1e-5)


@pytest.mark.parametrize("penalty", [L2Norm(), L1Norm()], ids=["l2", "l1"])
def test_other_names_and_orders_of_nodes_give_the_same_fit(penalty):
    problem = squares(Squared(l2=1e-3), penalty, 0.1, side=12)
    first = solve(problem)
    graph, data, n = problem.graph, problem.data, problem.graph.n_nodes
    order = np.random.default_rng(5).permutation(n)
    place = np.argsort(order)
    rows = [np.arange(data.ptr[i], data.ptr[i + 1]) for i in order]
    ptr = np.concatenate([[0], np.cumsum([len(r) for r in rows])])
    moved = np.concatenate(rows)
    edges = [(int(place[i]), int(place[j])) for i, j in zip(graph.head, graph.tail, strict=True)]
    again = Problem(
        Graph.from_edges(edges, nodes=range(n)),
        LocalData(data.X[moved], data.y[moved], ptr),
        loss=Squared(l2=1e-3),
        penalty=penalty,
        lam=0.1,
    )
    second = solve(again)
    assert first.converged and second.converged
    np.testing.assert_allclose(second.w[place], first.w, atol=1e-8)
    np.testing.assert_array_equal(
        (graph.diff(first.w) == 0), (graph.diff(second.w[place]) == 0), "the same edges are fused"
    )


@pytest.mark.parametrize("lam", [0.02, 0.2, 2.0])
def test_against_the_cone_solver(lam):
    cp = pytest.importorskip("cvxpy")
    problem = squares(Squared(l2=1e-3), L2Norm(), lam)
    data, d, n = problem.data, problem.d, problem.graph.n_nodes
    w = cp.Variable((n, d))
    rest = cp.sum(cp.multiply(data.X, w[data.row_node]), axis=1) - data.y
    fit = data.row_weight @ cp.square(rest) + 1e-3 * cp.sum_squares(w[data.labelled])
    diff = w[problem.graph.head] - w[problem.graph.tail]
    model = cp.Problem(cp.Minimize(fit + problem.scale @ cp.norm(diff, 2, axis=1)))
    model.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    found = solve(problem, "newton", tol=1e-5)
    assert found.converged
    assert abs(found.objective - problem.objective(w.value)) <= 1e-9 * found.objective


def test_without_certificates_it_ends_there_too():
    problem = squares(Logistic(l2=1e-2), L1Norm(), 0.1)
    fine = solve(problem, "newton", tol=1e-11)
    found = solve(problem, "newton", tol=1e-5, certify=False)
    np.testing.assert_allclose(found.w, fine.w, atol=1e-6)
