"""Models whose graph is learnt can be saved without pickle."""

import numpy as np

import nefele
from nefele.graph_learning import LabelGraph, WassersteinGraph


def test_models_with_learnt_graphs_are_saved(tmp_path):
    rng = np.random.default_rng(0)
    ids, X = np.repeat(list("abcdef"), 12), rng.normal(size=(72, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=72)
    model = nefele.GTVRegressor(WassersteinGraph(k=2)).fit(X, y, node_ids=ids)
    model.save(tmp_path / "one")
    again = nefele.load(tmp_path / "one")
    assert isinstance(again.graph, WassersteinGraph) and again.graph.k == 2
    np.testing.assert_array_equal(again.predict(X, node_ids=ids), model.predict(X, node_ids=ids))
    classes = nefele.GTVClassifier(LabelGraph(k=2)).fit(X, y > 0, node_ids=ids)
    classes.save(tmp_path / "two")
    assert isinstance(nefele.load(tmp_path / "two").graph, LabelGraph)
