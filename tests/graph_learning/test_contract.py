"""What holds for every builder: ids, seeds, clones, grid search, a single node."""

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import nefele
from nefele import GTVClassifier, GTVRegressor, WithinNodeKFold, graph_learning
from nefele.estimators import GraphBuilder
from nefele.graph_learning import (
    EmbeddingKNN,
    LabelGraph,
    PairwiseGraph,
    TestGraph,
    WassersteinGraph,
)
from nefele.result import DataWarning
from tests.graph_learning.data import BUILDERS, as_rows, places, planted

NAMES = list(BUILDERS)


@pytest.fixture(scope="module")
def data():
    return planted(0, n=12, m=12)


def test_every_builder_is_checked():
    known = {type(builder) for builder, _ in BUILDERS.values()} | {
        LabelGraph,
        PairwiseGraph,
        GraphBuilder,
    }
    exported = {getattr(graph_learning, name) for name in graph_learning.__all__}
    assert {c for c in exported if isinstance(c, type) and issubclass(c, GraphBuilder)} == known


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_kept_and_the_graph_does_not_depend_on_the_order_of_rows(name, data):
    X, y, ids, _ = data
    builder, rows = BUILDERS[name][0], as_rows(X, y, ids, coords=places(ids))
    graph = builder.fit_graph(rows)
    assert set(graph.ids.tolist()) == set(ids.tolist())
    assert graph.ids.dtype.kind == "U"
    order = np.arange(len(y)).reshape(12, 12)[::-1].ravel()  # other nodes first
    again = builder.fit_graph(as_rows(X[order], y[order], ids[order], coords=places(ids)))
    assert set(again.ids.tolist()) == set(graph.ids.tolist())
    if name not in ("mmd", "energy"):  # their draws go by pairs
        assert (again.head == graph.head).all() and (again.tail == graph.tail).all()
        np.testing.assert_allclose(again.weight, graph.weight, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_clone_and_repeat_give_the_same_graph(name, data):
    X, y, ids, _ = data
    builder, rows = BUILDERS[name][0], as_rows(X, y, ids, coords=places(ids))
    before = (X.copy(), y.copy())
    first = builder.fit_graph(rows)
    assert clone(builder).fit_graph(rows) == first == builder.fit_graph(rows)
    assert (before[0] == X).all() and (y == before[1]).all()


@pytest.mark.parametrize("name", NAMES)
def test_grid_search_over_a_parameter_of_the_graph(name, data):
    X, y, ids, _ = data
    builder, grid = BUILDERS[name]
    number = np.searchsorted(np.unique(ids), ids)
    table = np.column_stack([number, X])
    where = places(number)
    model = GTVRegressor(builder, node=0, alpha=0.1, coords=where, tol=1e-2)
    named = {f"graph__{key}": values for key, values in grid.items()}
    search = GridSearchCV(model, named, cv=WithinNodeKFold(2, node=0)).fit(table, y)
    assert np.isfinite(search.best_score_)
    assert len(search.cv_results_["params"]) == (2 if grid else 1)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("radius", "delaunay", "nearest")]
)
def test_a_single_node_has_no_edges(name, data):
    X, y, _, _ = data
    builder = BUILDERS[name][0]
    if name == "degree":
        builder = clone(builder).set_params(degree=1)
    if name == "blocks":
        builder = clone(builder).set_params(n_blocks=1)
    graph = builder.fit_graph(as_rows(X[:12], y[:12], ["a"] * 12))
    assert (graph.ids.tolist(), graph.n_edges) == (["a"], 0)


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n not in ("glasso", "radius", "delaunay", "nearest", "no edges")]
)
def test_a_constant_feature_changes_nothing_essential(name, data):
    X, y, ids, _ = data
    builder = BUILDERS[name][0]
    rows = as_rows(np.column_stack([X, np.full(len(y), 7.0)]), y, ids)
    by_moments = isinstance(builder, WassersteinGraph | EmbeddingKNN | TestGraph)
    words = pytest.warns(DataWarning, match=r"Constant feature \(column 2\): no information")
    with words if by_moments else nullcontext():
        graph = builder.fit_graph(rows)
    assert graph.n_edges > 0 and np.isfinite(graph.weight).all()


@pytest.mark.parametrize("similarity", ["distribution", "overlap"])
def test_labels_join_nodes_with_the_same_classes(similarity):
    node = np.repeat([f"n{i}" for i in range(8)], 10)
    pair = np.repeat(np.arange(8) % 2, 10)
    y = np.array(["a", "b", "c", "d"])[2 * pair + np.tile([0, 1], 40)]
    X = np.random.default_rng(0).normal(size=(80, 1))
    builder = LabelGraph(similarity, threshold=0.4)
    loss = nefele.losses.Multinomial(n_classes=4, l2=0.1)
    # A component lacks two classes: intercepts, which the ridge spares, would run away.
    model = GTVClassifier(builder, alpha=0.1, loss=loss, tol=1e-2, fit_intercept=False)
    model.fit(X, y, node_ids=node)
    kind = np.arange(8) % 2
    want = kind[:, None] == kind[None, :]
    assert ((model.graph_.adjacency.toarray() > 0) == (want & ~np.eye(8, dtype=bool))).all()


def test_labels_need_classes(data):
    X, y, ids, _ = data
    with pytest.raises(ValueError, match="needs classes"):
        LabelGraph().fit_graph(as_rows(X, y, ids))


@pytest.mark.parametrize("name", ["loss", "wasserstein", "t", "pooling", "smooth"])
def test_builders_take_classes(name):
    rng = np.random.default_rng(1)
    kind = np.arange(9) % 3
    node = np.repeat(np.arange(9), 25)
    X = rng.normal(size=(225, 2)) + 3 * np.eye(3, 2)[kind[node]]
    y = (X[:, 0] * np.where(kind[node] == 0, 1, -1) > 0).astype(int)
    loss = nefele.losses.Logistic(l2=0.1)
    model = GTVClassifier(BUILDERS[name][0], alpha=0.1, loss=loss, tol=1e-2, fit_intercept=False)
    graph = model.fit(X, y, node_ids=node).graph_
    assert graph.n_nodes == 9 and graph.n_edges > 0
