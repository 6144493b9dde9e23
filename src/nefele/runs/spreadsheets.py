"""CSV files that are safe to open in a spreadsheet: no text in them is taken for a formula.

A text that would be one gets an apostrophe in front, and so does a text that looks like a guarded
one; taking off one apostrophe gives every text back. Numbers stay numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_FORMULA = "^'*(?:[\t\r\n]|\\s*[=+\\-@\uff1d\uff0b\uff0d\uff20])"  # the last four are wide letters
_NUMBER = r"(?i)^'*\s*[+-]?(?:[0-9.,]*[0-9][0-9.,]*(?:e[+-]?[0-9]+)?|inf|infinity|nan)\s*$"


def write_csv(frame: Any, path: Path | None = None) -> str | None:
    """Write a table as CSV, guarded; return the text without a path."""
    import polars as pl

    for name, kind in frame.schema.items():
        if "\n" in name or "\r" in name:
            raise ValueError(
                f"CSV must have names of columns without line breaks; got {name!r}. Write a file "
                "that ends in .parquet, or rename the column."
            )
        if kind.is_nested() or kind in (pl.Binary, pl.Object):
            raise ValueError(
                f'CSV must have one text or number in each cell; column "{name}" holds {kind}. '
                "Write a file that ends in .parquet, or drop the column."
            )
    text: str | None = guarded(frame).write_csv(path)
    return text


def guarded(frame: Any) -> Any:
    """The table with an apostrophe in front of formulas, in text and in names of columns.

    Examples
    --------
    >>> import polars as pl
    >>> guarded(pl.DataFrame({"id": ["=1+1", "oulu", "-5"]}))["id"].to_list()
    ["'=1+1", 'oulu', '-5']
    """
    import polars as pl

    found = frame.with_columns(_guard(pl.col(pl.String)))
    return found.rename(_renamed(frame.columns, _guard))


def unguarded(frame: Any) -> Any:
    """The table without the apostrophes of `guarded`.

    Examples
    --------
    >>> import polars as pl
    >>> unguarded(pl.DataFrame({"id": ["'=1+1", "'quoted'", "'-5"]}))["id"].to_list()
    ['=1+1', "'quoted'", "'-5"]
    """
    import polars as pl

    marked = frame.select(pl.col(pl.String).str.starts_with("'").any())
    names = [name for name in marked.columns if marked[name][0]]
    new = _renamed(frame.columns, _unguard)
    found = frame.with_columns(_unguard(pl.col(names))) if names else frame
    return found.rename(new) if new else found


def unguarded_names(names: list[str]) -> list[str]:
    """Names of columns without the apostrophes of `guarded`."""
    new = _renamed(names, _unguard)
    return [new.get(name, name) for name in names]


def merged(raw: Any, bare: Any) -> str | None:
    """A text that stands in a column of a file both with and without its apostrophe."""
    changed = raw != bare
    if not changed.any():
        return None
    both = bare.filter(changed).filter(bare.filter(changed).is_in(bare.filter(~changed).implode()))
    return str(both[0]) if len(both) else None


def _renamed(names: list[str], change: Any) -> dict[str, str]:
    """Those names of columns that change, with their new ones."""
    import polars as pl

    old = pl.Series("name", names, dtype=pl.String)
    new = old.to_frame().select(change(pl.col("name"))).to_series()
    return {a: b for a, b in zip(names, new.to_list(), strict=True) if a != b}


def _runs(text: Any) -> Any:
    """Which texts would be taken for formulas, or look like guarded ones."""
    return text.str.contains(_FORMULA) & ~text.str.contains(_NUMBER)


def _guard(text: Any) -> Any:
    import polars as pl

    return pl.when(_runs(text)).then(pl.lit("'") + text).otherwise(text).name.keep()


def _unguard(text: Any) -> Any:
    import polars as pl

    rest = text.str.strip_prefix("'")
    return pl.when(text.str.starts_with("'") & _runs(rest)).then(rest).otherwise(text).name.keep()
