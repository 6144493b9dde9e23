"""The price of privacy is told before it is paid, and honestly."""

import matplotlib
import numpy as np
import pytest

from nefele import Graph, GTVClassifier, GTVRegressor, GTVRegressorCV
from nefele.privacy import Bounds, Budget, Price, Privacy, price
from tests.privacy.data import two_clusters

matplotlib.use("agg")
SEEDED = {"insecure_testing": True, "seed": 0}  # luck must not decide
PROMISE = Privacy(1.0, 1e-6, bounds=Bounds(x=3.5, y=(-4, 4)), **SEEDED)


def test_with_few_rows_own_data_only_is_better():
    X, y, ids, graph = two_clusters(20)
    model = GTVRegressor(graph, alpha=0.3, privacy=PROMISE)
    found = price(model, X, y, [0.3, 1.0, 3.0], node_ids=ids)
    assert found.worth_from is None
    assert "own data only is better" in found.text()
    assert (found.private.mean(axis=1) > found.own.mean()).all()
    assert found.without_noise.mean() < found.own.mean()


def test_many_nodes_of_hardly_enough_rows_gain_by_sharing_at_a_large_epsilon():
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(60), 30)
    X = rng.uniform(-1, 1, (1800, 1))
    y = X[:, 0] + rng.normal(size=1800)
    everyone = Graph.from_edges([(i, j) for i in range(60) for j in range(i)])
    promise = Privacy(1.0, 1e-6, bounds=Bounds(x=1.0, y=(-3, 3)), **SEEDED)
    model = GTVRegressor(everyone, alpha=1.0, penalty="squared_l2", privacy=promise)
    found = price(model, X, y, [0.01, 30.0], node_ids=ids)
    assert found.worth_from == 30.0
    assert found.text().startswith("From epsilon = 30 on sharing is worth it")


def test_no_budget_is_charged_and_tables_and_pictures_agree():
    X, y, ids, graph = two_clusters(30, nodes=6)
    budget = Budget(0.1, 1e-6)
    promise = Privacy(0.1, 1e-6, bounds=Bounds(x=3.5), budget=budget)
    model = GTVClassifier(graph, alpha=0.1, privacy=promise)
    found = price(model, X, y > 0, [3.0, 1.0], node_ids=ids, repeats=2)
    assert budget.releases == ()
    assert [row["epsilon"] for row in found.table()] == [None, 1.0, 3.0, None]
    assert all(0 <= row["error"] <= 1 for row in found.table())
    assert "own data only" in str(found)
    ax = found.plot()
    assert ax.get_xlabel() == "epsilon (delta 1e-06)"
    assert {text.get_text() for text in ax.get_legend().get_texts()} >= {"private", "own data only"}


def test_the_choice_of_alpha_has_its_price_too():
    X, y, ids, graph = two_clusters(40, nodes=6)
    model = GTVRegressorCV(graph, n_alphas=5, privacy=PROMISE)
    found = price(model, X, y, [1.0], node_ids=ids, repeats=2)
    assert found.private.shape == (1, 2)


def test_the_node_column_is_found():
    X, y, ids, graph = two_clusters(30, nodes=6)
    model = GTVRegressor(graph, node=0, alpha=0.3, privacy=PROMISE)
    found = price(model, np.column_stack([ids, X]), y, [1.0], repeats=2)
    assert np.isfinite(found.private).all()


def test_a_gain_that_ends_is_no_gain():
    wins, loses = np.array([1.0, 1.1]), np.array([9.0, 9.1])
    own = np.array([5.0, 5.1])
    found = Price(np.array([1.0, 2.0, 3.0]), np.array([wins, loses, wins]), own, wins, 1e-6)
    assert found.worth_from == 3.0


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"epsilons": []}, "at least one"),
        ({"epsilons": [0.0]}, "epsilon"),
        ({"held_out": 1.0}, "share below 1"),
        ({"repeats": 1}, "repeats"),
    ],
)
def test_bad_arguments(change, match):
    X, y, ids, graph = two_clusters(10, nodes=4)
    model = GTVRegressor(graph, privacy=PROMISE)
    with pytest.raises(ValueError, match=match):
        price(model, X, y, **{"epsilons": [1.0], "node_ids": ids, **change})
    with pytest.raises(ValueError, match="model must have privacy"):
        price(GTVRegressor(graph), X, y, [1.0], node_ids=ids)
