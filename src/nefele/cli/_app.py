"""All commands, and what ends them: errors, too little memory, Ctrl-C.

Heavy imports happen inside the commands: `nefele --help` stays fast.
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

from nefele.cli._common import Interrupted, memory_message, say
from nefele.cli.attack import attack
from nefele.cli.audit import audit
from nefele.cli.check import check
from nefele.cli.explain import explain
from nefele.cli.federation import federation
from nefele.cli.fit import fit, init, run
from nefele.cli.graph import graph
from nefele.cli.parts import fit_parts, partition
from nefele.cli.predict import predict
from nefele.cli.relay import app as relay
from nefele.cli.reproduce import reproduce
from nefele.cli.show import path, report
from nefele.cli.site import site
from nefele.cli.start import demo
from nefele.cli.trust import trust

app = typer.Typer(
    name="nefele",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def launch(ours: bool) -> None:
    """Run the command line and exit with its code; with `ours`, Ctrl-C is ours to handle."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack the letters of an id
            stream.reconfigure(errors="backslashreplace")
    pressed: list[int] = []
    try:
        with _interrupt_ends(ours, pressed), _warnings_as_notes():
            app(prog_name="nefele")
    except SystemExit as end:
        if end.code == 130 and not isinstance(end, Interrupted):
            say("Interrupted.", err=True)
        raise
    except MemoryError as error:
        say(memory_message(error), err=True)
        sys.exit(2)
    except Exception as error:
        if pressed:  # inside a library that made another error of it
            say("Interrupted.", err=True)
            sys.exit(130)
        for line in traceback.format_exc().splitlines():
            say(line, err=True)
        say(f"Internal error: {error or type(error).__name__}. Please report it.", err=True)
        sys.exit(3)


@contextmanager
def _interrupt_ends(ours: bool, pressed: list[int]) -> Iterator[None]:
    """Ctrl-C ends the command: a solver alone would stop that fit, and the next one would start."""

    def leave(signum: int, frame: object) -> None:
        pressed.append(signum)
        sys.exit(130)

    if not ours:
        yield
        return
    before = signal.signal(signal.SIGINT, leave)
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


_RUNS = (
    demo,
    check,
    graph,
    fit,
    predict,
    report,
    path,
    audit,
    explain,
    trust,
    attack,
    init,
    run,
    reproduce,
)
for _command in (*_RUNS, partition, fit_parts):
    app.command(_command.__name__.replace("_", "-"))(_command)
for _room, _name in ((federation, "federation"), (relay, "relay"), (site, "site")):
    app.add_typer(_room, name=_name)
