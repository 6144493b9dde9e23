"""The rule of the verdict, its standard error and its words."""

import re

import numpy as np
import pytest

from nefele.selection import Verdict
from nefele.selection.judge import Judge
from nefele.selection.verdict import Gain


@pytest.mark.parametrize(
    ("coupled", "helps", "words"),
    [
        ([0.5, 1.0, 0.6, 1.1], "yes", "Coupling helps: .* 47% smaller than with own data only"),
        ([1.0, 2.0, 1.0, 2.0], "no", "does not help here: own data only does as well"),
        ([1.2, 2.1, 1.0, 2.0], "no", "does not help here: own data only does better"),
        ([0.2, 2.5, 1.5, 1.6], "unclear", "does not clearly help: .* a gain of 0.05 ± 0.33"),
        ([0.9, 1.9, 0.9, 1.4], "probably", "probably helps: .* ± 0.1. .* b2, carries 67%"),
        ([0.995, 1.995, 0.995, 1.995], "unclear", "does not clearly help"),
    ],
)
def test_verdict(coupled, helps, words):
    own = np.array([1.0, 2.0, 1.0, 2.0])
    nodes = ["a1", "a2", "b1", "b2"]
    found = Verdict(own, own + 1.0, np.array(coupled), np.full(4, 2), nodes)
    assert found.helps == helps
    assert re.search(words, found.text()) and " ± " in found.text()


def test_one_node_has_no_standard_error():
    found = Verdict(np.array([2.0]), np.array([3.0]), np.array([1.0]), np.array([5]), ["a"])
    assert found.helps == "unclear" and "without a standard error" in found.text()


def test_few_nodes_of_many_are_named():
    own = np.ones(40)
    coupled = np.where(np.arange(40) < 2, 0.1, 0.98)
    found = Verdict(own, own + 1, coupled, np.full(40, 3), [f"n{i}" for i in range(40)])
    assert "2 nodes, n0, n1, carry 70% of it." in found.text()
    even = Verdict(own, own + 1, own - 0.5, np.full(40, 3), [f"n{i}" for i in range(40)])
    assert "carr" not in even.text()


def test_gain_is_weighted_by_rows_and_has_the_usual_standard_error():
    rng = np.random.default_rng(0)
    own, coupled = rng.random((2, 9))
    even = Verdict(own, own + 1.0, coupled, np.full(9, 3))
    assert even.gain.mean == pytest.approx((own - coupled).mean())
    assert even.gain.error == pytest.approx((own - coupled).std(ddof=1) / 3)
    uneven = Verdict(own, own + 1.0, coupled, np.arange(1, 10))
    assert uneven.gain.mean == pytest.approx(np.average(own - coupled, weights=np.arange(1, 10)))
    assert even.count(coupled) == ((coupled < own).sum(), (coupled > own).sum())


@pytest.mark.parametrize(
    ("gain", "helps", "words"),
    [
        ([0.4, 0.5, 0.6], "yes", "Coupling helps: the gain over own data only is 0.5 ± 0.058"),
        ([0.0, 0.1, 0.2], "probably", "Coupling probably helps: .* 0.1 ± 0.058 .* over the folds"),
        ([-0.1, 0.0, 0.25], "unclear", "does not clearly help: .* is 0.05 ± 0.1"),
        ([-0.1, 0.0, 0.05], "no", "does not help here: own data only does as well or better"),
        ([0.05], "unclear", "from one fold, so without a standard error"),
    ],
)
def test_scores_of_folds_have_the_same_rule(gain, helps, words):
    """Scores such as R^2: errors with the sign turned, no percentages of them."""
    own = np.full(len(gain), -0.5)
    found = Verdict(own, own + 0.1, own - gain, np.ones(len(gain)), part="fold")
    assert found.helps == helps and re.search(words, found.text()) and "%" not in found.text()


def test_one_model_is_the_rival_where_nodes_have_no_rows_of_their_own():
    pooled = np.array([2.0, 2.2, 1.8])
    found = Verdict(np.full(3, np.nan), pooled, pooled - [0.9, 1.0, 1.1], np.full(3, 4))
    assert found.helps == "yes" and found.rival[0] == "one model"
    assert "error at held-out rows is 50% smaller than with one model" in found.text()
    assert "nan" not in found.text()


def test_one_percent_counts_for_scores_as_for_errors():
    """A score that rises from 0.9 to 0.9002 helps nobody, nor does an error that falls as far."""
    gain = np.array([1e-4, 2e-4, 1e-4, 2e-4])
    for rival in (np.full(4, -0.9), np.full(4, 0.1)):
        assert Gain.over(rival, rival - gain, np.ones(4)).helps == "unclear"


def test_a_node_with_nearly_all_rows_leaves_no_standard_error():
    own, coupled = np.array([1.0, 3.0, 2.0, 4.0]), np.array([0.9, 3.5, 2.2, 4.4])
    rows = np.array([10_000, 3, 3, 3])
    found = Verdict(own, np.full(4, 9.0), coupled, rows, list("abcd"))
    assert np.isnan(found.gain.error) and found.helps == "unclear"
    assert np.isfinite(Verdict(own, np.full(4, 9.0), coupled, np.full(4, 3)).gain.error)


def test_probabilities_of_one_leave_nothing_to_gain():
    class Sure:
        classes_ = np.array(["no", "yes"])

        def __init__(self, doubt):
            self.doubt = doubt

        def predict_proba(self, X):
            return np.tile([self.doubt, 1 - self.doubt], (len(X), 1))

    ids, y = np.repeat([0, 1], 3), np.repeat("yes", 6)
    judge = Judge(ids, np.ones(6), np.ones(6, dtype=bool))
    for doubt in (1e-9, 1e-3):
        judge(Sure(doubt), ids[:, None], y)
    assert judge.errors[0].tolist() == [0.0, 0.0] and (judge.errors[1] > 5e-4).all()


def test_without_coupling_it_says_that_there_is_none():
    own, rows = np.array([2.0, 3.0, 2.0]), np.full(3, 5)
    assert "nothing to couple" in Verdict(own, own - 1.0, own, rows).text()
    assert "nothing to couple" not in Verdict(own, own + 1.0, own, rows).text()
    assert "nothing to couple" not in Verdict(own, own - 1.0, own + 0.1, rows).text()


def test_a_gain_that_one_node_carries_does_not_probably_help():
    own = np.full(40, 2.0)
    gain = np.append(np.full(39, 1e-3), 1.5)
    found = Verdict(own, own + 1.0, own - gain, np.full(40, 5), [str(i) for i in range(40)])
    assert found.gain.mean > found.gain.error and found.helps == "unclear"
    assert "does not clearly help" in found.text() and "One node, 39, carries" in found.text()
    shared = Verdict(own, own + 1.0, own - np.append(np.full(39, 0.01), 1.5), np.full(40, 5))
    assert shared.helps == "probably"
