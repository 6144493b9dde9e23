"""Planted clusters: learnt graphs lead to them, own fits do not."""

import numpy as np
import pytest
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
            builder, n_alphas=6, cv=2, one_se=True, fit_intercept=False, tol=1e-3
        ).fit(X, y, node_ids=ids)
        assert adjusted_rand_score(kind, model.clusters_) >= 0.9, seed
        assert model.coupling_helps_


@pytest.mark.parametrize("seed", SEEDS)
def test_own_fits_show_no_clusters(seed):
    X, y, ids, kind = planted(seed)
    alone = GTVRegressor(LossGraph(), alpha=0.0, fit_intercept=False).fit(X, y, node_ids=ids)
    assert adjusted_rand_score(kind, alone.clusters_) < 0.1


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
