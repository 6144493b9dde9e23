"""Reconstruction from what was sent: without noise, parameters are not private."""

import matplotlib
import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.privacy.audit import (
    row_from_gradient,
    statistics_from_answers,
    statistics_from_messages,
    watch,
)
from nefele.runtime import relax_messages

matplotlib.use("agg")


def network(n=5, d=2, m=6, seed=0, edges=None):
    rng = np.random.default_rng(seed)
    rows = [(rng.normal(size=(m, d)), rng.normal(size=m)) for _ in range(n)]
    graph = Graph.from_edges([(i, i + 1) for i in range(n - 1)] if edges is None else edges)
    return Problem(graph, LocalData.from_list(rows), penalty="squared_l2", lam=0.7), rows


def truth(rows, i):
    X, y = rows[i]
    return X.T @ X / len(y), X.T @ y / len(y)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_d_plus_one_answers_of_fedrelax_give_the_statistics(d):
    """The answers are those of the solver's own update."""
    problem, rows = network(2, d, 20)
    pull = problem.lam  # of a node with one neighbour
    asked = np.vstack([np.zeros(d), 10 * np.eye(d)])
    answers = []
    for v in asked:
        w = problem.loss.prox(np.vstack([v, v]), np.full(2, 1 / pull))
        answers.append(w[0])
    found = statistics_from_answers(asked, answers, pull, truth=truth(rows, 0))
    assert found.answers == d + 1
    assert found.error < 1e-15 * 4 * (d + 1) ** 2  # rounding, and no more
    assert found.error <= found.uncertainty


def test_a_run_that_was_heard_gives_the_statistics():
    """Nothing but messages that were sent; the end of a chain, and a node in its middle."""
    problem, rows = network()
    run = relax_messages(problem, 8, transcript=True)
    for node in (0, 2):
        found = statistics_from_messages(run.ledger.transcript, problem.graph, problem.lam, node)
        Q, q = truth(rows, node)
        np.testing.assert_allclose(found.values["Q"], Q, atol=1e-6)
        np.testing.assert_allclose(found.values["q"], q, atol=1e-6)
        assert found.uncertainty < 1e-3


def test_noise_blurs_it():
    problem, rows = network(2)
    errors = []
    for sigma in (1e-6, 1e-2):
        run = relax_messages(problem, 60, noise=sigma, seed=0, transcript=True)
        found = statistics_from_messages(run.ledger.transcript, problem.graph, problem.lam, 0)
        errors.append(np.linalg.norm(found.values["Q"] - truth(rows, 0)[0]))
    assert errors[0] < 0.01 < errors[1]


def test_one_gradient_gives_the_only_row():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y, w = np.append(rng.normal(size=4), 1.0), rng.normal(), rng.normal(size=5)
        data = LocalData.from_list([(x[None], [y])])
        loss = Problem(Graph([0], [], []), data, lam=0.0).loss
        found = row_from_gradient(loss.grad(w[None])[0], w, truth=(x, y))
        assert found.error < 1e-12 and found.values["x"][-1] == 1.0


@pytest.mark.parametrize("penalty", ["squared_l2", "l2"])
def test_a_neighbour_without_data_ends_with_your_weights(penalty):
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(6, 2)), rng.normal(size=6)) for _ in range(4)]
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    problem = Problem(graph, LocalData.from_list(rows), penalty=penalty, lam=0.3)
    found = watch(problem, 2)
    assert found.error < 1e-4
    np.testing.assert_allclose(found.values["w"], solve(problem, tol=1e-9).w[2], atol=1e-3)


def test_the_sentences_and_pictures():
    found = watch(network(2)[0], 0)
    assert "a neighbour without data" in str(found) and "Compared with the truth" in str(found)
    assert found.plot().get_xlabel() == "truth, which never left"
    one = row_from_gradient([2.0, 1.0], [0.0, 0.0])
    assert str(one).startswith("1 answer gives the node's only row")
    assert one.plot().get_xlabel() == "number"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: statistics_from_answers(np.zeros((2, 2)), np.zeros((2, 2)), 1.0), "at least 3"),
        (lambda: statistics_from_answers(np.zeros((3, 2)), np.zeros((4, 2)), 1.0), "one shape"),
        (lambda: statistics_from_answers(np.ones((4, 2)), np.ones((4, 2)), 1.0), "in one plane"),
        (lambda: statistics_from_answers(np.eye(3)[:, :2], np.eye(3)[:, :2], 0.0), "pull must be"),
        (
            lambda: statistics_from_answers(np.full((4, 2), np.nan), np.eye(4)[:, :2], 1.0),
            "asked, answer 0, must be finite",
        ),
        (lambda: row_from_gradient([1.0, 0.0], [0.0, 0.0]), "At a perfect fit it says nothing"),
        (lambda: row_from_gradient([1.0], [0.0, 0.0]), "one shape"),
        (lambda: watch(network()[0], 0, weight=0.0), "weight must be"),
        (lambda: statistics_from_messages([], network()[0].graph, 1.0, 0), "got none of its own"),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(ValueError, match=text):
        call()
