"""All parts of a network in one process, under faults drawn from a seed: tests and teaching."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nefele._checks import Array, check_count
from nefele.program import Exchange, Heard, Program, Sum, Work, check_request
from nefele.runtime.faults import Faults, Post
from nefele.runtime.messages import Ledger, Message
from nefele.runtime.tree import Tree

Pool = Callable[[list[Work]], list[Any]]

_PATIENCE = 1000  # rounds with faults in which nobody goes on; without faults one is too many


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
    answered: int = 0  # of those that were answered
    steps: int = 0  # how often it went on
    sent: int = 0  # the last round in which this exchange's rows were sent
    before: Exchange | None = None  # the exchange before this one
    inbox: dict[Any, dict[int, Array]] = field(default_factory=dict)  # by sender and number

    def advance(self, answer: Any) -> None:
        """Go on to the next request."""
        self.steps += 1
        if isinstance(self.request, Exchange):
            self.before, self.answered = self.request, self.number
        try:
            self.request = self.program.send(answer)
        except StopIteration as end:
            self.request, self.done, self.value = None, True, end.value
            return
        check_request(self.request)
        self.number += isinstance(self.request, Exchange)
        self.sent = 0


class InProcess:
    """Drives the programs of all parts, round by round.

    Parameters
    ----------
    links : dict of part to its neighbours
        Those it can tell something; for programs that wait, in both directions.
    programs : dict of part to program
    faults : Faults, optional
        What goes wrong; its nodes are the parts. Sums always arrive, and bring on all parts.
    wait : bool
        Whether a program goes on only when all neighbours have answered. Rows are sent again until
        they do, so that what is lost costs time and nothing else. Otherwise it goes on in every
        round with the newest that it has heard.
    steps : int
        Exchanges in a round, for programs that do not wait.
    pool : callable, optional
        Does a list of `Work`.
    finite : bool
        Whether rows that are not finite are refused, as what others say should be. Programs that
        trust each other hear them, and see by themselves that numbers have overflowed.

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
        finite: bool = True,
    ) -> None:
        self.names = list(links)
        pairs = [(a, b) for a in self.names for b in links[a]]
        _check(self.names, pairs, programs, wait)
        check_count(steps, "steps", low=1)
        self.seats = {name: _Seat(programs[name]) for name in self.names}
        self.wait, self.steps, self.pool = wait, steps, pool
        place = {name: i for i, name in enumerate(self.names)}
        self.link = {pair: i for i, pair in enumerate(pairs)}
        self.pairs = pairs
        self.incoming: dict[Any, list[Any]] = {name: [] for name in self.names}
        for a, b in pairs:
            self.incoming[b].append(a)
        receivers = np.array([place[b] for _, b in pairs], dtype=np.int64)
        self.post = Post(receivers, faults, self.names, finite)
        self.faulty = faults is not None
        self.place = place
        self.tree = Tree(links)
        # By sender, receiver and content: the newest rows and the round they were made in.
        self.news: dict[tuple[Any, Any, str], tuple[int, Array]] = {}
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
        """Some more rounds, or as many as it takes until all programs have ended.

        Parameters
        ----------
        rounds : int, optional
        """
        last = None if rounds is None else self.post.k + check_count(rounds, "rounds", low=1)
        patience = _PATIENCE if self.faulty else 1
        idle, steps = 0, self._steps()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            while not self._all_done() and (last is None or self.post.k < last):
                self.round(self.post.k + 1)
                idle = idle + 1 if self._steps() == steps else 0
                steps = self._steps()
                if last is None and idle > patience:
                    raise RuntimeError(self._stuck(idle))
            self._settle()
        return self.values

    def _steps(self) -> int:
        return sum(seat.steps for seat in self.seats.values())

    def _stuck(self, idle: int) -> str:
        """Who waits for what when nobody goes on any more."""
        asks: dict[str, list[Any]] = {}
        for name, seat in self.seats.items():
            what = "has ended" if seat.done else f"asks for {type(seat.request).__name__}"
            asks.setdefault(what if seat.steps else "has not begun", []).append(name)
        said = "; ".join(
            f"{names[0]!r} and {len(names) - 1} more: {what}"
            if len(names) > 1
            else f"{names[0]!r}: {what}"
            for what, names in asks.items()
        )
        return (
            f"No program has gone on for {idle} rounds: {said}. Programs must ask for the same "
            "things in the same order, and messages must get through."
        )

    def round(self, k: int, groups: Iterable[list[Any]] | None = None) -> None:
        """One round: what has arrived is heard, those who may go on do, and what they say is sent.

        Without waiting, `groups` of parts go on one after the other, each hearing the ones before
        it; default: all at once.

        Parameters
        ----------
        k : int
            Number of the round.
        groups : iterable of lists of names, optional
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
                self._catch_up(moving, k, hop)
                self._say(moving, k, hop)

    def start(self) -> None:
        """Round 0 of programs that do not wait: all begin, and say what they have to say."""
        self.post.begin(0)
        self._advance(self.names, [None] * len(self.names))
        self._say(self.names, 0, 1)

    def heard_since(self, k: int) -> bool:
        """Whether all have gone on since round k, with rows from then or just before.

        Parameters
        ----------
        k : int
            Number of the round.
        """
        made = dict.fromkeys(self.pairs, -1)
        for (sender, receiver, _), (when, _) in self.news.items():
            made[sender, receiver] = max(made[sender, receiver], when)
        on = (self.moved[name] for name in self.names if self.incoming[name])
        return all(when >= k - 1 for when in made.values()) and all(moved >= k for moved in on)

    # -- what goes over the links -------------------------------------------------------------

    def _moving(self, name: Any) -> bool:
        return bool(self.post.moving[self.place[name]])

    def _say(self, names: list[Any], k: int, hop: int) -> None:
        for name in names:
            if isinstance(self.seats[name].request, Exchange):
                self._send(name, self.seats[name].request, k, hop)

    def _send(self, name: Any, request: Exchange, number: int, hop: int, to: Any = None) -> None:
        for neighbour in request.arrays if to is None else to:
            if (name, neighbour) not in self.link:
                raise ValueError(f"Part {name!r} has no link to {neighbour!r}.")
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
            seat, news = self.seats[receiver], (sender, receiver, message.content)
            if self.wait and message.round > seat.answered:
                seat.inbox.setdefault(sender, {})[message.round] = message.payload
            elif not self.wait and message.round >= self.news.get(news, (-1,))[0]:
                self.news[news] = (message.round, message.payload)

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
            requests = [seat.request for seat in self.seats.values()]
            kinds = {(request.largest, np.shape(request.values)) for request in requests}
            if len(kinds) > 1:
                raise ValueError("All parts must ask for the same sum; got different ones.")
            values = {name: seat.request.values for name, seat in self.seats.items()}
            found = self.tree.total(values, requests[0].largest)
            if len(self.seats) > 1:
                self.ledger.tally("sums", 2 * (len(self.seats) - 1), found.size)
            self._advance(self.names, [found.copy() for _ in self.names])

    def _catch_up(self, names: list[Any], k: int, hop: int) -> None:
        """Advance without waiting, with the newest rows that are known."""
        seats = self.seats
        going = [q for q in names if not seats[q].done and not isinstance(seats[q].request, Sum)]
        answers = []
        for name in going:
            content = getattr(seats[name].request, "content", "")
            news = {q: self.news.get((q, name, content)) for q in self.incoming[name]}
            known = {q: rows for q, rows in news.items() if rows is not None}
            fresh = frozenset(q for q, (made, _) in known.items() if made >= k - hop)
            heard = Heard({q: rows for q, (_, rows) in known.items()}, fresh)
            answers.append(None if seats[name].request is None else heard)
            # Made in the round before is as fresh as can be; so is who has not rested since.
            made = [0 if rows is None else rows[0] for rows in news.values()]
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
            self._catch_up(moving, self.post.k, 1)
        self.post.k -= 1

    def rested(self, k: int) -> int:
        """By round k, the most rounds since a part has gone on.

        Parameters
        ----------
        k : int
            Number of the round.
        """
        return k - min(self.moved.values())


def _check(
    names: list[Any],
    pairs: list[tuple[Any, Any]],
    programs: Mapping[Any, Program[Any]],
    wait: bool,
) -> None:
    """Refuse links and programs that do not go together."""
    if not names or set(names) != set(programs):
        raise ValueError("links and programs must have the same parts, one at least.")
    for name, program in programs.items():
        if not hasattr(program, "send"):
            raise ValueError(f"The program of part {name!r} must be a generator; got {program!r}.")
    known = set(pairs)
    for a, b in pairs:
        if b not in programs:
            raise ValueError(f"Part {a!r} has a link to {b!r}, which is no part.")
        if wait and (b, a) not in known:
            raise ValueError(
                f"Parts that wait need links in both directions; {a!r} tells {b!r}, not the other "
                "way. Add the link, or use wait=False."
            )
