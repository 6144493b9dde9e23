"""Drives the program of one site: brings what it asks for from the other sites.

All sites run the same program, so that they ask for the same things in the same order.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from nefele._checks import Array
from nefele.program import Exchange, Heard, Program, Sum, Work, check_request
from nefele.runtime.tree import join
from nefele.sites.journal import HEARD, Record
from nefele.sites.line import FIRST, LAST, Line
from nefele.sites.wire import Kind, Packet

T = TypeVar("T")

_FAREWELLS = 3
_SILENCE = 5.0  # seconds in which one who waits would have been heard
_PAUSE = 0.05  # seconds in which one who does not wait still listens for news
# Contents with one row for each node at the border.
_OF_NODES = ("parameters", "correction", "predictions", "probabilities")


class Driver(Line):
    """Drives one program over a carrier; see `Voice` for its parameters and books."""

    def run(self, program: Program[T]) -> T:
        """Drive a program to its end, from where the journal leaves off."""
        self._past = None if self.journal.empty else self.journal.records()
        self._coming = None if self._past is None else next(self._past, None)
        for name in self.peers if self._past is None else ():
            self._greet(name)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            return self._drive(program)

    def _drive(self, program: Program[T]) -> T:
        answer: Any = None
        while True:
            try:
                request = program.send(answer)
            except StopIteration as end:
                self._ended, self._now = True, []
                self.journal.add()
                if self._past is not None:
                    self.resumed = self.number
                return end.value
            check_request(request)
            if isinstance(request, Work):
                answer = self._work(request)
                continue
            if isinstance(request, Exchange) and not request.wait:
                answer = self._post(request)
                continue
            self._next_number()
            answer = (self._exchange if isinstance(request, Exchange) else self._sum)(request)
            self.told(self)

    def _next_number(self) -> None:
        """Go on; what others said about requests before is of no use any more."""
        for number, kind, name in [key for key in self._inbox if key[0] <= self.number]:
            del self._inbox[number, kind, name]
            self.refused[name, "wrong content"] += 1
        self.number += 1
        self._now = []
        self._used.clear()

    def _work(self, work: Work) -> Any:
        """A long computation; what comes meanwhile is answered."""
        if self._past is not None:
            return work.call(*work.arguments)
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(work.call, *work.arguments)
            while not future.done():
                self._take(0.02)
            return future.result()

    def _exchange(self, request: Exchange) -> Heard:
        arrays = request.arrays
        content, epoch, number = request.content, self.epoch, self.number
        self._say({q: Packet(Kind.ROWS, content, epoch, number, v) for q, v in arrays.items()})
        shapes = {q: np.shape(v) for q, v in arrays.items()}
        if content in _OF_NODES:  # a neighbour may have more nodes at the border, or fewer
            shapes = {q: (self.links.rows[q], *shape[1:]) for q, shape in shapes.items()}
        found = self._await(Kind.ROWS, content, shapes)
        return Heard(found, frozenset(found))

    def _post(self, request: Exchange) -> Heard:
        """Tell all, and take the newest that has come; written down, since it depends on time."""
        self.posts += 1
        fresh: list[str] = []
        packets = {
            q: Packet(Kind.NEWS, request.content, self.epoch, self.posts, v)
            for q, v in request.arrays.items()
        }
        for to, packet in packets.items():
            self._check_said(packet.content, to, packet.values)
            self.books.count(self.books.sent, to, packet)
        while (record := self._next_past()) is not None:
            if record.kind != HEARD:
                raise ValueError(self._differs())
            if record.peer == len(self.place):  # what ends the news of one post
                return self._newest(request, fresh)
            name = self.links.members[record.peer]
            self._news[name] = self.seal.decode_from(name, record.payload)
            fresh.append(name)
        for to, packet in packets.items():
            self._send(to, packet)
        due = time.monotonic() + _PAUSE
        while not self._fresh and (now := time.monotonic()) < due:
            self._take(due - now)
        new = [q for q in self.peers if q in self._fresh and self._is_news(q, request)]
        self._fresh.clear()
        rows = [Record(HEARD, self.number, self.place[q], self._news[q].raw) for q in new]
        self.journal.add(*rows, Record(HEARD, self.number, len(self.place), b""))
        self._posted = True
        return self._newest(request, list(dict.fromkeys([*fresh, *new])))

    def _is_news(self, name: str, request: Exchange) -> bool:
        """Whether what has come can be used; else it is forgotten."""
        if name in request.arrays:
            shape = (self.links.rows[name], *np.shape(request.arrays[name])[1:])
            if self._usable(name, self._news[name], request.content, shape):
                return True
        del self._news[name]
        return False

    def _newest(self, request: Exchange, fresh: list[str]) -> Heard:
        known = {name: self._news[name] for name in request.arrays if name in self._news}
        for name in fresh:
            self.books.count(self.books.heard, name, self._news[name])
        return Heard({name: packet.values for name, packet in known.items()}, frozenset(fresh))

    def _sum(self, request: Sum) -> Array:
        tree, values = self.links.tree, np.asarray(request.values, dtype=float)
        below, above = tree.children[self.me], tree.parent[self.me]
        found = self._await(Kind.UP, "sums", dict.fromkeys(below, values.shape))
        with np.errstate(invalid="ignore"):  # of infinities; a NaN is not said
            total = join(values, [found[name] for name in below], request.largest)
        if above is not None:
            self._say({above: Packet(Kind.UP, "sums", self.epoch, self.number, total)})
            total = self._await(Kind.DOWN, "sums", {above: values.shape})[above]
        down = Packet(Kind.DOWN, "sums", self.epoch, self.number, total)
        self._say(dict.fromkeys(below, down))
        self.presence.told(self.links.members)  # all have added something
        return np.array(total)

    # -- the end --------------------------------------------------------------------------------

    def linger(self, limit: float) -> bool:
        """Answer others until all peers have ended too, or for so many seconds; whether they have.

        Whoever was stopped shortly before the end needs what was said then. One who was stopped
        here itself and hears nobody any more has nobody left to help.
        """
        end, due, wait = time.monotonic() + limit, 0.0, FIRST
        self.waiting = [name for name in self.peers if name not in self.parted]
        begun = self.presence.listened
        while self.waiting and (now := time.monotonic()) < end:
            silent = self.presence.listened - max(begun, self.presence.last_word) > _SILENCE
            if silent and self.resumed == self.number:
                break
            if now >= due:
                for name in self.waiting:
                    self._bye(name, again=True)
                wait, due = min(2 * wait, LAST), now + wait
                self.told(self)
            self._take(min(due - now, end - now, 0.1))
            self.waiting = [name for name in self.peers if name not in self.parted]
        for _ in range(_FAREWELLS):
            for name in self.peers:
                self._bye(name, again=False)
            self._take(0.05)
        return not self.waiting
