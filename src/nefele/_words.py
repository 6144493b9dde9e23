"""Text of users on a terminal: what would steer it is shown instead."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Context
from typing import Any

# Control characters, separators of lines, marks and overrides of the direction of writing, and
# halves of characters, which stand for bytes of a file name that are no UTF-8.
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    r"""One line of text in which no character steers the terminal: these are written as escapes.

    Examples
    --------
    >>> print(visible("a\x1b[2Jb\nc\u202e"))
    a\x1b[2Jb\nc\u202e
    >>> print(visible("Jyväskylä, 東京, b\udcff"))
    Jyväskylä, 東京, b\xff
    """
    return _STEERING.sub(_escaped, text)


class Text(str):
    r"""Text that a notebook shows as it is printed, line by line.

    Examples
    --------
    >>> Text("a\nb") == "a\nb", hasattr(Text("a"), "_repr_pretty_")
    (True, True)
    """

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def at_most(value: float, digits: int = 6) -> str:
    """A bound in so many digits, rounded up: what is said holds too.

    Examples
    --------
    >>> at_most(0.62434, 3), at_most(0.1), at_most(1e-6, 2), at_most(-0.62434, 3)
    ('0.625', '0.1', '1e-06', '-0.624')
    """
    text = f"{value:.{digits}g}"
    if not float(text) < value:
        return text
    up = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(value)))
    return f"{float(up):.{digits}g}"


def short(value: object, most: int = 60) -> str:
    """The repr of a value for a message, cut where it gets long.

    Examples
    --------
    >>> short("Oulu"), short("a" * 100, most=8)
    ("'Oulu'", "'aaaaaaa...")
    """
    text = repr(value if not isinstance(value, str) else value[: most + 1])
    return text if len(text) <= most + 2 else f"{text[:most]}..."


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that Python could not decode
        code -= 0xDC00
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
