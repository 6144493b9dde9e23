"""TOML files of sites: read as bytes, with errors that name the place and the fix."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nefele._words import short

_LARGEST = 2**26  # bytes: a federation of a million edges fits, a wrong file is not swallowed


def read_bytes(path: Path, advice: str = "") -> bytes:
    """The bytes of a file; a ValueError when there is none."""
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError(f"{str(path)!r} must have at most 64 MB; it has more. Is it this one?")
        return path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"No file {str(path)!r}.{' ' + advice if advice else ''}") from None
    except OSError as error:
        raise ValueError(f"{str(path)!r} cannot be read ({error.strerror}).") from None


def parse_toml(content: bytes, where: str) -> dict[str, Any]:
    """The values of a TOML file; a ValueError when it is of another kind."""
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError(f"{where} must be TOML in UTF-8; it is another kind.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"{where} must be TOML; {error}.") from None


def check_keys(
    values: Any, names: Iterable[str], where: str, needed: Iterable[str] = ()
) -> Mapping[str, Any]:
    """A table with known keys only, and with those that are needed."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{where} must be a table, key = value; got {short(values)}.")
    names = list(names)
    for key in values:
        if key not in names:
            close = difflib.get_close_matches(key, names, n=1)
            hint = f' Did you mean "{close[0]}"?' if close else ""
            raise ValueError(f'No key "{key}" in {where}.{hint} Known: {", ".join(names)}.')
    for key in needed:
        if key not in values:
            raise ValueError(f'{where} must have the key "{key}". Add a line {key} = ...')
    return values


def check_text(value: Any, name: str, where: str) -> str:
    """Some text that is not blank."""
    if not isinstance(value, str):
        raise ValueError(
            f'{name} must be text; got {short(value)} in {where}. Write {name} = "{value}".'
        )
    if not value.strip():
        raise ValueError(f"{name} must not be blank; it is in {where}. Write a name.")
    return value


def check_texts(value: Any, name: str, where: str) -> tuple[str, ...]:
    """A list of different texts."""
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError(f'{name} must be a list of texts, ["..."]; got {short(value)} in {where}.')
    for item in value:
        check_text(item, name, where)
    twice = first_twice(value)
    if twice is not None:
        raise ValueError(f"{name} must be distinct; {twice!r} stands there twice in {where}.")
    return tuple(value)


def check_tables(value: Any, name: str, where: str) -> list[Any]:
    """A list of tables, [[name]]."""
    if not isinstance(value, list):
        raise ValueError(
            f"{name} must be a list of tables, [[{name}]]; got {short(value)} in {where}."
        )
    return value


def first_twice(items: Iterable[Any]) -> Any:
    """The first item that was there before, None when there is none."""
    seen: set[Any] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None
