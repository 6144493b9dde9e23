"""Algorithm 6 (b) of the lecture notes: linear maps that no linear model reads the attribute from.

Belrose et al., "LEACE: Perfect linear concept erasure in closed form" (2023), Theorem 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nefele._checks import Array, is_frame
from nefele.privacy.maps.attribute import attribute_columns

_RANK = 1e-9  # singular values, relative to the largest, that count as none


@dataclass(eq=False, repr=False)
class _LinearMap(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """x -> x - A (x - shift), with A from the covariances of rows and attribute."""

    attribute: Any = None
    kind: str = "auto"

    def fit(self, X: Any, y: Any = None) -> Any:
        """Learn the map.

        Parameters
        ----------
        X : array or table of shape (n_rows, d)
        y : array of shape (n_rows,) or (n_rows, n_attributes), optional
            The private attribute of each row: numbers or classes. Not used when `attribute` names
            columns of X, so that in a pipeline y may be the target.
        """
        rows = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        secret = y if self.attribute is None else rows[:, self._columns(X)]
        columns = attribute_columns(secret, self.kind, rows)
        self.mean_ = rows.mean(axis=0)
        self.map_ = np.eye(rows.shape[1]) - self._removed(rows - self.mean_, columns)
        return self

    def transform(self, X: Any) -> Array:
        """The rows without what is linear in the attribute, shape (n_rows, d).

        Parameters
        ----------
        X : array or table of shape (n_rows, d)
        """
        check_is_fitted(self, "map_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        shift = self._shift()
        # One product per row, so that a row gives the same bits whichever rows stand beside it.
        return np.asarray(np.einsum("ij,kj->ik", rows - shift, self.map_) + shift)

    def _removed(self, rows: Array, columns: Array) -> Array:
        raise NotImplementedError

    def _shift(self) -> Array:
        raise NotImplementedError

    def _columns(self, X: Any) -> list[int]:
        """Positions of the columns that are the attribute."""
        asked = self.attribute if isinstance(self.attribute, list | tuple) else [self.attribute]
        names = [str(name) for name in X.columns] if is_frame(X) else []
        known = {name: j for j, name in enumerate(names)}
        places: list[Any] = [known.get(one, one) for one in asked]
        d = len(names) or int(np.shape(X)[1])
        for one, place in zip(asked, places, strict=True):
            whole = isinstance(place, int | np.integer) and not isinstance(place, bool)
            if not whole or not 0 <= place < d:
                raise ValueError(
                    f"attribute must name columns of X, by name or by position 0 to {d - 1}; got "
                    f"{one!r}. Columns: {', '.join(names) or 'without names'}."
                )
        return [int(place) for place in places]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.attribute is None
        tags.target_tags.multi_output = True
        return tags


class RemoveAttribute(_LinearMap):
    """The least change of the features after which they are uncorrelated with an attribute (LEACE).

    x -> x - W^+ P W (x - mean), W = Cov(x)^(-1/2) and P the orthogonal projection onto the columns
    of W Cov(x, attribute). Of all maps after which no linear model beats a constant at the
    attribute this one moves the rows least, in the mean square of any norm x^T M x. The map is made
    from the attribute of the rows of `fit`; `transform` needs none. More flexible models may still
    read the attribute: ask `what_remains`.

    Parameters
    ----------
    attribute : name, position or list of them, optional
        Columns of X that are the attribute; they become constant. Default: y is the attribute.
    kind : {"auto", "numbers", "classes"}
        What the attribute is; "auto" takes numbers for numbers, everything else for classes.

    Attributes
    ----------
    mean_ : array of shape (d,)
    map_ : array of shape (d, d)
        I - W^+ P W.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> secret = rng.normal(size=500)
    >>> X = np.column_stack([secret + rng.normal(size=500), rng.normal(size=500)])
    >>> Z = RemoveAttribute().fit_transform(X, secret)
    >>> bool(abs(np.corrcoef(Z[:, 0], secret)[0, 1]) < 1e-9)
    True
    """

    def _removed(self, rows: Array, columns: Array) -> Array:
        unit = rows.std(axis=0)
        unit[unit == 0] = 1.0
        # By singular values of the rows in like units: a nearly collinear pair of features can
        # hide the attribute in its difference, which the covariance matrix would round away.
        left, size, axes = np.linalg.svd(rows / unit, full_matrices=False)
        on = size > np.finfo(float).eps * max(rows.shape) * max(float(size[0]), 1e-300)
        span = _span(left[:, on].T @ columns)  # W Cov(x, attribute), up to a factor
        back, whiten = axes[on].T * size[on], axes[on] / size[on, None]
        return np.asarray(unit[:, None] * (back @ span @ span.T @ whiten) / unit)

    def _shift(self) -> Array:
        return np.asarray(self.mean_)


class CourseMap(_LinearMap):
    """The linear map of the lecture notes, z = F x with F = I - S S^+.

    S = Cov(x, attribute), one column per attribute; for a single one F = I - s s^T / ||s||^2. Then
    Cov(z, attribute) = F S = 0, as with `RemoveAttribute`, but more of the features is lost than
    need be, and it depends on their units.

    Parameters
    ----------
    attribute, kind
        See `RemoveAttribute`.

    Attributes
    ----------
    mean_ : array of shape (d,)
    map_ : array of shape (d, d)
        F.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> CourseMap().fit([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]], [0.0, 1.0, 2.0]).map_.tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """

    def _removed(self, rows: Array, columns: Array) -> Array:
        span = _span(rows.T @ columns / len(rows))
        return np.asarray(span @ span.T)

    def _shift(self) -> Array:
        return np.zeros(len(self.mean_))


def _span(matrix: Array) -> Array:
    """Orthonormal columns that span those of a matrix."""
    u, size, _ = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(u[:, size > _RANK * max(float(size.max(initial=0.0)), 1e-300)])
