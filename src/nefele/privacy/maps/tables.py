"""Tables with text as columns of numbers: numbers as they are, categories by their rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from nefele._checks import Array, is_frame, type_name
from nefele.privacy.maps.attribute import is_numeric


@dataclass(frozen=True, eq=False)
class Column:
    """One column: `levels` are its sorted categories, None for numbers.

    Examples
    --------
    >>> column = Column("town", np.array(["Kemi", "Oulu"]))
    >>> column.codes(np.array(["Oulu", "Kemi", "Lahti"])).tolist()
    [1.0, 0.0, 0.5]
    """

    name: str
    levels: NDArray[Any] | None

    def codes(self, values: Any) -> Array:
        """Numbers, or ranks of categories; an unknown one lies between its neighbours."""
        if self.levels is None:
            return _numbers(values, self.name)
        text = _text(values)
        place = np.searchsorted(self.levels, text)
        known = self.levels[np.minimum(place, len(self.levels) - 1)] == text
        return np.where(known, place, place - 0.5).astype(float)


def read_columns(X: Any) -> tuple[list[Any], list[str]]:
    """The columns of a table or array with two axes, and their names."""
    if is_frame(X):
        names = [str(name) for name in X.columns]
        columns = [np.asarray(X[name]) for name in X.columns]
        for name, values in zip(names, columns, strict=True):
            _refuse_gaps(values, name)
        if not columns or not len(columns[0]):
            raise ValueError(f"X must have rows and columns; got shape {X.shape}.")
        return columns, names
    array = check_array(X, dtype=None, estimator="KAnonymous", input_name="X")
    for j in range(array.shape[1]):
        _refuse_gaps(array[:, j], f"column {j}")
    return list(array.T), [f"column {j}" for j in range(array.shape[1])]


def learn_columns(values: list[Any], names: list[str]) -> list[Column]:
    """How each column is read."""
    found = []
    for name, column in zip(names, values, strict=True):
        levels = None if is_numeric(column) else np.unique(_text(column))
        found.append(Column(name, levels))
    return found


def _text(values: Any) -> NDArray[Any]:
    return np.array([str(value) for value in values])


def _numbers(values: Any, name: str) -> Array:
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must hold numbers, as it did in fit; got {type_name(values[0])}."
        ) from None


def _refuse_gaps(values: Any, name: str) -> None:
    """No NaN, no infinity, nothing missing."""
    array = np.asarray(values)
    if array.dtype.kind in "fc":
        bad = ~np.isfinite(array)
    elif array.dtype.kind == "O":
        bad = np.array([_missing(value) for value in array])
    else:
        return
    if bad.any():
        raise ValueError(
            f"X must not have NaN, infinity or missing values; {name} has some, the first in row "
            f"{int(bad.argmax())}. Drop or fill them first."
        )


def _missing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return not np.isfinite(value)
    try:
        return bool(value != value)  # NaT
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return True
