"""A table with text, dates and gaps as a table of numbers: `TableEncoder`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array, check_count, is_frame, type_name
from nefele._ids import as_ids
from nefele._words import Text, short
from nefele.encoding.groups import group_level
from nefele.encoding.kinds import Column, read_column
from nefele.encoding.parts import Encoded, Levels, Part, fit_part, from_plain, to_plain


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table with text, truth values, dates and missing values into numbers.

    The estimators use it by themselves on tables that need it; it is here for pipelines, and to
    look at what they did.

    - Numbers stay as they are. Missing ones become the median of the fitted rows, and a column of
      0 and 1 says where.
    - Text becomes a column of 0 and 1 for each level but the commonest. Rare levels share a
      column, missing text has its own. A text that was never seen counts as a rare level, and
      without rare ones as an average row.
    - Dates become years since their middle, and from a span of a year on the season as sine and
      cosine.
    - Columns that say nothing, such as a text of its own in every row, are left out: `left_out_`.

    Parameters
    ----------
    node : str, optional
        Column with the node ids, which comes through unchanged, as the first one.
    min_count : int
        Rows that a level of text needs not to be rare; fewer in tables of less than 100 rows,
        where it is 5% of them.
    max_levels : int
        Levels of a column at most, the others are rare.

    Attributes
    ----------
    parts_ : list
        How each column is encoded.
    left_out_ : dict of str to str
        Columns that are not used, and why.
    group_level_ : list of str
        Features that never change inside a node, for tables with node ids.
    feature_names_in_, n_features_in_
        The columns of the table, without that of the node ids.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"roof": ["tin", "tile", "tin", "tin"], "area": [50.0, None, 70.0, 90.0]})
    >>> encoder = TableEncoder().fit(X)
    >>> encoder.transform(X)
       roof=tile  area  area (missing)
    0        0.0  50.0             0.0
    1        1.0  70.0             1.0
    2        0.0  70.0             0.0
    3        0.0  90.0             0.0
    >>> print(encoder.summary())
    roof: text, 2 levels against 'tin'
    area: numbers; missing ones filled in by 70, with an indicator
    """

    def __init__(
        self, node: str | None = None, *, min_count: int = 5, max_levels: int = 30
    ) -> None:
        self.node = node
        self.min_count = min_count
        self.max_levels = max_levels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.allow_nan = tags.input_tags.categorical = True
        tags.input_tags.two_d_array = False
        return tags

    def fit(self, X: Any, y: Any = None, *, node_ids: Any = None) -> Self:
        """Learn levels, fills and parts of dates.

        Parameters
        ----------
        X : pandas or polars table
        y : ignored
        node_ids : array of shape (n_rows,), optional
            Node of each row, for `group_level_`, when X has no node column.
        """
        self._learn(X, node_ids)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, node_ids: Any = None) -> Any:
        """Fit to the rows and transform them.

        Parameters
        ----------
        X : pandas or polars table
        y : ignored
        node_ids : array of shape (n_rows,), optional
            Node of each row, for `group_level_`, when X has no node column.
        """
        return self._table(X, self._learn(X, node_ids).values)

    def transform(self, X: Any) -> Any:
        """The features, in a table like X; columns that fit did not use may be there or not.

        Parameters
        ----------
        X : pandas or polars table
            With the columns that `fit` used.
        """
        return self._table(X, self.encode(X).values)

    def transform_with_gaps(self, X: Any) -> tuple[Any, NDArray[np.bool_]]:
        """The features in a table like X, and which entries are filled in.

        Parameters
        ----------
        X : pandas or polars table
            With the columns that `fit` used.
        """
        found = self.encode(X)
        # Some tables without columns forget how many rows they have.
        table = self._table(X, found.values) if found.values.shape[1] else found.values
        return table, found.gaps

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that come out; with `node` the node column is the first.

        Parameters
        ----------
        input_features : ignored
            As scikit-learn's transformers have it.
        """
        check_is_fitted(self, "parts_")
        names = [name for part in self.parts_ for name in part.features]
        return np.array([*([] if self.node is None else [self.node]), *names], dtype=object)

    def encode(self, X: Any) -> Encoded:
        """The features as an array, shape (n_rows, k), and which entries are filled in.

        Parameters
        ----------
        X : pandas or polars table
            With the columns that `fit` used.
        """
        check_is_fitted(self, "parts_")
        self._check_table(X)
        return _stacked([part.encode(self._column(X, part.name)) for part in self.parts_], len(X))

    def news(self, X: Any) -> list[str]:
        """What is in these rows that was not in those of fit, in words: new levels, new gaps.

        Parameters
        ----------
        X : pandas or polars table
            With the columns that `fit` used.
        """
        check_is_fitted(self, "parts_")
        found = []
        for part in self.parts_:
            column = self._column(X, part.name)
            if isinstance(part, Levels):
                found += _new_levels(part, column)
            gaps = int(column.missing.sum())
            if gaps:
                found.append(
                    f'{gaps} of {len(X)} rows have no value in column "{part.name}", which is '
                    "filled in as in the rows that were fitted."
                )
        return found

    def summary(self) -> Text:
        """How each column is used, one line each, and which are left out."""
        check_is_fitted(self, "parts_")
        lines = [f"{part.name}: {part.how()}" for part in self.parts_]
        lines += [f"{name}: left out, {why}" for name, why in self.left_out_.items()]
        return Text("\n".join(lines))

    # -- plain data ---------------------------------------------------------------------------

    def to_state(self) -> dict[str, Any]:
        """Everything that `transform` needs, as JSON has it."""
        check_is_fitted(self, "parts_")
        return {
            "node": self.node,
            "min_count": int(self.min_count),
            "max_levels": int(self.max_levels),
            "columns": [str(name) for name in self.feature_names_in_],
            "parts": [to_plain(part) for part in self.parts_],
            "left_out": dict(self.left_out_),
            "group_level": list(self.group_level_),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TableEncoder:
        """An encoder from what `to_state` gave; a ValueError for anything else.

        Parameters
        ----------
        state : dict
            Plain values, such as from JSON.
        """
        try:
            options = {name: state[name] for name in ("node", "min_count", "max_levels")}
            found = cls(**options)
            found._check_options()
            found.parts_ = [from_plain(part) for part in state["parts"]]
            found.left_out_, found.group_level_ = state["left_out"], state["group_level"]
            found.feature_names_in_ = np.array(state["columns"], dtype=object)
            found.n_features_in_ = len(state["columns"])
            found._check_sound()
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"The state must be that of a TableEncoder; {error}.") from None
        return found

    def _check_sound(self) -> None:
        names = self.feature_names_in_.tolist()
        used = [part.name for part in self.parts_]
        texts = [*names, *self.left_out_, *self.left_out_.values(), *self.group_level_]
        if not (self.node is None or isinstance(self.node, str)):
            raise ValueError("the node column has no name")
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("a name is no text")
        if len(set(used)) < len(used) or not set(used) <= set(names):
            raise ValueError("the parts are not those of the columns")
        self._check_distinct()

    # -- inside -------------------------------------------------------------------------------

    def _check_options(self) -> None:
        check_count(self.min_count, "min_count", low=1)
        check_count(self.max_levels, "max_levels", low=1)

    def _check_table(self, X: Any) -> None:
        if not is_frame(X):
            raise ValueError(
                f"TableEncoder needs a table of pandas or polars; got {type_name(X)}. Arrays have "
                "no columns by name: use pandas.DataFrame(X, columns=[...])."
            )

    def _check_distinct(self) -> None:
        names = [name for part in self.parts_ for name in part.features]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(
                f'Features must have distinct names; "{twice}" would be there twice. Rename the '
                "column."
            )

    def _learn(self, X: Any, node_ids: Any) -> Encoded:
        self._check_options()
        self._check_table(X)
        names = [name for name in X.columns if name != self.node]
        if self.node is not None and len(names) == len(X.columns):
            raise ValueError(self._lost(self.node, X))
        if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
            raise ValueError(f"The columns of X must have distinct names, as text; got {names}.")
        if not len(X):
            raise ValueError("X must have at least one row; got none.")
        self.feature_names_in_, self.n_features_in_ = np.array(names, dtype=object), len(names)
        self.parts_: list[Part] = []
        self.left_out_: dict[str, str] = {}
        found = []
        for name in names:
            column = read_column(X[name], name)
            part = fit_part(name, column, self.min_count, self.max_levels)
            if isinstance(part, str):
                self.left_out_[name] = part
            else:
                self.parts_.append(part)
                found.append(part.encode(column))
        self._check_distinct()
        encoded = _stacked(found, len(X))
        self.group_level_ = self._fixed(X, node_ids, encoded)
        return encoded

    def _fixed(self, X: Any, node_ids: Any, encoded: Encoded) -> list[str]:
        ids = X[self.node] if self.node is not None else node_ids
        if ids is None:
            return []
        names = [name for part in self.parts_ for name in part.features]
        mask = group_level(encoded.values, as_ids(ids))
        return [name for name, on in zip(names, mask, strict=True) if on]

    def _column(self, X: Any, name: str) -> Column:
        if name not in list(X.columns):
            raise ValueError(self._lost(name, X))
        return read_column(X[name], name)

    def _lost(self, name: str, X: Any) -> str:
        names = [str(column) for column in X.columns]
        return (
            f'X must have the column "{name}"; got {", ".join(names) or "no column"}. Add it: '
            "empty cells are filled in, but not a column that is not there."
        )

    def _table(self, X: Any, values: Array) -> Any:
        """A table of the kind of X: the node column, if there is one, then the features."""
        names = [name for part in self.parts_ for name in part.features]
        if hasattr(X, "index"):
            out = type(X)(values, columns=names, index=X.index)
            if self.node is not None:
                out.insert(0, self.node, X[self.node])
            return out
        columns = {name: np.ascontiguousarray(values[:, j]) for j, name in enumerate(names)}
        return type(X)({**({} if self.node is None else {self.node: X[self.node]}), **columns})


def _stacked(found: list[Encoded], n_rows: int) -> Encoded:
    if not found:
        return Encoded(np.empty((n_rows, 0)), np.zeros((n_rows, 0), dtype=bool))
    return Encoded(
        np.column_stack([one.values for one in found]), np.column_stack([one.gaps for one in found])
    )


def _new_levels(part: Levels, column: Column) -> list[str]:
    new = part.new(column)
    if not new or part.rare:  # then rare levels look new, too, and both are treated alike
        return (
            [f'Texts of column "{part.name}" without a level count as rare: {_some(new)}.']
            if new
            else []
        )
    count = int(np.isin(column.values, new).sum())
    return [
        f'{count} of {len(column.missing)} rows have a text in column "{part.name}" that was not '
        f"fitted ({_some(new)}): they are predicted as an average of its levels."
    ]


def _some(texts: list[str]) -> str:
    more = f", ... ({len(texts)} in all)" if len(texts) > 3 else ""
    return ", ".join(short(text) for text in texts[:3]) + more
