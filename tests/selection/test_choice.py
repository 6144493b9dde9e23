"""The choice of alpha by folds, and the errors of nodes that folds add up to."""

import numpy as np
import pytest

from nefele.selection.choice import choose, choose_by_others, judged
from nefele.selection.folds import Fold, NodeErrors

SCORES = np.array([[1.0, 3.0, 2.0], [1.0, 2.0, 4.0], [2.0, 2.5, 0.0]])


def fold(nodes, weight, own, pooled, coupled, with_rows=None):
    on = np.ones(len(nodes), bool) if with_rows is None else np.array(with_rows)
    weight = np.array(weight, float)
    errors = NodeErrors(
        np.array(nodes), weight, on, np.array(own), np.array(pooled), np.array(coupled), []
    )
    scores = -np.average(errors.coupled, axis=1, weights=weight)
    return Fold(scores, n_judged=len(nodes), n_own=int(on.sum()), errors=errors)


def test_the_best_mean_wins_and_of_equals_the_first():
    assert choose(SCORES) == (1, 1)
    assert choose(np.array([[1.0, 2.0, 2.0]])) == (1, 1)


def test_one_standard_error_takes_the_first_within_it():
    close = SCORES + np.array([0.8, 0.0, 0.0])
    mean, spread = close.mean(axis=0), close[:, 1].std(ddof=1) / np.sqrt(3)
    assert mean[1] - mean[0] > spread and choose(close, one_se=True) == (1, 1)
    assert choose(close + np.array([0.1, 0.0, 0.0]), one_se=True) == (1, 0)


def test_a_fold_takes_the_alpha_of_the_others():
    want = [np.delete(SCORES, k, axis=0).mean(axis=0).argmax() for k in range(3)]
    assert choose_by_others(SCORES).tolist() == want == [1, 1, 2]
    assert choose_by_others(SCORES[:1]).tolist() == [1]


def test_errors_of_a_node_are_averaged_over_its_rows_in_all_folds():
    one = fold(["a", "b"], [1, 3], [4.0, 2.0], [5.0, 5.0], [[1.0, 1.0], [9.0, 8.0]])
    two = fold(["b"], [1], [6.0], [1.0], [[6.0], [2.0]])
    found = judged([one, two])  # each with the alpha that is best in the other
    assert found.nodes == ["a", "b"] and found.held_out.tolist() == [1, 4]
    assert found.own == pytest.approx([4.0, 3.0]) and found.pooled == pytest.approx([5.0, 4.0])
    assert found.coupled == pytest.approx([9.0, (3 * 8.0 + 6.0) / 4])


def test_nodes_without_training_rows_do_not_judge_unless_all_are():
    one = fold(["a", "b"], [2, 2], [4.0, 7.0], [5.0, 7.0], [[1.0, 0.0]], [True, False])
    found = judged([one])
    assert found.nodes == ["a"] and found.coupled.tolist() == [1.0]
    none = fold(["a", "b"], [2, 2], [4.0, 7.0], [5.0, 7.0], [[1.0, 0.0]], [False, False])
    found = judged([none])
    assert found.nodes == ["a", "b"] and np.isnan(found.own).all()
    assert found.rival[0] == "one model" and found.gain.mean == pytest.approx(5.5)
