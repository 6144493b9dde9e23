"""Convex clustering: against a cone solver, the conventions of scikit-learn, the clusterpath."""

import pickle

import cvxpy as cp
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import nefele
from nefele.estimators.clustering import ConvexClustering
from nefele.estimators.point_graph import neighbour_graph
from nefele.selection.clearest import clearest

BLOBS, TRUTH = make_blobs(
    45, centers=[[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]], cluster_std=0.5, random_state=0
)


# check_array_api_input runs only where SCIPY_ARRAY_API is set and skips itself elsewhere.
# A fixed alpha has no place here: the checks set n_clusters as well, and both is an error.
@parametrize_with_checks([ConvexClustering(n_alphas=12)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("penalty", "norm"), [("l2", 2), ("l1", 1)])
def test_centroids_are_those_of_a_cone_solver(penalty, norm):
    points = BLOBS[:12]
    model = ConvexClustering(alpha=0.7, penalty=penalty, n_neighbors=3, tol=1e-9).fit(points)
    graph = model.graph_
    w = cp.Variable(points.shape)
    apart = cp.multiply(graph.weight, cp.norm(w[graph.head] - w[graph.tail], norm, axis=1))
    cp.Problem(cp.Minimize(cp.sum_squares(w - points) + 0.7 * cp.sum(apart))).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
    )
    assert np.allclose(model.centroids_, w.value, atol=1e-4)


def test_finds_the_blobs_without_being_told_their_number():
    model = ConvexClustering().fit(BLOBS)
    assert model.n_clusters_ == 3
    assert adjusted_rand_score(TRUTH, model.labels_) == 1.0
    means = [BLOBS[model.labels_ == c].mean(axis=0) for c in range(3)]
    assert np.allclose(model.cluster_centers_, means)
    assert model.dual_gap_ <= 1e-4 and model.alpha_ in model.path_.alphas


@pytest.mark.parametrize("wanted", [1, 2, 3, 45])
def test_number_of_clusters(wanted):
    model = ConvexClustering(n_clusters=wanted, n_alphas=15).fit(BLOBS)
    assert model.n_clusters_ == wanted == len(np.unique(model.labels_))


def test_a_number_that_no_alpha_gives_is_said():
    corners = [[0.0], [1.0], [2.0]]
    star = nefele.Graph.from_edges([(0, 1), (1, 2)])  # both ends leave at the same alpha
    with pytest.warns(nefele.DataWarning, match="No alpha was found that gives 2 clusters"):
        ConvexClustering(n_clusters=2, graph=star).fit(corners)


def test_clusterpath_runs_from_one_cluster_to_many():
    found = ConvexClustering(n_alphas=20).clusterpath(BLOBS)
    assert found.n_clusters[0] == 1 and found.n_clusters[-1] > 30 and found.converged
    assert 3 in found.n_clusters and (np.diff(found.alphas) < 0).all()
    assert found.labels.shape == (len(found.alphas), 45)
    assert found.centroids.shape == (len(found.alphas), 45, 2)


def test_moving_and_scaling_the_points_moves_and_scales_the_centroids():
    one = ConvexClustering(alpha=0.5, tol=1e-8).fit(BLOBS)
    other = ConvexClustering(alpha=5.0, tol=1e-8).fit(1e6 + 10 * BLOBS)
    assert (one.labels_ == other.labels_).all()
    assert np.allclose(1e6 + 10 * one.centroids_, other.centroids_, rtol=0, atol=1e-3)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_tables(make):
    table = make({"x": BLOBS[:, 0], "y": BLOBS[:, 1]})
    model = ConvexClustering(alpha=0.5).fit(table)
    assert (model.labels_ == ConvexClustering(alpha=0.5).fit_predict(BLOBS)).all()
    assert list(model.feature_names_in_) == ["x", "y"]


def test_clone_and_pickle():
    model = ConvexClustering(alpha=0.5, penalty=nefele.penalties.Lp(3)).fit(BLOBS)
    again = pickle.loads(pickle.dumps(model))
    assert (again.labels_ == model.labels_).all()
    assert clone(model).get_params()["alpha"] == 0.5


def test_own_graph_by_row_number():
    chain = nefele.graphs.chain(4)
    model = ConvexClustering(alpha=0.2, graph=chain).fit([[0.0], [0.1], [5.0], [5.1]])
    assert model.labels_.tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="nodes must list every node of the graph; missing: 4"):
        ConvexClustering(graph=nefele.graphs.chain(5)).fit([[0.0], [0.1], [5.0], [5.1]])


def test_coinciding_points():
    model = ConvexClustering().fit([[1.0, 2.0]] * 5)
    assert model.n_clusters_ == 1 and np.allclose(model.centroids_, [1.0, 2.0])


def test_default_graph_is_connected():
    points = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [50.0], [50.2]])
    graph = neighbour_graph(points, 1, "exp", None)
    assert not graph.components.any()
    assert graph.weight.min() >= 1e-3 * graph.weight.max()
    assert (2, 3) in zip(graph.head.tolist(), graph.tail.tolist(), strict=True)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"penalty": "squared_l2"}, "needs a norm as penalty"),
        ({"alpha": -1.0}, "alpha must be finite and >= 0; got -1.0"),
        ({"alpha": 1.0, "n_clusters": 2}, "Give alpha or n_clusters, not both"),
        ({"n_clusters": 99}, r"at most the number of points \(45\); got 99"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer >= 1; got 0"),
        ({"weight": "expo"}, 'No weight "expo". Did you mean "exp"'),
        ({"n_alphas": 0}, "n_alphas must be an integer >= 1"),
    ],
)
def test_errors(params, match):
    with pytest.raises(ValueError, match=match):
        ConvexClustering(**params).fit(BLOBS)


def test_clearest_ignores_trivial_partitions_and_small_changes():
    one, two, nearly = [0] * 40, [0] * 20 + [1] * 20, [0] * 20 + [1] * 19 + [2]
    labels = np.array([one, two, nearly, two, list(range(40)), list(range(40))])
    alphas = 2.0 ** -np.arange(6)
    assert clearest(alphas, labels, most=40) == (1, 3)
    assert clearest(alphas[[0, 4]], labels[[0, 4]], most=40) is None
