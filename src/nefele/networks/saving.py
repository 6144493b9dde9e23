"""Saved networks: one file of plain arrays and JSON; the architecture comes from the reader."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from nefele._records import DamagedError, VersionError, read_record, write_record
from nefele._torch.base import DTYPES, torch
from nefele._torch.building import build_for
from nefele.graph import Graph
from nefele.networks.layers import Layers
from nefele.networks.rounds import NetRound
from nefele.networks.stack import Stack

_KIND, _VERSION = "nefele networks", 1
_PLAIN = (str, bool, int, float, type(None))
_FACTS = (
    *("status_", "rounds_", "best_round_", "objective_"),
    *("coupling_", "alpha_", "coupling_helps_", "gain_", "gain_se_", "best_score_"),
)
_ARRAYS = ("parameters_", "classes_", "flow_", "coupled_", "centre_")


def save_networks(model: Any, path: Any) -> None:
    """Write a fitted model; ids and classes must be text or numbers."""
    graph, arrays = model.graph_, {}
    for name, value in (("graph.ids", graph.ids), *((n, getattr(model, n, None)) for n in _ARRAYS)):
        if value is None:
            continue
        if np.asarray(value).dtype.kind == "O":
            raise ValueError(f"{name} must be text or numbers to be saved; got mixed ones.")
        arrays[name] = np.asarray(value)
    arrays |= {f"graph.{name}": getattr(graph, name) for name in ("head", "tail", "weight")}
    arrays |= {f"statistics.{name}": value for name, value in model.statistics_.items()}
    params = model.get_params(deep=False)
    facts = {
        "class": type(model).__name__,
        "params": {k: v for k, v in params.items() if isinstance(v, _PLAIN)},
        "shape": [int(n) for n in model._shape],
        "tokens": bool(model._tokens),
        "names": _names(model._stack()),
        "features": [str(name) for name in getattr(model, "feature_names_in_", ())],
        "layers": asdict(model.module) if isinstance(model.module, Layers) else None,
        "history": [list(record) for record in getattr(model, "history_", [])],
        **{name: getattr(model, name) for name in _FACTS if hasattr(model, name)},
    }
    write_record(Path(path), _KIND, _VERSION, facts, arrays)


def load_networks(kind: type[Any], path: Any, module: Any) -> Any:
    """The model of a file, with the architecture of `module`, whose parameters do not matter."""
    try:
        facts, arrays = read_record(Path(path), _KIND, _VERSION)
    except (DamagedError, VersionError) as error:
        raise ValueError(
            f"The file {str(path)!r} must be as it was written; it is not ({error})."
        ) from None
    if facts["class"] != kind.__name__:
        raise ValueError(
            f"The file {str(path)!r} holds networks of a {facts['class']}; got {kind.__name__}."
        )
    known = kind().get_params(deep=False)
    model = kind(**{k: v for k, v in facts["params"].items() if k in known})
    if module is None and facts["layers"] is not None:
        module = Layers(**facts["layers"])
    model.module = module
    for name in _ARRAYS:
        if name in arrays:
            setattr(model, name, arrays[name])
    for name in _FACTS:
        if name in facts:
            setattr(model, name, facts[name])
    model.history_ = [NetRound(*record) for record in facts["history"]]
    model.graph_ = Graph(*(arrays[f"graph.{name}"] for name in ("ids", "head", "tail", "weight")))
    model.graph = model.graph_
    model.nodes_ = np.array(model.graph_.ids)
    model._shape, model._tokens, model._node_at = tuple(facts["shape"]), facts["tokens"], None
    if len(model._shape) == 1:
        model.n_features_in_ = model._shape[0]
    if facts["features"]:
        model.feature_names_in_ = np.array(facts["features"], dtype=object)
    start = "statistics."
    model.statistics_ = {k[len(start) :]: v for k, v in arrays.items() if k.startswith(start)}
    model.module_ = _built(model, module)
    _check(model, facts["names"])
    return model


def _built(model: Any, module: Any) -> Any:
    kind = torch.int64 if model._tokens else DTYPES[model.dtype]
    example = torch.zeros(1, *model._shape, dtype=kind)
    return build_for(module, example, model._n_outputs, model.dtype)[0]


def _names(stack: Stack) -> list[list[Any]]:
    return [[name, list(shape)] for name, shape in zip(stack.names, stack.shapes, strict=True)]


def _check(model: Any, names: list[list[Any]]) -> None:
    """Everything must be of one size."""
    stack = model._stack()
    stack.start(1)
    n = model.graph_.n_nodes
    fits = _names(stack) == names and model.parameters_.shape == (n, stack.n_parameters)
    fits = fits and stack.statistics.keys() == model.statistics_.keys()
    fits = fits and all(
        model.statistics_[k].shape == (n, *v.shape[1:]) for k, v in stack.statistics.items()
    )
    if not fits or not np.isfinite(model.parameters_).all():
        raise ValueError(
            "load needs the network that was saved, with parameters of the same names and shapes: "
            f"{', '.join(f'{name} {tuple(shape)}' for name, shape in names)}."
        )
