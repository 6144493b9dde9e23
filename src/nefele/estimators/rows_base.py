"""What all estimators with one model per node share: their rows, node ids and graph."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import _safe_indexing, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    validate_data,
)

from nefele._checks import LARGEST, Array, is_frame, type_name
from nefele.encoding.encoder import TableEncoder
from nefele.encoding.groups import group_level
from nefele.encoding.kinds import needs_encoding
from nefele.estimators.design import Rows, graph_nodes
from nefele.estimators.nodes import column_of_array, split_nodes, text_column, unseen_message
from nefele.graph import Graph
from nefele.graph_learning.builders import MomentsKNN, TrainingRows
from nefele.graphs import as_graph
from nefele.result import DataWarning


class NodeTags(BaseEstimator):
    """Tells scikit-learn what X may be: sparse, and with text in the column of the node ids."""

    node: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = self.node is not None
        return tags


class RowsBase(NodeTags):
    """Takes rows and their node ids; a subclass gives the target, its parameters and the fit."""

    graph: Any
    coords: Any = None  # of the nodes, for graph builders; only some estimators take them
    _encodes: ClassVar[bool] = False  # whether tables may have text, dates and gaps

    graph_: Graph
    nodes_: NDArray[Any]
    n_features_in_: int

    # -- for the subclasses -------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters out of their domain, before any work."""
        raise NotImplementedError

    def _check_target(self, y: Any, X: Array) -> Array:
        """The numeric target of the core's loss, shape (n_rows,)."""
        raise NotImplementedError

    def _targets(self, y: Array) -> Array:
        """The target as columns for a graph builder, shape (n_rows, k)."""
        return y[:, None]

    def _check_bare(self) -> None:
        """Raise ValueError unless X may consist of the node ids alone."""
        raise ValueError(
            "X must have a feature beside the node ids; got none. Add one, or use "
            "GTVRegressor for one mean per node."
        )

    # -- rows ---------------------------------------------------------------------------------

    def _take_rows(self, X: Any, y: Any, sample_weight: Any, node_ids: Any, *, reset: bool) -> Rows:
        """Validate what came; rows of weight zero are left out."""
        self._check_parameters()
        if reset:
            names = list(X.columns) if is_frame(X) else []
            self._node_at = names.index(self.node) if self.node in names else None
        X, ids = split_nodes(X, self.node, node_ids)
        X, gaps = self._encoded(X, ids, reset=reset)
        X = self._check_X(X, ids, reset=reset, y=y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        ids = np.zeros(len(X), dtype=np.int64) if ids is None else ids
        if ids is not None and self.graph is not None and self.node is None and node_ids is None:
            raise ValueError(
                "A graph needs the node of each row; got neither node nor node_ids. Name the id "
                "column of X by node=, or pass the ids by node_ids=."
            )
        on = weight > 0
        if getattr(self, "privacy", None) is not None and not (weight == 1).all():
            raise ValueError(
                "sample_weight must be left out with privacy: bounds are for equal rows, and which "
                "rows are left out is not to depend on what they hold."
            )
        if not on.all():  # as if these rows were not there, also for what classes there are
            check_consistent_length(X, y)
            y = _safe_indexing(y, np.flatnonzero(on))
        if reset and self._encodes:
            columns = np.flatnonzero(group_level(X[on], ids[on])).tolist()
            known = self._names()
            self.group_level_ = [j if known is None else known[j] for j in columns]
        gaps = None if gaps is None else gaps[on]
        return Rows(X[on], self._check_target(y, X[on]), ids[on], weight[on], gaps)

    def _encoded(self, X: Any, ids: Any, *, reset: bool) -> tuple[Any, Any]:
        """A table in numbers, and where these are fills; what needs no encoding as it is."""
        if reset:
            self.__dict__.pop("encoder_", None)
            # Without node ids a column of text may well be these: it is asked for by an error.
            if ids is None or not (self._encodes and is_frame(X) and needs_encoding(X)):
                return X, None
            self.encoder_ = TableEncoder().fit(X, node_ids=ids)
            for name, why in self.encoder_.left_out_.items():
                warnings.warn(f'Column "{name}" is left out: {why}.', DataWarning, stacklevel=4)
        if not hasattr(self, "encoder_"):
            return X, None
        if not is_frame(X):
            raise ValueError(
                "The model was fitted to a table with text, dates or missing values, and needs "
                f"one to predict; got {type_name(X)}. Pass a table with the same columns."
            )
        return self.encoder_.transform_with_gaps(X)

    def _check_X(self, X: Any, ids: Any, *, reset: bool, y: Any = "no_validation") -> Array:
        if y is None:
            validate_data(self, X, y, reset=reset)  # raises: a target is required
        bare = ids is not None and len(np.shape(X)) == 2 and np.shape(X)[1] == 0
        if bare and reset:
            self._check_bare()
        try:
            X = validate_data(
                self,
                X,
                reset=reset,
                accept_sparse=True,
                dtype=np.float64,
                ensure_all_finite=False,
                ensure_min_features=0 if bare else 1,
            )
        except (ValueError, TypeError):
            text = None if sparse.issparse(X) else text_column(X)
            if text is None:
                raise
            self._refuse_text(*text, ids)
        X = np.asarray(X.toarray() if sparse.issparse(X) else X)
        finite = np.isfinite(X)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            name = (self._names() or range(X.shape[1]))[column]
            node = "" if ids is None else f" of node {ids[row : row + 1].tolist()[0]!r}"
            raise ValueError(
                f"X must not contain NaN or inf; got {X[row, column]} in column {name!r}, row "
                f"{row}{node}, and in {int((~finite.all(axis=1)).sum())} row(s) in all. Drop them, "
                "or impute: make_pipeline(keep_node(SimpleImputer(), node), model)."
            )
        self._refuse_huge(X)
        return X

    def _refuse_huge(self, X: Array) -> None:
        """A ValueError for numbers whose squares overflow: scales would be infinite."""
        if not X.size or max(X.max(), -X.min()) <= LARGEST:
            return
        row, column = np.argwhere(np.abs(X) > LARGEST)[0]
        name = (self._names() or range(X.shape[1]))[column]
        raise ValueError(
            f"X must be at most {LARGEST:g} in size, or squares overflow; got {X[row, column]:g} "
            f"in column {name!r}, row {row}. Correct it, or use another unit."
        )

    def _refuse_text(self, column: Any, value: str, ids: Any) -> None:
        advice = "Encode it as numbers, or drop it."
        if ids is None:
            advice = f"If it holds the node ids, pass node={_quoted(column)}; otherwise encode it, "
            advice += "such as by nefele.TableEncoder()."
        raise ValueError(
            f"The features of X must be numbers; got {value!r} in column {_quoted(column)}. "
            f"{advice}"
        )

    def _names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _rows_to_predict(self, X: Any, node_ids: Any) -> tuple[Array, Any]:
        """Validated features, and the node of each row; None when there is one node only."""
        node = self.node
        if isinstance(node, str) and node_ids is None and not is_frame(X):
            # Tools such as permutation_importance turn a table into an array: same columns.
            node = column_of_array(X, node, self._node_at, self.n_features_in_ + 1)
        X, ids = split_nodes(X, node, node_ids)
        X = self._check_X(self._encoded(X, ids, reset=False)[0], ids, reset=False)
        if ids is None and len(self.nodes_) > 1:
            raise ValueError(
                f"The model has {len(self.nodes_)} nodes; pass the node of each row by "
                "node_ids=, or name the id column of X by node=."
            )
        return X, ids

    def _known_rows(self, X: Any, node_ids: Any, model: str) -> tuple[Array, NDArray[np.int64]]:
        """Validated features, and the position of each row's node, which must be in the graph."""
        X, ids = self._rows_to_predict(X, node_ids)
        if ids is None:
            return X, np.zeros(len(X), dtype=np.int64)
        place = self.graph_.positions(ids)
        if (place < 0).any():
            why = f"Add them to the graph: nodes without rows get {model} from their neighbours."
            raise ValueError(unseen_message(self.nodes_, ids[place < 0], why))
        return X, place

    # -- graph --------------------------------------------------------------------------------

    def _make_graph(self, rows: Rows) -> Graph:
        if isinstance(self.graph, Graph):
            return self.graph
        if self.graph is None:
            alone = self.node is None and not rows.node_ids.any()
            if alone or getattr(self, "hub", 0.0) == 1:  # one node, or all joined by the centre
                return graph_nodes(rows.node_ids)
            builder: Any = MomentsKNN()
        elif hasattr(self.graph, "fit_graph"):
            if isinstance(self.graph, type):
                raise ValueError(f"graph must be an object; use {self.graph.__name__}().")
            builder = clone(self.graph)
        else:
            return as_graph(self.graph)
        found = builder.fit_graph(
            TrainingRows(
                rows.X,
                self._targets(rows.y),
                rows.node_ids,
                rows.sample_weight,
                self._names(),
                self.coords,
                self.node,
            )
        )
        if not isinstance(found, Graph):
            raise ValueError(
                f"fit_graph of {type(builder).__name__} must return a nefele.Graph; got "
                f"{type(found).__name__}. Use nefele.as_graph in it."
            )
        return found


def _quoted(column: Any) -> str:
    return f'"{column}"' if isinstance(column, str) else repr(column)


class RowsRegressor(RegressorMixin):
    """A target of numbers, and the score of its predictions."""

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None) -> float:
        """Coefficient of determination R^2 of the predictions over all rows.

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        y : array of shape (n_rows,)
            Target.
        sample_weight : array of shape (n_rows,), optional
            Row weights >= 0.
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, node_ids=node_ids), sample_weight=sample_weight))

    def _check_target(self, y: Any, X: Array) -> Array:
        try:
            y = np.asarray(_check_y(y, y_numeric=True, estimator=self), dtype=np.float64)
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            raise ValueError(
                f"y must be numbers for a regression; {error}. For classes use a classifier."
            ) from None
        check_consistent_length(X, y)
        return y


class RowsClassifier(ClassifierMixin):
    """A target of classes, and the score of its predictions."""

    classes_: NDArray[Any]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None) -> float:
        """Share of rows whose class is predicted.

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        y : array of shape (n_rows,)
            Classes.
        sample_weight : array of shape (n_rows,), optional
            Row weights >= 0.
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        from sklearn.metrics import accuracy_score

        found = self.predict(X, node_ids=node_ids)
        return float(accuracy_score(y, found, sample_weight=sample_weight))

    def _check_target(self, y: Any, X: Array) -> Array:
        y = column_or_1d(_check_y(y, y_numeric=False, estimator=self), warn=True)
        check_consistent_length(X, y)
        check_classification_targets(y)
        self.classes_, code = np.unique(y, return_inverse=True)
        return code.astype(np.float64)

    def _targets(self, y: Array) -> Array:
        return np.eye(len(self.classes_))[y.astype(np.int64)]
