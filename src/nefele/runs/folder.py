"""The folder of a run: nothing in it is ever half-written, and what is there is not lost."""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele.runs.config import RunConfig, read_config
from nefele.runs.wording import PICTURES

FORMAT = "nefele run"
FORMAT_VERSION = 1
DONE = ("done", "not converged")
NEXT = ".next"  # inside a run folder: the run that will replace it
FILES = (
    "config.toml",
    "run.json",
    "metrics.csv",
    "coef.csv",
    "model.nefele",
    "path.npz",
    "history.jsonl",
    "report.html",
    *(f"pictures/{name}" for name in PICTURES),
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

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a file as a whole."""
        self.write(name, lambda part: part.write_bytes(data))

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

    def read_config(self) -> RunConfig:
        """config.toml; a ValueError with the command of the run when it is lost."""
        if not self.file("config.toml").is_file():
            raise ValueError(
                f"The run in {str(self.path)!r} has lost its config.toml. {_advice(self)}"
            )
        return read_config(self.file("config.toml"))

    def check_files(self, *names: str) -> None:
        """A ValueError when one of these files of a finished run is lost."""
        lost = [name for name in names if not self.file(name).is_file()]
        if lost:
            raise ValueError(
                f"The run in {str(self.path)!r} is finished, but has lost {' and '.join(lost)}. "
                f"{_advice(self)}"
            )

    def finished_facts(self) -> dict[str, Any]:
        """run.json of a finished run; a ValueError when it is not finished."""
        facts = self.read_facts()
        if facts["status"] not in DONE:
            raise ValueError(
                f"The run in {str(self.path)!r} is not finished (status: {facts['status']}). Go on "
                f"with: nefele run {self.path}"
            )
        return facts

    def settle(self) -> RunFolder:
        """Put a finished run that was made in `NEXT` in the place of the earlier one.

        run.json goes first and comes last: whatever happens between, nothing looks finished that
        is not.
        """
        if self.path.name != NEXT:
            return self
        home = RunFolder(self.path.parent)
        home.clear_stages()
        for name in ("run.json", *FILES):
            home.file(name).unlink(missing_ok=True)
        for name in (*(name for name in FILES if name != "run.json"), "run.json"):
            if self.file(name).is_file():
                home.file(name).parent.mkdir(exist_ok=True)
                os.replace(self.file(name), home.file(name))
        shutil.rmtree(self.path, ignore_errors=True)
        return home

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


def _advice(folder: RunFolder) -> str:
    """How to make a run again whose files are lost."""
    try:
        words = shlex.split(folder.read_facts()["command"])
    except (ValueError, KeyError):
        return "Make it again with --force."
    return f"Make it again by: {shlex.join(words + ['--force'] * ('--force' not in words))}"


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


def now() -> str:
    """The time in ISO form."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    names = ("nefele", "numpy", "scipy", "numba", "scikit-learn", "polars")
    return {**{name: version(name) for name in names}, "python": platform.python_version()}
