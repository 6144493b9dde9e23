"""Which folder a run works in: a new one, one to go on with, or one beside what it replaces."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nefele._files import clear_parts, only_writer
from nefele.runs.config import RunConfig, read_config
from nefele.runs.folder import (
    BEGIN,
    DONE,
    FILES,
    FORMAT,
    FORMAT_VERSION,
    NEXT,
    STAGES,
    RunFolder,
    check_writable,
    file_hash,
    now,
    run_key,
    versions,
)
from nefele.runs.replacing import complete


@contextmanager
def opened(
    config: RunConfig,
    command: str,
    *,
    force: bool = False,
    resume: bool = False,
    ours: Sequence[str] = (),
) -> Iterator[RunFolder]:
    """The folder `config.out`, made or taken up, with this process as its only writer.

    It is refused when it holds something else, or when another process writes into it. With
    `force` another run is replaced: a finished one stays as it is until the new one is done, which
    is made in a folder inside it. Files that are none of nefele's stay. `ours` names files that
    may be in a new folder.
    """
    assert config.out is not None
    path = Path(config.out)
    check_writable(path)
    made = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    try:
        with only_writer(path):
            for place in (path, path / NEXT):
                complete(place, FILES)
                for part in (place, place / STAGES, place / "pictures"):
                    clear_parts(part)
            yield _chosen(RunFolder(path), config, command, force, resume, ours)
    finally:
        if made:
            with suppress(OSError):  # what was refused leaves nothing behind
                path.rmdir()


def _chosen(
    folder: RunFolder,
    config: RunConfig,
    command: str,
    force: bool,
    resume: bool,
    ours: Sequence[str],
) -> RunFolder:
    """Where the run works: in the folder, or inside it."""
    facts = _earlier(folder)
    if facts is None:
        if resume:
            raise ValueError(f"Nothing to resume: there is no run in {config.out!r}.")
        found = folder.path.iterdir()
        others = [p.name for p in found if not p.name.startswith(".") and p.name not in ours]
        if others and not force:
            raise ValueError(
                f"--out must be a new or empty folder, or a run; {config.out!r} holds "
                f"{', '.join(sorted(others)[:3])}. Name another folder, or use --force to write "
                "into it."
            )
        return _replace(folder, config, command)
    why = _differs(folder, config, facts)
    if why and not force:
        raise ValueError(
            f"{config.out!r} holds another run: {why}. Name another folder by --out, or use "
            "--force to replace it."
        )
    if why or force:
        return _replace(folder, config, command)
    return RunFolder(folder.path, facts["key"])


def _replace(folder: RunFolder, config: RunConfig, command: str) -> RunFolder:
    """A fresh run, beside the results that are there; one that was stopped is taken up."""
    shown = any(folder.file(name).is_file() for name in FILES)
    facts = _earlier(folder)
    finished = shown and (facts is None or facts["status"] in DONE)
    place = RunFolder(folder.path / NEXT) if finished else folder
    stopped = _earlier(place)
    if stopped is None or _differs(place, config, stopped):
        return _begin(place, config, command)
    place = RunFolder(place.path, stopped["key"])
    return place.settle() if stopped["status"] in DONE else place


def _earlier(folder: RunFolder) -> dict[str, Any] | None:
    try:
        return folder.read_facts()
    except ValueError:
        return None


def _differs(folder: RunFolder, config: RunConfig, facts: dict[str, Any]) -> str:
    """In what an earlier run in the folder differs from the one asked for; empty if in nothing."""
    try:
        old = read_config(folder.file("config.toml"))
    except ValueError:
        return "its config.toml is lost or damaged"
    if run_key(old, facts) != facts["key"]:
        return "its config.toml has been changed since then"
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


def input_files(config: RunConfig) -> dict[str, dict[str, str]]:
    """The files that a run reads, with their hashes."""
    files = {"data": config.data, "graph": config.edge_file, "places": config.places}
    return {
        name: {"path": path, "sha256": file_hash(path)}
        for name, path in files.items()
        if path is not None and Path(path).is_file()
    }


def check_inputs(facts: dict[str, Any], why: str) -> None:
    """A ValueError unless the files that a run read are there as it read them.

    `why` says what they are needed for.
    """
    for name, known in facts["files"].items():
        try:
            same = file_hash(known["path"]) == known["sha256"]
        except OSError:
            same = False
        if not same:
            raise ValueError(
                f"The {name} file must be there as the run read it; {known['path']!r} is lost or "
                f"has changed. Put it back: {why}."
            )


def _begin(folder: RunFolder, config: RunConfig, command: str) -> RunFolder:
    """A fresh run: the configuration is there and old results are gone, both or neither."""
    for leftover in (BEGIN, NEXT, STAGES):
        shutil.rmtree(folder.path / leftover, ignore_errors=True)
    staged = RunFolder(folder.path / BEGIN)
    staged.write_text("config.toml", replace(config, out=None).to_toml())
    facts = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "status": "running",
        "command": command,
        "created": now(),
        "versions": versions(),
        "seed": config.seed,
        "files": input_files(config),
    }
    if config.epsilon is not None:
        facts["salt"] = secrets.token_hex(16)
    facts["key"] = run_key(config, facts)
    staged.write_facts(facts)
    staged.move_to(folder)
    return RunFolder(folder.path, str(facts["key"]))
