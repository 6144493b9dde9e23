"""Robust combinations against naive twins, and with numbers whose squares overflow."""

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import minimize

from nefele.robust import (
    centred_clipping,
    coordinate_median,
    fltrust,
    geometric_median,
    krum,
    trimmed_mean,
)
from nefele.robust.aggregation import clipped, length
from nefele.robust.rules import CentredClip, Clip, FLTrust, GeometricMedian, Krum, Last, Median
from nefele.robust.rules import TrimmedMean as Trimmed

SEEDS = pytest.mark.parametrize("seed", range(5))


def rows_of(seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((int(rng.integers(5, 12)), int(rng.integers(1, 5))))


def naive_krum(rows, bad):
    scores = []
    for i in range(len(rows)):
        near = sorted(((rows[i] - rows[j]) ** 2).sum() for j in range(len(rows)) if j != i)
        scores.append(sum(near[: len(rows) - bad - 2]))
    return rows[int(np.argmin(scores))]


def naive_clipping(rows, at, radius, steps):
    for _ in range(steps):
        moves = []
        for row in rows:
            away = row - at
            norm = np.sqrt((away**2).sum())
            moves.append(away * min(1.0, radius / norm) if norm > 0 else away)
        at = at + sum(moves) / len(moves)
    return at


def naive_fltrust(rows, own):
    trust = [
        max(float(row @ own) / (np.linalg.norm(row) * np.linalg.norm(own)), 0.0) for row in rows
    ]
    scaled = [row / np.linalg.norm(row) * np.linalg.norm(own) for row in rows]
    if not sum(trust):
        return own
    return sum(t * s for t, s in zip(trust, scaled, strict=True)) / sum(trust)


@SEEDS
def test_the_rules_are_what_their_definitions_say(seed):
    rows = rows_of(seed)
    own = rows[0] + 0.1
    for trim in (0, 1, 2):
        kept = [sorted(column)[trim : len(rows) - trim] for column in rows.T]
        assert trimmed_mean(rows, trim) == pytest.approx([np.mean(column) for column in kept])
    assert coordinate_median(rows) == pytest.approx(np.median(rows, axis=0))
    for bad in (0, 1, 2):
        assert krum(rows, bad) == pytest.approx(naive_krum(rows, bad))
    assert centred_clipping(rows, own, 0.7, 4) == pytest.approx(naive_clipping(rows, own, 0.7, 4))
    assert fltrust(rows, own) == pytest.approx(naive_fltrust(rows, own))


@SEEDS
def test_fltrust_weighs_updates_and_not_models(seed):
    """Cao et al. 2021: of each neighbour what has changed since it last spoke."""
    rng = np.random.default_rng(seed)
    before, now = rng.standard_normal((2, 5, 3)) + 100.0  # models alike, updates not
    own_before, own = rng.standard_normal((2, 3)) + 100.0
    expected = own_before + naive_fltrust(now - before, own - own_before)
    found = FLTrust().heard(now, own, Last(before, own_before))
    assert found == pytest.approx(np.tile(expected, (5, 1)))
    still = FLTrust().heard(now, own, Last(now, own))
    assert still == pytest.approx(np.tile(own, (5, 1)))


@SEEDS
def test_combinations_of_three_numbers_by_all_their_orders(seed):
    """On three numbers trimmed mean, medians and Krum are known from their order alone."""
    low, middle, high = sorted(np.random.default_rng(seed).standard_normal(3))
    nearest = low if middle - low < high - middle else high
    for order in permutations([low, middle, high]):
        rows = np.array(order)[:, None]
        for value in (trimmed_mean(rows, 1), coordinate_median(rows), geometric_median(rows)):
            assert value == pytest.approx([middle], abs=1e-6)
        assert krum(rows, 0)[0] in (middle, nearest)


@SEEDS
def test_the_geometric_median_has_the_least_sum_of_distances(seed):
    rows = rows_of(seed)

    def total(point):
        return np.linalg.norm(rows - point, axis=1).sum()

    found = geometric_median(rows)
    other = minimize(total, rows.mean(axis=0), method="Nelder-Mead", options={"xatol": 1e-9})
    assert total(found) <= other.fun * (1 + 1e-5)


def test_the_geometric_median_of_equal_rows_is_that_row():
    assert geometric_median([[1.0, 2.0]] * 4).tolist() == [1.0, 2.0]
    assert geometric_median([[1.0, 2.0]] * 3 + [[9.0, 9.0]]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("huge", [1e200, 1e300, np.finfo(float).max])
def test_huge_rows_do_not_overflow(huge):
    good = np.array([[1.0, 2.0], [1.1, 2.1], [0.9, 1.9], [1.0, 2.05], [1.05, 2.0]])
    rows, own = np.vstack([good, [huge, -huge]]), good.mean(axis=0)
    for rule in (Clip(0.5), Trimmed(1), Median(), GeometricMedian(), Krum(1), CentredClip(0.5)):
        found = rule.heard(rows, own)
        assert np.isfinite(found).all()
        assert np.abs(found - own).max() <= 0.5 + 1e-9, rule
    assert np.isfinite(FLTrust().heard(rows, own)).all()


def test_lengths_and_clips_of_huge_and_tiny_vectors():
    v = np.array([[3e200, 4e200], [3e-200, 4e-200], [0.0, 0.0]])
    assert length(v) == pytest.approx([5e200, 5e-200, 0.0])
    assert clipped(v, 1.0)[0] == pytest.approx([0.6, 0.8])  # naively 0: 1e200 squared is inf
    assert clipped(v, 1.0)[1:].tolist() == v[1:].tolist()


def test_rules_at_nodes_with_few_neighbours():
    own, one = np.array([1.0]), np.array([[3.0]])
    assert Trimmed(5).combine(one, own).tolist() == [3.0]
    assert Krum(5).combine(one, own).tolist() == [1.0]
    assert FLTrust().heard(-one, own).tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: trimmed_mean([[1.0], [2.0]], 1), "trim must leave some of the 2 rows"),
        (lambda: coordinate_median(np.zeros((0, 2))), "one vector at least"),
        (lambda: coordinate_median([[np.nan]]), r"rows\[0, 0\] must be finite"),
        (lambda: krum([[1.0], [2.0]], 0), r"needs attackers \+ 3 rows"),
        (lambda: centred_clipping([[1.0]], [1.0, 2.0], 1.0), "must have the rows' length 1"),
        (lambda: centred_clipping([[1.0]], [1.0], 0.0), "radius must be finite and > 0"),
        (lambda: geometric_median([[1.0]], 0.0), "smoothing must be finite and > 0"),
        (lambda: Clip(-1.0), "radius must be finite and > 0"),
        (lambda: Trimmed(-1), "trim must be an integer >= 0"),
        (lambda: Krum(1.5), "attackers must be an integer >= 0"),
        (lambda: CentredClip(1.0, steps=0), "steps must be an integer >= 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "rows",
    [
        [[0.0, 0.0], [1.0, 0.01], [-0.01, 1.0], [1.0, -0.01], [-1.0, -0.01]],
        [[0.0, 0.0], [1.0, 0.01], [-0.01, -1.0]],
    ],
    ids=["five", "three"],
)
def test_the_geometric_median_leaves_a_row_at_which_it_begins(rows):
    """The coordinate median is a row here, and not the point."""
    rows = np.array(rows)
    assert np.abs(rows - coordinate_median(rows)).sum(axis=1).min() == 0.0
    found = geometric_median(rows)
    best = minimize(lambda p: length(rows - p).sum(), [0.1, 0.1], method="Nelder-Mead",
                    options={"xatol": 1e-9, "fatol": 1e-13})  # fmt: skip
    assert length(rows - found).sum() <= best.fun + 1e-9
    np.testing.assert_allclose(found, best.x, atol=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_at_the_geometric_median_nothing_pulls(seed):
    """Its slope is zero, or it is a row that outweighs the pull of the others."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((int(rng.integers(3, 9)), int(rng.integers(2, 5))))
    away = rows - geometric_median(rows)
    size = length(away)
    there = size < 1e-9
    pull = length((away[~there] / size[~there, None]).sum(axis=0))
    assert pull <= there.sum() + 1e-3


def test_ties_of_the_geometric_median_end_in_the_middle():
    assert geometric_median([[0.0, 0.0], [1.0, 1.0]]).tolist() == [0.5, 0.5]


def test_krum_tells_near_rows_apart_beside_one_that_is_far_away():
    rows = [[5.0], [1.1], [1.1], [1.1], [1.1], [1e300]]
    assert krum(rows, 1).tolist() == [1.1]
