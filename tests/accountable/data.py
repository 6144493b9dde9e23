"""Small networks for the tests of explanations."""

import numpy as np

import nefele


def network(n_nodes=6, n_rows=8, d=2, seed=0):
    """Rows of a chain of nodes: X, y, node ids."""
    rng = np.random.default_rng(seed)
    ids, X = np.repeat(np.arange(n_nodes), n_rows), rng.normal(size=(n_nodes * n_rows, d))
    w = rng.normal(size=(n_nodes, d)).cumsum(axis=0) / 2
    y = np.einsum("rj,rj->r", X, w[ids]) + rng.normal(size=n_nodes)[ids]
    return X, y + 0.3 * rng.normal(size=len(ids)), ids


def fitted(seed=0, shift=0.0, **options):
    """A fitted regressor over a chain, and its rows."""
    X, y, ids = network(seed=seed)
    given = {"penalty": "squared_l2", "alpha": 0.5, "tol": 1e-14, **options}
    model = nefele.GTVRegressor(nefele.graphs.chain(6), **given)
    return model.fit(X, y + shift, node_ids=ids), X, y + shift, ids
