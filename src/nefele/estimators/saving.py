"""Saved models: one file of plain arrays and JSON; `loading.py` is the way back."""

from __future__ import annotations

import os
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele import graph_learning, losses, penalties
from nefele._checks import type_name
from nefele._files import clear_parts
from nefele._records import write_record
from nefele.encoding.encoder import TableEncoder
from nefele.estimators.design import Rows
from nefele.estimators.layout import Layout
from nefele.graph import Graph
from nefele.graph_learning.coordinates import Coordinates, as_coordinates
from nefele.graphs import as_graph
from nefele.losses import Loss
from nefele.penalties import Penalty
from nefele.privacy import Bounds, Budget, Privacy, Spent
from nefele.result import Record

FORMAT = "nefele model"
VERSION = 2
_OLD = 3600.0  # seconds after which what a process left half-written may be removed
PLAIN = (str, bool, int, float, type(None))
_KEPT = ("_curve_weight", "_flow", "_layout", "_node_at", "_parameters", "_rows")


class _Packer:
    """Turns values into JSON, big arrays going into the list of arrays."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def pack(self, value: Any, what: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, PLAIN):
            return value
        if isinstance(value, list | tuple):
            kind = "tuple" if isinstance(value, tuple) else "list"
            if isinstance(value, Record):
                kind = "record"
            return {kind: [self.pack(item, what) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[self.pack(k, what), self.pack(v, what)] for k, v in value.items()]}
        if isinstance(value, np.ndarray):
            return self._array(value, what)
        if isinstance(value, Graph):
            parts = {name: getattr(value, name) for name in ("ids", "head", "tail", "weight")}
            return {"graph": {name: self._array(np.array(a), what) for name, a in parts.items()}}
        if isinstance(value, Coordinates | Rows):
            kind = "coords" if isinstance(value, Coordinates) else "rows"
            return {kind: {k: self.pack(v, what) for k, v in vars(value).items()}}
        if isinstance(value, Layout):
            return {"layout": {k: self.pack(v, what) for k, v in value.to_parts().items()}}
        if isinstance(value, Privacy | Bounds | Spent):
            return {"privacy": type(value).__name__, "of": self._promised(value, what)}
        if isinstance(value, TableEncoder):
            return {"encoder": {"state": self.pack(value.to_state(), what)}}
        if isinstance(value, Loss | Penalty) and is_dataclass(value):
            return self._named(value, what)
        if hasattr(value, "fit_graph") and hasattr(value, "get_params"):
            name = type(value).__name__
            if getattr(graph_learning, name, None) is not type(value):
                raise ValueError(
                    f"{what} must be a builder of nefele to be saved; got {type_name(value)}. "
                    "Use joblib, or fit with the graph it makes."
                )
            params = _parameters(value)
            packed = {name: self.pack(item, f"{what}__{name}") for name, item in params.items()}
            return {"builder": type(value).__name__, "of": packed}
        raise ValueError(
            f"{what} must be saved without pickle; {type_name(value)} cannot. Use joblib for such "
            "a model, or convert it: graphs by nefele.as_graph, tables of coordinates to a dict, "
            "node ids and labels to text or numbers."
        )

    def _promised(self, value: Any, what: str) -> Any:
        """A budget by its file; one without a file is known by its head in `Spent` only."""
        parts = dict(vars(value))
        budget = parts.get("budget")
        if isinstance(budget, Budget | os.PathLike):
            path = budget.path if isinstance(budget, Budget) else budget
            parts["budget"] = None if path is None else os.fspath(path)
        return {k: self.pack(v, f"{what}.{k}") for k, v in parts.items()}

    def _named(self, value: Any, what: str) -> Any:
        home = losses if isinstance(value, Loss) else penalties
        name = type(value).__name__
        if getattr(home, name, None) is not type(value):
            raise ValueError(
                f"{what} must be a class of nefele to be saved; got {type_name(value)}. Use joblib "
                "for a model with a loss or penalty of your own."
            )
        public = {k: v for k, v in vars(value).items() if not k.startswith("_")}
        packed = {k: self.pack(v, f"{what}.{k}") for k, v in public.items()}
        return {"loss" if home is losses else "penalty": name, "of": packed}

    def _array(self, value: NDArray[Any], what: str) -> Any:
        if value.dtype.kind == "O":  # mixed ids or labels, one by one
            return {"objects": [self.pack(item, what) for item in value.tolist()]}
        name = f"a{len(self.arrays)}"
        self.arrays[name] = value
        return {"array": name}


def save(model: Any, path: Any, *, rows: bool = False) -> None:
    """Write a fitted estimator to one file, which replaces an old one as a whole or not at all.

    With `rows` the training rows are stored, which `partial_fit` needs.
    """
    path = as_path(path)
    packer = _Packer()
    facts = {
        "class": type(model).__name__,
        "params": {k: packer.pack(v, k) for k, v in _parameters(model).items()},
        "fitted": {
            name: packer.pack(value, name)
            for name, value in vars(model).items()
            if _is_fitted_name(name) and (rows or name != "_rows")
        },
    }
    try:
        clear_parts(path.parent, path.name, _OLD)
        write_record(path, FORMAT, VERSION, facts, packer.arrays)
    except OSError as error:
        raise ValueError(
            f"The model could not be written to {str(path)!r} ({error.strerror}); a file that was "
            "there stays as it was. Name a file in a folder that can be written."
        ) from None


def as_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in str(path):
        raise ValueError(f'path must be the name of a file, such as "model.nefele"; got {path!r}.')
    return Path(os.fsdecode(path))


def _is_fitted_name(name: str) -> bool:
    fitted = name.endswith("_") and not name.startswith("_")
    return fitted or name in _KEPT


def _parameters(model: Any) -> dict[str, Any]:
    """The parameters, graphs and coordinates in the package's own form."""
    params = dict(model.get_params(deep=False))
    graph, coords = params.get("graph"), params.get("coords")
    if graph is not None and not hasattr(graph, "fit_graph"):
        params["graph"] = as_graph(graph)
    if coords is not None and not isinstance(coords, list | tuple):
        params["coords"] = as_coordinates(coords, params.get("node"))
    return params
