"""Files that are whole, and files that only their owner reads."""

from __future__ import annotations

import os
from pathlib import Path

from nefele._files import sync_folder, write_whole


def write(path: Path, content: bytes) -> None:
    """Write a file as a whole, or not at all."""
    write_whole(path, lambda part: part.write_bytes(content))


def write_secret(path: Path, content: bytes) -> None:
    """A file that only its owner reads from the first moment on, and that replaces none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ValueError(f"{str(path)!r} is there already, and keys are not replaced.") from None
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
