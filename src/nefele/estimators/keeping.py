"""Transformers that leave the node column alone: `keep_node`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    validate_data,
)

from nefele._checks import is_frame
from nefele.estimators.nodes import column_of_array, take_column


def keep_node(transformer: Any, node: Any = None) -> KeepNode:
    """Apply a transformer to all columns but the node ids.

    The ids come through unchanged and the output is a table of the same kind as the input, so
    that the next step of a pipeline still finds the node column by its name.

    Parameters
    ----------
    transformer : scikit-learn transformer
        Such as `StandardScaler()`, `SimpleImputer()` or a pipeline of these.
    node : str or int, optional
        Column of X with the node ids, by name or position. Default: the only column of a table
        that holds no numbers. In arrays, a transformer that changes the number of columns moves
        the ids, unless they are the last ones: use -1.

    Returns
    -------
    KeepNode

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = pd.DataFrame({"shop": ["007", "008"], "price": [1.0, 3.0]})
    >>> keep_node(StandardScaler(), node="shop").fit_transform(X)
      shop  price
    0  007   -1.0
    1  008    1.0
    """
    return KeepNode(transformer, node)


class KeepNode(TransformerMixin, BaseEstimator):
    """What `keep_node` makes: a transformer of the columns that are no node ids.

    Parameters
    ----------
    transformer : scikit-learn transformer
    node : str, int or None
        See `keep_node`.

    Attributes
    ----------
    transformer_ : the fitted transformer
    node_ : str or int
        The node column.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> KeepNode(StandardScaler(), node=0).fit_transform(np.array([[7.0, 1.0], [8.0, 3.0]]))
    array([[ 7., -1.],
           [ 8.,  1.]])
    """

    def __init__(self, transformer: Any, node: Any = None) -> None:
        self.transformer = transformer
        self.node = node

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        tags.input_tags.allow_nan = get_tags(self.transformer).input_tags.allow_nan
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the transformer to the columns that are no ids.

        Parameters
        ----------
        X : table or array of shape (n_rows, d + 1)
        y : array of shape (n_rows,), optional
        """
        rest, _ = self._start(X)
        self.transformer_ = clone(self.transformer).fit(rest, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to the rows and transform them, by the transformer's own `fit_transform`.

        Parameters
        ----------
        X : table or array of shape (n_rows, d + 1)
        y : array of shape (n_rows,), optional
        """
        rest, ids = self._start(X)
        self.transformer_ = clone(self.transformer)
        return self._join(X, ids, self.transformer_.fit_transform(rest, y))

    def transform(self, X: Any) -> Any:
        """The transformed columns and the ids, in a table or array like X.

        Parameters
        ----------
        X : table or array of shape (n_rows, d + 1)
        """
        check_is_fitted(self, "transformer_")
        X = validate_data(self, _table_or_array(X), reset=False, skip_check_array=True)
        node: Any = self.node_
        if isinstance(node, str) and not is_frame(X):
            # Tools such as permutation_importance turn a table into an array: same columns.
            place = list(self.feature_names_in_).index(node)
            node = column_of_array(X, node, place, self.n_features_in_)
        rest, ids = take_column(X, node)
        return self._join(X, ids, self.transformer_.transform(rest))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that come out; in a table the node column is the first.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns of X, the node column among them; default those of `fit`.
        """
        check_is_fitted(self, "transformer_")
        names = _check_feature_names_in(self, input_features)
        place = list(names).index(self.node_) if self.node_ in names else int(self.node_)
        rest = np.delete(names, place)
        named = isinstance(self.node_, str)
        inner = np.asarray(self.transformer_.get_feature_names_out(rest if named else None), object)
        return np.insert(inner, 0 if named else self.node_ % (len(inner) + 1), names[place])

    def _start(self, X: Any) -> tuple[Any, Any]:
        """Find the node column, and take it out."""
        X = _table_or_array(X)
        self.node_ = _only_text_column(X) if self.node is None else self.node
        validate_data(self, X, reset=True, skip_check_array=True)
        if X.shape[1] < 2:
            raise ValueError("X must have the node ids and a feature; got 1 feature(s).")
        return take_column(X, self.node_)

    def _join(self, X: Any, ids: Any, out: Any) -> Any:
        if is_frame(X):
            if is_frame(out):
                names, values = list(out.columns), out.to_numpy()
            else:
                values = out.toarray() if sparse.issparse(out) else np.asarray(out)
                rest = [name for name in X.columns if name != self.node_]
                names = list(self.transformer_.get_feature_names_out(rest))
            return _table(X, self.node_, names, values)
        values = out.toarray() if sparse.issparse(out) else np.asarray(out)
        if np.asarray(X).dtype.kind in "OU":
            values = values.astype(object)
        place = 0 if isinstance(self.node_, str) else int(self.node_) % (values.shape[1] + 1)
        return np.insert(values, place, ids, axis=1)


def _table_or_array(X: Any) -> Any:
    if sparse.issparse(X):
        raise ValueError("Sparse data cannot hold node ids; pass dense data or a table.")
    if not is_frame(X):
        X = np.asarray(X)
        if X.dtype.kind == "c":
            raise ValueError(f"Complex data not supported: X must be real; got {X.dtype}.")
        if X.ndim != 2:
            raise ValueError(
                f"X must have 2 dimensions; got shape {X.shape}. Reshape your data: one row per "
                "observation."
            )
        if X.shape[1] == 0:
            raise ValueError(
                f"X has 0 feature(s) (shape={X.shape}) while a minimum of 2 is required: the "
                "node ids and a feature."
            )
    return X


def _only_text_column(X: Any) -> Any:
    if not is_frame(X):
        raise ValueError("keep_node needs node, the position of the id column, for an array.")
    text = [name for name in X.columns if X[name].to_numpy().dtype.kind not in "fiub"]
    if len(text) != 1:
        raise ValueError(
            f"keep_node needs node, the name of the id column: {len(text)} columns hold no "
            f"numbers. Columns: {', '.join(map(str, X.columns))}."
        )
    return text[0]


def _table(X: Any, node: Any, names: list[Any], values: NDArray[Any]) -> Any:
    """A table of the kind of X: the node column, then the values."""
    if hasattr(X, "insert") and hasattr(X, "index"):
        out = type(X)(values, columns=names, index=X.index)
        out.insert(0, node, X[node])
        return out
    columns = {name: np.ascontiguousarray(values[:, j]) for j, name in enumerate(names)}
    return type(X)({node: X[node], **columns})
