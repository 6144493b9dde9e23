"""Reductions over rows by columns, against NumPy's."""

import numpy as np
import pytest

from nefele._kernels.short_rows import row_all, row_largest


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (1, 1), (40, 2), (7, 30), (7, 31), (6, 100)])
def test_the_same_as_by_rows(shape):
    values = np.random.default_rng(0).standard_normal(shape)
    values[values > 1.5] = 0.0
    kept = values.copy()
    assert np.array_equal(row_largest(values), np.abs(values).max(axis=1, initial=0.0))
    assert np.array_equal(row_all(values != 0), (values != 0).all(axis=1))
    assert np.array_equal(values, kept)


def test_what_is_not_a_number_is_not_lost():
    values = np.array([[1.0, np.nan], [np.inf, 2.0]])
    assert np.isnan(row_largest(values)[0]) and row_largest(values)[1] == np.inf


def test_views_that_are_not_contiguous():
    values = np.random.default_rng(1).standard_normal((4, 9))[:, ::2]
    assert np.array_equal(row_largest(values), np.abs(values).max(axis=1))
