"""Messages over Zenoh: straight to neighbours, through a relay, or both, by mutual TLS only."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nefele.sites.carriers import Receive
from nefele.sites.carriers.names import check_federation, check_neighbours, host_and_port
from nefele.sites.carriers.tunnel import Tunnel, proxy_for
from nefele.sites.carriers.zenoh_session import Session, import_zenoh
from nefele.sites.carriers.zenoh_settings import RELAY, check_files, key, rights, settings

_PATIENCE = 3.0  # seconds for a first sign of the relay
_AGAIN = (0.2, 0.5, 1.0, 2.0, 4.0)  # seconds between attempts to open the session at the relay


class Zenoh:
    """The carrier of one site.

    Two sessions at most: a peer that listens and dials neighbours, and a client of the relay. A
    message goes straight when the neighbour is linked, otherwise through the relay. Both connect
    and connect again by themselves for ever, in any order of starting.

    Parameters
    ----------
    neighbours : mapping of str to str or None
        Address "host:port" to dial, or None: that neighbour dials us, or is behind the relay.
    federation : str
        First part of all keys: what the federation's files have in common.
    listen, relay : str, optional
        "host:port" where neighbours reach us, and where the relay is.
    proxy : str, optional
        "http://[user:password@]host:port" by which all is dialled; "" for none. By default that
        of the environment (`https_proxy`, `no_proxy`).
    private_key, certificate, authority : Path
        Files in PEM. The certificate's common name is the name of the site.
    most_bytes : int
        Longer messages are dropped.
    verify_hosts : bool
        Whether the host that is dialled must stand in the certificate that answers. Without, or
        behind a proxy, the common name alone tells who answers: see `zenoh_settings`.

    Attributes
    ----------
    refused : collections.Counter
        How many messages were dropped: "too long" or "not open".
    """

    def __init__(
        self,
        *,
        me: str,
        neighbours: Mapping[str, str | None],
        federation: str,
        private_key: Path | str | None,
        certificate: Path | str | None,
        authority: Path | str | None,
        listen: str | None = None,
        relay: str | None = None,
        proxy: str | None = None,
        most_bytes: int = 1 << 24,
        verify_hosts: bool = True,
    ) -> None:
        self._files = check_files(
            private_key=private_key, certificate=certificate, authority=authority
        )
        check_neighbours(me, neighbours)
        check_federation(federation)
        if RELAY in (me, *neighbours):
            raise ValueError(f"No site may be called {RELAY!r}: the relay is. Rename it.")
        if most_bytes < 1:
            raise ValueError(f"most_bytes must be >= 1; got {most_bytes!r}.")
        dialled = _check_ways(neighbours, listen, relay)
        import_zenoh()
        self.me, self.neighbours, self.federation = me, dict(neighbours), federation
        self.refused: Counter[str] = Counter()
        self._listen, self._relay, self._proxy = listen, relay, proxy
        self._dialled = dialled
        self._most_bytes, self._verify = most_bytes, verify_hosts
        self._tunnels: list[Tunnel] = []
        self._ends: list[_End] = []  # the direct one first
        self._stop = threading.Event()
        self._opener: threading.Thread | None = None

    def open(self, receive: Receive) -> None:
        """Begin; `receive(sender, blob)` is called for all that comes, from Zenoh's threads."""
        if self._tunnels or self._ends or self._opener is not None:
            raise ValueError("This carrier is open already. Close it first.")
        self._stop.clear()
        try:
            if self._listen is not None or self._dialled:
                self._ends.append(_End(self._direct(), self, receive))
            if self._relay is not None:
                values, at = self._to_relay(self._relay)
                self._opener = threading.Thread(
                    target=self._reach_relay,
                    args=(values, at, receive),
                    name=f"nefele-relay-{self.me}",
                    daemon=True,
                )
                self._opener.start()
        except BaseException:
            self.close()
            raise

    def send(self, to: str, blob: bytes) -> None:
        """Give bytes on their way; while there is no link they are lost.

        Returns at once, except for messages of megabytes on a slow link: after 5 s at most.
        """
        if to not in self.neighbours:
            raise ValueError(f"No neighbour {to!r}; neighbours: {', '.join(self.neighbours)}.")
        if len(blob) > self._most_bytes:
            self.refused["too long"] += 1
            return
        ends = self._ends
        if not ends:
            self.refused["not open"] += 1
            return
        end = ends[0] if len(ends) == 1 or ends[0].leads_to(to) else ends[-1]
        end.put(to, blob)

    def linked(self, to: str) -> bool:
        """Whether a neighbour is there and listens, straight or through the relay."""
        return any(end.leads_to(to) for end in self._ends)

    def close(self) -> None:
        """End both sessions and the tunnels."""
        self._stop.set()
        if self._opener is not None:
            self._opener.join()
            self._opener = None
        ends, self._ends = self._ends, []
        for end in ends:
            end.close()
        while self._tunnels:
            self._tunnels.pop().close()

    def _direct(self) -> dict[str, Any]:
        others = {name: [(name, self.me)] for name in self.neighbours}
        return settings(
            "peer",
            files=self._files,
            access=rights(self.federation, others),
            listen=[] if self._listen is None else [self._listen],
            connect=[self._endpoint(at)[0] for at in self._dialled.values()],
            most_bytes=self._most_bytes,
        )

    def _to_relay(self, relay: str) -> tuple[dict[str, Any], tuple[str, int]]:
        endpoint, at = self._endpoint(relay)
        others = {RELAY: [(name, self.me) for name in self.neighbours]}
        access = rights(self.federation, others)
        made = settings(
            "client",
            files=self._files,
            access=access,
            connect=[endpoint],
            most_bytes=self._most_bytes,
        )
        return made, at

    def _endpoint(self, address: str) -> tuple[str, tuple[str, int]]:
        """What Zenoh dials for an address, and where that is: a tunnel's end behind a proxy."""
        host, port = host_and_port(address)
        proxy = proxy_for(host, port, self._proxy)
        if proxy is None:
            verify = str(self._verify).lower()
            return f"{address}#verify_name_on_connect={verify}", (host, port)
        tunnel = Tunnel(proxy, host, port)
        self._tunnels.append(tunnel)
        return f"127.0.0.1:{tunnel.port}#verify_name_on_connect=false", ("127.0.0.1", tunnel.port)

    def _reach_relay(self, values: dict[str, Any], at: tuple[str, int], receive: Receive) -> None:
        """Open the session at the relay once it answers; from then on Zenoh connects again."""
        for pause in _pauses():
            # A client's `open` cannot be interrupted: it is called only when somebody listens.
            with contextlib.suppress(OSError, ValueError):
                socket.create_connection(at, timeout=_PATIENCE).close()
                end = _End(values, self, receive)
                self._ends = [*self._ends, end]
                return
            if self._stop.wait(pause):
                return


