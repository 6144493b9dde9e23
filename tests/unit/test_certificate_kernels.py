"""The compiled sums of certificates against NumPy, with compiled rows and without."""

import numpy as np
import pytest

from nefele._kernels import certificate as kernels
from nefele._kernels.rows import as_dims
from nefele.graphs import grid


@pytest.fixture(params=[1, 3, 7, 16, 17])
def case(request):
    """Graph, dims, parameters, flow and scale; the last length has no compiled rows."""
    graph, d = grid(5, 4), request.param
    rng = np.random.default_rng(d)
    w, u = rng.normal(size=(graph.n_nodes, d)), rng.normal(size=(graph.n_edges, d))
    return graph, as_dims(d), w, u, rng.uniform(0.5, 2.0, graph.n_edges)


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_variation(case, kind):
    graph, dims, w, _, scale = case
    step = graph.diff(w)
    sizes = (np.sqrt((step**2).sum(axis=1)), np.abs(step).sum(axis=1), 0.5 * (step**2).sum(axis=1))
    found = kernels.variation(dims, kind, graph.ptr, graph.tail, scale, w)
    assert found == pytest.approx(scale @ sizes[kind], rel=1e-13)


@pytest.mark.parametrize("kind", [0, 1])
def test_spare(case, kind):
    graph, dims, w, u, scale = case
    step = graph.diff(w)
    size = np.sqrt((step**2).sum(axis=1)) if kind == 0 else np.abs(step).sum(axis=1)
    found = kernels.spare(dims, kind, graph.ptr, graph.tail, scale, w, u)
    assert found == pytest.approx(scale @ size - np.vdot(u, step), rel=1e-12)


@pytest.mark.parametrize("entries", [False, True])
def test_corrected_flow(case, entries):
    graph, dims, w, u, scale = case
    give = np.outer(scale, np.arange(1.0, 1.0 + w.shape[1])) if entries else scale[:, None]
    out = np.empty_like(u)
    rows = None if give.shape[1] > 1 else dims
    kernels.correct(rows, graph.ptr, graph.tail, give, w, u, out)
    np.testing.assert_allclose(out, u - give * graph.diff(w), rtol=1e-13, atol=1e-13)


def test_tensions(case):
    graph, dims, w, u, scale = case
    out = np.empty_like(u)
    kernels.tensions(dims, graph.ptr, graph.tail, scale, w, out)
    np.testing.assert_allclose(out, scale[:, None] * graph.diff(w), rtol=1e-13)


def test_largest(case):
    _, dims, _, u, _ = case
    out = np.zeros((1, u.shape[1]))
    kernels.largest(dims, u, out)
    assert out[0].tolist() == np.abs(u).max(axis=0).tolist()
