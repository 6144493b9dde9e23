"""The private attribute as columns of numbers: what linear maps are to be uncorrelated with."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length

from nefele._checks import Array, check_name

_KINDS = ("auto", "numbers", "classes")


def attribute_columns(values: Any, kind: str, rows: Any) -> Array:
    """The attribute of each row, centred, shape (n_rows, n_columns).

    Parameters
    ----------
    values : array of shape (n_rows,) or (n_rows, n_columns)
    kind : {"auto", "numbers", "classes"}
        Numbers as they are, or one column per class; "auto" takes numbers for numbers.
    rows : array
        The rows that the attribute belongs to, to compare their number.

    Examples
    --------
    >>> attribute_columns(["a", "b", "b", "a"], "auto", np.zeros(4)).tolist()
    [[0.5, -0.5], [-0.5, 0.5], [-0.5, 0.5], [0.5, -0.5]]
    """
    check_name(kind, _KINDS, "kind of attribute")
    if values is None:
        raise ValueError(
            "This estimator requires y to be passed, but the target y is None: y is the private "
            "attribute of each row. Pass it, or name columns of X by attribute=."
        )
    found = check_array(values, ensure_2d=False, dtype=None, input_name="y")
    check_consistent_length(rows, found)
    found = found.reshape(len(found), -1)
    if kind == "numbers" or (kind == "auto" and is_numeric(found)):
        try:
            columns = found.astype(float)
        except (TypeError, ValueError):
            raise ValueError(
                'The attribute must hold numbers for kind="numbers"; got text. Use kind="classes".'
            ) from None
    else:
        columns = np.column_stack([_one_hot(column) for column in found.T])
    return np.asarray(columns - columns.mean(axis=0))


def is_numeric(values: Any) -> bool:
    """Whether all values are real numbers, and not truth values or text.

    Examples
    --------
    >>> is_numeric(np.array([1, 2.5], dtype=object)), is_numeric(np.array(["1", "2"]))
    (True, False)
    """
    array = np.asarray(values)
    if array.dtype.kind == "O":
        real = (int, float, np.integer, np.floating)
        return all(isinstance(x, real) and not isinstance(x, bool) for x in array.ravel())
    return bool(array.dtype.kind in "iuf")


def _one_hot(column: Any) -> Array:
    labels = np.array([str(value) for value in column])
    return (labels[:, None] == np.unique(labels)).astype(float)
