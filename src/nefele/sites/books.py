"""The books of a site: what it said and heard, what it refused, and what went over the wire."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from nefele._threads import processor_seconds
from nefele.runtime.messages import Ledger, Traffic
from nefele.sites.wire import Packet

Ways = dict[tuple[str, str], Traffic]  # by peer and content


class Books:
    """Counts over a whole run, whatever processes and epochs it took.

    What was said and heard is counted anew when a program is fed from its journal; what no journal
    has goes on from what an earlier process wrote down.

    Attributes
    ----------
    sent, heard : dict of (peer, content) to Traffic
        Each message once, as agreed to.
    refused : Counter of (peer, reason)
    again : int
        Messages that were said again.
    wire_bytes : int
        All bytes given to the carrier.
    """

    _busy: float  # processor seconds of this process that are not of this run

    def __init__(self) -> None:
        self.sent: Ways = {}
        self.heard: Ways = {}
        self.refused: Counter[tuple[str, str]] = Counter()
        self.again = self.wire_bytes = 0
        self._busy = processor_seconds()

    @staticmethod
    def count(ways: Ways, peer: str, packet: Packet) -> None:
        """Enter a message."""
        _add(ways, (peer, packet.content), 1, packet.values.size, packet.values.nbytes)

    def ledger(self, me: str, number: int) -> Ledger:
        """What was said."""
        return Ledger.of({(me, peer, what): t for (peer, what), t in self.sent.items()}, number)

    def ledger_heard(self, me: str, number: int) -> Ledger:
        """What was used of all that came."""
        return Ledger.of({(peer, me, what): t for (peer, what), t in self.heard.items()}, number)

    # -- over restarts --------------------------------------------------------------------------

    def plain(self) -> dict[str, list[list[Any]]]:
        """What was said and heard, to be kept when the members begin again without some."""
        return {
            name: [[*way, t.messages, t.floats, t.bytes] for way, t in ways.items()]
            for name, ways in (("sent", self.sent), ("heard", self.heard))
        }

    def begin_with(self, earlier: dict[str, list[list[Any]]], status: dict[str, Any]) -> None:
        """Go on from what was said before members left, and from the status of a process before.

        Examples
        --------
        >>> books = Books()
        >>> books.begin_with({"sent": [["kemi", "sums", 1, 7, 56]]}, {"bytes_sent": 300})
        >>> books.ledger("oulu", 0).bytes, books.wire_bytes
        (56, 300)
        """
        for name, ways in (("sent", self.sent), ("heard", self.heard)):
            for peer, what, messages, floats, size in earlier.get(name, ()):
                _add(ways, (peer, what), messages, floats, size)
        self.wire_bytes += int(status.get("bytes_sent") or 0)
        self.again += int(status.get("said_again") or 0)
        self._busy -= float(status.get("cpu_seconds") or 0.0)
        for text, count in (status.get("refused") or {}).items():
            who, _, why = text.partition(": ")
            self.refused[who, why] += int(count)

    def over_all(self) -> dict[str, Any]:
        """What no journal has, as it stands in the status."""
        refused = {f"{who}: {why}": count for (who, why), count in sorted(self.refused.items())}
        return {
            "bytes_sent": self.wire_bytes,
            "said_again": self.again,
            "cpu_seconds": self.cpu_seconds,
            "refused": refused,
        }

    @property
    def cpu_seconds(self) -> float:
        """Processor seconds of the processes of this run so far."""
        return round(processor_seconds() - self._busy, 3)

    def at_least(self, sizes: Iterable[int]) -> None:
        """A killed process wrote down less than it sent: no less than its journal has."""
        self.wire_bytes = max(self.wire_bytes, sum(sizes))


def _add(ways: Ways, way: tuple[str, str], messages: int, floats: int, size: int) -> None:
    sums = ways.get(way)
    if sums is None:
        sums = ways[way] = Traffic()
    sums.messages += messages
    sums.floats += floats
    sums.bytes += size
