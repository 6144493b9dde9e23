"""Planted clusters: learnt graphs lead to them, also where faulty nodes mislead the own fits."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from nefele import GTVRegressor, GTVRegressorCV
from nefele.estimators import SpatialKNN
from nefele.graph_learning import (
    AlternatingGraph,
    BlockModelCleanup,
    DegreeGraph,
    EmbeddingKNN,
    GlassoGraph,
    GradientGraph,
    LossGraph,
    PoolingGainGraph,
    SmoothSignalGraph,
    TestGraph,
    WassersteinGraph,
    choose_by_validation,
)
from tests.graph_learning.data import as_rows, planted

SEEDS = (0, 1, 2)
FINDERS = [
    LossGraph(),
    GradientGraph(),
    PoolingGainGraph(),
    WassersteinGraph(k=4),
    SmoothSignalGraph(),
    AlternatingGraph(),
]


@pytest.mark.parametrize("builder", FINDERS, ids=lambda b: type(b).__name__)
def test_learnt_graphs_lead_to_the_clusters(builder):
    for seed in SEEDS:
        X, y, ids, kind = planted(seed)
        model = GTVRegressorCV(
            builder,
            penalty="l2",
            n_alphas=6,
            cv=2,
            one_se=True,
            fit_intercept=False,
            tol=1e-3,
        ).fit(X, y, node_ids=ids)
        assert adjusted_rand_score(kind, model.clusters_) >= 0.9, seed
        assert model.coupling_helps_


def local_fits(X, y, ids, l2):
    """Ridge fits of the nodes alone, least squares for l2 = 0."""
    found = []
    for node in np.unique(ids):
        here, target = X[ids == node], y[ids == node]
        found.append(np.linalg.solve(here.T @ here + l2 * np.eye(2), here.T @ target))
    return np.array(found)


@pytest.mark.parametrize("seed", SEEDS)
def test_clusters_of_the_local_fits_fail_with_faulty_nodes_and_those_of_the_graph_do_not(seed):
    X, y, ids, kind = planted(seed, n=60, faulty=2)
    for l2 in (0.0, 1.0, 10.0, 100.0):  # all nodes have rows alike, so shrinkage spares none
        points = local_fits(X, y, ids, l2)
        label = KMeans(3, n_init=10, random_state=0).fit_predict(points)
        assert adjusted_rand_score(kind, label) < 0.6
    for builder in (
        GradientGraph(),
        PoolingGainGraph(k=4),
        WassersteinGraph(k=4),
        AlternatingGraph(),
        TestGraph("t", k=4),
    ):
        model = GTVRegressor(builder, alpha=2.0, fit_intercept=False, tol=1e-3)
        found = model.fit(X, y, node_ids=ids).clusters_
        assert adjusted_rand_score(kind, found) >= 0.9, builder


def test_clusters_of_the_local_fits_are_right_without_faulty_nodes():
    X, y, ids, kind = planted(0)  # there the graph is not needed to find the clusters
    label = KMeans(3, n_init=10, random_state=0).fit_predict(local_fits(X, y, ids, 0.0))
    assert adjusted_rand_score(kind, label) == 1.0


@pytest.mark.parametrize(
    "builder",
    [
        TestGraph("t"),
        TestGraph("energy"),
        DegreeGraph(3),
        EmbeddingKNN("tsne"),
        EmbeddingKNN("pca"),
        EmbeddingKNN("moments"),
        GlassoGraph(signals="parameters"),
    ],
    ids=["t", "energy", "degree", "tsne", "pca", "moments", "glasso"],
)
def test_most_edges_join_nodes_of_one_kind(builder):
    for seed in SEEDS:
        X, y, ids, kind = planted(seed)
        graph = builder.fit_graph(as_rows(X, y, ids))
        chance = 9 / 29  # of a random pair to be of one kind
        assert np.mean(kind[graph.head] == kind[graph.tail]) > 2 * chance


@pytest.mark.parametrize("better", [AlternatingGraph(k=3), BlockModelCleanup(LossGraph(k=3))])
def test_a_second_look_improves_the_graph_of_few_rows(better):
    def purity(builder, seed):
        X, y, ids, kind = planted(seed, m=4)
        graph = builder.fit_graph(as_rows(X, y, ids))
        return np.mean(kind[graph.head] == kind[graph.tail])

    gain = [purity(better, seed) - purity(LossGraph(k=3), seed) for seed in range(8)]
    assert np.mean(gain) > 0.01


def test_k_by_validation():
    X, y, ids, _ = planted(0, n=12, m=10)
    rows = as_rows(X, y, ids)
    value, scores = choose_by_validation(LossGraph(), rows, values=[3, 11])
    assert value == 3 and scores[3] > scores[11]  # a complete graph mixes the kinds
    named = as_rows(X, y, ids, feature_names=["lat", "lon"])
    places = SpatialKNN(coords=["lat", "lon"])
    assert choose_by_validation(places, named, values=[2, 5])[0] in (2, 5)
    auto = LossGraph(k="auto").fit_graph(rows)
    choices = {k: LossGraph(k=k).fit_graph(rows) for k in (2, 4)}
    assert auto in choices.values()
