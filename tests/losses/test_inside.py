"""Row duals that a correction has put outside their domain by rounding errors."""

import numpy as np

from nefele import LocalData
from nefele.losses import Logistic, Multinomial


def test_tiny_duals_of_the_wrong_sign_become_zero_and_others_stay():
    data = LocalData.from_list([(np.ones((3, 1)), [1.0, 1.0, -1.0])])
    bound = Logistic().bind(data)
    a = np.array([-0.5, 1e-9, -0.3])  # the third is outside by far: no rounding error
    np.testing.assert_array_equal(bound.row_inside(a), [-0.5, 0.0, -0.3])


def test_rows_of_a_multinomial_loss_still_sum_to_zero():
    data = LocalData.from_list([(np.ones((2, 1)), [0.0, 2.0])])
    bound = Multinomial(n_classes=3).bind(data)
    a = np.array([[-0.4, 0.4 + 1e-9, -1e-9], [0.25, 0.25, -0.5]])
    found = bound.row_inside(a)
    np.testing.assert_array_equal(found[1], a[1])
    assert found[0, 2] == 0 and abs(found[0].sum()) <= 1e-16
    assert np.isinf(bound.row_ratio(a)[0]) and np.isfinite(bound.row_ratio(found)).all()
