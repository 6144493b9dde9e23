"""Saved models: one file of plain arrays and JSON, nothing that is executed when it is read."""

from __future__ import annotations

import json
import os
import struct
import tempfile
import zlib
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from nefele import losses, penalties
from nefele._checks import type_name
from nefele.estimators import builders
from nefele.estimators._coords import Coordinates, as_coordinates
from nefele.estimators._design import Rows
from nefele.graph import Graph
from nefele.graphs import as_graph
from nefele.losses import Loss
from nefele.penalties import Penalty
from nefele.result import Record

FORMAT = "nefele model"
VERSION = 1
_UNREADABLE = (  # what NumPy and zipfile raise for files that are none of theirs
    AttributeError,
    BadZipFile,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)
_FITTED = {
    "classes_",
    "clusters_",
    "coef_",
    "dual_gap_",
    "feature_names_in_",
    "graph_",
    "history_",
    "intercept_",
    "n_features_in_",
    "n_iter_",
    "nodes_",
    "pooled_coef_",
    "pooled_intercept_",
    "status_",
}
_PLAIN = (str, bool, int, float, type(None))


class _Packer:
    """Turns values into JSON, big arrays going into the list of arrays."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}

    def pack(self, value: Any, what: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, _PLAIN):
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
        if isinstance(value, Loss | Penalty) and is_dataclass(value):
            return self._named(value, what)
        if hasattr(value, "fit_graph") and hasattr(value, "get_params"):
            name = type(value).__name__
            if getattr(_builder_home(name), name, None) is not type(value):
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


class _Unpacker:
    """The way back; only what `_Packer` writes is understood."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.arrays = arrays

    def unpack(self, value: Any) -> Any:
        if isinstance(value, _PLAIN):
            return value
        kind, content = next(iter(value.items()))
        if kind in ("list", "tuple", "record"):
            items = [self.unpack(item) for item in content]
            return items if kind == "list" else Record(*items) if kind == "record" else tuple(items)
        if kind == "dict":
            return {self.unpack(k): self.unpack(v) for k, v in content}
        if kind == "array":
            return self.arrays[content]
        if kind == "objects":
            out = np.empty(len(content), dtype=object)
            for i, item in enumerate(content):
                out[i] = self.unpack(item)
            return out
        parts = {k: self.unpack(v) for k, v in (content if kind in _WHOLE else value["of"]).items()}
        return _CLASSES[kind](content)(**parts) if kind not in _WHOLE else _WHOLE[kind](**parts)


def _known(home: Any, base: type) -> Any:
    """Finds a class of a package by its exported name, and refuses everything else."""

    def find(name: str) -> Any:
        found = getattr(home, name) if name in home.__all__ else None
        if not (isinstance(found, type) and issubclass(found, base)):
            raise UnknownError(f"it needs a {name!r}, which this version does not know")
        return found

    return find


class UnknownError(Exception):
    """A file names something that this version of nefele does not have."""


def _builder_home(name: str) -> Any:
    """Where a builder is exported; graph_learning is a layer above and looked up late."""
    return builders if name in builders.__all__ else import_module("nefele.graph_learning")


_WHOLE: dict[str, Any] = {"coords": Coordinates, "graph": Graph, "rows": Rows}
_CLASSES: dict[str, Any] = {
    "builder": lambda name: _known(_builder_home(name), builders.GraphBuilder)(name),
    "loss": _known(losses, Loss),
    "penalty": _known(penalties, Penalty),
}


