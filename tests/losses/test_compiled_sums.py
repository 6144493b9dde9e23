"""Compiled sums for many nodes equal the plain ones for few."""

import numpy as np
import pytest

from nefele import LocalData, Problem
from nefele.graphs import grid
from nefele.losses import Multinomial, Squared, multinomial, pointwise, squared
from nefele.losses.rows import RowDual


@pytest.fixture(params=[None, (1.0, 0.0, 0.3)], ids=["even", "spared"])
def problem(request):
    rng = np.random.default_rng(0)
    counts = rng.choice([0, 2, 6], 400)
    ptr = np.concatenate([[0], np.cumsum(counts)])
    X, y = rng.standard_normal((ptr[-1], 3)), rng.standard_normal(ptr[-1])
    data = LocalData(X, y, ptr, shrink=request.param)
    return Problem(grid(20, 20), data, loss=Squared(l2=0.1), penalty="l2", lam=0.3)


def large(problem, monkeypatch):
    monkeypatch.setattr(squared, "_LARGE", 1)
    monkeypatch.setattr(pointwise, "_LARGE", 1)
    return Squared(l2=0.1).bind(problem.data)


def test_value_gradient_and_prox(problem, monkeypatch):
    rng = np.random.default_rng(1)
    w, step = rng.standard_normal((400, 3)), rng.uniform(0.01, 100, 400)
    plain = problem.loss
    expected = plain.value(w), plain.grad(w), plain.prox(w, step)
    fast = large(problem, monkeypatch)
    np.testing.assert_allclose(fast.H, plain.H, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fast.b, plain.b, rtol=1e-12, atol=1e-12)
    for found, wanted in zip(
        (fast.value(w), fast.grad(w), fast.prox(w, step)), expected, strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def test_dual_point(problem, monkeypatch):
    rng = np.random.default_rng(2)
    w, x, theta = rng.standard_normal((400, 3)), rng.standard_normal((400, 3)), rng.random(400)
    rows = RowDual(problem.loss, w, np.zeros_like(w))
    dual = large(problem, monkeypatch).dual_point(w, np.zeros_like(w))
    assert isinstance(dual, squared.SquaredDual)
    for found in (rows, dual):
        found.settle(x)
    np.testing.assert_allclose(dual.flow(), rows.flow(), atol=1e-10)
    np.testing.assert_allclose(dual.conjugate(theta), rows.conjugate(theta), atol=1e-10)
    assert (dual.size() >= np.abs(dual.flow()) - 1e-12).all()


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_certificates_agree(problem, penalty, monkeypatch):
    from nefele._systems import laplacian
    from nefele.certificate import correction

    problem = Problem(problem.graph, problem.data, Squared(l2=0.1), penalty, lam=0.3)
    rng = np.random.default_rng(3)
    w = 0.1 * rng.standard_normal((400, 3))
    u = 0.1 * rng.standard_normal((problem.graph.n_edges, 3))
    slow = problem.certificate(w, u)
    monkeypatch.setattr(correction, "COMPILED", 1)
    monkeypatch.setattr(laplacian, "COMPILED", 1)
    fast = Problem(problem.graph, problem.data, Squared(l2=0.1), penalty, lam=0.3)
    fast.loss = large(problem, monkeypatch)
    found = fast.certificate(w, u)
    assert found.objective == pytest.approx(slow.objective, rel=1e-12)
    # rough solves stop early, each on its own path: valid bounds, not the same ones
    assert found.gap_abs == pytest.approx(slow.gap_abs, rel=1e-2)


@pytest.mark.parametrize("loss", ["logistic", "poisson", Multinomial(3)])
def test_smooth_losses(loss, monkeypatch):
    rng = np.random.default_rng(3)
    counts = rng.choice([0, 2, 6], 100)
    ptr = np.concatenate([[0], np.cumsum(counts)])
    X = rng.standard_normal((ptr[-1], 3))
    y = rng.choice([-1.0, 1.0] if loss == "logistic" else [0.0, 1.0, 2.0], ptr[-1])
    found = []
    for size in (1, 10**9):
        monkeypatch.setattr(pointwise, "_LARGE", size)
        monkeypatch.setattr(multinomial, "_COMPILED", size)
        bound = Problem(grid(10, 10), LocalData(X, y, ptr), loss=loss, lam=0.3).loss
        w = np.random.default_rng(4).standard_normal((100, bound.d))
        z, x = bound.predict(w), bound.predict(2 * w)
        found.append([bound.value(w), bound.grad(w), bound.hess(w), bound.row_bend(z, x)])
    for fast, plain in zip(*found, strict=True):
        np.testing.assert_allclose(fast, plain, rtol=1e-12, atol=1e-12)
