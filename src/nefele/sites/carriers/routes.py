"""Several carriers as one: each neighbour by the way that leads to it."""

from __future__ import annotations

from collections.abc import Mapping

from nefele.sites.carriers import Carrier, Receive


class Routes:
    """A carrier that hands each message to another one.

    Parameters
    ----------
    ways : dict of neighbour to Carrier
        One carrier may lead to many.
    """

    def __init__(self, ways: Mapping[str, Carrier]) -> None:
        self._ways = dict(ways)
        self._carriers = list(dict.fromkeys(ways.values()))

    def open(self, receive: Receive) -> None:
        """Begin with all of them, or with none."""
        opened: list[Carrier] = []
        try:
            for carrier in self._carriers:
                carrier.open(receive)
                opened.append(carrier)
        except BaseException:
            for carrier in opened:
                carrier.close()
            raise

    def send(self, to: str, blob: bytes) -> None:
        """Send by the carrier of this neighbour."""
        self._ways[to].send(to, blob)

    def close(self) -> None:
        """End all of them."""
        for carrier in self._carriers:
            carrier.close()
