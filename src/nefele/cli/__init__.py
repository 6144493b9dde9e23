"""Command line. Nothing is imported before `main` listens to Ctrl-C.

Exit codes: 0 fine; 1 finished, but some fit did not converge; 2 bad input; 3 internal error;
130 interrupted.
"""

from __future__ import annotations

import os
import signal
from typing import Any

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line and exit with its code.

    Examples
    --------
    >>> from unittest.mock import patch
    >>> with patch("sys.argv", ["nefele", "--version"]):
    ...     main()
    Traceback (most recent call last):
    SystemExit: 0
    """
    # Otherwise ignored by whoever started us, or handled by a program that calls main.
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, _leave_at_once)
    try:
        from nefele.cli._app import launch

        launch(ours)
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave_at_once(signum: int, frame: object) -> None:
    """Ctrl-C before any command has begun: an error inside an import may end up as any other."""
    os.write(2, b"Interrupted.\n")
    os._exit(130)


def __getattr__(name: str) -> Any:
    if name == "app":
        from nefele.cli._app import app

        return app
    raise AttributeError(f"module 'nefele.cli' has no attribute {name!r}")
