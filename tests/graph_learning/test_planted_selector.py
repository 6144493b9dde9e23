"""Planted clusters: the selector takes a learnt graph and rejects a random one."""

import numpy as np
import pytest

from nefele import GraphSelectorCV, GTVRegressorCV
from nefele.graph_learning import LossGraph
from nefele.graphs import sbm
from tests.graph_learning.data import planted

SEEDS = (0, 1, 2)


def selector(graphs, **options):
    search = GTVRegressorCV(penalty="l2", n_alphas=4, tol=1e-3, fit_intercept=False)
    return GraphSelectorCV(graphs, estimator=search, n_shuffles=1, max_complete=10, **options)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_selector_takes_the_learnt_graph_and_not_the_random_one(seed):
    X, y, ids, kind = planted(seed)
    random = sbm([30], 0.15, 0.0, seed=seed, nodes=np.unique(ids))
    found = selector({"random": random, "loss": LossGraph()}).fit(X, y, node_ids=ids)
    table = found.cv_results_
    helps = dict(zip(table["name"], table["helps"].tolist(), strict=True))
    assert helps == {"no edges": False, "one clique": False, "random": False, "loss": True}
    assert found.best_name_ == "loss" and found.helps_ and found.gain_ > 0
    assert found.best_graph_ == found.best_estimator_.graph_
    assert np.mean(kind[found.best_graph_.head] == kind[found.best_graph_.tail]) > 0.95
    assert '"loss" helps' in found.summary()
    assert found.score(X, y, node_ids=ids) > 0.8


@pytest.mark.parametrize("seed", SEEDS)
def test_the_selector_rejects_a_random_graph(seed):
    X, y, ids, _ = planted(seed, m=8)
    random = sbm([30], 0.15, 0.0, seed=seed, nodes=np.unique(ids))
    found = selector({"random": random}).fit(X, y, node_ids=ids)
    assert not found.helps_
    assert found.best_name_ in ("no edges", "one clique")
    assert "No graph helps" in found.summary() and f"Kept: {found.best_name_}" in found.summary()
    assert found.predict(X[:3], node_ids=ids[:3]).shape == (3,)


def test_nothing_helps_when_all_nodes_are_alike():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=200)
    found = selector([LossGraph(), LossGraph(k=2)]).fit(X, y, node_ids=np.repeat(range(20), 10))
    assert found.best_name_ == "one clique"
    assert set(found.cv_results_["name"]) == {"no edges", "one clique", "LossGraph", "LossGraph 2"}
