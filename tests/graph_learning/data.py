"""Local datasets of three kinds, and the builders that every contract is checked for."""

import numpy as np

from nefele import Graph
from nefele.graph_learning import (
    AlternatingGraph,
    BlockModelCleanup,
    CliqueGraph,
    DegreeGraph,
    DelaunayGraph,
    EmbeddingKNN,
    GlassoGraph,
    GradientGraph,
    LinkPrediction,
    LossGraph,
    MomentsKNN,
    NoEdges,
    PoolingGainGraph,
    RadiusGraph,
    ShuffledGraph,
    SmoothSignalGraph,
    SpatialKNN,
    TestGraph,
    TrainingRows,
    WassersteinGraph,
)

SLOPES = np.array([[2.0, 2.0], [-2.0, 2.0], [0.0, -2.0]])


def planted(seed, n=30, m=20, noise=1.0, faulty=0):
    """X, y, node ids (text) and the kind of each node: three linear models, same features.

    The first `faulty` nodes have targets with a hundred times the noise.
    """
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    X = rng.normal(size=(n, m, 2))
    y = np.einsum("nmd,nd->nm", X, SLOPES[kind])
    y += noise * np.where(np.arange(n) < faulty, 100.0, 1.0)[:, None] * rng.normal(size=(n, m))
    ids = np.repeat([f"node {i:02d}" for i in range(n)], m)
    return X.reshape(-1, 2), y.ravel(), ids, kind


def as_rows(X, y, ids, **extra):
    targets = np.asarray(y, dtype=float)
    targets = targets[:, None] if targets.ndim == 1 else targets
    return TrainingRows(np.asarray(X, float), targets, np.asarray(ids), np.ones(len(X)), **extra)


def places(ids):
    """A place in the unit square for each id."""
    unique = np.unique(ids)
    rng = np.random.default_rng(5)
    return dict(zip(unique.tolist(), rng.random((len(unique), 2)).tolist(), strict=True))


def ring(ids):
    unique = np.unique(ids)
    n = len(unique)
    return Graph(unique, np.arange(n), np.roll(np.arange(n), -1))


# builder, and a parameter with a second value for grid search
BUILDERS = {
    "radius": (RadiusGraph(0.3), {"radius": [0.3, 0.6]}),
    "delaunay": (DelaunayGraph(), {"weight": ["unit", "exp"]}),
    "wasserstein": (WassersteinGraph(k=3), {"k": [2, 3]}),
    "wasserstein by eta": (WassersteinGraph(eta=2.0, shrinkage=0.1), {"eta": [1.0, 2.0]}),
    "moments": (EmbeddingKNN(k=3), {"k": [2, 3]}),
    "nearest moments": (MomentsKNN(k=3), {"k": [2, 3]}),
    "nearest": (SpatialKNN(k=3), {"k": [2, 3]}),
    "pca": (EmbeddingKNN("pca", k=3, n_components=3), {"n_components": [2, 3]}),
    "tsne": (EmbeddingKNN("tsne", k=3), {"k": [2, 3]}),
    "t": (TestGraph("t"), {"level": [0.05, 0.2]}),
    "ks": (TestGraph("ks"), {"level": [0.05, 0.2]}),
    "mmd": (TestGraph("mmd", n_permutations=49), {"level": [0.05, 0.2]}),
    "energy": (TestGraph("energy", k=3, weight="pvalue"), {"k": [2, 3]}),
    "loss": (LossGraph(k=3), {"k": [2, 3]}),
    "gradient": (GradientGraph(k=3, metric="cosine"), {"metric": ["euclidean", "cosine"]}),
    "pooling": (PoolingGainGraph(), {"threshold": [0.5, 1.0]}),
    "smooth": (SmoothSignalGraph(k=3), {"k": [2, 3]}),
    "glasso": (GlassoGraph(), {"alpha": [0.3, 0.5]}),
    "degree": (DegreeGraph(2), {"degree": [1, 2]}),
    "links": (LinkPrediction(LossGraph(k=2)), {"graph__k": [2, 3]}),
    "blocks": (BlockModelCleanup(LossGraph(k=3), n_blocks=3), {"n_blocks": [2, 3]}),
    "alternating": (AlternatingGraph(k=3), {"k": [2, 3]}),
    "clique": (CliqueGraph(), {"max_complete": [60, 2]}),
    "no edges": (NoEdges(), {}),
    "shuffled": (ShuffledGraph(LossGraph(k=3)), {"random_state": [0, 1]}),
}
