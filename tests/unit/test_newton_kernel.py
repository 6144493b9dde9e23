"""The compiled Newton prox and its NumPy twin."""

import numpy as np
import pytest

from nefele import LocalData
from nefele.losses import HuberLoss, Logistic, Poisson
from nefele.losses.rows import BoundRows

CASES = [
    (Logistic(), "sign"),
    (Logistic(l2=0.1), "sign"),
    (Poisson(), "count"),
    (Poisson(l2=0.3), "count"),
    (HuberLoss(delta=0.2), "real"),
    (HuberLoss(delta=5.0, l2=0.01), "real"),
]


def data(kind, seed=0, n=150, d=4):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, n)
    X = rng.standard_normal((counts.sum(), d)) * 10.0 ** rng.uniform(-1, 1, d)
    z = X @ rng.standard_normal(d) / 5
    y = {
        "sign": rng.choice([-1.0, 1.0], len(z)),
        "count": rng.poisson(np.exp(np.clip(z, -3, 3))).astype(float),
        "real": z + rng.standard_t(2, len(z)),
    }[kind]
    weight = rng.uniform(0.0, 2.0, len(y))
    ptr = np.concatenate([[0], np.cumsum(counts)])
    return LocalData(X, y, ptr, sample_weight=weight)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("loss", "kind"), CASES, ids=str)
def test_equals_the_numpy_prox(loss, kind, seed):
    bound = loss.bind(data(kind, seed))
    rng = np.random.default_rng(seed + 10)
    v = rng.standard_normal((bound.n_nodes, bound.d))
    step = 10.0 ** rng.uniform(-3, 2, bound.n_nodes)
    slow = BoundRows.prox(bound, v, step)
    for start in (None, rng.standard_normal(v.shape)):
        fast = bound.prox(v, step, start)
        np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("loss", "kind"), CASES, ids=str)
def test_is_stationary(loss, kind):
    bound = loss.bind(data(kind))
    rng = np.random.default_rng(1)
    v, step = rng.standard_normal((bound.n_nodes, bound.d)), np.full(bound.n_nodes, 0.7)
    z = bound.prox(v, step)
    off = bound.grad(z) + (z - v) / step[:, None]
    size = np.abs(bound.hess(z)).max() + 1 / 0.7
    assert np.abs(off).max() <= 1e-9 * size


def test_inputs_are_not_changed():
    bound = Logistic().bind(data("sign"))
    v, start = np.ones((bound.n_nodes, bound.d)), np.zeros((bound.n_nodes, bound.d))
    step = np.ones(bound.n_nodes)
    for array in (v, start, step):
        array.flags.writeable = False
    bound.prox(v, step, start)
    assert (v == 1).all() and (start == 0).all()


def test_a_subclass_with_its_own_formula_is_not_taken_for_the_compiled_one():
    class Tilted(Logistic):
        def f(self, z, y):
            return super().f(z, y) + 0.5 * z**2

        def slope(self, z, y):
            return super().slope(z, y) + z

        def bend(self, z, y):
            return super().bend(z, y) + 1.0

    bound = Tilted().bind(data("sign"))
    v, step = np.ones((bound.n_nodes, bound.d)), np.ones(bound.n_nodes)
    z = bound.prox(v, step)
    off = bound.grad(z) + z - v
    assert np.abs(off).max() <= 1e-9 * np.abs(bound.hess(z)).max()
