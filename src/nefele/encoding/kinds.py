"""What a column of a table holds: numbers, truth values, dates or text, and where it is empty."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._words import short

NUMBER, BOOLEAN, DATE, TEXT, EMPTY = "number", "boolean", "date", "text", "empty"
_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}([ T].*)?$")
_TIME = "datetime64[us]"
_PLURAL = {NUMBER: "numbers", BOOLEAN: "truth values", DATE: "dates such as 2026-01-31"}


@dataclass(frozen=True, eq=False)
class Column:
    """The values of a column.

    Attributes
    ----------
    kind : {"number", "boolean", "date", "text", "empty"}
    values : array of shape (n_rows,)
        Floating-point numbers, moments (datetime64) or text, by the kind.
    missing : bool array of shape (n_rows,)
    """

    kind: str
    values: NDArray[Any]
    missing: NDArray[np.bool_]


def read_column(series: Any, name: str) -> Column:
    """A column of a pandas or polars table; other things than values of cells are a ValueError.

    Text is taken for numbers or for dates (ISO 8601) where all of it is.

    Examples
    --------
    >>> import pandas as pd
    >>> read_column(pd.Series(["2024-01-31", None, "2024-02-01"]), "day").kind
    'date'
    >>> read_column(pd.Series([True, False]), "open").values.tolist()
    [1.0, 0.0]
    """
    read = _of_pandas if hasattr(series, "isna") else _of_polars
    return read(series, name)


def as_kind(column: Column, kind: str, name: str) -> Column:
    """The column as the kind that it had before; a ValueError where it cannot be."""
    if kind == TEXT:
        return column if column.kind == TEXT else _as_text(column)
    fits = column.kind in (kind, EMPTY) or {column.kind, kind} == {NUMBER, BOOLEAN}
    if not fits:
        row = int((~column.missing).argmax())
        value = short(str(column.values[row]))
        raise ValueError(
            f'Column "{name}" must hold {_PLURAL[kind]}, as in the rows that were fitted; got '
            f"{value} in row {row}. Correct it, or leave it empty."
        )
    if column.kind == EMPTY and kind == DATE:
        return Column(kind, np.full(len(column.missing), "NaT", dtype=_TIME), column.missing)
    return Column(kind, column.values, column.missing)


def needs_encoding(X: Any) -> bool:
    """Whether a table has text, dates or missing values: what is no plain number.

    Examples
    --------
    >>> import pandas as pd
    >>> needs_encoding(pd.DataFrame({"a": [1, 2]})), needs_encoding(pd.DataFrame({"a": [1, None]}))
    (False, True)
    """
    names = list(X.columns)
    if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        return False
    for name in names:
        if _is_plain(X[name]):
            continue
        column = read_column(X[name], name)
        if column.kind not in (NUMBER, BOOLEAN) or column.missing.any():
            return True
    return False


def _is_plain(series: Any) -> bool:
    """Whether a column holds numbers or truth values by its type, and none is missing."""
    if hasattr(series, "isna"):
        return series.dtype.kind in "iufb" and not bool(series.isna().any())
    import polars as pl

    dtype = series.dtype
    if not (dtype.is_numeric() or dtype == pl.Boolean) or series.null_count():
        return False
    return not (dtype.is_float() and bool(series.is_nan().any()))


def _of_pandas(series: Any, name: str) -> Column:
    missing, kind = series.isna().to_numpy(), series.dtype.kind
    if kind in "iuf":
        return _numbers(series.to_numpy(dtype=np.float64, na_value=np.nan), missing)
    if kind == "b":
        return _numbers(series.to_numpy(dtype=np.float64, na_value=np.nan), missing, BOOLEAN)
    if kind == "M":
        if getattr(series.dtype, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return _dates(series.to_numpy().astype(_TIME), missing)
    if kind != "O":
        raise ValueError(_strange(name, str(series.dtype)))
    return _of_objects(series.astype(object).tolist(), missing, name)


def _of_polars(series: Any, name: str) -> Column:
    import polars as pl

    dtype, missing = series.dtype, series.is_null().to_numpy()
    if dtype.is_numeric() or dtype == pl.Boolean:
        values = np.array(series.cast(pl.Float64).to_numpy(), dtype=np.float64)
        return _numbers(values, missing, BOOLEAN if dtype == pl.Boolean else NUMBER)
    if dtype in (pl.Date, pl.Datetime):
        if getattr(dtype, "time_zone", None):
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return _dates(series.cast(pl.Datetime("us")).to_numpy().astype(_TIME), missing)
    if dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        return _of_objects(series.cast(pl.String).to_list(), missing, name)
    if dtype == pl.Object:
        return _of_objects(series.to_list(), missing, name)
    raise ValueError(_strange(name, str(dtype)))


def _strange(name: str, dtype: str) -> str:
    return (
        f'Column "{name}" must hold numbers, truth values, dates or text; it holds {dtype}. Leave '
        "it out, or take it apart first."
    )


def _of_objects(values: list[Any], missing: NDArray[np.bool_], name: str) -> Column:
    blank = [v is None or (isinstance(v, str) and not v.strip()) for v in values]
    missing = missing | np.array(blank, dtype=bool)
    known = [v for v, gone in zip(values, missing.tolist(), strict=True) if not gone]
    kinds = {type(v) for v in known}
    for kind in kinds:
        if issubclass(kind, list | tuple | dict | set | np.ndarray | bytes):
            raise ValueError(_strange(name, kind.__name__))
    if kinds and all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return _numbers(_spread(known, missing), missing, BOOLEAN)
    if all(issubclass(kind, Number) for kind in kinds):
        return _numbers(_spread(known, missing), missing)
    if all(issubclass(kind, date | np.datetime64) for kind in kinds):
        return _dates(_spread([_moment(v) for v in known], missing, "NaT"), missing)
    return _of_text([str(v).strip() for v in known], missing)


def _of_text(known: list[str], missing: NDArray[np.bool_]) -> Column:
    """Text, or the numbers or dates that all of it is."""
    different = set(known)
    if all(_is_number(text) for text in different):
        return _numbers(_spread([float(text) for text in known], missing), missing)
    moments = {text: _parsed(text) for text in different} if _all_dates(different) else {}
    if moments and None not in moments.values():
        return _dates(_spread([moments[text] for text in known], missing, "NaT"), missing)
    values = np.full(len(missing), "", dtype=object)
    values[~missing] = known
    return Column(TEXT, values, missing)


def _all_dates(texts: set[str]) -> bool:
    return all(_DATE.match(text) for text in texts)


def _parsed(text: str) -> np.datetime64 | None:
    try:
        return _moment(datetime.fromisoformat(text))
    except ValueError:
        return None


def _moment(value: Any) -> np.datetime64:
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _spread(known: Sequence[Any], missing: NDArray[np.bool_], gap: Any = np.nan) -> NDArray[Any]:
    """The known values in their places, and what stands for a missing one elsewhere."""
    out = np.full(len(missing), gap, dtype=np.float64 if gap != "NaT" else _TIME)
    out[~missing] = known
    return out


def _numbers(values: NDArray[Any], missing: NDArray[np.bool_], kind: str = NUMBER) -> Column:
    missing = missing | np.isnan(values)
    return Column(EMPTY if missing.all() else kind, values, missing)


def _dates(values: NDArray[Any], missing: NDArray[np.bool_]) -> Column:
    missing = missing | np.isnat(values)
    if missing.all():
        return Column(EMPTY, np.full(len(missing), np.nan), missing)
    return Column(DATE, values, missing)


def _as_text(column: Column) -> Column:
    """Text of values that look like others here: levels such as 1 and 2, without A and B."""
    values = np.full(len(column.missing), "", dtype=object)
    for row in np.flatnonzero(~column.missing).tolist():
        value = column.values[row]
        if column.kind == DATE:
            values[row] = str(value.astype("datetime64[s]")).removesuffix("T00:00:00")
        elif column.kind == BOOLEAN:
            values[row] = str(bool(value))
        else:
            values[row] = str(int(value)) if float(value).is_integer() else str(float(value))
    return Column(TEXT, values, column.missing)
