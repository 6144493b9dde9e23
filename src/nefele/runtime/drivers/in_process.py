"""All parts of a network in one process, under faults drawn from a seed: tests and teaching."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.program import Exchange, Heard, Program, Sum, Work
from nefele.runtime.faults import Faults, Post
from nefele.runtime.messages import Ledger, Message

Pool = Callable[[list[Work]], list[Any]]


def one_by_one(tasks: list[Work]) -> list[Any]:
    """The results of some computations, without a pool."""
    return [task.call(*task.arguments) for task in tasks]


@dataclass(eq=False)
class _Seat:
    """A program, what it asks for, and what has come for it."""

    program: Program[Any]
    request: Any = None  # None before the start and after the end
    done: bool = False
    value: Any = None
    number: int = 0  # of its exchanges so far
    sent: int = 0  # the last round in which this exchange's rows were sent
    before: Exchange | None = None  # the exchange before this one
    inbox: dict[Any, dict[int, Array]] = field(default_factory=dict)  # by sender and number

    def advance(self, answer: Any) -> None:
        """Go on to the next request."""
        if isinstance(self.request, Exchange):
            self.before = self.request
        try:
            self.request = self.program.send(answer)
            self.number += isinstance(self.request, Exchange)
            self.sent = 0
        except StopIteration as end:
            self.request, self.done, self.value = None, True, end.value


class InProcess:
    """Drives the programs of all parts, round by round.

    A part is in `links` with every neighbour it can tell something, and hears from those that
    have it in theirs.

    Parameters
    ----------
    links : dict of part to its neighbours
    programs : dict of part to program
    faults : Faults, optional
        What goes wrong; its nodes are the parts. Sums always arrive.
    wait : bool
        Whether a program goes on only when all neighbours have answered. Rows are sent again until
        they do, so that what is lost costs time and nothing else. Otherwise it goes on in every
        round with the newest that it has heard.
    steps : int
        Exchanges in a round, for programs that do not wait.
    pool : callable, optional
        Does a list of `Work`.

    Attributes
    ----------
    ledger : Ledger
    values : dict of part to what its program has returned
    staleness : int
        No program that did not wait has used rows older than this many rounds, or rested longer.

    Examples
    --------
    >>> from nefele.program import total
    >>> InProcess({"a": ["b"], "b": ["a"]}, {"a": total(1.0), "b": total(2.0)}).run()
    {'a': 3.0, 'b': 3.0}
    """

    def __init__(
        self,
        links: Mapping[Any, Iterable[Any]],
        programs: Mapping[Any, Program[Any]],
        faults: Faults | None = None,
        *,
        wait: bool = True,
        steps: int = 1,
        pool: Pool = one_by_one,
    ) -> None:
        self.names = list(links)
        self.seats = {name: _Seat(programs[name]) for name in self.names}
        self.wait, self.steps, self.pool = wait, steps, pool
        place = {name: i for i, name in enumerate(self.names)}
        pairs = [(a, b) for a in self.names for b in links[a]]
        self.link = {pair: i for i, pair in enumerate(pairs)}
        self.pairs = pairs
        self.incoming: dict[Any, list[Any]] = {name: [] for name in self.names}
        for a, b in pairs:
            self.incoming[b].append(a)
        receivers = np.array([place[b] for _, b in pairs], dtype=np.int64)
        self.post = Post(receivers, faults, self.names)
        self.place = place
        # By link: the newest rows and the round they were made in.
        self.news: dict[tuple[Any, Any], tuple[int, Array]] = {}
        self.moved = dict.fromkeys(self.names, 0)
        self.staleness = 0

    @property
    def ledger(self) -> Ledger:
        """What was sent, lost and late so far."""
        return self.post.ledger

    @property
    def values(self) -> dict[Any, Any]:
        """What each program has returned; None while it has not."""
        return {name: seat.value for name, seat in self.seats.items()}

    def run(self, rounds: int | None = None) -> dict[Any, Any]:
        """Some rounds, or as many as it takes until all programs have ended."""
        k = 0
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            while not self._all_done() and (rounds is None or k < rounds):
                k += 1
                self.round(k)
            self._settle()
        return self.values

    def round(self, k: int, groups: Iterable[list[Any]] | None = None) -> None:
        """One round: what has arrived is heard, those who may go on do, and what they say is sent.

        Without waiting, `groups` of parts go on one after the other, each hearing the ones before
        it; default: all at once.
        """
        self.post.begin(k)
        if self.wait:
            self._deliver()
            self._go_on([name for name in self.names if self._moving(name)])
            for name in self.names:
                if self._moving(name):
                    self._say_until_heard(name)
            return
        order = [self.names] if groups is None else list(groups)
        hop = 1 if groups is None and self.steps == 1 else 0
        for group in order:
            moving = [name for name in group if self._moving(name)]
            for _ in range(self.steps):
                self._deliver()
                self._catch_up(moving, k)
                self._say(moving, k, hop)

    def start(self) -> None:
        """Round 0 of programs that do not wait: all begin, and say what they have to say."""
        self.post.begin(0)
        self._advance(self.names, [None] * len(self.names))
        self._say(self.names, 0, 1)

    def heard_since(self, k: int) -> bool:
        """Whether all have gone on since round k, with rows from then or just before."""
        rows = (self.news.get(pair, (-1,))[0] for pair in self.pairs)
        on = (self.moved[name] for name in self.names if self.incoming[name])
        return all(made >= k - 1 for made in rows) and all(moved >= k for moved in on)

    # -- what goes over the links -------------------------------------------------------------

    def _moving(self, name: Any) -> bool:
        return bool(self.post.moving[self.place[name]])

    def _say(self, names: list[Any], k: int, hop: int) -> None:
        for name in names:
            if isinstance(self.seats[name].request, Exchange):
                self._send(name, self.seats[name].request, k, hop)

    def _send(self, name: Any, request: Exchange, number: int, hop: int, to: Any = None) -> None:
        for neighbour in request.arrays if to is None else to:
            rows = request.arrays[neighbour]
            message = Message(name, neighbour, number, request.content, rows)
            self.post.send(self.link[name, neighbour], message, hop)

    def _say_until_heard(self, name: Any) -> None:
        """Send the rows of the present exchange, and those before to who may still lack them.

        Who has said its own rows of this exchange has got those of the one before.
        """
        seat = self.seats[name]
        now = seat.request if isinstance(seat.request, Exchange) else seat.before
        if now is None or self._all_done():
            return
        if seat.sent and seat.before is not None and now is seat.request:
            silent = [q for q in seat.before.arrays if seat.number not in seat.inbox.get(q, {})]
            self._send(name, seat.before, seat.number - 1, 1, silent)
        self._send(name, now, seat.number, 1)
        seat.sent = self.post.k

    def _deliver(self) -> None:
        for link, message in self.post.deliver():
            sender, receiver = self.pairs[link]
            if self.wait:
                inbox = self.seats[receiver].inbox.setdefault(sender, {})
                inbox[message.round] = message.payload
            elif message.round >= self.news.get((sender, receiver), (-1,))[0]:
                self.news[sender, receiver] = (message.round, message.payload)

    # -- programs -----------------------------------------------------------------------------

    def _all_done(self) -> bool:
        return all(seat.done for seat in self.seats.values())

    def _go_on(self, names: list[Any]) -> None:
        """Advance those whose answers are there, to an exchange that has still to be sent."""
        self._advance([name for name in names if self._answered(name)])
        self._add_up()

    def _answered(self, name: Any) -> bool:
        seat = self.seats[name]
        if seat.request is None:
            return not seat.done
        if not isinstance(seat.request, Exchange):
            return False
        return all(seat.number in seat.inbox.get(q, {}) for q in seat.request.arrays)

    def _advance(self, names: list[Any], answers: list[Any] | None = None) -> None:
        """Send the answers, and do the work that is asked for before anything else."""
        for i, name in enumerate(names):
            answer = self._answer(name) if answers is None else answers[i]
            self.seats[name].advance(answer)
        working = [name for name in names if isinstance(self.seats[name].request, Work)]
        if working:
            found = self.pool([self.seats[name].request for name in working])
            self._advance(working, found)

    def _answer(self, name: Any) -> Heard | None:
        """What has come for the present exchange; None for a program that begins."""
        seat = self.seats[name]
        if seat.request is None:
            return None
        rows = {q: seat.inbox[q].pop(seat.number) for q in seat.request.arrays}
        return Heard(rows, frozenset(rows))

    def _add_up(self) -> None:
        """Answer sums, once all ask for them."""
        while all(isinstance(seat.request, Sum) for seat in self.seats.values()):
            values = [seat.request.values for seat in self.seats.values()]
            most = next(iter(self.seats.values())).request.largest
            # Along a fixed order, so that the last bits depend on nothing else.
            found = np.maximum.reduce(values) if most else np.add.reduce(values)
            if len(self.seats) > 1:
                self.ledger.tally("sums", 2 * (len(self.seats) - 1), found.size)
            self._advance(self.names, [found.copy() for _ in self.names])

    def _catch_up(self, names: list[Any], k: int) -> None:
        """Advance without waiting, with the newest rows that are known."""
        seats = self.seats
        going = [q for q in names if not seats[q].done and not isinstance(seats[q].request, Sum)]
        answers = []
        for name in going:
            known = {q: self.news[q, name] for q in self.incoming[name] if (q, name) in self.news}
            fresh = frozenset(q for q, (made, _) in known.items() if made == k)
            heard = Heard({q: rows for q, (_, rows) in known.items()}, fresh)
            answers.append(None if self.seats[name].request is None else heard)
            # Made in the round before is as fresh as can be; so is who has not rested since.
            made = [self.news.get((q, name), (0,))[0] for q in self.incoming[name]]
            age = k - 1 - min([k - 1, *made, self.moved[name]])
            self.staleness, self.moved[name] = max(self.staleness, age), k
        self._advance(going, answers)
        self._add_up()

    def _settle(self) -> None:
        """Hear what was said in the last round: then a round without faults is a whole one."""
        self.post.k += 1
        self._deliver()
        moving = [name for name in self.names if self._moving(name)]
        if self.wait:
            self._go_on(moving)
        else:
            self._catch_up(moving, self.post.k)

    def rested(self, k: int) -> int:
        """By round k, the most rounds since a part has gone on."""
        return k - min(self.moved.values())
