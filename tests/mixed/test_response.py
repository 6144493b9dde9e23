"""Kinds of targets: what a prediction costs."""

import numpy as np
from sklearn.metrics import mean_poisson_deviance

from nefele.mixed.response import Counts


def test_the_error_of_counts_is_half_of_the_deviance():
    """Also of rates between 0 and 1, and of none at all."""
    y, mean = np.array([0.0, 0.2, 1.0, 3.0]), np.array([0.5, 0.3, 2.0, 1.0])
    deviance = [mean_poisson_deviance([one], [m]) for one, m in zip(y, mean, strict=True)]
    np.testing.assert_allclose(2 * Counts().errors(np.log(mean), y), deviance)
