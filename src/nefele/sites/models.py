"""Local models of any kind at a site: made from site.toml, kept without pickle where possible."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from nefele._checks import Array, type_name
from nefele._files import write_whole
from nefele.sites.config import Model

_FUNCTION = "make_model"
_LONG = 100  # characters of a node id that fit in the name of a file


def maker(model: Model) -> Callable[[], Any]:
    """What makes an unfitted model: a class, or the function of a file, with its arguments.

    Examples
    --------
    >>> maker(Model("sklearn.linear_model.Ridge", parameters={"alpha": 2.0}))()
    Ridge(alpha=2.0)
    """
    call = _imported(str(model.use)) if model.file is None else _function(model.file)
    where = str(model.use or model.file)

    def make() -> Any:
        try:
            found = call(**model.parameters)
        except TypeError as error:
            raise ValueError(
                f"parameters of the model must be those of {where}; got "
                f"{', '.join(model.parameters) or 'none'}. {error}. Change [model] in site.toml."
            ) from error
        except Exception as error:  # of the user's own code
            raise ValueError(_failed(where, error)) from error
        missing = [name for name in ("fit", "predict") if not hasattr(found, name)]
        if missing:
            raise ValueError(
                f"A model must have fit and predict; {where} made {type_name(found)} without "
                f"{missing[0]}. Change [model] in site.toml."
            )
        return found

    make()  # what is wrong is said before anything is sent
    return make


def _imported(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"use must name a class that can be imported; {name!r} cannot: {error}. Install its "
            "package, or correct [model] in site.toml."
        ) from error


def _function(path: Path) -> Any:
    if not path.is_file():
        raise ValueError(f"file of the model must be there; no {str(path)!r}. Correct site.toml.")
    spec = importlib.util.spec_from_file_location(f"nefele_site_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"file of the model must be Python, *.py; got {str(path)!r}.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # of the user's own file
        raise ValueError(_failed(path, error)) from error
    if not callable(getattr(module, _FUNCTION, None)):
        raise ValueError(f"{str(path)!r} must have a function {_FUNCTION}(); it has none. Add it.")
    return getattr(module, _FUNCTION)


def _failed(where: object, error: Exception) -> str:
    return f"{str(where)!r} must make a model; {type_name(error)}: {error}. Correct it."


def mark_of(model: Model | None) -> str:
    """What tells apart two models of site.toml: with another one a run cannot go on.

    Examples
    --------
    >>> mark_of(None), mark_of(Model("a.B")) == mark_of(Model("a.B", parameters={"c": 1}))
    ('', False)
    """
    if model is None:
        return ""
    plain = json.dumps([model.use, dict(model.parameters)], sort_keys=True, default=str)
    code = b"" if model.file is None else model.file.read_bytes()
    return hashlib.sha256(plain.encode() + code).hexdigest()


def keep(folder: Path, models: dict[str, Any], shift: Array, scale: Array) -> str:
    """Store what can be stored safely, for rows in the units of the data; say what was not.

    Only models of scikit-learn are stored, by skops, as model-NODE.skops: a file that runs no code
    when it is read.
    """
    foreign = sorted({type_name(m) for m in models.values() if not _is_sklearn(m)})
    mine = {node: model for node, model in models.items() if _is_sklearn(model)}
    try:
        import skops.io
    except ImportError:
        return "not stored: that needs skops, pip install skops; predictions.csv has the answers"
    for k, (node, model) in enumerate(mine.items()):
        name = quote(node, safe="") if len(node) <= _LONG else str(k)
        whole = _with_scales(model, shift, scale)
        write_whole(folder / f"model-{name}.skops", partial(skops.io.dump, whole))
    if foreign:
        return f"not stored: {', '.join(foreign)} cannot be without pickle; predictions.csv remains"
    return "stored as model-NODE.skops, to be read by skops.io.load"


def _is_sklearn(model: Any) -> bool:
    return type(model).__module__.split(".")[0] == "sklearn"


def _with_scales(model: Any, shift: Array, scale: Array) -> Any:
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    scaler.mean_, scaler.scale_, scaler.var_ = shift.copy(), scale.copy(), np.square(scale)
    scaler.n_features_in_, scaler.n_samples_seen_ = len(shift), 1
    return Pipeline([("scale", scaler), ("model", model)])