def save(model: Any, path: Any, *, rows: bool = False) -> None:
    """Write a fitted estimator to one file, which replaces an old one as a whole or not at all.

    Parameters
    ----------
    model : fitted estimator
    path : str or Path
    rows : bool
        Whether to store the training rows, which `partial_fit` needs.
    """
    path = Path(path)
    packer = _Packer()
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "class": type(model).__name__,
        "params": {k: packer.pack(v, k) for k, v in _parameters(model).items()},
        "fitted": {
            name: packer.pack(value, name)
            for name, value in vars(model).items()
            if _is_fitted_name(name) and (rows or name != "_rows")
        },
    }
    text = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=path.name, suffix=".part", delete=False
        ) as file:
            temporary = file.name
            np.savez_compressed(file, facts=text, **packer.arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise ValueError(
            f"The model could not be written to {str(path)!r} ({error.strerror}); a file that was "
            "there stays as it was. Name a file in a folder that can be written."
        ) from None


def _umask() -> int:
    """Permissions that new files do not get; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def load(path: Any) -> Any:
    """Read a model that was written by its `save`.

    Nothing in the file is executed. Files of another format or version, damaged files and files
    that name unknown classes are refused.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    The fitted estimator.

    Examples
    --------
    >>> import tempfile
    >>> from nefele import GTVRegressor
    >>> model = GTVRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder + "/line.nefele")
    ...     again = load(folder + "/line.nefele")
    >>> again.predict([[3.0]]).round(6)
    array([7.])
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"No model file {str(path)!r}.")
    damaged = (
        f"{str(path)!r} must be a model written by nefele; it is damaged or another kind of file."
    )
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        facts = json.loads(bytes(arrays.pop("facts")).decode())
        version, kind = facts["version"], facts["class"]
        if facts["format"] != FORMAT:
            raise KeyError("format")
    except _UNREADABLE:
        raise ValueError(damaged) from None
    if version != VERSION:
        raise ValueError(
            f"The model must have format version {VERSION}; {str(path)!r} has {version!r}. Load it "
            "with the version of nefele that wrote it."
        )
    try:
        return _restore(kind, facts, _Unpacker(arrays))
    except UnknownError as error:
        raise ValueError(f"{str(path)!r} cannot be loaded: {error}.") from None
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, StopIteration):
        raise ValueError(damaged) from None


def _restore(kind: str, facts: dict[str, Any], unpacker: _Unpacker) -> Any:
    estimators: Any = import_module("nefele.estimators")
    found = getattr(estimators, kind) if kind in estimators.__all__ else None
    if not (isinstance(found, type) and hasattr(found, "save")):
        raise UnknownError(f"it holds a {kind!r}, which this version does not know")
    model = found(**{k: unpacker.unpack(v) for k, v in facts["params"].items()})
    for name, value in facts["fitted"].items():
        if not _is_fitted_name(name) or hasattr(found, name):
            raise KeyError(name)
        setattr(model, name, unpacker.unpack(value))
    _check_restored(model)
    return model


def _check_restored(model: Any) -> None:
    """Raise ValueError unless the parts of a model fit together."""
    graph = model.graph_
    outputs = model._n_outputs
    inner = (outputs,) if outputs > 1 else ()
    shape = (graph.n_nodes, *inner, model.n_features_in_)
    strange = {n for n in vars(model) if n.endswith("_") and n not in _FITTED}
    fits = model.coef_.shape == shape and model.intercept_.shape == shape[:-1]
    finite = np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()
    if strange or not fits or not finite or len(model.nodes_) != graph.n_nodes:
        raise ValueError("parts that do not fit together")
    model._check_parameters()


def _is_fitted_name(name: str) -> bool:
    fitted = name.endswith("_") and not name.startswith("_")
    return fitted or name in ("_flow", "_node_at", "_rows")


def _parameters(model: Any) -> dict[str, Any]:
    """The parameters, graphs and coordinates in the package's own form."""
    params = dict(model.get_params(deep=False))
    graph, coords = params.get("graph"), params.get("coords")
    if graph is not None and not hasattr(graph, "fit_graph"):
        params["graph"] = as_graph(graph)
    if coords is not None and not isinstance(coords, list | tuple):
        params["coords"] = as_coordinates(coords, params.get("node"))
    return params
