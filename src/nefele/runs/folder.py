"""The folder of a run: nothing in it is ever half-written, and what is there is not lost."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from nefele._files import LockedError, only_writer, write_whole
from nefele._records import read_record, write_record
from nefele.runs.config import RunConfig, read_config
from nefele.runs.replacing import READY, complete, replace_files
from nefele.runs.wording import PICTURES

FORMAT = "nefele run"
FORMAT_VERSION = 2
_STAGE, _PATH = "nefele stage", "nefele path"
_PATIENCE = 30.0  # seconds to wait for a process that puts files in their places
DONE = ("done", "not converged")
STAGES = ".stages"  # inside a run folder: finished stages of an unfinished run
RESULTS = ("model.nefele", "path.npz")  # what cannot be made from anything else
NEXT = ".next"  # inside a run folder: the run that will replace it
BEGIN = ".begin"  # the first files of a run, before they are in their places
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

    `key` is what the run depends on, as a hash: stages of another one do not count.

    Examples
    --------
    >>> folder = RunFolder(Path("runs/first"))
    >>> folder.stage_file("fold-0").name
    'fold-0.npz'
    """

    def __init__(self, path: Path, key: str = "") -> None:
        self.path, self.key = path, key

    def file(self, name: str) -> Path:
        """Place of a file of the run."""
        return self.path / name

    def stage_file(self, name: str) -> Path:
        """Place of a finished stage."""
        return self.path / STAGES / f"{name}.npz"

    def write(self, name: str, fill: Callable[[Path], object]) -> None:
        """Let `fill` write a file of the run, which is there as a whole or not at all."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, fill)

    def write_text(self, name: str, text: str) -> None:
        """Write a text file as a whole."""
        self.write(name, lambda part: part.write_text(text, encoding="utf-8", newline="\n"))

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a file as a whole."""
        self.write(name, lambda part: part.write_bytes(data))

    def write_facts(self, facts: dict[str, Any]) -> None:
        """Write run.json, with a hash of all that it says."""
        facts = {**facts, "sha256": _digest(facts)}
        self.write_text("run.json", json.dumps(facts, indent=2, allow_nan=False) + "\n")

    def read_facts(self) -> dict[str, Any]:
        """Read run.json; a ValueError when this is no run."""
        where = str(self.path)
        if self.path.is_file():
            raise ValueError(f"A run is a folder; {where!r} is a file. Name the folder of the run.")
        if not self.path.is_dir():
            raise ValueError(f"No run folder {where!r}. Make one by nefele fit --out {where}.")
        self._settled()
        try:
            facts = json.loads(self.file("run.json").read_text(encoding="utf-8"))
            kind, number = facts["format"], facts["format_version"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise ValueError(
                f"{where!r} must be a run folder of nefele; it has no readable run.json."
            ) from None
        if kind != FORMAT or number != FORMAT_VERSION:
            raise ValueError(
                f"{where!r} must be a run of format {FORMAT_VERSION}; got {kind!r} {number!r}. Use "
                "the version of nefele that wrote it."
            )
        if facts.pop("sha256", "") != _digest(facts):
            raise ValueError(
                f"{str(self.file('run.json'))!r} must be as nefele wrote it; it was changed by "
                "hand, or is damaged. Restore it, or make the run again with --force."
            )
        return dict(facts)

    def read_config(self) -> RunConfig:
        """config.toml as the run has it; a ValueError when it is lost, or has been changed."""
        file, facts = self.file("config.toml"), self.read_facts()
        if not file.is_file():
            raise ValueError(
                f"The run in {str(self.path)!r} has lost its config.toml. {_advice(self)}"
            )
        config = read_config(file)
        if run_key(config, facts) != facts["key"]:
            raise ValueError(
                f"{str(file)!r} must be as the run was made; it has been changed. Restore it, or "
                f"make a run of it: nefele run {shlex.quote(str(file))} --out another-folder"
            )
        return config

    def check_results(self, facts: dict[str, Any]) -> None:
        """A ValueError when the results of a finished run are lost, or those of another run."""
        lost = [name for name in RESULTS if not self.file(name).is_file()]
        if lost:
            raise ValueError(
                f"The run in {str(self.path)!r} is finished, but has lost {' and '.join(lost)}. "
                f"{_advice(self)}"
            )
        for name in RESULTS:
            if file_hash(self.file(name)) != facts["results"][name]:
                raise ValueError(
                    f"{str(self.file(name))!r} must be what the run made; it has been changed, or "
                    f"is of another run. Restore it. {_advice(self)}"
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

    def _settled(self) -> None:
        """Finish a replacement that a crash left, or wait for the process that is at it."""
        end = time.monotonic() + _PATIENCE
        while (self.path / READY).exists():
            try:
                with only_writer(self.path):
                    complete(self.path, FILES)
            except LockedError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def check_steady(self, facts: dict[str, Any]) -> None:
        """A ValueError when the run has been replaced since these facts of it were read."""
        if self.read_facts() != facts:
            raise ValueError(
                f"The run in {str(self.path)!r} was replaced while it was being read. Try again."
            )

    def settle(self) -> RunFolder:
        """Put a finished run that was made in `NEXT` in the place of the earlier one."""
        if self.path.name != NEXT:
            return self
        home = RunFolder(self.path.parent, self.key)
        home.clear_stages()
        self.move_to(home)
        return home

    def move_to(self, home: RunFolder) -> None:
        """Put the files of this run in the place of those of another one, by one rename."""
        replace_files(home.path, self.path, FILES)

    def abandon(self) -> bool:
        """Remove what a run that was refused has begun; False when it has finished a stage."""
        if any((self.path / STAGES).glob("*")):
            return False
        for name in ("config.toml", "run.json"):
            self.file(name).unlink(missing_ok=True)
        for place in (self.path / STAGES, *([self.path] if self.path.name == NEXT else [])):
            with suppress(OSError):  # never made, or files of others are in it
                place.rmdir()
        return True

    def save_stage(self, name: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Keep a finished stage."""
        self.stage_file(name).parent.mkdir(parents=True, exist_ok=True)
        write_record(self.stage_file(name), _STAGE, FORMAT_VERSION, {"run": self.key}, arrays)

    def load_stage(self, name: str) -> dict[str, NDArray[Any]] | None:
        """A stage of this run that was finished before; None if there is none, or no whole one."""
        try:
            facts, arrays = read_record(self.stage_file(name), _STAGE, FORMAT_VERSION)
        except (ValueError, OSError):
            return None
        return arrays if facts.get("run") == self.key else None

    def clear_stages(self) -> None:
        """Forget the stages."""
        shutil.rmtree(self.path / STAGES, ignore_errors=True)

    def save_path(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Write path.npz."""
        write_record(self.file("path.npz"), _PATH, FORMAT_VERSION, {"run": self.key}, arrays)

    def load_path(self) -> dict[str, NDArray[Any]]:
        """The arrays of path.npz; a ValueError when it cannot be read."""
        path = self.file("path.npz")
        try:
            return read_record(path, _PATH, FORMAT_VERSION)[1]
        except (ValueError, OSError):
            raise ValueError(
                f"{str(path)!r} is missing or damaged. Repeat the run with --force."
            ) from None


def file_hash(path: Path | str) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run_key(config: RunConfig, facts: dict[str, Any]) -> str:
    """A hash of all that the numbers of a run depend on; `facts` has its files and versions.

    The key is in files that are given away, and a hash of rows tells who guesses them that they
    are right: private runs have a `salt`, which is in run.json only.
    """
    hashes = {name: known["sha256"] for name, known in facts["files"].items()}
    by = facts["versions"]["nefele"], facts["format_version"]
    told = [replace(config, out=None).to_toml(), hashes, *by, *filter(None, [facts.get("salt")])]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _digest(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _advice(folder: RunFolder) -> str:
    """How to make a run again whose files are lost."""
    try:
        words = shlex.split(folder.read_facts()["command"])
    except (ValueError, KeyError):
        return "Make it again with --force."
    return f"Make it again by: {shlex.join(words + ['--force'] * ('--force' not in words))}"


def check_not_ours(run: Path, path: Path, option: str) -> None:
    """A ValueError when a file to write is one of a run's own."""
    if path.resolve() in {(run / name).resolve() for name in FILES}:
        raise ValueError(
            f"{option} must not be a file of the run itself; {str(path)!r} is one, and would be "
            "lost. Name another file."
        )


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
