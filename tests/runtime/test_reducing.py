"""Groups that reach across parts, and reduced solves that move them as wholes."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.runtime import InProcess
from nefele.runtime.cutting import cut
from nefele.runtime.reducing import gathered, leaders, reduced
from nefele.solvers import PrimalDual
from tests.engines.problems import posed


def driven(problem, parts, program):
    made = cut(problem, parts)
    links = {part.name: list(part.says) for part in made}
    return made, InProcess(links, {part.name: program(part) for part in made}).run()


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_groups_are_those_of_the_whole_graph(parts):
    problem = posed()
    graph, rng = problem.graph, np.random.default_rng(1)
    fused = rng.random(graph.n_edges) < 0.25
    labels = graph.joined(fused)
    first = np.array([np.flatnonzero(labels == k)[0] for k in range(labels.max() + 1)])
    made, found = driven(problem, parts, lambda part: leaders(part, fused[part.edges]))
    for part in made:
        assert np.array_equal(found[part.name][part.own], first[labels][part.nodes])


def test_a_group_may_wind_through_parts_many_times():
    n = 40
    graph = Graph.from_edges([(i, i + 1) for i in range(n - 1)])
    data = LocalData.from_list([([[1.0]], [0.0])] * n)
    problem = Problem(graph, data, lam=1.0)
    fused = np.ones(graph.n_edges, dtype=bool)
    owner = np.arange(n) % 3
    _, found = driven(problem, owner, lambda part: leaders(part, fused[part.edges]))
    assert all((lead == 0).all() for lead in found.values())


def test_rows_of_all_parts_are_gathered_in_their_order():
    made, found = driven(posed(), 3, lambda part: gathered(part, part.nodes[:, None].astype(float)))
    expected = np.concatenate([part.nodes for part in made])
    assert all(np.array_equal(rows[:, 0], expected) for rows in found.values())


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_a_reduced_solve_lowers_the_objective(penalty):
    problem = posed(penalty=penalty, side=30)
    solver, graph = PrimalDual(polish=False), problem.graph
    state = solver.init(problem, np.zeros((graph.n_nodes, 3)), np.zeros((graph.n_edges, 3)))
    for _ in range(200):
        solver.step(problem, state)
    early, u = state.iteration.unrelaxed()
    made, found = driven(problem, 3, lambda part: reduced(part, early[part.nodes], u[part.edges]))
    w = np.empty_like(early)
    for part in made:
        w[part.nodes] = found[part.name]
    assert problem.objective(w) < problem.objective(early)


@pytest.mark.parametrize(
    ("loss", "penalty"), [("logistic", "l2"), ("squared", "squared_l2")], ids=["loss", "penalty"]
)
def test_other_problems_are_not_reduced(loss, penalty):
    problem = posed(loss, penalty)
    zero = np.zeros((problem.graph.n_nodes, 3)), np.zeros((problem.graph.n_edges, 3))
    _, found = driven(
        problem, 2, lambda part: reduced(part, zero[0][part.nodes], zero[1][part.edges])
    )
    assert all(value is None for value in found.values())


def test_a_polished_solve_by_parts_is_as_good_and_takes_fewer_iterations():
    problem = posed(side=40)
    alone = solve(problem, PrimalDual(), tol=1e-4)
    parted = solve(problem, PrimalDual(), tol=1e-4, engine="in_process", parts=3)
    plain = solve(problem, PrimalDual(polish=False), tol=1e-4)
    assert parted.converged and parted.n_iter < plain.n_iter
    assert parted.objective == pytest.approx(alone.objective, rel=1e-4)
