"""`nefele relay`: passes messages on between members of a federation that cannot be dialled."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nefele.cli._common import input_errors, say

if TYPE_CHECKING:
    from nefele.sites.relay import Relay

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
    with input_errors():
        relay = _relay(folder, listen, verbose)
        with _signals() as stop:
            relay.open()
            say(
                f"Relay listens at {relay.listen} for {len(relay.members)} members, "
                f"{len(relay.pairs)} pairs of neighbours. Ctrl-C ends it."
            )
            relay.serve(stop, say)
    say("Relay ended.")


def _relay(folder: Path, listen: str | None, count: bool) -> Relay:
    from nefele.sites.carriers.names import host_and_port
    from nefele.sites.federation import Federation
    from nefele.sites.identity import AUTHORITY, CERTIFICATE, KEY, check_pinned, expiry_message
    from nefele.sites.members import RELAY
    from nefele.sites.relay import Relay
    from nefele.sites.signing import Identity, certified_name
    from nefele.sites.validity import one_certificate

    federation = Federation.read(folder)
    name = certified_name(folder)
    if name != RELAY:
        raise ValueError(
            f"The certificate of a relay must be of {RELAY}; it is of {name}. Ask for one by: "
            f"nefele site request {RELAY}"
        )
    identity = Identity(folder)  # the key is its owner's only, and the certificate is valid
    check_pinned(one_certificate(identity.authority, AUTHORITY), federation)
    if soon := expiry_message(identity.certificate, folder):
        say(f"Note: {soon}", err=True)
    if listen is None:
        if federation.relay is None:
            raise ValueError("The federation names no relay; say where by --listen host:port.")
        listen = f"0.0.0.0:{host_and_port(federation.relay)[1]}"
    names = [member.name for member in federation.members]
    return Relay(
        listen=listen,
        pairs=[(name, other) for name in names for other in federation.neighbours(name)],
        federation=federation.mark,
        private_key=folder / KEY,
        certificate=folder / CERTIFICATE,
        authority=folder / AUTHORITY,
        count=count,
    )


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
