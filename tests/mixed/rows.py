"""Generated grouped data for the tests of mixed models."""

import numpy as np

from nefele.data import LocalData


def grouped(seed=0, n=30, rows=8, deviations=(0.7, 0.0, 1.5), noise=1.0, empty=()):
    """Two features and a constant; coefficients (1, -2, 3) plus personal deviations."""
    rng = np.random.default_rng(seed)
    parts = []
    for i in range(n):
        m = 0 if i in empty else int(rng.integers(2, 2 * rows))
        X = np.column_stack([rng.normal(size=(m, 2)), np.ones(m)])
        w = np.array([1.0, -2.0, 3.0]) + np.array(deviations) * rng.normal(size=3)
        parts.append((X, X @ w + noise * rng.normal(size=m)))
    return LocalData.from_list(parts)


def long(data):
    """Features without the constant, target and node of each row."""
    return data.X[:, :2], data.y, data.row_node
