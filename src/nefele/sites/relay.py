"""The relay: where sites meet that cannot reach each other. It holds no key to what it passes on.

It lets a pair of members through only when they share an edge, each by the name in its certificate.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from nefele.sites.carriers.names import check_federation, check_name, host_and_port
from nefele.sites.carriers.zenoh_session import Session, import_zenoh
from nefele.sites.carriers.zenoh_settings import RELAY, check_files, key, rights, settings

MINUTE = 60.0


class Relay:
    """A Zenoh router with mutual TLS, and rights for pairs of members only.

    Parameters
    ----------
    listen : str
        "host:port".
    pairs : iterable of (str, str)
        Members that share an edge.
    federation : str
        First part of all keys, the same as at the sites.
    private_key, certificate, authority : Path
        Files in PEM. The certificate's common name is "relay".
    most_bytes : int
        Longer messages are dropped.
    count : bool
        Whether to count bytes; each message is then looked at once more.

    Attributes
    ----------
    bytes : collections.Counter
        By (sender, receiver), when they are counted.
    """

    def __init__(
        self,
        *,
        listen: str,
        pairs: Iterable[tuple[str, str]],
        federation: str,
        private_key: Path | str | None,
        certificate: Path | str | None,
        authority: Path | str | None,
        most_bytes: int = 1 << 24,
        count: bool = False,
    ) -> None:
        self._files = check_files(
            private_key=private_key, certificate=certificate, authority=authority
        )
        host_and_port(listen, "address to listen at")
        self.listen, self.federation = listen, check_federation(federation)
        self.pairs = sorted({(min(pair), max(pair)) for pair in pairs})
        for a, b in self.pairs:
            if check_name(a) == check_name(b) or RELAY in (a, b):
                raise ValueError(f"A pair must be two members, none the relay; got {(a, b)!r}.")
        if not self.pairs:
            raise ValueError("A relay needs members that share an edge; got no pair.")
        import_zenoh()
        self.bytes: Counter[tuple[str, str]] = Counter()
        self._most_bytes, self._count = most_bytes, count
        self._session: Session | None = None

    @property
    def members(self) -> list[str]:
        """Names of all members that are let through."""
        return sorted({name for pair in self.pairs for name in pair})

    @property
    def access(self) -> dict[str, Any]:
        """Who may send what to whom."""
        both = [*self.pairs, *((b, a) for a, b in self.pairs)]
        own = {name: [pair for pair in both if pair[0] == name] for name in self.members}
        return rights(self.federation, own)

    def open(self) -> None:
        """Begin to listen; a ValueError when that cannot be."""
        if self._session is not None:
            raise ValueError("This relay is open already. Close it first.")
        values = settings(
            "router",
            files=self._files,
            access=self.access,
            listen=[self.listen],
            most_bytes=self._most_bytes,
        )
        self._session = Session(values)
        for a, b in self.pairs if self._count else ():
            for pair in ((a, b), (b, a)):
                self._session.subscribe(key(self.federation, *pair), partial(self._add, pair))

    def close(self) -> None:
        """End all links."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def serve(
        self, stop: threading.Event, tell: Callable[[str], object], pause: float = MINUTE
    ) -> None:
        """Pass messages on until told to stop; tell the bytes that are counted after each pause."""
        try:
            while not stop.wait(pause):
                for a, b in sorted(self.bytes):
                    tell(f"{a} to {b}: {self.bytes[a, b]} bytes")
        finally:
            self.close()

    def _add(self, pair: tuple[str, str], sample: Any) -> None:
        self.bytes[pair] += len(sample.payload)
