"""The compiled Newton prox and its NumPy twin."""

import numpy as np
import pytest

from nefele import LocalData
from nefele.losses import HuberLoss, Logistic, Multinomial, Poisson, SquaredHinge
from nefele.losses.rows import BoundRows

CASES = [
    (Logistic(), "sign"),
    (Logistic(l2=0.1), "sign"),
    (Poisson(), "count"),
    (Poisson(l2=0.3), "count"),
    (HuberLoss(delta=0.2), "real"),
    (HuberLoss(delta=5.0, l2=0.01), "real"),
    (SquaredHinge(), "sign"),
    (SquaredHinge(l2=(0.1, 0.0, 2.0, 0.3)), "sign"),
    (Multinomial(3), "class"),
    (Multinomial(3, l2=0.1), "class"),
    (Multinomial(6), "class"),
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
        "class": rng.integers(0, 3, len(z)).astype(float),
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


@pytest.mark.parametrize(("loss", "kind"), [c for c in CASES if c[0].l2], ids=str)
def test_columns_may_be_spared_by_the_ridge(loss, kind):
    rows = data(kind)
    spared = LocalData(rows.X, rows.y, rows.ptr, shrink=[0.0, 2.0, 0.1, 1.0])
    bound = loss.bind(spared)
    v = np.random.default_rng(3).standard_normal((bound.n_nodes, bound.d))
    step = np.full(bound.n_nodes, 5.0)
    fast, slow = bound.prox(v, step), BoundRows.prox(bound, v, step)
    np.testing.assert_allclose(fast, slow, rtol=1e-8, atol=1e-9)
    even = loss.bind(LocalData(rows.X, rows.y, rows.ptr)).prox(v, step)
    assert np.abs(fast - even).max() > 1e-3


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


def compiled(monkeypatch):
    """Calls of the compiled multinomial prox."""
    from nefele._kernels import multinomial

    calls, fast = [], multinomial.multinomial_prox
    monkeypatch.setattr(
        multinomial, "multinomial_prox", lambda *args: calls.append(1) or fast(*args)
    )
    return calls


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n_classes", "l2", "d"), [(2, 0.0, 4), (3, 0.1, 5), (7, 1e-3, 3)])
def test_multinomial_equals_the_numpy_prox_to_rounding(n_classes, l2, d, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 30, 60)
    X = rng.standard_normal((counts.sum(), d))
    y = rng.integers(0, n_classes, len(X)).astype(float)
    ptr = np.concatenate([[0], np.cumsum(counts)])
    weight = np.where(rng.random(len(y)) < 0.1, 0.0, rng.uniform(0.1, 2.0, len(y)))
    bound = Multinomial(n_classes, l2=l2).bind(LocalData(X, y, ptr, sample_weight=weight))
    v = rng.standard_normal((bound.n_nodes, bound.d))
    step = 10.0 ** rng.uniform(-3, 2, bound.n_nodes)
    slow, calls = BoundRows.prox(bound, v, step), compiled(monkeypatch)
    for start in (None, 3 * rng.standard_normal(v.shape), slow):
        fast = bound.prox(v, step, start)
        np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-10)
    assert len(calls) == 3
    np.testing.assert_array_equal(fast[~bound.labelled], v[~bound.labelled])


@pytest.mark.parametrize(("n_classes", "d", "l1"), [(3, 40, 0.0), (3, 4, 0.1)])
def test_many_unknowns_and_a_lasso_term_are_left_to_numpy(n_classes, d, l1, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, d))
    data = LocalData(X, rng.integers(0, n_classes, 300).astype(float), np.arange(0, 301, 30))
    bound, calls = Multinomial(n_classes, l1=l1).bind(data), compiled(monkeypatch)
    v = np.zeros((10, bound.d))
    np.testing.assert_array_equal(bound.prox(v, np.ones(10)), BoundRows.prox(bound, v, np.ones(10)))
    assert not calls


def test_multinomial_predictions_far_out_do_not_overflow():
    rng = np.random.default_rng(0)
    X = 1e6 * rng.standard_normal((600, 2))
    data = LocalData(X, rng.integers(0, 3, 600).astype(float), np.arange(0, 601, 60))
    bound = Multinomial(3).bind(data)
    v, step = 1e3 * rng.standard_normal((10, 6)), np.ones(10)
    z = bound.prox(v, step)
    before = bound.value(v)
    assert np.isfinite(z).all()
    assert (bound.value(z) + ((z - v) ** 2).sum(axis=1) / 2 <= before).all()


def test_exponentials_are_those_of_the_library():
    from nefele._kernels.logistic import exponentials

    x = -np.concatenate([[0.0, 1e-300, 1e-9], np.linspace(0, 40, 4001), np.linspace(40, 700, 999)])
    found, power = x.copy(), np.empty(len(x))
    exponentials(found, len(x), power, power.view(np.int64))
    np.testing.assert_allclose(found, np.exp(x), rtol=5e-16)
    far = np.array([-np.inf, -1e9])
    exponentials(far, 2, power, power.view(np.int64))
    assert (far < 1e-300).all() and (far >= 0).all()


@pytest.mark.parametrize("rows", [63, 64, 65, 200])
@pytest.mark.parametrize("offset", [False, True])
def test_logistic_rows_are_taken_in_parts(rows, offset):
    rng = np.random.default_rng(rows)
    X, y = rng.standard_normal((3 * rows, 5)), rng.choice([-1.0, 1.0], 3 * rows)
    ptr = np.array([0, rows, rows, 3 * rows])
    data = LocalData(X, y, ptr, offset=2 * rng.standard_normal(len(y)) if offset else None)
    bound, v = Logistic(l2=0.01).bind(data), rng.standard_normal((3, 5))
    step = np.array([1.0, 1.0, 100.0])
    expected = BoundRows.prox(bound, v, step)
    np.testing.assert_allclose(bound.prox(v, step), expected, rtol=1e-11, atol=1e-12)
    again = bound.prox(v, step, expected)
    np.testing.assert_allclose(again, expected, rtol=1e-11, atol=1e-12)


def test_whole_logistic_steps_that_lead_astray_are_taken_back():
    """Far from the optimum, where the loss is all but straight, a whole step goes too far."""
    X = np.array([[1.0], [-1.0], [2.0]])
    data = LocalData(np.tile(X, (400, 1)), np.ones(1200), np.arange(0, 1201, 3))
    bound, step = Logistic().bind(data), np.full(400, 1e7)
    v = np.linspace(-60, 60, 400)[:, None]
    found = bound.prox(v, step)
    slope = bound.grad(found) + (found - v) / step[:, None]
    np.testing.assert_allclose(slope, 0.0, atol=1e-11)
