"""Few rows and many parameters: Woodbury's identity against the direct inverse."""

import numpy as np
import pytest

from nefele import LocalData
from nefele.losses import Squared


@pytest.mark.parametrize("spared", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_wide_prox_equals_the_direct_inverse(l2, spared):
    rng = np.random.default_rng(0)
    counts = np.array([3, 0, 10, 1, 10, 5])
    X, y = rng.standard_normal((counts.sum(), 30)), rng.standard_normal(counts.sum())
    weight = rng.uniform(0.1, 2.0, len(y))
    shrink = np.append(rng.uniform(0.1, 2.0, 29), 0.0) if spared else None
    ptr = np.concatenate([[0], np.cumsum(counts)])
    data = LocalData(X, y, ptr, sample_weight=weight, shrink=shrink)
    bound = Squared(l2=l2).bind(data)
    assert bound._wide
    v, step = rng.standard_normal((6, 30)), 10.0 ** rng.uniform(-3, 3, 6)
    direct = np.linalg.solve(
        np.eye(30) + step[:, None, None] * bound.H, (v + step[:, None] * bound.b)[..., None]
    )[..., 0]
    np.testing.assert_allclose(bound.prox(v, step), direct, rtol=1e-9, atol=1e-11)
    A, c = bound.affine_prox(step)
    np.testing.assert_allclose((A @ v[..., None])[..., 0] + c, direct, rtol=1e-9, atol=1e-10)
