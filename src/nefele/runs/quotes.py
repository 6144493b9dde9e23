"""Where a CSV file opens a quotation mark by mistake, which makes one cell of many lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_MANY = 10  # lines in one cell that look like rows from which they are rows
_MOST = 0.9  # share of the lines in a cell that look like rows from which they are rows


def stray_mark(lines: Iterable[bytes], separator: str, width: int) -> int | None:
    r"""The line whose quotation mark swallows the rows after it; None if there is none.

    Of the lines of the whole file, which has `width` columns.

    Examples
    --------
    >>> stray_mark([b"id,x\n", b'"a,1\n', b"b,2\n"], ",", 2)
    2
    >>> stray_mark([b"id,x\n", b'a,"one\n', b'two"\n'], ",", 2) is None
    True
    """
    last = None
    for line, inside, closed in _opened(lines):
        last = None if closed else line
        alike = sum(text.count(separator.encode()) == width - 1 for text in inside)
        if width > 2 and alike >= _MANY and alike >= _MOST * len(inside):
            return line
    return last


def misplaced_mark(lines: Iterable[bytes], separator: str) -> int | None:
    r"""The first line with a mark inside a cell that is not quoted, or text after a closing mark.

    Examples
    --------
    >>> misplaced_mark([b"id,x\n", b'"a""b",1\n', b'"a"b,2\n'], ",")
    3
    """
    between = separator.encode()
    inside = False
    for number, text in enumerate(lines, 1):
        if not inside and b'"' in text:
            pieces = text.rstrip(b"\r\n").replace(b'""', b"").split(between)
            if any(_misplaced(piece.strip()) for piece in _cells(pieces, between)):
                return number
        inside ^= text.count(b'"') % 2 == 1
    return None


def _cells(pieces: list[bytes], between: bytes) -> Iterator[bytes]:
    """Pieces of a line put together again where a separator is inside quotation marks."""
    cell = b""
    for piece in pieces:
        cell += piece
        if cell.count(b'"') % 2 == 0:
            yield cell
            cell = b""
        else:
            cell += between


def _misplaced(cell: bytes) -> bool:
    return b'"' in cell and not (cell[:1] == cell[-1:] == b'"' and b'"' not in cell[1:-1])


def _opened(lines: Iterable[bytes]) -> Iterator[tuple[int, list[bytes], bool]]:
    """Cells over several lines: where each begins, the whole lines in it, whether it ends."""
    start = 0
    inside: list[bytes] = []
    for number, text in enumerate(lines, 1):
        turns = text.count(b'"') % 2 == 1
        if turns and start:
            yield start, inside, True
            start, inside = 0, []
        elif turns:
            start = number
        elif start:
            inside.append(text)
    if start:
        yield start, inside, False
