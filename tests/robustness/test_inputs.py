"""Types of numbers and ids that a whole solve must take, labels and dicts that it must not."""

import numpy as np
import pandas as pd
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.losses import HuberLoss, Logistic, Multinomial, Squared
from tests.robustness.problems import data, path

ROWS = [([[1, 0], [0, 1]], [1, 2]), ([[2, 1], [1, 1]], [0, 3])]


def fit(rows, ids=(0, 1)):
    graph = Graph.from_edges([tuple(ids)], nodes=list(ids))
    return solve(Problem(graph, LocalData.from_list(rows, nodes=list(ids)), lam=0.5), tol=1e-9)


@pytest.mark.parametrize(
    "convert",
    [
        lambda a: np.array(a, dtype=np.int8),
        lambda a: np.array(a, dtype=np.uint16),
        lambda a: np.array(a, dtype=np.float32),
        lambda a: np.array(a, dtype=np.longdouble),
        lambda a: np.array(a, dtype=object),
        lambda a: np.asfortranarray(np.array(a, dtype=float)),
        lambda a: np.array(a, dtype=float)[::-1][::-1],
        tuple,
        lambda a: pd.DataFrame(a) if np.ndim(a) == 2 else pd.Series(a),
    ],
    ids=["int8", "uint16", "float32", "longdouble", "object", "fortran", "view", "tuple", "pandas"],
)
def test_numbers_of_any_type_give_the_same_fit(convert):
    plain, result = fit(ROWS), fit([(convert(X), convert(y)) for X, y in ROWS])
    assert result.w.dtype == np.float64
    np.testing.assert_array_equal(result.w, plain.w)


def test_truth_values_are_zeros_and_ones():
    rows = [(np.array(X) > 0, np.array(y) > 1) for X, y in ROWS]
    numbers = [(X.astype(float), y.astype(float)) for X, y in rows]
    np.testing.assert_array_equal(fit(rows).w, fit(numbers).w)


@pytest.mark.parametrize(
    "ids",
    [
        ("007", "7"),
        ("Äkäslompolo", "東京 🗼"),
        (2**62, -(2**62)),
        (10**30, 10**30 + 1),
        (("x", 1), ("x", 2)),
        (1, "1"),
    ],
    ids=repr,
)
def test_ids_of_any_kind_through_a_whole_solve(ids):
    np.testing.assert_array_equal(fit(ROWS, ids).w, fit(ROWS).w)


def test_a_table_in_another_order_than_the_graph():
    frame = pd.DataFrame(
        {
            "town": pd.Categorical(["b", "a", "b", "a"]),
            "y": [0.0, 1.0, 3.0, 2.0],
            "x0": [2, 1, 1, 0],
            "x1": [1, 0, 1, 1],
        }
    )
    graph = Graph.from_edges([("b", "a")], nodes=["b", "a", "c"][:2])
    sets = LocalData.from_frame(frame, node="town", target="y")
    result = solve(Problem(graph, sets, lam=0.5), tol=1e-9)
    np.testing.assert_allclose(result.w, fit(ROWS).w[::-1], atol=1e-6)


def test_a_whole_float_counts_classes():
    assert Multinomial(3.0) == Multinomial(3) and type(Multinomial(3.0).n_classes) is int


@pytest.mark.parametrize(
    ("loss", "y", "words"),
    [
        ("logistic", 0.0, r"must be -1 or 1; got 0 at node 1\. Use 2\*y - 1\.$"),
        ("logistic", False, r"got 0 at node 1\. Use 2\*y - 1\.$"),
        ("hinge", 0.0, r"must be -1 or 1; got 0 at node 1\. Use 2\*y - 1\.$"),
        ("hinge", 2.0, r"must be -1 or 1; got 2 at node 1\.$"),
        ("poisson", -1.0, "must be >= 0; got -1 at node 1"),
        ("multinomial", 0.5, "whole numbers"),
        (Multinomial(3), 3.0, "whole numbers 0..2; got 3 at node 1"),
        ("multinomial", -1.0, "whole numbers"),
        ("multinomial", 1e12, "Renumber them, or pass n_classes"),
    ],
    ids=repr,
)
def test_labels_outside_the_domain_name_the_node(loss, y, words):
    sets = LocalData.from_list([([[1.0]], [1.0]), ([[1.0]], [y])])
    with pytest.raises(ValueError, match=words):
        Problem(path(2), sets, loss=loss, lam=1.0)


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ({}, "must name every node with data; 0 is missing"),
        ({0: "squared", 1: "huber", 2: "squared"}, "must name every node with data; 3 is missing"),
        ({i: "squared" for i in range(5)}, "unknown: 4.*drop these keys of the dict"),
        ({str(i): "squared" for i in range(4)}, "convert one side"),
        ({**dict.fromkeys(range(3), "squared"), 3: "sqared"}, "Did you mean"),
        ({**dict.fromkeys(range(3), "squared"), 3: 7}, "loss must be one of"),
    ],
    ids=repr,
)
def test_losses_by_node_id_that_do_not_fit(losses, words):
    with pytest.raises(ValueError, match=words):
        Problem(path(4), data(), loss=losses, lam=1.0)


def test_losses_by_node_id_with_parameters_of_different_lengths():
    sets = LocalData.from_list([([[1.0]], [1.0]), ([[1.0]], [1.0])])
    with pytest.raises(ValueError, match=r"equally many parameters; got \[1, 3\]"):
        Problem(path(2), sets, loss={0: "squared", 1: Multinomial(3)}, lam=1.0)


def test_losses_by_node_id_in_any_order_and_not_for_nodes_without_data():
    sets = LocalData.from_list([([[1.0]], [1.0]), None, ([[1.0]], [-1.0])], nodes=["a", "b", "c"])
    graph = Graph.from_edges([("a", "b"), ("b", "c")])
    first = solve(Problem(graph, sets, loss={"c": Logistic(l2=0.1), "a": Squared()}, lam=0.2))
    every = {"a": Squared(), "b": "hinge", "c": Logistic(l2=0.1)}
    second = solve(Problem(graph, sets, loss=every, lam=0.2))
    assert first.converged and second.converged
    assert first.objective == pytest.approx(second.objective, rel=2e-6)


def test_one_loss_by_node_id_equals_the_same_loss_for_all():
    losses = {i: HuberLoss(delta=0.5) for i in range(4)}
    mixed = solve(Problem(path(4), data(), loss=losses, lam=0.2), tol=1e-9)
    plain = solve(Problem(path(4), data(), loss=HuberLoss(delta=0.5), lam=0.2), tol=1e-9)
    np.testing.assert_allclose(mixed.w, plain.w, atol=1e-5)


def test_a_bound_loss_of_another_size_is_an_error():
    with pytest.raises(ValueError, match="bound to 3 nodes; the graph has 4"):
        Problem(path(4), data(), loss=Squared().bind(data(n=3)), lam=1.0)
