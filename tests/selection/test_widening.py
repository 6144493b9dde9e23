"""The grid of alphas goes on where the best one is the last."""

import numpy as np
import pytest

import nefele
from nefele.selection.folds import Fold, NodeErrors
from nefele.selection.widening import joined, widen

GRID = np.geomspace(1.0, 1e-4, 5)


def searched(peak, upward=False, grid=GRID):
    """Widen a grid of two folds whose score falls with the distance from the best alpha."""
    tried = [grid]

    def scores():
        row = -np.abs(np.log10(np.concatenate(tried)) - peak)
        return np.stack([row, row - 1.0])

    def more(new, front):
        tried.insert(0, new) if front else tried.append(new)
        return scores()

    return widen(grid, scores(), more, upward=upward)


def test_a_best_alpha_inside_leaves_the_grid_as_it_is():
    np.testing.assert_array_equal(searched(-2.0), GRID)


def test_it_goes_on_below_until_the_best_is_inside():
    np.testing.assert_allclose(searched(-5.0), np.geomspace(1.0, 1e-6, 7))


def test_it_goes_on_above_only_where_that_means_something():
    np.testing.assert_array_equal(searched(2.0), GRID)
    np.testing.assert_allclose(searched(2.0, upward=True), np.geomspace(1e3, 1e-4, 8))


def test_the_search_is_bounded():
    assert searched(-50.0)[-1] == pytest.approx(1e-7)


def test_no_gain_ends_it():
    flat = np.append(np.full((1, 4), -2.0), [[-1.0]], axis=1)
    found = widen(GRID, flat, lambda new, front: np.append(flat, [[-1.0]], axis=1))
    assert len(found) == 6


def test_a_single_candidate_or_none_is_left_alone():
    for grid in (np.zeros(1), np.ones(1)):
        assert widen(grid, np.zeros((2, 1)), None) is grid
    assert widen(GRID, np.zeros((0, 5)), None) is GRID


@pytest.mark.parametrize("front", [False, True])
def test_joined_folds_keep_the_order_of_the_alphas(front):
    def fold(*scores):
        along = np.array(scores)
        errors = NodeErrors(
            np.array(["a"]), np.ones(1), np.ones(1, bool), np.ones(1), np.ones(1),
            -along[:, None], [9.0, *scores, 8.0],
        )  # fmt: skip
        return Fold(along, 0.5, 0.6, n_missed=1, errors=errors)

    found = joined(fold(1.0, 2.0), fold(3.0), front)
    wanted = [3.0, 1.0, 2.0] if front else [1.0, 2.0, 3.0]
    assert found.scores.tolist() == wanted and found.n_missed == 2
    assert (-found.errors.coupled[:, 0]).tolist() == wanted
    assert found.errors.wrong == [9.0, *wanted, 8.0]


def unlike(n_rows=40):
    """Nodes that have nothing in common: own data is best, with hardly any coupling."""
    rng = np.random.default_rng(0)
    ids, X = np.repeat(np.arange(6), n_rows), rng.normal(size=(6 * n_rows, 1))
    slope = 1000.0 * rng.normal(size=6)
    return X, X[:, 0] * slope[ids] + rng.normal(size=len(ids)), ids


def test_estimators_go_on_below():
    X, y, ids = unlike()
    model = nefele.GTVRegressorCV(nefele.graphs.chain(6), penalty="l2", n_alphas=4, cv=3)
    model.fit(X, y, node_ids=ids)
    assert len(model.alphas_) > 4
    assert model.alpha_ < model.alphas_[3]
    assert len(model.cv_results_["mean_test_score"]) == len(model.alphas_)
    assert len(model.cv_results_["n_clusters"]) == len(model.alphas_)


def test_given_alphas_are_all_that_is_tried():
    X, y, ids = unlike()
    model = nefele.GTVRegressorCV(nefele.graphs.chain(6), penalty="l2", alphas=[10.0, 1.0], cv=3)
    assert model.fit(X, y, node_ids=ids).alphas_.tolist() == [10.0, 1.0]
