"""Finished settings on disk: small JSON files, each written as a whole, none computed twice."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nefele._files import write_whole
from nefele.experiments.base import Cell, Inputs
from nefele.experiments.digits import mnist_files
from nefele.experiments.pfl_data import COUNTS, FASHION

KEPT = "results"
_MARK = "nefele-reproduce.txt"
_ABOUT = "Written by nefele reproduce; results/ holds finished settings, which are not repeated.\n"


class Store:
    """A folder with the finished settings in results/ and the tables and figures beside it.

    Parameters
    ----------
    path : Path
        New, empty, or of an earlier run.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(Path(folder, "out"))
    ...     store.keep("fig2-0.json", {"mse": 0.5})
    ...     store.kept("fig2-0.json"), store.kept("fig2-1.json")
    ({'mse': 0.5}, None)
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_dir():
            raise ValueError(f"--out must be a folder; {str(path)!r} is a file. Name another one.")
        if path.is_dir() and any(path.iterdir()) and not (path / _MARK).exists():
            raise ValueError(
                f"--out must be a new or empty folder, or one of nefele reproduce; {str(path)!r} "
                "holds something else. Name another folder."
            )
        (path / KEPT).mkdir(parents=True, exist_ok=True)
        self.path = path
        self.write(_MARK, _ABOUT)

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file beside its place, then put it there."""
        target = self.path / name
        try:
            data = text.encode() if isinstance(text, str) else text
            write_whole(target, lambda part: part.write_bytes(data))
        except OSError as error:  # the file asked for, not the one beside it
            raise OSError(error.errno, error.strerror, str(target)) from None
        return target

    def keep(self, name: str, values: Cell) -> None:
        """Keep what a setting gave."""
        self.write(f"{KEPT}/{name}", json.dumps({"sha256": _digest(values), "values": values}))

    def kept(self, name: str) -> Cell | None:
        """What a setting gave before; None when nothing is there, or not as it was written."""
        try:
            stored = json.loads((self.path / KEPT / name).read_text(encoding="utf-8"))
            values: Cell = stored["values"]
            whole = isinstance(values, dict) and stored["sha256"] == _digest(values)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return values if whole else None


def cell_file(name: str, setting: Cell, inputs: str) -> str:
    """File of a setting: the name and a hash of name, setting, data and version of nefele.

    Examples
    --------
    >>> a, b = cell_file("fig2", {"seed": 0}, ""), cell_file("fig2", {"seed": 1}, "")
    >>> a.startswith("fig2-"), a == b
    (True, False)
    """
    key = json.dumps([name, setting, inputs, version("nefele")], sort_keys=True)
    return f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def inputs_key(needs: str, inputs: Inputs) -> str:
    """What stands for the data in the hash: the content of the files, or the kind of digits.

    Examples
    --------
    >>> inputs_key("", Inputs())
    ''
    """
    if needs == "weather" and inputs.weather is not None:
        return _content(inputs.weather)
    if needs == "digits" and inputs.mnist is not None:
        return " ".join(_content(file) for file in mnist_files(inputs.mnist))
    if needs == "digits":
        return "openml.org, mnist_784" if inputs.fetch else "digits"
    if needs == "images" and inputs.images is not None:
        return " ".join(_content(inputs.images / name) for name in (COUNTS, FASHION))
    return ""


def _content(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _digest(values: Cell) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def plain(value: Any) -> Any:
    """Arrays and NumPy numbers as lists and numbers that JSON can hold.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": np.arange(2), "b": np.float64(1.5)})
    {'a': [0, 1], 'b': 1.5}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value
