"""Names of files: they enter texts in UTF-8, such as config.toml and the report."""

from __future__ import annotations

from pathlib import Path

from nefele._words import visible


def check_file_name(path: Path | str) -> None:
    r"""A ValueError when the name of a file is not UTF-8, or has a character NUL.

    Examples
    --------
    >>> check_file_name("rows\udcff.csv")
    Traceback (most recent call last):
    ValueError: The name of a file must be UTF-8 text; got 'rows\xff.csv'. Rename it.
    """
    text = str(path)
    if "\0" in text or text != text.encode("utf-8", "ignore").decode("utf-8"):
        raise ValueError(
            f"The name of a file must be UTF-8 text; got '{visible(text)}'. Rename it."
        )


def as_text(command: str) -> str:
    r"""A command line with escapes for bytes that are no UTF-8, so that it can be kept in a file.

    Examples
    --------
    >>> print(as_text("nefele run rows\udcff.toml"))
    nefele run rows\xff.toml
    """
    return command.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
