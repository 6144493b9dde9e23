"""The file of a budget: releases in a chain of hashes, each on the disk before it is made.

Beside the ledger lies its head, the number and the hash of the last entry. A ledger that was
replaced by an older copy ends before its head, and is refused; one that is ahead of its head was
interrupted between the two writes, and counts as it is.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nefele._files import one_at_a_time, write_whole

FORMAT, VERSION = "nefele budget", 1
_HEAD = ".head"


class LedgerError(ValueError):
    """The file of a budget is damaged, or older than what is known of it."""


def head_of(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """What tells this state of a ledger from an earlier one."""
    return {"id": entries[0]["id"], "count": len(entries) - 1, "hash": _chain(entries)[-1]}


def opening(facts: dict[str, Any]) -> dict[str, Any]:
    """The first entry of a new ledger."""
    return {"format": FORMAT, "version": VERSION, "id": secrets.token_hex(16), **facts}


def is_after(entries: list[dict[str, Any]], head: dict[str, Any]) -> bool:
    """Whether a ledger holds all that it held when it had this head."""
    hashes = _chain(entries)
    there = head.get("count")
    return (
        entries[0]["id"] == head.get("id")
        and isinstance(there, int)
        and 0 <= there < len(hashes)
        and hashes[there] == head.get("hash")
    )


class Ledger:
    """Entries in a file; `changing` gives them to one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._head = path.with_name(path.name + _HEAD)

    @contextmanager
    def changing(self) -> Iterator[list[dict[str, Any]]]:
        """The entries, of which what is appended is on the disk afterwards; empty: none yet."""
        with one_at_a_time(self.path):
            entries = self.read()
            before = len(entries)
            yield entries
            if len(entries) > before:
                self._write(entries)

    def read(self) -> list[dict[str, Any]]:
        """All entries, checked; none where there is no file yet."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            if self._head.exists():
                raise LedgerError(
                    f"The budget {str(self.path)!r} must be there: {str(self._head)!r} says that "
                    "it was. Bring back the newest copy; what was spent cannot be forgotten."
                ) from None
            return []
        entries = self._parsed(text)
        self._compare(entries)
        return entries

    def _parsed(self, text: str) -> list[dict[str, Any]]:
        damaged = LedgerError(
            f"{str(self.path)!r} must be a budget as nefele wrote it; it is damaged, changed, or "
            "another kind of file. Bring back the newest copy."
        )
        try:
            lines = [json.loads(line) for line in text.splitlines()]
            hashes = [line.pop("hash") for line in lines]
            known = lines[0]["format"] == FORMAT and lines[0]["version"] == VERSION
        except (ValueError, KeyError, IndexError, AttributeError, TypeError):
            raise damaged from None
        if not known or hashes != _chain(lines):
            raise damaged
        return lines

    def _compare(self, entries: list[dict[str, Any]]) -> None:
        try:
            head = json.loads(self._head.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if len(entries) == 1:  # interrupted while it was made
                return
            head = {}
        except ValueError:
            head = {}
        if not is_after(entries, head):
            raise LedgerError(
                f"The budget {str(self.path)!r} must hold all that was ever spent; it is older "
                f"than {str(self._head)!r} says, or that file is gone. Bring back the newest copy "
                "of both."
            )

    def _write(self, entries: list[dict[str, Any]]) -> None:
        lines = [
            json.dumps({**entry, "hash": found})
            for entry, found in zip(entries, _chain(entries), strict=True)
        ]
        _write_text(self.path, "\n".join(lines) + "\n")
        _write_text(self._head, json.dumps(head_of(entries)) + "\n")


def _chain(entries: list[dict[str, Any]]) -> list[str]:
    """The hash of each entry and of all before it."""
    found, last = [], ""
    for entry in entries:
        text = json.dumps(entry, sort_keys=True)
        last = hashlib.sha256(f"{last}\n{text}".encode()).hexdigest()
        found.append(last)
    return found


def _write_text(path: Path, text: str) -> None:
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))
