import warnings

import numpy as np
import pytest

import nefele
from nefele import ConvergenceWarning, DataWarning, Graph, LocalData, Problem, lam_max, path, solve
from nefele.graphs import chain
from nefele.losses import Absolute, Logistic, Squared
from nefele.penalties import ByEdge, HuberPenalty, L2Norm, Lp, Partial, Quadratic, SquaredL2
from tests.paper.instances import star
from tests.problems import chain_problem, random_data, random_graph


def within(problem, w):
    """Largest difference of a parameter inside a component."""
    parts = problem.graph.components
    return max(float(np.ptp(w[parts == c], axis=0).max()) for c in np.unique(parts))


def block_problem(seed=0, penalty="l2", sizes=(15, 15), d=2, **options):
    rng = np.random.default_rng(seed)
    graph = nefele.graphs.sbm(sizes, 0.5, 0.05, seed=seed)
    true = rng.standard_normal((len(sizes), d))[np.repeat(np.arange(len(sizes)), sizes)] * 2
    rows = []
    for i in range(graph.n_nodes):
        X = rng.standard_normal((5, d))
        rows.append((X, X @ true[i] + 0.2 * rng.standard_normal(5)) if i % 5 else None)
    return Problem(graph, LocalData.from_list(rows), penalty=penalty, lam=1.0, **options)


def naive_tree_bound(problem):
    """max_e of the dual norm of a subtree's summed gradient over A_e, edge by edge."""
    graph, d = problem.graph, problem.d
    pooled = solve(problem.with_lam(1e3 * max(lam_max(problem), 1e-3)), tol=1e-12).w
    gradient, worst = problem.loss.grad(pooled), 0.0
    for e in range(graph.n_edges):
        keep = np.arange(graph.n_edges) != e
        cut = Graph(graph.ids, graph.head[keep], graph.tail[keep], graph.weight[keep])
        side = cut.components == cut.components[graph.head[e]]
        total = gradient[side].sum(axis=0).reshape(1, d)
        worst = max(worst, float(problem.penalty.dual_norm(total)[0] / graph.weight[e]))
    return worst


