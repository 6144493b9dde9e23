"""Progress as one line: rewritten on a terminal and in a notebook, said now and then elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nefele._words import visible

_REDRAW = 0.1  # seconds between two looks of a line that is rewritten
_EVERY = 10.0  # seconds between two lines of a file or a pipe


class Line:
    r"""One line about work that goes on, with the seconds that it took so far.

    On a terminal it is rewritten on stderr, in a notebook in the output of the cell; elsewhere a
    line is printed on stderr every few seconds. The last text is always shown. It says nothing
    unless `on`.

    Parameters
    ----------
    on : bool
    every : float
        Seconds between two lines where no line can be rewritten.
    timed : bool
        Whether to add the seconds since the start.

    Examples
    --------
    >>> import contextlib, io
    >>> with contextlib.redirect_stderr(io.StringIO()) as text:
    ...     line = Line(True, timed=False)
    ...     line.show("round 1"), line.show("round 2"), line.close()
    (None, None, None)
    >>> text.getvalue()
    'round 2\n'
    """

    def __init__(self, on: bool = True, *, every: float = _EVERY, timed: bool = True) -> None:
        self.on, self.timed = on and sys.stderr is not None, timed
        self.started = time.monotonic()
        self.text: str | None = None  # the newest, and whether it can be seen
        self.seen = True
        self.handle: Any = None  # the line of a notebook
        self.display = _display() if self.on else None
        self.live = self.on and self.display is None and sys.stderr.isatty()
        self.every = _REDRAW if self.live or self.display is not None else every
        # The first look at a line that is rewritten is at once, another one must be due.
        self.due = self.started + (0.0 if self.every == _REDRAW else every)

    def show(self, text: str, *, now: bool = False) -> None:
        """Show this text, or keep it for the end when the last one is too new, unless `now`."""
        if not self.on:
            return
        at = time.monotonic()
        seconds = f", {at - self.started:.1f} s" if self.timed else ""
        self.text, self.seen = visible(f"{text}{seconds}"), False
        if now or at >= self.due:
            self.due = at + self.every
            self._draw()

    def leave(self) -> None:
        """Leave the line as it is: something else is printed below it, then a new one."""
        if self.live and self.text is not None:
            sys.stderr.write("\n")
            sys.stderr.flush()
        self.text, self.seen = None, True

    def close(self) -> None:
        """Show the last text, and leave it there."""
        if self.text is not None and not self.seen:
            self._draw()
        self.leave()

    def _draw(self) -> None:
        assert self.text is not None
        self.seen = True
        if self.display is not None:
            bundle = {"text/plain": self.text}
            if self.handle is None:
                self.handle = self.display(bundle, raw=True, display_id=True)
            else:
                self.handle.update(bundle, raw=True)
        elif self.live:
            width = max(shutil.get_terminal_size().columns - 1, 20)
            sys.stderr.write(f"\r\x1b[2K{self.text[:width]}")
            sys.stderr.flush()
        else:
            print(self.text, file=sys.stderr, flush=True)


@contextmanager
def progress(verbose: Any, *, every: float = _EVERY) -> Iterator[Line]:
    """A line for the work inside, silent for a `verbose` of False or 0; closed at its end.

    Examples
    --------
    >>> with progress(False) as line:
    ...     line.show("nothing is shown")
    """
    line = Line(check_verbose(verbose) > 0, every=every)
    try:
        yield line
    finally:
        line.close()


def check_verbose(value: Any) -> int:
    """True, False or an integer >= 0, as an integer.

    Examples
    --------
    >>> check_verbose(True), check_verbose(0)
    (1, 0)
    """
    if not isinstance(value, bool | int | np.bool_ | np.integer) or value < 0:
        raise ValueError(f"verbose must be True, False or an integer >= 0; got {value!r}.")
    return int(value)


def _display() -> Any:
    """IPython's `display` inside of a notebook, else None; IPython is never imported for it."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display

    return display
