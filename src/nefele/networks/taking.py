"""From what users have to the rows of all nodes: tables, arrays of any shape, datasets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from nefele._checks import Array, type_name
from nefele._torch.base import DTYPES, Module, torch
from nefele._torch.building import build_for
from nefele.estimators.nodes import row_places, unseen_message
from nefele.estimators.packing import Rows
from nefele.estimators.rows_base import RowsBase
from nefele.graph import Graph
from nefele.networks.features import (
    ArrayFeatures,
    DatasetFeatures,
    Features,
    Index,
    as_array,
    as_sets,
)
from nefele.networks.rows import Source

Embedding = torch.nn.Embedding


@dataclass(frozen=True, eq=False)
class NetRows:
    """Validated rows: features, numeric target, node ids and weights > 0.

    `places` are the numbers of the rows among the features.
    """

    features: Features
    places: Index
    y: Array
    node_ids: NDArray[Any]
    sample_weight: Array

    def flat(self) -> Rows:
        """The same for builders of graphs, features in one line; none of datasets."""
        X = np.zeros((len(self.y), 0))
        if isinstance(self.features, ArrayFeatures):
            X = self.features.values.reshape(len(self.features), -1)[self.places]
        return Rows(X, self.y, self.node_ids, self.sample_weight)

    def source(self, graph: Graph, labels: bool, dtype: str, seed: int) -> Source:
        """The rows node by node, in the order of the graph; all ids must be there."""
        place = row_places(graph, self.node_ids)
        order = np.argsort(place, kind="stable")
        counts = np.bincount(place, minlength=graph.n_nodes)
        y = self.y[order]
        return Source(
            self.features,
            self.places[order],
            np.concatenate([[0], np.cumsum(counts)]),
            y.astype(np.int64) if labels else y,
            self.sample_weight[order],
            dtype,
            seed,
        )


class ShapedRows(RowsBase):
    """Rows of any shape; tables and matrices as all estimators take them."""

    module: Any
    dtype: str
    _shape: tuple[int, ...]
    _n_outputs: int

    def _net_rows(self, X: Any, y: Any, sample_weight: Any, node_ids: Any) -> NetRows:
        sets = as_sets(X)
        values = None if sets is not None else as_array(X)
        if sets is None and values is None:
            rows = self._take_rows(X, y, sample_weight, node_ids, reset=True)
            features: Features = ArrayFeatures(rows.X, DTYPES[self.dtype])
            places = np.arange(len(rows.y))
            return NetRows(features, places, rows.y, rows.node_ids, rows.sample_weight)
        self._check_parameters()
        kind = DTYPES[self.dtype]
        self._node_at = None
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if sets is not None:
            if y is not None or node_ids is not None:
                raise ValueError(
                    "With datasets the targets and nodes are theirs; leave out y and node_ids."
                )
            features, ids, y = DatasetFeatures(sets.datasets, kind), sets.row_ids, sets.targets()
        else:
            assert values is not None
            features, ids = ArrayFeatures(values, kind), self._ids_of(values, node_ids)
        weight = _check_sample_weight(
            sample_weight, np.zeros(len(features)), dtype=np.float64, ensure_non_negative=True
        )
        on = np.flatnonzero(weight > 0)
        if y is None:
            raise ValueError("y must have the target of each row; got None.")
        check_consistent_length(ids, np.asarray(y))
        target = self._check_target(np.asarray(y)[on], ids[on])
        return NetRows(features, on, target, ids[on], weight[on])

    def _ids_of(self, values: NDArray[Any], node_ids: Any) -> NDArray[Any]:
        if node_ids is None:
            if self.graph is not None:
                raise ValueError(
                    "An array of images or sequences needs the node of each row: pass node_ids=."
                )
            return np.zeros(len(values), dtype=np.int64)
        ids = np.asarray(node_ids)
        if ids.shape != (len(values),):
            raise ValueError(
                f"node_ids must have one id per row of X ({len(values)}); got shape {ids.shape}."
            )
        return ids

    def _build_for(self, features: Features) -> Module:
        """A network that takes such rows; whole numbers for one that begins with an embedding."""
        example = features.take(np.zeros(1, dtype=np.int64))
        made, tokens = build_for(self.module, example, self._n_outputs, self.dtype)
        if tokens:
            features.dtype = None  # type: ignore[attr-defined]
            if isinstance(features, ArrayFeatures) and features.values.dtype.kind == "f":
                _check_whole(features.values)
            if isinstance(features, ArrayFeatures):
                _check_known(features.values, made)
        self._tokens = tokens
        return made

    def _rows_of(self, X: Any, node_ids: Any) -> tuple[Features, Index]:
        """Features to predict for, and the position of each row's node."""
        sets = as_sets(X)
        values = None if sets is not None else as_array(X)
        kind = None if self._tokens else DTYPES[self.dtype]
        if sets is None and values is None and len(self._shape) == 1:
            X, place = self._known_rows(X, node_ids, "a network")
            return ArrayFeatures(X, kind), place
        if sets is not None:
            features: Features = DatasetFeatures(sets.datasets, kind)
            ids = sets.row_ids
        elif values is not None:
            features, ids = ArrayFeatures(values, kind), self._ids_of(values, node_ids)
        else:
            raise ValueError(f"X must have rows of shape {self._shape}; got {type_name(X)}.")
        if tuple(features.shape) != tuple(self._shape):
            raise ValueError(
                f"X must have rows of shape {tuple(self._shape)}, as in fit; got "
                f"{tuple(features.shape)}."
            )
        place = self.graph_.positions(ids)
        if (place < 0).any():
            why = "Add them to the graph: nodes without rows get a network from their neighbours."
            raise ValueError(unseen_message(self.nodes_, ids[place < 0], why))
        return features, place


def _check_known(values: Array, module: Module) -> None:
    """Tokens must be those of the embedding, where there is one only."""
    sizes = [one.num_embeddings for one in module.modules() if isinstance(one, Embedding)]
    wrong = (values < 0) | (values >= sizes[0])
    if len(sizes) == 1 and wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise ValueError(
            f"The embedding has {sizes[0]} entries: tokens must be 0 to {sizes[0] - 1}; got "
            f"{int(values[at])} in row {int(at[0])} of X. Give it more entries."
        )


def _check_whole(values: Array) -> None:
    if (values != np.round(values)).any():
        row = int(np.argwhere(values != np.round(values))[0, 0])
        raise ValueError(
            f"A network with an embedding takes whole numbers; got a fraction in row {row} of X."
        )
