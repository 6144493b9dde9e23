import networkx as nx
import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.losses import Logistic, Multinomial, Squared
from nefele.penalties import Quadratic
from tests.problems import chain_problem, random_problem


def two_nodes(nodes=("a", "b"), lam=1.0, **options):
    data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])], nodes=list(nodes))
    return Problem(Graph.from_edges([("a", "b")]), data, lam=lam, **options)


def test_objective_by_hand():
    # (0.5 - 0)^2 + (3.5 - 4)^2 + |0.5 - 3.5|
    assert two_nodes().objective([[0.5], [3.5]]) == 3.5
    assert two_nodes(lam=0.0).objective([[0.5], [3.5]]) == 0.5
    assert two_nodes(penalty="squared_l2").objective([[0.5], [3.5]]) == 5.0
    assert two_nodes().objective_at_zero == 16.0


def test_data_is_matched_by_id_not_by_position():
    graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")], weight=[1.0, 2.0, 3.0])
    rows = {"c": ([[1.0]], [3.0]), "a": ([[2.0], [1.0]], [1.0, 1.0]), "d": ([[1.0]], [4.0])}
    shuffled = Problem(graph, LocalData.from_list(list(rows.values()), nodes=list(rows)), lam=0.5)
    ordered = [rows["a"], None, rows["c"], rows["d"]]
    plain = Problem(graph, LocalData.from_list(ordered, nodes=list("abcd")), lam=0.5)
    w = np.arange(4.0)[:, None]
    assert shuffled.objective(w) == plain.objective(w)
    assert shuffled.data.counts.tolist() == [2, 0, 1, 1]
    np.testing.assert_allclose(solve(shuffled, tol=1e-10).w, solve(plain, tol=1e-10).w, atol=1e-6)


def test_ids_007_and_7_differ():
    graph = Graph.from_edges([("007", "7")])
    data = LocalData.from_list([([[1.0]], [5.0])], nodes=["7"])
    assert Problem(graph, data, lam=1.0).data.labelled.tolist() == [False, True]


def test_a_loss_per_node_is_matched_by_id():
    problem = two_nodes(loss={"b": Squared(l2=1.0), "a": "squared"})
    assert problem.loss.value(np.array([[0.0], [4.0]])).tolist() == [0.0, 16.0]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: two_nodes(nodes=("a", "x")),
            "Every node id of the data must be a node of the graph; unknown: 'x'.",
        ),
        (lambda: two_nodes(lam=-1), "lam must be finite and >= 0; got -1. Use lam=0 for local"),
        (lambda: two_nodes(lam=np.nan), "lam must be finite and >= 0; got nan."),
        (lambda: two_nodes(lam="big"), "lam must be a number; got 'big'."),
        (lambda: two_nodes(lam=True), "lam must be a number; got True."),
        (lambda: two_nodes(lam=np.True_), "lam must be a number; got np.True_."),
        (lambda: two_nodes(loss="square"), 'No loss "square". Did you mean "squared"?'),
        (lambda: two_nodes(loss=3), "loss must be one of absolute, hinge, huber, logistic,"),
        (lambda: two_nodes(loss={"a": "squared"}), "loss must name every node with data; 'b' is"),
        (lambda: two_nodes(loss={"a": "squared", "z": "squared"}), "Every node id of loss must"),
        (lambda: two_nodes(penalty="L2"), 'No penalty "L2". Did you mean "l2"?'),
        (
            lambda: two_nodes(penalty=Quadratic(np.eye(2))),
            "Q must have shape (1, 1) for 1 parameters; got (2, 2).",
        ),
        (
            lambda: two_nodes(loss="logistic"),
            "Labels of the logistic loss must be -1 or 1; got 0 at node 'a'.",
        ),
        (
            lambda: two_nodes(loss=Multinomial(n_classes=3)),
            "Labels must be whole numbers 0..2; got 4 at node 'b'.",
        ),
        (lambda: two_nodes(loss=Squared(l2=-1.0)), "l2 must be finite and >= 0; got -1.0."),
        (
            lambda: Problem([(0, 1)], None, lam=1.0),
            "graph must be a nefele Graph; got list. Convert it by nefele.as_graph(...).",
        ),
        (
            lambda: Problem(nx.path_graph(2), None, lam=1.0),
            "graph must be a nefele Graph; got networkx.classes.graph.Graph. Convert it by",
        ),
        (
            lambda: Problem(Graph.from_edges([(0, 1)]), [1, 2], lam=1.0),
            "data must be LocalData; got list. Build it by LocalData.from_frame, from_long or",
        ),
        (
            lambda: Problem(Graph.from_edges([(0, 1)]), None, lam=1.0),
            "Squared needs data; got None.",
        ),
        (lambda: two_nodes().objective([[1.0]]), "w must have shape (2, 1); got (1, 1)."),
        (lambda: two_nodes().check_w([[1.0]], "w0"), "w0 must have shape (2, 1); got (1, 1)."),
        (lambda: two_nodes().check_w([[1.0], []], "w0"), "w0 must be a rectangular array;"),
        (lambda: two_nodes().check_u("zero", "u0"), "u0 must be numeric; got dtype"),
        (
            lambda: two_nodes().gap(np.zeros((2, 1)), np.zeros((2, 1))),
            "u must have shape (1, 1); got (2, 1).",
        ),
        (
            lambda: two_nodes(loss=Squared().bind(LocalData([[1.0]], [1.0], [0, 1]))),
            "loss is bound to 1 nodes; the graph has 2.",
        ),
    ],
)
def test_bad_input_says_what_must_hold_and_what_came(build, message):
    with pytest.raises(ValueError) as error:
        build()
    assert str(error.value).startswith(message)


