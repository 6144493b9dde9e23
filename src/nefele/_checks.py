"""Argument checks: what must hold, what came, where, and what to do."""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
LARGEST = 1e150  # in size: the squares of larger numbers, summed over rows, may overflow


def type_name(obj: Any) -> str:
    """Module and name of an object's type, for an error message."""
    return f"{type(obj).__module__}.{type(obj).__qualname__}".removeprefix("builtins.")


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns, such as one of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def as_float_array(value: Any, name: str, ndim: int | None) -> Array:
    """C-contiguous float64 array of the given dimension (None: any); never a changed input."""
    if hasattr(value, "to_numpy"):
        value = numpy_without_na(value)
    if hasattr(value, "toarray"):
        value = value.toarray()
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a rectangular array; {error}.") from None
    if raw.dtype.kind == "c":
        raise ValueError(f"{name} must be real; got dtype {raw.dtype}.")
    if raw.dtype.kind in "Mm":
        raise ValueError(f"{name} must be numeric; got dtype {raw.dtype}.")
    if raw.dtype.kind not in "fiub":
        try:
            raw = raw.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be numeric; got dtype {raw.dtype} ({error}).") from None
    if ndim is not None and raw.ndim != ndim:
        column = ndim == 1 and raw.ndim == 2 and 1 in raw.shape
        advice = f" Use {name.split()[0]}.ravel()." if column else ""
        raise ValueError(f"{name} must have {ndim} dimension(s); got shape {raw.shape}.{advice}")
    return np.ascontiguousarray(raw, dtype=np.float64)


def numpy_without_na(column: Any) -> NDArray[Any]:
    """Array of a pandas or polars column or table, with NaN for the <NA> of nullable columns."""
    values = column.to_numpy()
    if values.dtype.kind == "O" and hasattr(column, "isna"):
        values = np.array(values)
        values[np.asarray(column.isna())] = np.nan
    return values


def check_finite(values: Array, describe: Callable[[tuple[int, ...]], str]) -> None:
    """Raise when an entry is NaN or infinite; `describe` names the place of the first."""
    ok = np.isfinite(values)
    if not ok.all():
        where = tuple(int(k) for k in np.argwhere(~ok)[0])
        raise ValueError(
            f"{describe(where)} must be finite; got {values[where]}. "
            "Drop or impute missing values first."
        )


def check_number(
    value: Any, name: str, *, low: float = -math.inf, strict: bool = False, advice: str = ""
) -> float:
    """A finite real number >= low (> low when strict)."""
    try:
        if isinstance(value, str | bool | np.bool_) or np.iscomplexobj(value):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number; got {value!r}.") from None
    sign = ">" if strict else ">="
    bad = not math.isfinite(number) or (number <= low if strict else number < low)
    if bad:
        bound = "finite" if low == -math.inf else f"finite and {sign} {low:g}"
        raise ValueError(f"{name} must be {bound}; got {value!r}.{' ' + advice if advice else ''}")
    return number


def check_numbers(value: Any, name: str, *, low: float = -math.inf) -> float | tuple[float, ...]:
    """A finite number >= low, or several of them as a tuple, which can be compared and hashed."""
    if np.ndim(value) == 0:
        return check_number(value, name, low=low)
    numbers = as_float_array(value, name, 1).tolist()
    return tuple(check_number(x, f"{name}[{j}]", low=low) for j, x in enumerate(numbers))


def check_count(value: Any, name: str, *, low: int = 0) -> int:
    """An integer >= low; a float that is a whole number counts as one."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    whole = whole or (isinstance(value, float | np.floating) and float(value).is_integer())
    if not whole or value < low:
        raise ValueError(f"{name} must be an integer >= {low}; got {value!r}.")
    return int(value)


def check_flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def check_name(value: str, names: Iterable[str], what: str) -> str:
    """One of the names, with a suggestion when it is nearly one of them."""
    names = list(names)
    if value in names:
        return value
    lowered = {name.lower(): name for name in names}
    close = difflib.get_close_matches(str(value).lower(), lowered, n=1)
    hint = f' Did you mean "{lowered[close[0]]}"?' if close else ""
    raise ValueError(
        f'No {what} "{_cut(value)}".{hint} Available: {_cut(", ".join(map(_cut, names)), 1000)}.'
    )


def _cut(text: Any, most: int = 100) -> str:
    """A name for a message, cut where it gets long."""
    return str(text) if len(str(text)) <= most else f"{str(text)[:most]}..."


def outside() -> int:
    """The `stacklevel` of a warning that should name the line outside of nefele."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("nefele."):
        frame, level = frame.f_back, level + 1
    return level
