"""What older releases of the packages below nefele ask for."""

import numpy as np

from nefele import Graph
from nefele._draw import layout
from nefele.theory import tree_basis


def test_distances_have_the_index_type_that_scipy_before_1_15_needs(monkeypatch):
    seen, real = [], layout.dijkstra

    def watched(matrix, *args, **options):
        seen.extend([matrix.indices.dtype, matrix.indptr.dtype])
        return real(matrix, *args, **options)

    monkeypatch.setattr(layout, "dijkstra", watched)
    xy = layout.force_layout(5, np.array([[0, 1], [1, 2], [3, 4]]))
    assert set(seen) == {np.dtype(np.intc)}
    assert np.isfinite(xy).all()


def test_spanning_trees_have_the_index_type_that_scipy_before_1_15_needs(monkeypatch):
    seen, real = [], tree_basis.minimum_spanning_tree

    def watched(matrix):
        seen.extend([matrix.indices.dtype, matrix.indptr.dtype])
        return real(matrix)

    monkeypatch.setattr(tree_basis, "minimum_spanning_tree", watched)
    basis = tree_basis.TreeBasis.of(Graph.from_edges([(0, 1), (1, 2), (0, 2)], [1.0, 3.0, 2.0]))
    assert seen == [np.intc, np.intc]
    assert sorted(basis.edge.tolist()) == [1, 2]
