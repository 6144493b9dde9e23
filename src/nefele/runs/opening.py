"""Which folder a run works in: a new one, one to go on with, or one beside what it replaces."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nefele.runs.config import RunConfig
from nefele.runs.folder import (
    DONE,
    FILES,
    FORMAT,
    FORMAT_VERSION,
    NEXT,
    RunFolder,
    check_writable,
    now,
    versions,
)
from nefele.runs.inputs import file_hash


def open_folder(
    config: RunConfig,
    command: str,
    *,
    force: bool = False,
    resume: bool = False,
    ours: Sequence[str] = (),
) -> RunFolder:
    """The folder `config.out`, made or taken up; refused when it holds something else.

    With `force` another run is replaced: a finished one stays as it is until the new one is done,
    which is made in a folder inside it. Files that are none of nefele's stay. `ours` names files
    that may be in a new folder.
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
        return _replace(folder, config, command)
    why = _differs(folder, config, facts)
    if why and not force:
        raise ValueError(
            f"{config.out!r} holds another run: {why}. Name another folder by --out, or use "
            "--force to replace it."
        )
    return _replace(folder, config, command) if why or force else folder


def _replace(folder: RunFolder, config: RunConfig, command: str) -> RunFolder:
    """A fresh run, beside the results that are there; one that was stopped is taken up."""
    shown = any(folder.file(name).is_file() for name in FILES)
    facts = _earlier(folder)
    finished = shown and (facts is None or facts["status"] in DONE)
    place = RunFolder(folder.path / NEXT) if finished else folder
    stopped = _earlier(place)
    if stopped is None or stopped["status"] in DONE or _differs(place, config, stopped):
        return _begin(place, config, command)
    return place


def _earlier(folder: RunFolder) -> dict[str, Any] | None:
    try:
        return folder.read_facts()
    except ValueError:
        return None


def _differs(folder: RunFolder, config: RunConfig, facts: dict[str, Any]) -> str:
    """In what an earlier run in the folder differs from the one asked for; empty if in nothing."""
    try:
        old = folder.read_config()
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
    shutil.rmtree(folder.path / NEXT, ignore_errors=True)
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
