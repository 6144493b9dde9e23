"""Whether the files of a finished run that people read are there, and as the run wrote them."""

from __future__ import annotations

from typing import Any

from nefele.runs.folder import RunFolder
from nefele.runs.results import table_texts

LOST, CHANGED = "lost", "not what the run wrote"


def state_of_tables(folder: RunFolder, found: dict[str, Any]) -> dict[str, str]:
    """What is wrong with each table of a run, made again from its arrays; empty if nothing."""
    return {name: _state(folder, name, text) for name, text in table_texts(found).items()}


def state_of_files(
    folder: RunFolder, facts: dict[str, Any], found: dict[str, Any]
) -> dict[str, str]:
    """The same of all files but those with a recorded hash; of report and pictures, if lost."""
    states = state_of_tables(folder, found)
    states["config.toml"] = "" if folder.file("config.toml").is_file() else LOST
    if not states["config.toml"]:
        try:
            folder.read_config()
        except ValueError:
            states["config.toml"] = CHANGED
    for name in ("report.html", *(f"pictures/{name}" for name in facts["pictures"])):
        states[name] = "" if folder.file(name).is_file() else LOST
    return states


def _state(folder: RunFolder, name: str, text: str) -> str:
    try:
        same = folder.file(name).read_bytes() == text.encode()
    except OSError:
        return LOST
    return "" if same else CHANGED
