"""The folder of a run: nothing in it is ever half-written, and what is there is not lost."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele.runs.config import RunConfig, read_config
from nefele.runs.inputs import file_hash

FORMAT = "nefele run"
FORMAT_VERSION = 1
DONE = ("done", "not converged")
FILES = (
    "config.toml",
    "run.json",
    "metrics.csv",
    "coef.csv",
    "model.nefele",
    "path.npz",
    "history.jsonl",
    "report.html",
)


class RunFolder:
    """A run on disk: its configuration, its finished stages, its results.

    Examples
    --------
    >>> folder = RunFolder(Path("runs/first"))
    >>> folder.stage_file("fold-0").name
    'fold-0.npz'
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, name: str) -> Path:
        """Place of a file of the run."""
        return self.path / name

    def stage_file(self, name: str) -> Path:
        """Place of a finished stage."""
        return self.path / "stages" / f"{name}.npz"

    def write(self, name: str, fill: Callable[[Path], object]) -> None:
        """Let `fill` write a file beside the real one, then put it in its place."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=".part"
        )
        os.close(handle)
        try:
            fill(Path(part))
            os.chmod(part, 0o666 & ~_umask())
            os.replace(part, target)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise

    def write_text(self, name: str, text: str) -> None:
        """Write a text file as a whole."""
        self.write(name, lambda part: part.write_text(text, encoding="utf-8", newline="\n"))

    def write_facts(self, facts: dict[str, Any]) -> None:
        """Write run.json."""
        self.write_text("run.json", json.dumps(facts, indent=2, allow_nan=False) + "\n")

    def read_facts(self) -> dict[str, Any]:
        """Read run.json; a ValueError when this is no run."""
        where = str(self.path)
        if not self.path.is_dir():
            raise ValueError(f"No run folder {where!r}. Make one by nefele fit --out {where}.")
        try:
            facts = json.loads(self.file("run.json").read_text(encoding="utf-8"))
            kind, number = facts["format"], facts["format_version"]
        except (OSError, ValueError, KeyError, TypeError):
            raise ValueError(
                f"{where!r} must be a run folder of nefele; it has no readable run.json."
            ) from None
        if kind != FORMAT or number != FORMAT_VERSION:
            raise ValueError(
                f"{where!r} must be a run of format {FORMAT_VERSION}; got {kind!r} {number!r}. Use "
                "the version of nefele that wrote it."
            )
        return dict(facts)

    def finished_facts(self) -> dict[str, Any]:
        """run.json of a finished run; a ValueError when it is not finished."""
        facts = self.read_facts()
        if facts["status"] not in DONE:
            raise ValueError(
                f"The run in {str(self.path)!r} is not finished (status: {facts['status']}). Go on "
                f"with: nefele run {self.path}"
            )
        return facts

    def save_stage(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Keep a finished stage."""
        self.write(f"stages/{name}.npz", lambda part: _save_arrays(part, arrays))

    def load_stage(self, name: str) -> dict[str, NDArray[Any]] | None:
        """A stage that was finished before, None if there is none that can be read."""
        try:
            return load_arrays(self.stage_file(name))
        except ValueError:
            return None

    def clear_stages(self) -> None:
        """Forget the stages."""
        shutil.rmtree(self.path / "stages", ignore_errors=True)


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an npz file; a ValueError when it cannot be read."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except Exception as error:  # NumPy and zipfile raise many kinds for damaged files
        raise ValueError(
            f"{str(path)!r} is missing or damaged ({error}). Repeat the run with --force."
        ) from None


def _save_arrays(part: Path, arrays: dict[str, NDArray[Any]]) -> None:
    with part.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
        file.flush()
        os.fsync(file.fileno())


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def open_folder(
    config: RunConfig,
    command: str,
    *,
    force: bool = False,
    resume: bool = False,
    ours: Sequence[str] = (),
) -> RunFolder:
    """The folder `config.out`, made or taken up; refused when it holds something else.

    With `force` the results of another run are replaced; files that are none of nefele's stay.
    `ours` names files that may be in a new folder.
    """
    assert config.out is not None
    folder = RunFolder(Path(config.out))
    check_writable(folder.path)
    facts = _earlier(folder)
    if facts is None:
        if resume:
            raise ValueError(f"Nothing to resume: there is no run in {config.out!r}.")
        found = folder.path.iterdir() if folder.path.exists() else ()
        others = [p.name for p in found if not p.name.startswith(".") and p.name not in ours]
        if others and not force:
            raise ValueError(
                f"--out must be a new or empty folder, or a run; {config.out!r} holds "
                f"{', '.join(sorted(others)[:3])}. Name another folder, or use --force to write "
                "into it."
            )
        return _begin(folder, config, command)
    why = _differs(folder, config, facts)
    if why and not force:
        raise ValueError(
            f"{config.out!r} holds another run: {why}. Name another folder by --out, or use "
            "--force to replace it."
        )
    return _begin(folder, config, command) if why or force else folder


def check_writable(path: Path) -> None:
    """A ValueError when the folder cannot be made or written into; nothing is made here."""
    try:
        place = next(p for p in (path, *path.absolute().parents) if p.exists())
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise ValueError(
            f"--out must be a folder that can be written; {str(path)!r} cannot "
            f"({error.strerror}). Name another folder."
        ) from None


def _earlier(folder: RunFolder) -> dict[str, Any] | None:
    try:
        return folder.read_facts()
    except ValueError:
        return None


def _differs(folder: RunFolder, config: RunConfig, facts: dict[str, Any]) -> str:
    """In what an earlier run in the folder differs from the one asked for; empty if in nothing."""
    try:
        old = read_config(folder.file("config.toml"))
    except ValueError as error:
        return str(error).rstrip(".")
    if replace(old, out=None) != replace(config, out=None):
        for name in RunConfig.__dataclass_fields__:
            a, b = getattr(old, name), getattr(config, name)
            if a != b and name != "out":
                return f"there {name} is {_shown(a)}, here {_shown(b)}"
    if facts["versions"]["nefele"] != version("nefele"):
        return f"it was begun by nefele {facts['versions']['nefele']}, this is {version('nefele')}"
    for name, known in facts["files"].items():
        if file_hash(known["path"]) != known["sha256"]:
            return f"the {name} file has changed since then"
    return ""


def _shown(value: Any) -> str:
    return "not set" if value is None else repr(value)


def _begin(folder: RunFolder, config: RunConfig, command: str) -> RunFolder:
    """A fresh run: old results go, the configuration is written."""
    files = {"data": config.data, "graph": config.edge_file}
    hashed = {
        name: {"path": path, "sha256": file_hash(path)}
        for name, path in files.items()
        if path is not None
    }
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.clear_stages()
    for name in FILES:
        folder.file(name).unlink(missing_ok=True)
    folder.write_text("config.toml", replace(config, out=None).to_toml())
    folder.write_facts(
        {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "status": "running",
            "command": command,
            "created": now(),
            "versions": versions(),
            "seed": config.seed,
            "files": hashed,
        }
    )
    return folder


def now() -> str:
    """The time in ISO form."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    names = ("nefele", "numpy", "scipy", "numba", "scikit-learn", "polars")
    return {**{name: version(name) for name in names}, "python": platform.python_version()}
