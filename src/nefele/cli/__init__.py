"""Command line. Heavy imports happen inside the commands: `nefele --help` stays fast.

Exit codes: 0 fine; 1 finished, but some fit did not converge; 2 bad input; 3 internal error;
130 interrupted.
"""

from __future__ import annotations

import io
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from nefele.cli._common import Interrupted, say
from nefele.cli.check import check
from nefele.cli.fit import fit, run
from nefele.cli.graph import graph
from nefele.cli.init import init
from nefele.cli.predict import predict
from nefele.cli.reproduce import reproduce
from nefele.cli.show import path, report
from nefele.cli.start import demo

__all__ = ["app", "main"]

app = typer.Typer(
    name="nefele",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack the letters of an id
            stream.reconfigure(errors="backslashreplace")
    try:
        with _interrupt_ends(), _warnings_as_notes():
            app()
    except SystemExit as end:
        if end.code == 130 and not isinstance(end, Interrupted):
            say("Interrupted.", err=True)
        raise
    except Exception as error:
        for line in traceback.format_exc().splitlines():
            say(line, err=True)
        say(f"Internal error: {error or type(error).__name__}. Please report it.", err=True)
        sys.exit(3)


@contextmanager
def _interrupt_ends() -> Iterator[None]:
    """Ctrl-C ends the command: a solver alone would stop that fit, and the next one would start."""

    def leave(signum: int, frame: object) -> None:
        sys.exit(130)

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield  # ignored by whoever started us, or handled by a program that calls main
        return
    signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Warnings of Python and of libraries in words, without file names and code."""

    def note(message: Warning | str, *args: object, **kwargs: object) -> None:
        say(f"Note: {' '.join(str(message).split())}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = note
        yield


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"nefele {version('nefele')}")
        raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """One model per node of a network, coupled by total variation, with a certified gap."""


for _command in (demo, check, graph, fit, predict, report, path, init, run, reproduce):
    app.command(_command.__name__)(_command)
