"""An audit of a private model spends nothing."""

import numpy as np

from nefele import Graph, GTVRegressor
from nefele.privacy import Bounds, Privacy
from nefele.runs.auditing import private


def test_a_model_with_a_guarantee_is_not_fitted_again():
    rng = np.random.default_rng(0)
    X, nodes = rng.uniform(-1, 1, size=(40, 2)) / 2, np.repeat(["a", "b"], 20)
    promise = Privacy(2.0, 1e-6, bounds=Bounds(x=1.0, y=(-2, 2)))
    graph = Graph.from_edges([("a", "b")])
    model = GTVRegressor(graph, penalty="squared_l2", privacy=promise)
    model.fit(X, X.sum(axis=1), node_ids=nodes)
    coef = model.coef_.copy()
    found = private(model)
    assert np.array_equal(model.coef_, coef)
    assert found.facts["sent"]["guarantee"] == {"epsilon": 2.0, "delta": 1e-6, "unit": "record"}
    assert "epsilon 2" in found.text() and "would be charged" in found.text()
