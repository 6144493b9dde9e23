"""`nefele relay`: passes messages on between members of a federation that cannot be dialled."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from nefele.cli._common import input_errors, say

app = typer.Typer(
    no_args_is_help=True, help="Pass messages on between members that cannot be dialled."
)


@app.callback()
def _root() -> None:
    pass


@app.command("run")
def run(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Folder with federation.toml, key.pem, certificate.pem and authority.pem.",
        ),
    ],
    listen: Annotated[
        str | None,
        typer.Option(help="host:port to listen at; by default all hosts, the federation's port."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Tell once a minute how many bytes passed.")
    ] = False,
) -> None:
    """Pass messages on until Ctrl-C or SIGTERM. What they say cannot be read here."""
    from nefele.sites.carriers.names import host_and_port, mark_of
    from nefele.sites.federation import Federation
    from nefele.sites.relay import Relay

    with input_errors():
        federation = Federation.read(folder)
        if listen is None:
            if federation.relay is None:
                raise ValueError("The federation names no relay; say where by --listen host:port.")
            listen = f"0.0.0.0:{host_and_port(federation.relay)[1]}"
        names = [member.name for member in federation.members]
        relay = Relay(
            listen=listen,
            pairs=[(name, other) for name in names for other in federation.neighbours(name)],
            federation=mark_of(federation.hash),
            private_key=folder / "key.pem",
            certificate=folder / "certificate.pem",
            authority=folder / "authority.pem",
            count=verbose,
        )
        with _signals() as stop:
            relay.open()
            say(
                f"Relay listens at {listen} for {len(relay.members)} members, "
                f"{len(relay.pairs)} pairs of neighbours. Ctrl-C ends it."
            )
            relay.serve(stop, say)
    say("Relay ended.")


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set."""
    stop = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: stop.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, old in before.items():
            signal.signal(number, old)
