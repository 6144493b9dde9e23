"""Folders of parts: on a disk that all workers share, or in an object store that polars knows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nefele._files import write_whole


def place(folder: str, name: str) -> str:
    """A path in a folder, which may be one of an object store."""
    return f"{folder.rstrip('/')}/{name}"


def is_stored(folder: str) -> bool:
    """Whether a folder is one of an object store, such as s3://bucket/parts."""
    return "://" in folder


def as_folder(folder: Any, name: str) -> str:
    """The folder as all workers find it, wherever they were started."""
    if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
        raise ValueError(f"{name} must be the path of a folder; got {folder!r}.")
    text = os.fspath(folder)
    return text if is_stored(text) else str(Path(text).resolve())


def new_folder(out: Any, last: str) -> str:
    """A folder that is new or empty, as all workers find it; `last` is the file written last."""
    folder = as_folder(out, "out")
    if is_stored(folder):
        if stored_text(folder, last) is not None:
            raise ValueError(
                f"out must be a new folder; {folder!r} has a file {last}.parquet. Name another one."
            )
        return folder
    path = Path(folder)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(
            f"out must be a new or empty folder; {folder!r} is not. Name another one, or remove "
            "what is there."
        )
    above = next(parent for parent in (path, *path.parents) if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ValueError(
            f"out must be a folder that can be written; {str(above)!r} cannot. Name another one."
        )
    return folder


@contextmanager
def made_folder(folder: str) -> Iterator[None]:
    """A new folder, which is gone again after an error, if it is empty.

    An object store has no folders to make.
    """
    if is_stored(folder):
        yield
        return
    path = Path(folder)
    new = [parent for parent in (path, *path.parents) if not parent.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"out must be a folder that can be made; {folder!r} cannot ({error.strerror}). Name "
            "another one."
        ) from None
    try:
        yield
    except BaseException:  # Ctrl-C as well
        with suppress(OSError):  # somebody else's file is in it
            for one in new:
                one.rmdir()
        raise


@contextmanager
def all_parts(folder: str) -> Iterator[None]:
    """The files of all parts, or after an error of none; in an object store they stay."""
    try:
        yield
    except BaseException:
        if not is_stored(folder):
            for path in Path(folder).glob("part-*.parquet"):
                path.unlink(missing_ok=True)
        raise


def write_facts(folder: str, name: str, facts: dict[str, Any]) -> None:
    """Write facts as a JSON file, or in an object store as one cell of a Parquet file."""
    text = json.dumps(facts, indent=1, allow_nan=False)
    if is_stored(folder):
        import polars as pl

        pl.DataFrame({name: [text]}).write_parquet(place(folder, f"{name}.parquet"))
        return
    write_whole(Path(folder) / f"{name}.json", lambda path: path.write_text(text, encoding="utf-8"))


def stored_text(folder: str, name: str) -> str | None:
    """The one cell of such a Parquet file; None where there is none."""
    import polars as pl

    try:
        return str(pl.read_parquet(place(folder, f"{name}.parquet"))[name][0])
    except (OSError, pl.exceptions.PolarsError, IndexError):
        return None
