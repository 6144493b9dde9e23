"""What a site says to its peers: written down, sealed, and said again until it is answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.runtime.messages import Ledger
from nefele.sites.books import Books
from nefele.sites.carriers import Carrier
from nefele.sites.journal import SAID, Journal, Record
from nefele.sites.peers import Links, epoch_of
from nefele.sites.presence import Part, Presence
from nefele.sites.sealing import OVERHEAD, Seal
from nefele.sites.wire import Kind, Packet


class Voice:
    """The saying half of a `Line`, with the state of both.

    Parameters
    ----------
    links : Links
    carrier : Carrier
        Opened and closed by whoever made it; it hands over what comes by `receive`.
    seal : Seal
    journal : Journal
    gone : list of str, optional
        Members that have left.
    patience : float, optional
        Seconds of silence after which a peer counts as absent; default: never.
    allow : callable, optional
        Is given (content, receiver, array) of all that is to leave; raises when it is not agreed.
    part : callable, optional
        Gives the members that hang together with this one when some have gone.
    books : Books, optional
        With what was counted before.
    told : callable, optional
        Is given this object about once a second while it waits, and after each request.

    Attributes
    ----------
    number : int
        Of the present request.
    refused : Counter of (peer, reason)
    again : int
        Messages that were said again.
    wire_bytes : int
        All bytes given to the carrier.
    waiting : list of str
        Peers that have not answered yet.
    why : str
        Why one that has been away for too long is waited for all the same.
    resumed : int
        Request up to which the journal of an earlier process led; 0: there was none.
    """

    def __init__(
        self,
        links: Links,
        carrier: Carrier,
        seal: Seal,
        journal: Journal,
        *,
        gone: Sequence[str] = (),
        patience: float | None = None,
        part: Part | None = None,
        books: Books | None = None,
        allow: Callable[[str, str, Array], object] = lambda content, to, values: None,
        told: Callable[[Any], object] = lambda line: None,
    ) -> None:
        self.links, self.carrier, self.seal, self.journal = links, carrier, seal, journal
        self.gone, self.allow, self.told = list(gone), allow, told
        self.me, self.peers, self.epoch = links.me, links.peers, epoch_of(gone)
        self.place = {name: i for i, name in enumerate(links.members)}
        self.books = Books() if books is None else books
        who = links.members, links.me, self.peers
        self.presence = Presence(*who, patience, part, begun=bool(gone))
        self.number = self.resumed = 0
        self.waiting: list[str] = []
        self._now: list[tuple[str, Packet]] = []  # said in the present request
        self._behind = False  # others are further: what is said first asks for an answer
        self._past: Iterator[Record] | None = None
        self._coming: Record | None = None  # the next of the past
        self._posted = False  # whether the last request did not wait
        self._ended = False

    @property
    def refused(self) -> Counter[tuple[str, str]]:
        """What was not believed, by peer and reason."""
        return self.books.refused

    @property
    def again(self) -> int:
        """How many messages were said again."""
        return self.books.again

    @property
    def wire_bytes(self) -> int:
        """All bytes that went to the carrier."""
        return self.books.wire_bytes

    @property
    def why(self) -> str:
        """Why one that has been away for too long is waited for all the same."""
        return self.presence.why

    @property
    def ledger(self) -> Ledger:
        """What was said, each message once."""
        return self.books.ledger(self.me, self.number)

    @property
    def heard(self) -> Ledger:
        """What was used of all that came."""
        return self.books.ledger_heard(self.me, self.number)

    def _say(self, packets: dict[str, Packet]) -> None:
        """Write down what is said, then send it; after a restart it was written already."""
        fresh = []
        for to, packet in packets.items():
            if to not in self.peers:
                raise ValueError(f"{self.me!r} has no link to {to!r}.")
            self._check_said(packet.content, to, packet.values)
            self.books.count(self.books.sent, to, packet)
            plain = self.seal.encode(to, packet)
            record = Record(SAID, self.number, self.place[to], plain)
            self._now.append((to, packet))
            if not self._repeated(record):
                fresh.append((to, record, packet))
        if not fresh:
            return
        self.journal.add(*(record for _, record, _ in fresh))
        if self._posted:  # what was heard then cannot be heard again
            self.journal.sync()
            self._posted = False
        for to, record, packet in fresh:
            if self._behind:
                self._send(to, replace(packet, again=True))
            else:
                self._send_plain(to, record.payload)

    def _check_said(self, content: str, to: str, values: Array) -> None:
        """Refuse to say what was not agreed, or what others would refuse."""
        self.allow(content, to, values)
        if not is_finite(content, values):
            raise ValueError(
                f"{self.me} must not send {content} that are not finite; it would in request "
                f"{self.number}. Check its rows, or scale the features."
            )

    def _differs(self) -> str:
        return (
            f"The program of {self.me!r} must do what it did before it was stopped; in request "
            f"{self.number} it does not. Put rows, files and versions back as they were, give "
            "the model a random_state, or remove the folder of the run to begin anew."
        )

    def _repeated(self, record: Record) -> bool:
        """Whether the journal has it already, and says the same."""
        before = self._next_past()
        if before is None:
            return False
        if before != record:
            raise ValueError(self._differs())
        return True

    def _next_past(self) -> Record | None:
        """The next record from before a restart; with the last one all peers are greeted."""
        if self._past is None:
            return None
        record, self._coming = self._coming, next(self._past, None)
        if self._coming is None:
            self._past, self._behind, self.resumed = None, True, self.number
            sizes = (len(one.payload) for one in self.journal.records() if one.kind == SAID)
            self.books.at_least(size + OVERHEAD for size in sizes)
            for name in self.peers:
                self._greet(name)
        return record

    def _send(self, to: str, packet: Packet) -> None:
        self.books.again += packet.again or packet.old
        self._send_plain(to, self.seal.encode(to, packet))

    def _send_plain(self, to: str, plain: bytes) -> None:
        if not self.seal.knows(to):
            self._greet(to)
            return
        blob = self.seal.seal_plain(to, plain)
        self.books.wire_bytes += len(blob)
        self.carrier.send(to, blob)

    def _greet(self, to: str, ask: bool = True) -> None:
        blob = self.seal.hello(ask)
        self.books.wire_bytes += len(blob)
        self.carrier.send(to, blob)

    def _answer(self, to: str, number: int) -> None:
        """Say again what was said in some request to one who still waits there."""
        old = number < self.number or self._ended
        said = self.journal.said(number, self.place[to])
        for payload in said:
            self._send(to, replace(self.seal.decode(to, payload), old=old))
        if not said:
            self._here(to)

    def _insist(self) -> None:
        """Say again what the missing ones may lack."""
        for name in self.peers:  # of all that are not known yet: one that differs is found soon
            if not self.seal.knows(name):
                self._greet(name)
        said = {to for to, _ in self._now}
        for name in self.waiting:  # whoever has nothing to say yet still asks
            if name not in said and self.seal.knows(name):
                self._here(name, ask=True)
        if self._starts:
            for name in self.peers:
                if self.seal.knows(name):
                    self._here(name)
        for name in self.peers if self.presence.doubts(self.waiting) else ():
            if name not in self.waiting and self.seal.knows(name):
                self._here(name, ask=True)
        for to, packet in self._now:
            if to in self.waiting and self.seal.knows(to):
                self._send(to, replace(packet, again=True))

    @property
    def _starts(self) -> bool:
        """Whether some may not have begun, and nobody would wait for them for ever."""
        presence = self.presence
        return presence.patience is not None and len(presence.known) < len(presence.members)

    def _here(self, to: str, ask: bool = False) -> None:
        """Say that this one is alive, and where; at the beginning also who else has begun."""
        known = self.presence.known if self._starts else ()
        values = np.array(sorted(float(self.place[name]) for name in known))
        self._send(to, Packet(Kind.HERE, "sums", self.epoch, self.number, values, ask))

    def announce(self, names: list[str]) -> None:
        """Tell all peers, old ones too, who has been away for too long, now or before."""
        for name in self.seal.peers:
            self._tell_gone(name, [*self.gone, *names])

    def _tell_gone(self, to: str, names: list[str]) -> None:
        if self.seal.knows(to):
            values = np.array([float(self.place[name]) for name in names])
            self._send(to, Packet(Kind.ABSENT, "sums", self.epoch, 0, values))

    def _bye(self, to: str, again: bool) -> None:
        self._send(to, Packet(Kind.BYE, "sums", self.epoch, self.number, np.zeros(0), again))


def is_finite(content: str, values: Array) -> bool:
    """Sums may be infinite, where a problem is not bounded; nothing else may, and none NaN."""
    if content == "sums":
        return not np.isnan(values).any()
    return bool(np.isfinite(values).all())
