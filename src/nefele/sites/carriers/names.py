"""Names of sites and addresses, as every carrier takes them."""

from __future__ import annotations

import re
from collections.abc import Iterable

# A name is part of keys, folders and certificates. It holds no dot: who dials with Zenoh
# trusts the public authorities of the web besides the federation's own, and these certify names
# with dots only, so none of them can certify a site.
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def check_name(name: str) -> str:
    """Return the name; a ValueError when a carrier could not bear it.

    Examples
    --------
    >>> check_name("oulu-2")
    'oulu-2'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            "The name of a site must be 1 to 63 of a-z, 0-9 and -, not - first; "
            f"got {name!r}. Rename it."
        )
    return name


def check_federation(federation: str) -> str:
    """Return the id of a federation in keys and folders; a ValueError when it is none."""
    if not isinstance(federation, str) or not re.fullmatch(r"[a-z0-9-]{1,64}", federation):
        raise ValueError(
            f"The id of a federation must be 1 to 64 of a-z, 0-9 and -; got {federation!r}."
        )
    return federation


def check_neighbours(me: str, neighbours: Iterable[str]) -> None:
    """A ValueError when a name cannot be borne, or a site is its own neighbour."""
    for name in (check_name(me), *neighbours):
        check_name(name)
    if me in neighbours:
        raise ValueError(f"A site is no neighbour of itself; got {me!r} among its neighbours.")


def host_and_port(address: str, what: str = "address") -> tuple[str, int]:
    """Split "host:port"; a ValueError when it is anything else.

    Examples
    --------
    >>> host_and_port("site.example:7447"), host_and_port("[::1]:80")
    (('site.example', 7447), ('::1', 80))
    """
    host, colon, port = address.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    good = colon and port.isascii() and port.isdigit() and 0 < int(port) < 65536
    if not good or not re.fullmatch(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+(%\w+)?", bare):
        raise ValueError(f'The {what} must be "host:port"; got {address!r}.')
    if ":" in bare and bare == host:
        raise ValueError(f'The {what} needs brackets, "[{host}]:{port}"; got {address!r}.')
    return bare, int(port)
