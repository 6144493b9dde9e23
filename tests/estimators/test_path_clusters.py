"""Clusters along a path of alphas."""

import numpy as np

from nefele import GTVRegressor
from nefele.estimators.fitting import track_along
from nefele.graphs import chain


def test_wild_own_fits_make_no_clusters_under_a_smooth_penalty():
    """With rows that hardly differ own fits are huge: differences are small only beside them."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(12), 3)
    x = np.repeat(rng.normal(size=12), 3) + 1e-8 * rng.normal(size=36)
    y = rng.normal(size=12)[ids] + rng.normal(size=36)
    model = GTVRegressor(chain(12), alpha=1.0, penalty="squared_l2")
    model.fit(x[:, None], y, node_ids=ids)
    assert len(np.unique(model.coef_)) == 12
    found = track_along(model, np.array([10.0, 1.0, 0.1]), 1)
    np.testing.assert_array_equal(found.clusters.max(axis=1) + 1, [12, 12, 12])