class NoShape:
    d = 1

    def value(self, w):
        return w

    def grad(self, w):
        return w


class NoSize:
    def value(self, w):
        return w.sum(axis=1)

    def grad(self, w):
        return w


def test_a_users_loss_must_have_the_right_shapes():
    graph = Graph.from_edges([(0, 1)])
    with pytest.raises(ValueError, match=r"value of NoShape must return shape \(2,\); got \(2, 1"):
        Problem(graph, None, loss=NoShape(), lam=1.0)
    with pytest.raises(ValueError, match="NoSize must have an attribute d when data is None"):
        Problem(graph, None, loss=NoSize(), lam=1.0)


def test_a_bound_loss_is_taken_as_it_is():
    problem = two_nodes()
    again = Problem(problem.graph, None, loss=problem.loss, lam=1.0)
    assert again.loss is problem.loss
    assert again.objective([[0.5], [3.5]]) == 3.5


def test_repr():
    expected = "Problem(n_nodes=2, n_edges=1, d=1, penalty=L2Norm(), lam=1)"
    assert repr(two_nodes()) == expected


def test_undetermined_nodes_are_those_of_components_without_data():
    graph = Graph.from_edges([(0, 1), (2, 3)], nodes=range(5))
    data = LocalData.from_list([([[1.0]], [1.0]), None, None, None, None])
    assert Problem(graph, data, lam=1.0).undetermined.tolist() == [False, False, True, True, True]


def test_unbounded_nodes_are_those_of_separable_components():
    graph = Graph.from_edges([(0, 1), (2, 3)])
    X = [[1.0], [-1.0]]
    parts = [(X, [1.0, -1.0]), None, (X, [1.0, -1.0]), (X, [-1.0, 1.0])]
    data = LocalData.from_list(parts)
    problem = Problem(graph, data, loss="logistic", lam=1.0)
    assert problem.unbounded().tolist() == [True, True, False, False]
    alone = Problem(graph, data, loss="logistic", lam=0.0)
    assert alone.unbounded().tolist() == [True, False, True, True]
    ridge = Problem(graph, data, loss=Logistic(l2=0.1), lam=1.0)
    assert not ridge.unbounded().any()


@pytest.mark.parametrize("penalty", ["l2", "l1", "squared_l2", "huber"])
def test_residual_vanishes_at_the_solution_only(penalty):
    problem = chain_problem(penalty=penalty)
    result = solve(problem, tol=1e-12)
    assert max(problem.residual(result.w, result.u)) < 1e-5
    assert max(problem.residual(result.w + 0.1 * np.eye(4, 2), result.u)) > 1e-3


def test_residual_without_coupling():
    problem = chain_problem(lam=0.0)
    w = problem.loss.minimise()
    assert problem.residual(w, np.zeros((3, 2))) == pytest.approx((0.0, 0.0), abs=1e-10)


@pytest.mark.parametrize("penalty", ["l2", "linf", "squared_l2"])
@pytest.mark.parametrize("seed", range(3))
def test_dual_value_is_a_lower_bound_for_any_flow(seed, penalty):
    problem = random_problem(seed, penalty=penalty)
    at_zero = problem.objective_at_zero
    rng = np.random.default_rng(seed)
    shape = (problem.graph.n_edges, problem.d)
    w = rng.standard_normal((problem.graph.n_nodes, problem.d))
    for size in (0.0, 0.1, 10.0):
        u = size * rng.standard_normal(shape)
        lower = problem.dual_value(u)
        assert lower <= at_zero and lower <= problem.objective(w)
        assert lower <= problem.objective(problem.loss.minimise()) + 1e-12


def test_gap_equals_objective_minus_dual_value_at_the_solution():
    problem = chain_problem()
    result = solve(problem, tol=1e-10)
    assert problem.gap(result.w, result.u) <= 1e-8
    assert problem.dual_value(result.u) == pytest.approx(result.objective, rel=1e-6)
