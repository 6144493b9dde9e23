"""Algorithm 6 (a) of the lecture notes on federated learning: noise on the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from nefele._checks import Array, check_number


@dataclass(eq=False, repr=False)
class AddNoise(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Independent Gaussian noise on every feature of every row, z = x + sigma eps.

    No guarantee: nothing bounds the features, and who sees the same row under several draws
    averages the noise away. `random_state` fixes the draws; with None each call draws anew.

    Parameters
    ----------
    sigma : float
        Standard deviation, in the units of the features.
    random_state : int, RandomState or None

    Attributes
    ----------
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> AddNoise(sigma=0.1, random_state=0).fit_transform(np.zeros((1, 2))).round(2).tolist()
    [[0.18, 0.04]]
    """

    sigma: float = 1.0
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn the number of features; nothing else depends on the rows.

        Parameters
        ----------
        X : array of shape (n_rows, d)
        y : ignored
        """
        check_number(self.sigma, "sigma", low=0.0, advice="It is a standard deviation.")
        validate_data(self, X, dtype=np.float64)
        return self

    def transform(self, X: Any) -> Array:
        """The rows with noise, shape (n_rows, d).

        Parameters
        ----------
        X : array of shape (n_rows, d)
        """
        check_is_fitted(self, "n_features_in_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        draws = check_random_state(self.random_state).standard_normal(rows.shape)
        return np.asarray(rows + self.sigma * draws)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.requires_fit = True
        return tags
