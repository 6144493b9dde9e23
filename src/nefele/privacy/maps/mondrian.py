"""Algorithm 6 (c) of the lecture notes: piecewise constant features, k rows or more in each cell.

LeFevre, DeWitt, Ramakrishnan, "Mondrian multidimensional k-anonymity" (2006), strict cuts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nefele._checks import Array, check_count
from nefele.privacy.maps.tables import Column, learn_columns, read_columns

_NAMED = 3  # categories up to which a cell lists them


@dataclass(eq=False, repr=False)
class KAnonymous(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Rows replaced by their cell's mean, each cell with at least k of the rows of `fit`.

    Cells are cut in two at the median of the widest column, as long as both sides keep k rows; rows
    that are equal are never apart. Numbers become the mean of the cell; categories become the
    list of those in the cell, "*" when there are more than three. New rows go to the cell where
    they fall.

    k-anonymity hides who among k rows one is, and nothing else: when all k have the same private
    value it is known (`what_remains` gives l, the number of different ones), and several releases
    may be joined. The cuts are values of single rows: keep the fitted object to yourself.

    Parameters
    ----------
    k : int
        Fewest rows in a cell.

    Attributes
    ----------
    n_cells_ : int
    sizes_ : int array of shape (n_cells,)
        Rows of `fit` in each cell, at least k.
    values_ : list of arrays of shape (n_cells,)
        What the rows of a cell become, column by column.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[20.0], [22.0], [60.0], [70.0], [70.0]])
    >>> KAnonymous(k=2).fit_transform(X).ravel().round(1).tolist()
    [21.0, 21.0, 66.7, 66.7, 66.7]
    """

    k: int = 5

    def fit(self, X: Any, y: Any = None) -> Any:
        """Cut the rows into cells.

        Parameters
        ----------
        X : array or table of shape (n_rows, d)
            Numbers and categories. Columns with text or truth values are categories. A column of
            ids is one like any other; better leave it out.
        y : ignored
        """
        k = check_count(self.k, "k", low=1)
        values, names = read_columns(X)
        validate_data(self, X, skip_check_array=True)
        n = len(values[0])
        if n < k:
            raise ValueError(
                f"X must have at least k = {k} rows, so that a cell can have as many; got "
                f"n_samples={n}. Lower k, or gather more rows."
            )
        self.columns_ = learn_columns(values, names)
        codes = np.column_stack([c.codes(v) for c, v in zip(self.columns_, values, strict=True)])
        self.cuts_, cells = cut_into_cells(codes, k)
        self.sizes_ = np.array([len(cell) for cell in cells])
        self.n_cells_ = len(cells)
        self.values_ = [
            _stand_ins(column, codes[:, j], cells) for j, column in enumerate(self.columns_)
        ]
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """What stands for each row, shape (n_rows, d); of objects where there are categories.

        Parameters
        ----------
        X : array or table of shape (n_rows, d)
        """
        cell = self.cells(X)
        columns = [values[cell] for values in self.values_]
        if all(column.levels is None for column in self.columns_):
            return np.column_stack(columns)
        out = np.empty((len(cell), len(columns)), dtype=object)
        for j, column in enumerate(columns):
            out[:, j] = column
        return out

    def cells(self, X: Any) -> NDArray[np.int64]:
        """The cell of each row, shape (n_rows,).

        Parameters
        ----------
        X : array or table of shape (n_rows, d)
        """
        check_is_fitted(self, "cuts_")
        values, _ = read_columns(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        codes = np.column_stack([c.codes(v) for c, v in zip(self.columns_, values, strict=True)])
        return self.cuts_.place(codes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


@dataclass(frozen=True, eq=False)
class Cuts:
    """A tree: inner node i sends codes[:, column[i]] <= at[i] to left[i], others to right[i].

    Places below zero are cells: -1 - cell.
    """

    column: NDArray[np.int64]
    at: Array
    left: NDArray[np.int64]
    right: NDArray[np.int64]

    def place(self, codes: Array) -> NDArray[np.int64]:
        """The cell of each row."""
        where = np.full(len(codes), 0 if len(self.at) else -1)
        while (inner := np.flatnonzero(where >= 0)).size:
            node = where[inner]
            below = codes[inner, self.column[node]] <= self.at[node]
            where[inner] = np.where(below, self.left[node], self.right[node])
        return np.asarray(-1 - where)


def cut_into_cells(codes: Array, k: int) -> tuple[Cuts, list[NDArray[np.int64]]]:
    """Cells of at least k rows each, and the cuts that lead to them.

    Examples
    --------
    >>> cuts, cells = cut_into_cells(np.array([[1.0], [1.0], [1.0], [2.0]]), 2)
    >>> [cell.tolist() for cell in cells]
    [[0, 1, 2, 3]]
    """
    whole = _widths(codes)
    nodes: list[list[float]] = []
    cells: list[NDArray[np.int64]] = []
    todo: list[tuple[NDArray[np.int64], int, int]] = [(np.arange(len(codes)), -1, 0)]
    while todo:
        rows, parent, side = todo.pop()
        found = _best_cut(codes[rows], k, whole)
        place = len(nodes) if found else -1 - len(cells)
        if parent >= 0:
            nodes[parent][2 + side] = place
        if found is None:
            cells.append(rows)
            continue
        column, at = found
        below = codes[rows, column] <= at
        nodes.append([column, at, 0, 0])
        todo += [(rows[~below], place, 1), (rows[below], place, 0)]
    table = np.array(nodes, dtype=float).reshape(-1, 4)
    which, left, right = (table[:, j].astype(np.int64) for j in (0, 2, 3))
    return Cuts(which, table[:, 1], left, right), cells


def _best_cut(codes: Array, k: int, whole: Array) -> tuple[int, float] | None:
    """The widest column that can be cut, and where: as near the middle as ties allow."""
    if len(codes) < 2 * k:
        return None
    width = _widths(codes) / np.where(whole > 0, whole, 1.0)
    for column in np.argsort(-width, kind="stable").tolist():
        if width[column] == 0:
            return None
        values = np.sort(codes[:, column])
        middle = values[(len(values) - 1) // 2]
        below, upto = np.searchsorted(values, middle), np.searchsorted(values, middle, "right")
        # The median goes to one side or the other; cuts further out have smaller sides still.
        cuts = [(abs(2 * n - len(values)), n) for n in (int(upto), int(below))]
        fits = [n for _, n in sorted(cuts) if min(n, len(values) - n) >= k]
        if fits:
            return column, float(values[fits[0] - 1])
    return None


def _widths(codes: Array) -> Array:
    return np.asarray(codes.max(axis=0) / 2 - codes.min(axis=0) / 2)


def _stand_ins(column: Column, codes: Array, cells: list[NDArray[np.int64]]) -> NDArray[Any]:
    """What the rows of each cell become."""
    if column.levels is None:
        return np.array([_mean(codes[cell]) for cell in cells])
    out = []
    for cell in cells:
        inside = column.levels[np.unique(codes[cell]).astype(np.int64)]
        out.append("|".join(inside) if len(inside) <= _NAMED else "*")
    return np.array(out, dtype=object)


def _mean(values: Array) -> float:
    """The mean, which rounding does not take out of the values' range."""
    low, high = float(values.min()), float(values.max())
    return float(np.clip(low + np.mean(values - low), low, high))
