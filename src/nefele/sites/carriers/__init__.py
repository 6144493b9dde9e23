"""What moves sealed messages between sites. A carrier is never trusted, and holds no key to them.

A carrier may lose, repeat, delay or reorder what it is given; whoever sends says it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Receive = Callable[[str, bytes], object]


class Carrier(Protocol):
    """Brings bytes to neighbouring sites and from them."""

    def open(self, receive: Receive) -> None:
        """Begin; `receive(sender, blob)` is called for all that comes, from any thread."""

    def send(self, to: str, blob: bytes) -> None:
        """Give bytes on their way to a neighbour; what cannot be sent now is lost, not an error."""

    def close(self) -> None:
        """End, and leave nothing behind that runs."""
