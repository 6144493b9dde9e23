"""Bounds are declared; rows outside are moved to the border, or refused."""

import numpy as np
import pytest

from nefele.privacy import Bounds


def test_rows_inside_stay_and_rows_outside_come_to_the_border():
    X, y, share = Bounds(x=2.0, y=(0, 4)).fixed(2).unit([[1.0, 0.0], [6.0, 8.0]], [1.0, 9.0])
    assert X.tolist() == [[0.5, 0.0], [0.6, 0.8]]
    assert y.tolist() == [-0.5, 1.0]
    assert share == 0.5


def test_rows_in_a_box_have_norm_at_most_one():
    rng = np.random.default_rng(0)
    box = Bounds(x=[(0, 1), (-5, 5), (100, 101)]).fixed(3)
    X, _, _ = box.unit(rng.normal(size=(500, 3)) * 1e3)
    assert np.linalg.norm(X, axis=1).max() <= 1 + 1e-12
    corner, _, share = box.unit([[1.0, 5.0, 101.0]])
    assert np.linalg.norm(corner) == pytest.approx(1.0)
    assert share == 0.0


def test_huge_numbers_keep_their_direction():
    X, _, _ = Bounds(x=1.0).fixed(2).unit([[3e200, 4e200]])
    assert X[0] == pytest.approx([0.6, 0.8])


def test_features_by_name_in_the_order_of_X():
    bounds = Bounds(x={"b": (0, 2), "a": (-1, 1)})
    assert bounds.fixed(2, ["a", "b"]).centre.tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="Missing: \\['c'\\]; unknown: \\['b'\\]"):
        bounds.fixed(2, ["a", "c"])


def test_rows_outside_may_be_refused():
    box = Bounds(x=1.0, outside="raise").fixed(1)
    box.unit([[1.0], [-1.0]])
    with pytest.raises(ValueError, match=r"1 of 2 do not.*Nothing was released"):
        box.unit([[1.0], [1.1]])


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({}, "Bounds must have x"),
        ({"x": 0.0}, "> 0"),
        ({"x": -1.0}, "> 0"),
        ({"x": np.nan}, "finite"),
        ({"x": [(1, 0)]}, "low < high"),
        ({"x": {"a": (0, np.inf)}}, "finite"),
        ({"x": {"a": 3}}, "must be a pair"),
        ({"x": 1.0, "y": (2, 2)}, "low < high"),
        ({"x": 1.0, "y": -1.0}, "> 0"),
        ({"x": 1.0, "outside": "keep"}, "rule for rows outside"),
    ],
)
def test_bounds_that_bound_nothing(given, match):
    with pytest.raises(ValueError, match=match):
        Bounds(**given)


def test_as_many_ranges_as_features():
    with pytest.raises(ValueError, match="each of the 3 features; got 2"):
        Bounds(x=[(0, 1), (0, 1)]).fixed(3)
    assert Bounds(x=(0, 1)).fixed(3).centre.tolist() == [0.5] * 3


def test_rows_that_are_no_numbers():
    with pytest.raises(ValueError, match="finite"):
        Bounds(x=1.0).fixed(1).unit([[np.nan]])
