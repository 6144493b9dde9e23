"""The comparison with byzfl, without byzfl: its cases, and what counts as a difference."""

import byzfl_oracle
import numpy as np


def test_cases_are_many_and_rules_have_answers_for_all():
    given = byzfl_oracle.cases(20)
    found = byzfl_oracle.ours(given)
    assert len(found) == 20 * 5 and all(np.isfinite(value).all() for value in found.values())
    for case in range(20):
        assert 1 <= int(given[f"bad-{case}"]) < len(given[f"rows-{case}"]) / 2


def test_differences_are_relative_and_the_largest_of_each_rule():
    one = {"krum-0": np.array([1.0]), "krum-1": np.array([100.0]), "median-0": np.array([2.0])}
    other = {"krum-0": np.array([1.1]), "krum-1": np.array([100.0]), "median-0": np.array([2.0])}
    found = byzfl_oracle.differences(one, other)
    assert found["median"] == 0 and abs(found["krum"] - 0.1) < 1e-12
    assert byzfl_oracle.differences(byzfl_oracle.ours({}), {}) == {}