class _End:
    """One session with a publisher and a subscriber for each neighbour."""

    def __init__(self, values: dict[str, Any], carrier: Zenoh, receive: Receive) -> None:
        self._session = Session(values)
        self._most_bytes, self._refused = carrier._most_bytes, carrier.refused
        self._publishers: dict[str, Any] = {}
        for other in carrier.neighbours:
            self._session.subscribe(
                key(carrier.federation, other, carrier.me), self._taker(other, receive)
            )
            self._publishers[other] = self._session.publisher(
                key(carrier.federation, carrier.me, other)
            )

    def leads_to(self, to: str) -> bool:
        """Whether the neighbour is linked and listens."""
        return bool(self._publishers[to].matching_status.matching)

    def put(self, to: str, blob: bytes) -> None:
        zenoh = import_zenoh()
        with contextlib.suppress(zenoh.ZError):  # no link, or closed meanwhile: it is lost
            self._publishers[to].put(blob)

    def close(self) -> None:
        self._session.close()

    def _taker(self, sender: str, receive: Receive) -> Any:
        def take(sample: Any) -> None:
            if len(sample.payload) > self._most_bytes:
                self._refused["too long"] += 1
            else:
                receive(sender, sample.payload.to_bytes())

        return take


def _check_ways(
    neighbours: Mapping[str, str | None], listen: str | None, relay: str | None
) -> dict[str, str]:
    """The addresses to dial; a ValueError when one is wrong, or nothing leads to a neighbour."""
    dialled = {name: at for name, at in neighbours.items() if at is not None}
    for what, at in ("address to listen at", listen), ("address of the relay", relay):
        if at is not None:
            host_and_port(at, what)
    for name, at in dialled.items():
        host_and_port(at, f"address of {name}")
    if len(dialled) < len(neighbours) and listen is None and relay is None:
        name = next(name for name, at in neighbours.items() if at is None)
        raise ValueError(f"Nothing leads to {name!r}: give its address, listen, or a relay.")
    return dialled


def _pauses() -> Iterator[float]:
    yield from _AGAIN
    while True:
        yield _AGAIN[-1]
