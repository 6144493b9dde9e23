"""Models read from their files; nothing in a file is executed."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele import graph_learning, losses, penalties, privacy
from nefele._records import VersionError, read_record
from nefele.encoding.encoder import TableEncoder
from nefele.estimators._restoring import (
    FITTED,
    check_restored,
    checked_coordinates,
    checked_layout,
    checked_rows,
)
from nefele.estimators.classifier import GTVClassifier
from nefele.estimators.regressor import GTVRegressor
from nefele.estimators.saving import FORMAT, PLAIN, VERSION, as_path
from nefele.graph import Graph
from nefele.graph_learning.builders import GraphBuilder
from nefele.losses import Loss
from nefele.penalties import Penalty
from nefele.privacy import Bounds, Privacy, Spent
from nefele.result import Record

_ESTIMATORS: dict[str, type[GTVRegressor] | type[GTVClassifier]] = {
    "GTVClassifier": GTVClassifier,
    "GTVRegressor": GTVRegressor,
}


class _Unpacker:
    """The way back; only what is packed in `saving.py` is understood."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.arrays = arrays

    def unpack(self, value: Any) -> Any:
        if isinstance(value, PLAIN):
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


def _known(home: Any, base: Any) -> Any:
    """Finds a class of a package by its exported name, and refuses everything else."""

    def find(name: str) -> Any:
        found = getattr(home, name) if name in home.__all__ else None
        if not (isinstance(found, type) and issubclass(found, base)):
            raise UnknownError(f"it needs a {name!r}, which this version does not know")
        return found

    return find


class UnknownError(Exception):
    """A file names something that this version of nefele does not have."""


_WHOLE: dict[str, Any] = {
    "coords": checked_coordinates,
    "encoder": TableEncoder.from_state,
    "graph": Graph,
    "layout": checked_layout,
    "rows": checked_rows,
}
_CLASSES: dict[str, Any] = {
    "builder": _known(graph_learning, GraphBuilder),
    "loss": _known(losses, Loss),
    "penalty": _known(penalties, Penalty),
    "privacy": _known(privacy, Bounds | Privacy | Spent),
}


def load(path: str | os.PathLike[str]) -> GTVRegressor | GTVClassifier:
    """Read a model that was written by its `save`.

    Nothing in the file is executed. Files of another format or version, damaged files and files
    that name unknown classes are refused.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    GTVRegressor or GTVClassifier
        The fitted estimator, as it was saved.

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
    path = as_path(path)
    if not os.path.isfile(path):  # False, too, for names that no file can have
        raise ValueError(f"No model file {str(path)!r}.")
    damaged = (
        f"{str(path)!r} must be a model written by nefele; it is damaged or another kind of file."
    )
    try:
        facts, arrays = read_record(path, FORMAT, VERSION)
        return _restore(facts["class"], facts, _Unpacker(arrays))
    except VersionError as error:
        raise ValueError(
            f"The model must have format version {VERSION}; {str(path)!r} has {error.found!r}. "
            "Load it with the version of nefele that wrote it."
        ) from None
    except UnknownError as error:
        raise ValueError(f"{str(path)!r} cannot be loaded: {error}.") from None
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read ({error.strerror}).") from None
    except MemoryError:
        raise
    except Exception:  # a file made on purpose may hold anything in place of a part
        raise ValueError(damaged) from None


def _restore(kind: str, facts: dict[str, Any], unpacker: _Unpacker) -> GTVRegressor | GTVClassifier:
    found = _ESTIMATORS.get(kind)
    if found is None:
        raise UnknownError(f"it holds a {kind!r}, which this version does not know")
    model = found(**{k: unpacker.unpack(v) for k, v in facts["params"].items()})
    for name, value in facts["fitted"].items():
        if name not in FITTED or hasattr(found, name):
            raise KeyError(name)
        setattr(model, name, unpacker.unpack(value))
    check_restored(model)
    return model
