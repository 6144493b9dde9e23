"""Sealed messages between a site and its peers, said again until they are answered.

Requests have the same numbers everywhere. A site goes on from request k when all answers to it are
there. It says its part of k again and again while it waits; whoever is further answers by what it
said then. So a message that is lost, repeated, late or out of order costs time and nothing else.
"""

from __future__ import annotations

import queue
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.runtime.messages import Ledger, Traffic
from nefele.sites.carriers import Carrier
from nefele.sites.journal import HEARD, SAID, Journal, Record
from nefele.sites.peers import AbsentError, BrokenLinkError, Links, epoch_of
from nefele.sites.sealing import Seal, is_hello, is_sealed
from nefele.sites.wire import Kind, Packet, RefusedError

FIRST, LAST = 0.05, 2.0  # seconds until something is said again, doubling between these
_PATIENT = 5.0  # and at first so many times as long as answers have taken of late
_BROKEN = 1000  # messages of a peer that were refused, from which its link counts as broken
_AHEAD = 2  # requests that a peer can be ahead
_UNKEYED = ("no hello yet", "changed or forged")  # refused for want of a key, perhaps


class Line:
    """What a site says to its peers and hears from them, request by request.

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
        allow: Callable[[str, str, Array], object] = lambda content, to, values: None,
        told: Callable[[Any], object] = lambda line: None,
    ) -> None:
        self.links, self.carrier, self.seal, self.journal = links, carrier, seal, journal
        self.gone, self.patience, self.allow, self.told = list(gone), patience, allow, told
        self.me, self.peers, self.epoch = links.me, links.peers, epoch_of(gone)
        self.place = {name: i for i, name in enumerate(links.members)}
        self.number = 0
        self._sent: dict[tuple[str, str], Traffic] = {}  # by peer and content
        self._heard: dict[tuple[str, str], Traffic] = {}
        self.refused: Counter[tuple[str, str]] = Counter()
        self.again = self.wire_bytes = self.resumed = 0
        self.waiting: list[str] = []
        self.posts = 0  # requests that did not wait
        self._posted = False  # and whether one was the last
        self.parted: set[str] = set()  # peers that have ended
        self._news: dict[str, Packet] = {}  # the newest of those who do not wait
        self._fresh: set[str] = set()  # and who has said something since
        self.latest: dict[str, Array] = {}  # the last parameters heard of each neighbour
        self._inbox: dict[tuple[int, Kind, str], Packet] = {}
        self._queue: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        self._now: list[tuple[str, Packet]] = []  # said in the present request
        self._behind = False  # others are further: what is said first asks for an answer
        self._past: Iterator[Record] | None = None
        self._coming: Record | None = None  # the next of the past
        self._used: set[tuple[Kind, str]] = set()  # messages of the present request
        self._listened = 0.0  # seconds, so far
        self._last_word = dict.fromkeys(self.peers, 0.0)  # by that clock
        self._greeted: dict[str, float] = {}
        self._ended = False
        self._usual = FIRST  # seconds in which answers come

    def receive(self, sender: str, blob: bytes) -> None:
        """Take what a carrier brings; from any thread."""
        self._queue.put((sender, blob))

    @property
    def ledger(self) -> Ledger:
        """What was said, each message once."""
        ways = {(self.me, peer, what): sums for (peer, what), sums in self._sent.items()}
        return Ledger.of(ways, self.number)

    @property
    def heard(self) -> Ledger:
        """What was used of all that came."""
        ways = {(peer, self.me, what): sums for (peer, what), sums in self._heard.items()}
        return Ledger.of(ways, self.number)

    # -- saying ---------------------------------------------------------------------------------

    def _say(self, packets: dict[str, Packet]) -> None:
        """Write down what is said, then send it; after a restart it was written already."""
        fresh = []
        for to, packet in packets.items():
            if to not in self._last_word:
                raise ValueError(f"{self.me!r} has no link to {to!r}.")
            self._check_said(packet.content, to, packet.values)
            self._count(self._sent, to, packet)
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

    @staticmethod
    def _count(books: dict[tuple[str, str], Traffic], peer: str, packet: Packet) -> None:
        sums = books.get((peer, packet.content))
        if sums is None:
            sums = books[peer, packet.content] = Traffic()
        sums.messages += 1
        sums.floats += packet.values.size
        sums.bytes += packet.values.nbytes

    def _check_said(self, content: str, to: str, values: Array) -> None:
        """Refuse to say what was not agreed, or what others would refuse."""
        self.allow(content, to, values)
        if not _is_finite(content, values):
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
            for name in self.peers:
                self._greet(name)
        return record

    def _send(self, to: str, packet: Packet) -> None:
        self.again += packet.again or packet.old
        self._send_plain(to, self.seal.encode(to, packet))

    def _send_plain(self, to: str, plain: bytes) -> None:
        if not self.seal.knows(to):
            self._greet(to)
            return
        blob = self.seal.seal_plain(to, plain)
        self.wire_bytes += len(blob)
        self.carrier.send(to, blob)

    def _greet(self, to: str, ask: bool = True) -> None:
        blob = self.seal.hello(ask)
        self.wire_bytes += len(blob)
        self.carrier.send(to, blob)

    def _answer(self, to: str, number: int) -> None:
        """Say again what was said in some request to one who still waits there."""
        old = number < self.number or self._ended
        said = self.journal.said(number, self.place[to])
        for payload in said:
            self._send(to, replace(self.seal.decode(to, payload), old=old))
        if not said:
            self._here(to)

    # -- hearing --------------------------------------------------------------------------------

    def _await(
        self, kind: Kind, content: str, shapes: Mapping[str, tuple[int, ...]]
    ) -> dict[str, Array]:
        """The answers of some peers to the present request, in their order."""
        found: dict[str, Packet] = {}
        for name in shapes:
            record = self._next_past()
            if record is None:
                break
            if (record.kind, record.number, record.peer) != (HEARD, self.number, self.place[name]):
                raise ValueError(f"{str(self.journal.path)!r} is damaged. Remove it to begin anew.")
            found[name] = self.seal.decode_from(name, record.payload)
            self._used.add((kind, name))
        known = set(found)
        start = time.monotonic()
        wait = min(max(_PATIENT * self._usual, FIRST), LAST)
        due = start if self._behind else start + wait
        behind = insisted = False
        while True:
            for name in [name for name in shapes if name not in found]:
                packet = self._inbox.pop((self.number, kind, name), None)
                if packet is not None and self._usable(name, packet, content, shapes[name]):
                    found[name], behind = packet, behind or packet.old
                    self._used.add((kind, name))
            self.waiting = [name for name in shapes if name not in found]
            if not self.waiting:
                break
            if (now := time.monotonic()) >= due:
                insisted = True
                self._insist()
                wait, due = min(2 * wait, LAST), now + wait
                self._check_absent()
                self.told(self)
            self._take(max(due - now, 0.001))
        fresh = [name for name in shapes if name not in known]
        if fresh:
            if time.monotonic() < due and not insisted:  # otherwise something was lost
                self._usual += 0.1 * (time.monotonic() - start - self._usual)
            self._behind = behind
            self.journal.keep(
                *(Record(HEARD, self.number, self.place[q], found[q].raw) for q in fresh)
            )
        for name in shapes:
            self._count(self._heard, name, found[name])
            if content == "parameters":
                self.latest[name] = found[name].values
        return {name: found[name].values for name in shapes}

    def _usable(self, name: str, packet: Packet, content: str, shape: tuple[int, ...]) -> bool:
        """Whether a message is what the present request asks for."""
        values = packet.values
        if packet.content != content:
            reason = "wrong content"
        elif values.shape != shape:
            reason = "wrong shape"
        elif not _is_finite(content, values):
            reason = "not finite"
        else:
            return True
        self.refused[name, reason] += 1
        if self.refused[name, reason] >= _BROKEN:
            raise BrokenLinkError(
                f"{name!r} has sent {_BROKEN} messages that are refused: {reason}. Ask its people."
            )
        return False

    def _insist(self) -> None:
        """Say again what the missing ones may lack."""
        for name in self.peers:  # of all that are not known yet: one that differs is found soon
            if not self.seal.knows(name):
                self._greet(name)
        said = {to for to, _ in self._now}
        for name in self.waiting:  # whoever has nothing to say yet still asks
            if name not in said and self.seal.knows(name):
                self._here(name, ask=True)
        for to, packet in self._now:
            if to in self.waiting and self.seal.knows(to):
                self._send(to, replace(packet, again=True))

    def _here(self, to: str, ask: bool = False) -> None:
        """Say that this one is alive, and where."""
        self._send(to, Packet(Kind.HERE, "sums", self.epoch, self.number, np.zeros(0), ask))

    def _check_absent(self) -> None:
        if self.patience is None:
            return
        late = self._listened - self.patience
        gone = [name for name in self.waiting if self._last_word[name] < late]
        if gone:
            self.announce(gone)
            raise AbsentError(gone)

    def announce(self, names: list[str]) -> None:
        """Tell all peers, old ones too, who has been away for too long, now or before."""
        for name in self.seal.peers:
            self._tell_gone(name, [*self.gone, *names])

    def _tell_gone(self, to: str, names: list[str]) -> None:
        if self.seal.knows(to):
            values = np.array([float(self.place[name]) for name in names])
            self._send(to, Packet(Kind.ABSENT, "sums", self.epoch, 0, values))

    def _take(self, timeout: float) -> None:
        """Handle what has come, or comes within some seconds.

        Others are silent only while one listens: not while this site computes, replays its
        journal or is suspended.
        """
        start = time.monotonic()
        try:
            found = self._queue.get(timeout=timeout)
        except queue.Empty:
            return
        finally:
            self._listened += min(time.monotonic() - start, timeout)
        self._handle(*found)
        for _ in range(self._queue.qsize()):  # not what comes meanwhile: that may never end
            self._handle(*self._queue.get_nowait())

    def _handle(self, sender: str, blob: bytes) -> None:
        try:
            if sender not in self.seal.peers:
                raise RefusedError("not a neighbour")
            if is_hello(blob):
                self._meet(sender, blob)
            elif is_sealed(blob):
                self._accept(sender, self.seal.open(sender, blob))
            else:
                raise RefusedError("not sealed")
        except RefusedError as error:
            self.refused[sender if sender in self.seal.peers else "?", error.reason] += 1
            if error.reason in _UNKEYED:
                self._greet_again(sender)

    def _greet_again(self, name: str) -> None:
        """One of the two lacks the other's key: it was lost, or the hello was."""
        now = time.monotonic()
        if now >= self._greeted.get(name, now):
            self._greeted[name] = now + LAST
            self._greet(name)

    def _meet(self, sender: str, blob: bytes) -> None:
        new = not self.seal.knows(sender)
        if self.seal.meet(sender, blob):
            self._greet(sender, ask=False)
        self._last_word[sender] = self._listened
        for to, packet in self._now if new else ():
            if to == sender:
                self._send(to, replace(packet, again=True))

    def _accept(self, sender: str, packet: Packet) -> None:
        """Keep an authentic message, or answer it."""
        self._last_word[sender] = self._listened
        if packet.kind == Kind.ABSENT:
            self._absent(packet)
        elif packet.epoch != self.epoch or sender in self.gone:
            if self.gone and packet.again:
                self._tell_gone(sender, self.gone)
            raise RefusedError("other epoch")
        elif packet.kind == Kind.BYE:
            self.parted.add(sender)
            if self._ended and packet.again:
                self._bye(sender, again=False)
        elif packet.kind == Kind.NEWS:
            before = self._news.get(sender)
            if before is not None and before.number >= packet.number:
                raise RefusedError("repeated or late")
            self._news[sender] = packet
            self._fresh.add(sender)
        elif packet.kind == Kind.HERE and not packet.again:
            return
        elif packet.number > self.number + _AHEAD:
            if packet.again:
                self._here(sender)
            raise RefusedError("wrong round")
        elif packet.number > self.number or (packet.number == self.number and not self._ended):
            new = packet.kind == Kind.HERE or self._keep(sender, packet)
            if packet.again and packet.number > self.number:
                self._here(sender)
            elif packet.again:
                self._answer(sender, packet.number)
            elif not new:
                raise RefusedError("repeated or late")
        elif packet.again:
            self._answer(sender, packet.number)
        else:
            raise RefusedError("repeated or late")

    def _keep(self, sender: str, packet: Packet) -> bool:
        """Put a message into the inbox, unless it is or was there."""
        place = packet.number, packet.kind, sender
        used = packet.number == self.number and (packet.kind, sender) in self._used
        if used or place in self._inbox:
            return False
        self._inbox[place] = packet
        return True

    def _absent(self, packet: Packet) -> None:
        """Another member has missed some; whoever hears that for the first time leaves, too."""
        places = packet.values
        if self.patience is None:  # all agreed to wait, however long
            raise RefusedError("not agreed")
        if places.ndim != 1 or not np.isin(places, np.arange(len(self.links.members))).all():
            raise RefusedError("malformed")
        names = [self.links.members[int(place)] for place in places]
        new = [name for name in names if name not in self.gone]
        if new:
            self.announce(new)
            raise AbsentError(new)

    def _bye(self, to: str, again: bool) -> None:
        self._send(to, Packet(Kind.BYE, "sums", self.epoch, self.number, np.zeros(0), again))


def _is_finite(content: str, values: Array) -> bool:
    """Sums may be infinite, where a problem is not bounded; nothing else may, and none NaN."""
    if content == "sums":
        return not np.isnan(values).any()
    return bool(np.isfinite(values).all())
