"""Laplacians with a node held at zero: dense and sparse factors, whichever fills less."""

import numpy as np
import pytest

from nefele._systems import grounded
from nefele.graphs import grid, knn, sbm


@pytest.mark.parametrize("solver", ["_dense_laplacian", "_sparse_laplacian"])
@pytest.mark.parametrize("columns", [1, 3])
def test_both_solve_the_same_equation(solver, columns, monkeypatch):
    rng = np.random.default_rng(0)
    graph = sbm([20, 20], 0.3, 0.05, seed=0)
    give, right = rng.random((graph.n_edges, columns)) + 0.1, rng.standard_normal((40, columns))
    right -= right.mean(axis=0)
    seconds = 0.0 if solver == "_dense_laplacian" else np.inf
    monkeypatch.setattr(grounded, "dense_seconds", lambda n: seconds)
    x = grounded.laplacian_direct(graph, give, right)
    np.testing.assert_allclose(graph.div(give * graph.diff(x)), right, atol=1e-10)


def used(graph, monkeypatch):
    """Which of the two forms a graph gets."""
    seen = []
    for name in ("_dense_laplacian", "_sparse_laplacian"):
        plain = getattr(grounded, name)
        monkeypatch.setattr(
            grounded, name, lambda *a, name=name, plain=plain: (seen.append(name), plain(*a))[1]
        )
    right = np.random.default_rng(0).standard_normal((graph.n_nodes, 1))
    grounded.laplacian_direct(graph, np.ones((graph.n_edges, 1)), right - right.mean())
    return seen


def test_neighbours_in_the_plane_stay_sparse(monkeypatch):
    points = np.random.default_rng(0).random((1500, 2))
    assert used(knn(points, 9), monkeypatch) == ["_sparse_laplacian"]


def test_random_links_fill_the_matrix(monkeypatch):
    assert used(sbm([800], 0.02, 0.0, seed=0), monkeypatch) == ["_dense_laplacian"]


def test_potential_of_a_long_grid_falls_back_to_factors():
    graph = grid(4, 400)
    right = np.zeros((graph.n_nodes, 2))
    right[0], right[-1] = 1.0, -1.0
    x, direct = grounded.potential(graph, np.ones((graph.n_edges, 1)), right, 1e-10)
    assert direct
    np.testing.assert_allclose(graph.div(graph.diff(x)), right, atol=1e-9)
