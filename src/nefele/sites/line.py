"""Sealed messages between a site and its peers, said again until they are answered.

Requests have the same numbers everywhere. A site goes on from request k when all answers to it are
there. It says its part of k again and again while it waits; whoever is further answers by what it
said then. So a message that is lost, repeated, late or out of order costs time and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.sites.journal import HEARD, Record
from nefele.sites.mailbox import Mailbox
from nefele.sites.peers import AbsentError, BrokenLinkError
from nefele.sites.saying import Voice, is_finite
from nefele.sites.sealing import is_hello, is_sealed
from nefele.sites.wire import Kind, Packet, RefusedError

FIRST, LAST = 0.05, 2.0  # seconds until something is said again, doubling between these
_PATIENT = 5.0  # and at first so many times as long as answers have taken of late
_BROKEN = 1000  # messages of a peer that were refused, from which its link counts as broken
_AHEAD = 2  # requests that a peer can be ahead
STRANGER = "?"  # stands for all who are no neighbours
_UNKEYED = ("no hello yet", "changed or forged")  # refused for want of a key, perhaps


class Line(Voice):
    """What a site says to its peers and hears from them, request by request.

    See `Voice` for its parameters and books.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.posts = 0  # requests that did not wait
        self.parted: set[str] = set()  # peers that have ended
        self._news: dict[str, Packet] = {}  # the newest of those who do not wait
        self._fresh: set[str] = set()  # and who has said something since
        self.latest: dict[str, Array] = {}  # the last parameters heard of each neighbour
        self._inbox: dict[tuple[int, Kind, str], Packet] = {}
        self._mailbox = Mailbox()
        self._used: set[tuple[Kind, str]] = set()  # messages of the present request
        self._greeted: dict[str, float] = {}
        self._usual = FIRST  # seconds in which answers come

    def receive(self, sender: str, blob: bytes) -> None:
        """Take what a carrier brings; from any thread."""
        self._mailbox.put(sender if sender in self.seal.peers else STRANGER, blob)

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
                due = now + min(wait, self.presence.pace(self.waiting))
                wait = min(2 * wait, LAST)
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
            self.books.count(self.books.heard, name, found[name])
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
        elif not is_finite(content, values):
            reason = "not finite"
        else:
            return True
        self.refused[name, reason] += 1
        if self.refused[name, reason] >= _BROKEN:
            raise BrokenLinkError(
                f"{name!r} has sent {_BROKEN} messages that are refused: {reason}. Ask its people."
            )
        return False

    def _check_absent(self) -> None:
        gone = self.presence.missed(self.waiting, self.gone)
        if gone:
            self.announce(gone)
            raise AbsentError(gone)

    def _take(self, timeout: float) -> None:
        """Handle what has come, or comes within some seconds."""
        start = time.monotonic()
        found = self._mailbox.get(timeout)
        self.presence.listened += min(time.monotonic() - start, timeout)
        if found is None:
            return
        self._handle(*found)
        for _ in range(len(self._mailbox)):  # not what comes meanwhile: that may never end
            if (found := self._mailbox.get(0.0)) is not None:
                self._handle(*found)
        for sender, count in self._mailbox.take_dropped().items():
            self.refused[sender, "too many"] += count

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
            self.refused[sender, error.reason] += 1
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
        if sender not in self.gone:
            self.presence.heard(sender)
        for to, packet in self._now if new else ():
            if to == sender:
                self._send(to, replace(packet, again=True))

    def _accept(self, sender: str, packet: Packet) -> None:
        """Keep an authentic message, or answer it."""
        if sender in self.gone:
            # Two that miss each other would tell it for ever.
            missed = packet.kind == Kind.ABSENT and self.me in self._named(packet)
            if (packet.again or packet.kind == Kind.ABSENT) and not missed:
                self._tell_gone(sender, self.gone)
            raise RefusedError("other epoch")
        if packet.kind == Kind.ABSENT:
            self._absent(packet)
            return
        if packet.epoch != self.epoch:
            if self.gone and packet.again:
                self._tell_gone(sender, self.gone)
            raise RefusedError("other epoch")
        self.presence.heard(sender)
        if packet.kind == Kind.HERE:
            self.presence.told(self._named(packet))
        if packet.kind == Kind.BYE:
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
        if self.presence.patience is None:  # all agreed to wait, however long
            raise RefusedError("not agreed")
        names = self._named(packet)
        new = [name for name in names if name not in self.gone]
        gone = self.presence.without([*self.gone, *names], self.gone) if new else []
        if gone:
            self.announce(gone)
            raise AbsentError(gone)

    def _named(self, packet: Packet) -> list[str]:
        """The members whose numbers a message has."""
        places = packet.values
        if places.ndim != 1 or not np.isin(places, np.arange(len(self.links.members))).all():
            raise RefusedError("malformed")
        return [self.links.members[int(place)] for place in places]