@pytest.mark.parametrize(("penalty", "expected"), [("l2", 16.04144), ("l1", 15.78956)])
def test_lam_max_of_the_star_of_the_paper(penalty, expected):
    assert lam_max(star(1.0, penalty)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", Lp(3)])
@pytest.mark.parametrize("seed", range(3))
def test_lam_max_is_exact_on_trees(seed, penalty):
    rng = np.random.default_rng(seed)
    n = 9
    edges = [(int(rng.integers(i)), i) for i in range(1, n)]
    names = rng.permutation(n)
    graph = Graph.from_edges(names[np.array(edges)], 10 ** rng.uniform(-2, 2, n - 1))
    data = random_data(rng, [6, 0, 3, 6, 1, 6, 0, 6, 2], 2)
    problem = Problem(graph, data, penalty=penalty, lam=1.0)
    assert lam_max(problem) == pytest.approx(naive_tree_bound(problem), rel=1e-5)


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", range(4))
def test_consensus_at_lam_max_on_random_graphs(seed, penalty):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 12, density=0.25)
    counts = rng.choice([0, 1, 6], 12)
    counts[:4] = 6
    problem = Problem(graph, random_data(rng, counts, 2), penalty=penalty, lam=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        found = solve(problem.with_lam(1.001 * lam_max(problem)), tol=1e-10)
    assert found.converged
    assert within(problem, found.w) <= 1e-6


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
def test_the_bound_is_valid_and_not_loose_on_a_block_model(penalty):
    problem = block_problem(penalty=penalty)
    top = lam_max(problem)
    assert within(problem, solve(problem.with_lam(1.001 * top), tol=1e-10).w) <= 1e-6
    assert within(problem, solve(problem.with_lam(top / 2), tol=1e-8).w) > 1e-3
    assert within(problem, solve(problem.with_lam(top / 50), tol=1e-6).w) > 0.1


@pytest.mark.parametrize("loss", ["huber", Logistic(l2=0.1)])
def test_losses_that_are_not_quadratic(loss):
    problem = chain_problem(5, loss=loss)
    top = lam_max(problem)
    assert within(problem, solve(problem.with_lam(1.001 * top), tol=1e-11).w) <= 1e-5
    assert within(problem, solve(problem.with_lam(0.9 * top), tol=1e-9).w) > 1e-4


def test_the_flow_of_a_large_sparse_graph():
    """Many nodes with cycles: conjugate gradients, and a chain too long for recursion."""
    rng = np.random.default_rng(0)
    graph = nefele.graphs.sbm([150, 150], 0.05, 0.01, seed=0)
    problem = Problem(graph, random_data(rng, [4] * 300, 2), lam=1.0)
    top = lam_max(problem)
    found = path(problem, [1.001 * top, 0.2 * top])
    assert found.converged and within(problem, found.w[0]) <= 1e-8 < within(problem, found.w[1])
    long = Problem(nefele.graphs.chain(3000), random_data(rng, [2] * 3000, 1), lam=1.0)
    centre = np.full((3000, 1), (long.data.X * long.data.y[:, None]).sum() / (long.data.X**2).sum())
    expected = np.abs(np.cumsum(long.loss.grad(centre))[:-1]).max()
    assert lam_max(long) == pytest.approx(expected, rel=1e-8)


def test_disconnected_graphs_and_nodes_without_data():
    graph = Graph.from_edges([(0, 1), (2, 3), (3, 4)], nodes=range(6))
    rows = [([[1.0]], [y]) for y in (0.0, 1.0, 0.0)]
    data = LocalData.from_list([*rows, None, ([[1.0]], [6.0]), ([[1.0]], [9.0])])
    problem = Problem(graph, data, lam=1.0)
    assert lam_max(problem) == pytest.approx(6.0)
    found = path(problem, [6.0, 0.5])
    assert found.n_clusters[0] == 3 and found.n_clusters[1] >= 5
    assert found.clusters[0].tolist() == [0, 0, 1, 1, 1, 2]
    assert found.w[0].ravel() == pytest.approx([0.5, 0.5, 3, 3, 3, 9])


def test_without_edges_or_data():
    data = LocalData.from_list([([[1.0]], [1.0]), ([[1.0]], [2.0])])
    alone = Problem(Graph([0, 1], [], []), data, lam=1.0)
    assert lam_max(alone) == 0
    with pytest.raises(ValueError, match="lam_max is 0"):
        path(alone)
    assert path(alone, [1.0]).n_clusters.tolist() == [2]
    empty = Problem(Graph.from_edges([(0, 1)]), data, loss="zero", lam=1.0)
    assert lam_max(empty) == 0
    with pytest.warns(DataWarning) as caught:
        assert path(empty, [2.0, 1.0]).n_clusters.tolist() == [1, 1]
    assert len(caught) == 1


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", "squared_l2"])
def test_points_equal_cold_solves_within_their_gaps(penalty):
    problem = block_problem(penalty=penalty)
    found = path(problem, n_lams=6, tol=1e-5)
    assert found.converged and (found.gaps <= 1e-5).all()
    for k, lam in enumerate(found.lams):
        cold = solve(problem.with_lam(lam), tol=1e-8)
        point = found.results[k]
        assert point.problem.lam == lam and point.objective == found.objectives[k]
        assert -cold.gap_abs <= point.objective - cold.objective <= point.gap_abs
        assert problem.with_lam(lam).objective(found.w[k]) == pytest.approx(point.objective)


def test_clusters_grow_as_lam_falls():
    problem = block_problem(sizes=(15, 15, 15))
    found = path(problem, n_lams=12)
    assert len(found) == 12 and found.clusters.shape == (12, 45)
    assert found.lams[0] == lam_max(problem)
    assert found.lams[-1] == pytest.approx(1e-3 * found.lams[0])
    assert found.n_clusters[0] == problem.graph.components.max() + 1
    assert found.n_clusters[-1] > 3 and 3 in found.n_clusters
    assert (np.diff(found.objectives) <= 1e-4 * found.objectives[:-1]).all()
    assert "12 lams" in repr(found) and "converged" in repr(found)


@pytest.mark.parametrize(
    "penalty", ["squared_l2", HuberPenalty(0.5), Quadratic([[1.0, 0], [0, 0]])]
)
def test_smooth_penalties_start_near_consensus(penalty):
    problem = block_problem(penalty=penalty)
    top = lam_max(problem)
    assert 0 < top < np.inf
    seen = [problem.penalty.mix(solve(problem.with_lam(s * top), tol=1e-8).w) for s in (1, 0.1)]
    local = problem.penalty.mix(problem.loss.minimise()[problem.loss.labelled])
    near, far = (float(np.std(w[problem.loss.labelled], axis=0).max()) for w in seen)
    assert near <= 0.05 * float(np.std(local, axis=0).max()) and far > 2 * near
    assert path(problem, n_lams=3).converged


@pytest.mark.parametrize("loss", [Absolute(l2=0.1), Squared(l1=0.1)])
def test_losses_without_a_gradient(loss):
    problem = block_problem(loss=loss, sizes=(5, 5))
    found = path(problem, n_lams=3, tol=1e-3)
    assert found.converged and within(problem, found.w[0]) < 0.2 * within(problem, found.w[-1])


def test_a_users_loss_with_a_gradient_but_no_hessian():
    class Anchor:
        d = 1
        points = np.array([[0.0], [1.0], [5.0]])

        def value(self, w):
            return ((w - self.points) ** 2).sum(axis=1)

        def grad(self, w):
            return 2 * (w - self.points)

    problem = Problem(nefele.graphs.chain(3), None, loss=Anchor(), lam=1.0)
    top = lam_max(problem)
    assert within(problem, solve(problem.with_lam(top), tol=1e-6).w) < 0.1


def test_lam_zero_gives_the_local_fits():
    problem = chain_problem(3)
    found = path(problem, [0.0, 1.0])
    assert found.lams.tolist() == [1.0, 0.0]
    assert found.w[1] == pytest.approx(problem.loss.minimise())


def test_keep_clusters_only():
    problem = chain_problem(4)
    found = path(problem, n_lams=3, keep="clusters")
    assert found.results == [] and found.clusters.shape == (3, 4) and found.converged
    with pytest.raises(ValueError, match="not kept"):
        _ = found.w


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lams": [1.0, -0.5]}, "lams must be finite and >= 0; got -0.5 at position 1"),
        ({"lams": [np.nan]}, "got nan at position 0"),
        ({"lams": []}, "at least one value"),
        ({"lams": 1.0}, "1 dimension"),
        ({"n_lams": 0}, "n_lams must be an integer >= 1"),
        ({"tol": 0.0}, "tol must be"),
        ({"callback": 3}, "callback must be callable"),
        ({"keep": "all of it"}, "No keep"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        path(chain_problem(3), **arguments)


def test_what_is_not_a_problem():
    for function in (path, lam_max):
        with pytest.raises(ValueError, match="problem must be a Problem; got int"):
            function(3)


def test_with_lam_shares_the_loss_and_nothing_that_depends_on_lam():
    problem = chain_problem(3, lam=2.0)
    assert problem.coupled and problem.scale[0] == 2.0 and problem.parts.max() == 0
    other = problem.with_lam(0.0)
    assert other.loss is problem.loss and problem.lam == 2.0
    assert not other.coupled and other.scale[0] == 0.0 and other.parts.max() == 2
    with pytest.raises(ValueError, match="lam must be"):
        problem.with_lam(-1.0)


def test_inputs_are_not_changed():
    lams = np.array([0.1, 1.0])
    path(chain_problem(3), lams)
    assert lams.tolist() == [0.1, 1.0]


def test_interrupts_return_the_points_done():
    seen = []

    def stop(result):
        seen.append(result.problem.lam)
        if len(seen) == 2:
            raise KeyboardInterrupt

    found = path(chain_problem(4), n_lams=5, callback=stop)
    assert len(found) == 2 == len(found.results) == len(found.clusters)
    assert found.lams.tolist() == seen and not found.converged
    assert "not converged" in repr(found)


def test_an_interrupt_inside_a_solve(monkeypatch):
    problem = chain_problem(4)
    top = lam_max(problem)

    certificate, calls = Problem.certificate, []

    def interrupted(*args, **options):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return certificate(*args, **options)

    monkeypatch.setattr(Problem, "certificate", interrupted)
    found = path(problem, [top / 3, top / 9])
    assert len(found) == 0 and not found.converged and found.results == []
    assert repr(found) == "PathResult(0 lams, not converged)"
    with pytest.raises(ValueError, match="no points"):
        _ = found.w


def test_the_callback_may_stop_the_path():
    found = path(chain_problem(4), n_lams=5, callback=lambda result: True)
    assert len(found) == 1 and not found.converged


def test_one_warning_for_the_whole_path():
    with pytest.warns(ConvergenceWarning, match="of 4 points did not reach tol") as caught:
        found = path(chain_problem(6), n_lams=4, tol=1e-30)
    assert len(caught) == 1 and not found.converged
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "graph", [nefele.graphs.chain(5), Graph.from_edges([(0, 1), (1, 2), (0, 2)])]
)
def test_a_path_with_a_penalty_per_edge(graph):
    rng = np.random.default_rng(3)
    data = LocalData.from_list(
        [(rng.standard_normal((6, 2)), rng.standard_normal(6)) for _ in range(graph.n_nodes)]
    )
    problem = Problem(graph, data, penalty={(0, 1): "l1", None: "l2"}, lam=1.0)
    found = path(problem, n_lams=4)
    assert found.converged
    assert within(problem, found.w[0]) < 0.05 * within(problem, found.w[-1])


@pytest.mark.parametrize(
    "kinds",
    [
        [Partial(L2Norm(), [0]), L2Norm()],
        [Quadratic(np.diag([1.0, 0.0])), SquaredL2()],
        [Partial(SquaredL2(), [0]), SquaredL2()],
    ],
    ids=repr,
)
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_edges_that_couple_different_entries_have_a_path(loss, kinds):
    """The second entry is never equal everywhere: only what an edge compares can vanish."""
    rng, rows = np.random.default_rng(0), []
    for w in ([1.0, 1.0], [2.0, -1.0], [0.0, 3.0], [1.0, 0.0]):
        X = rng.normal(size=(8, 2))
        rows.append((X, X @ w + 0.1 * rng.normal(size=8)))
    penalty = ByEdge(kinds, [0, 1, 0])
    problem = Problem(chain(4), LocalData.from_list(rows), loss, penalty, lam=1.0)
    found = path(problem, n_lams=6)
    assert 0.1 < found.lams[0] < 1e3 and found.converged
    assert np.abs(found.w[0] - found.w[-1]).max() > 1.0
