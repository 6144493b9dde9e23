"""Arrays and text in a form that a page can hold: base64 of little-endian numbers, safe JSON."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array

EXACT = 15_000  # values up to which an array keeps double precision
_LEVELS = 65_534  # 65535 stands for "no value"


def pack(values: NDArray[Any], kind: str) -> dict[str, Any]:
    """Array as base64: kind "f8", "u2" or "u1".

    Examples
    --------
    >>> pack(np.array([1, 2]), "u1")
    {'kind': 'u1', 'data': 'AQI='}
    """
    raw = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"kind": kind, "data": base64.b64encode(raw).decode("ascii")}


def pack_table(values: Array) -> dict[str, Any]:
    """Table of shape (groups, width): exact when small, else 65,535 levels in each group.

    A group is what shares a range, such as one parameter or one node: a wild group then costs
    the others no precision. What is not finite becomes "no value" in the second form.

    Examples
    --------
    >>> block = pack_table(np.array([[0.0, np.nan]]))
    >>> block["kind"], block["width"]
    ('f8', 2)
    """
    if values.size <= EXACT:
        return {**pack(values, "f8"), "width": values.shape[1]}
    known = np.isfinite(values)
    low = np.where(known, values, np.inf).min(axis=1)
    high = np.where(known, values, -np.inf).max(axis=1)
    low, high = np.where(known.any(axis=1), [low, high], 0.0)
    # halves first: the ends may be 1e308 apart in both directions
    step = (high / _LEVELS) - (low / _LEVELS)
    safe = np.where(step > 0, step, 1.0)
    level = (np.where(known, values, low[:, None]) - low[:, None]) / safe[:, None]
    level = np.where(known, np.rint(level), _LEVELS + 1)
    ends = {"low": pack(low, "f8"), "step": pack(step, "f8")}
    return {**pack(level, "u2"), **ends, "kind": "q2", "width": values.shape[1]}


def number(value: Any) -> float | None:
    """Number for JSON: None when it is not finite.

    Examples
    --------
    >>> number(2), number(float("nan"))
    (2.0, None)
    """
    value = float(value)
    return value if math.isfinite(value) else None


def safe_json(data: Any) -> str:
    r"""JSON that cannot end the script element it stands in, whatever its strings hold.

    Examples
    --------
    >>> safe_json({"id": "</script>"})
    '{"id":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text
