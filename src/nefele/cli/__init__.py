"""Command line. Heavy imports happen inside the commands: `nefele --help` stays fast.

Exit codes: 0 fine; 1 finished, but some fit did not converge; 2 bad input; 3 internal error;
130 interrupted.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

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
    try:
        with _interrupt_ends():
            app()
    except Exception as error:
        traceback.print_exc()
        typer.echo(f"Internal error: {error or type(error).__name__}. Please report it.", err=True)
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


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"nefele {version('nefele')}")
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


@app.command("demo")
def _demo(
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print the table only: no progress, no comments.")
    ] = False,
    seeds: Annotated[
        int, typer.Option(metavar="N", help="Number of random splits into train and test years.")
    ] = 5,
    lam: Annotated[float, typer.Option(help="Strength of the coupling, > 0.")] = 1e-3,
    tol: Annotated[float, typer.Option(help="Relative duality gap to reach, > 0.")] = 1e-6,
    penalty: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="l2, l1 or squared (norm squared, not halved); may be repeated. The first one "
            "also gets the control with shuffled borders.",
            show_default="l2 l1 squared",
        ),
    ] = None,
) -> None:
    """Compare models of 48 US states: own data only, pooled, and coupled over their borders."""
    from nefele.cli.demo import DemoOptions, run_command

    try:
        options = DemoOptions.checked(penalty or ["l2", "l1", "squared"], seeds, lam, tol)
    except ValueError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    raise typer.Exit(run_command(options, as_json=json, quiet=quiet))
