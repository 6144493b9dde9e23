"""What sites tell each other, and the books of it: who sent how much, what was lost or late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import check_name
from nefele._words import Text

CONTENTS = (
    "predictions",
    "probabilities",
    "parameters",
    "dual",
    "correction",
    "sums",
    "masked",
    "keys",
)


@dataclass(frozen=True, eq=False)
class Message:
    """One array on its way from one site to another.

    Attributes
    ----------
    sender, receiver : names of two parts of the network, such as node ids
    round : int
        Round, or step of the sender, in which the content was made.
    content : {"predictions", "probabilities", "parameters", "dual", "correction", "sums", \
"masked", "keys"}
        What the array is; corrections are those of a certificate's dual point, masked are
        parameters that only their sum reveals, keys are public ones. Nothing else leaves a site:
        no rows, no labels.
    payload : array
        A read-only copy.
    edge : pair of node ids, optional
        The edge it goes along; default: (sender, receiver).

    Examples
    --------
    >>> message = Message("Oulu", "Kemi", 3, "predictions", np.zeros(50))
    >>> message.floats, message.nbytes
    (50, 400)
    """

    sender: Any
    receiver: Any
    round: int
    content: str
    payload: NDArray[Any]
    edge: tuple[Any, Any] | None = None

    def __post_init__(self) -> None:
        check_name(self.content, CONTENTS, "content of messages")
        payload = np.array(self.payload)
        payload.flags.writeable = False
        object.__setattr__(self, "payload", payload)
        if self.edge is None:
            object.__setattr__(self, "edge", (self.sender, self.receiver))

    @property
    def floats(self) -> int:
        """Numbers in the payload."""
        return int(self.payload.size)

    @property
    def nbytes(self) -> int:
        """Bytes of the payload."""
        return int(self.payload.nbytes)


@dataclass
class Traffic:
    """Sums over messages.

    Examples
    --------
    >>> traffic = Traffic()
    >>> traffic.add(Message("a", "b", 0, "dual", np.zeros(2)))
    >>> traffic
    Traffic(messages=1, floats=2, bytes=16)
    """

    messages: int = 0
    floats: int = 0
    bytes: int = 0

    def add(self, message: Message) -> None:
        """Count one more."""
        self.more(1, message.floats, message.nbytes)

    def more(self, messages: int, floats: int, bytes: int) -> None:
        """Count many more."""
        self.messages += messages
        self.floats += floats
        self.bytes += bytes


@dataclass
class Ledger:
    """The books of one run. What is sent counts as sent, whether or not it arrives.

    Attributes
    ----------
    rounds : int
    total : Traffic
    by_content : dict of str to Traffic
    by_edge : dict of pairs of node ids to Traffic
        Both directions together; the pair is the one that was seen first.
    by_way : dict of (sender, receiver, content) to Traffic
    lost, late, inactive, refused : int
        Messages that never arrived; messages that arrived in a later round than they should, or
        are still on their way; rounds that nodes sat out, summed over the nodes; and messages that
        arrived with numbers that are not finite. Each message counts at most once.
    transcript : list of Message, optional
        The messages themselves, where they are kept.

    Examples
    --------
    >>> ledger = Ledger()
    >>> ledger.record(Message("a", "b", 0, "predictions", np.zeros(10)))
    >>> ledger.record(Message("b", "a", 0, "predictions", np.zeros(10)), fate="lost")
    >>> ledger.messages, ledger.bytes, ledger.lost, ledger.by_edge[("a", "b")].messages
    (2, 160, 1, 2)
    """

    rounds: int = 0
    total: Traffic = field(default_factory=Traffic)
    by_content: dict[str, Traffic] = field(default_factory=dict)
    by_edge: dict[tuple[Any, Any], Traffic] = field(default_factory=dict)
    by_way: dict[tuple[Any, Any, str], Traffic] = field(default_factory=dict)
    lost: int = 0
    late: int = 0
    inactive: int = 0
    refused: int = 0
    transcript: list[Message] | None = field(default=None, repr=False)

    @property
    def messages(self) -> int:
        """Messages sent."""
        return self.total.messages

    @property
    def floats(self) -> int:
        """Numbers sent."""
        return self.total.floats

    @property
    def bytes(self) -> int:
        """Bytes sent."""
        return self.total.bytes

    @property
    def missing(self) -> dict[str, int]:
        """Lost and late messages, rounds that nodes sat out; messages refused if there are any."""
        found = {"lost": self.lost, "late": self.late, "inactive": self.inactive}
        return {**found, "refused": self.refused} if self.refused else found

    def record(self, message: Message, fate: str = "delivered") -> None:
        """Enter a message that is sent now; its fate is "delivered", "late" or "lost".

        Parameters
        ----------
        message : Message
        fate : str
        """
        way = (message.sender, message.receiver, message.content)
        edge = message.edge or (message.sender, message.receiver)
        self._enter(way, edge, 1, message.floats, message.nbytes)
        if self.transcript is not None:
            self.transcript.append(message)
        self.lost += fate == "lost"
        self.late += fate == "late"

    def _enter(self, way: tuple[Any, Any, str], edge: tuple[Any, Any], *sizes: int) -> None:
        a, b = edge
        edge = (b, a) if (b, a) in self.by_edge else (a, b)
        self.by_content.setdefault(way[2], Traffic()).more(*sizes)
        self.by_edge.setdefault(edge, Traffic()).more(*sizes)
        self.by_way.setdefault(way, Traffic()).more(*sizes)
        self.total.more(*sizes)

    @classmethod
    def of(cls, ways: Mapping[tuple[Any, Any, str], Traffic], rounds: int = 0) -> Ledger:
        """The books of sums by (sender, receiver, content).

        Parameters
        ----------
        ways : mapping of Traffic
        rounds : int

        Examples
        --------
        >>> Ledger.of({("a", "b", "dual"): Traffic(2, 6, 48)}).by_content["dual"].floats
        6
        """
        ledger = cls(rounds)
        for way, sums in ways.items():
            ledger._enter(way, way[:2], sums.messages, sums.floats, sums.bytes)
        return ledger

    def miss(self, late: bool, refused: bool = False) -> None:
        """A message that was on its way is lost, or refused where it arrived; late no more.

        Parameters
        ----------
        late, refused : bool

        Examples
        --------
        >>> ledger = Ledger()
        >>> ledger.record(Message("a", "b", 0, "dual", np.zeros(2)), fate="late")
        >>> ledger.miss(late=True)
        >>> ledger.missing
        {'lost': 1, 'late': 0, 'inactive': 0}
        """
        self.late -= late
        self.refused += refused
        self.lost += not refused

    def tally(self, content: str, messages: int, floats: int, size: int = 8) -> None:
        """Enter many messages of arrays of equal length, without their edges.

        A number has `size` bytes, those of float64 unless told.

        Parameters
        ----------
        content : str
            What they hold.
        messages : int
            How many.
        floats : int
            Numbers in each.
        size : int

        Examples
        --------
        >>> ledger = Ledger()
        >>> ledger.tally("parameters", messages=10, floats=3)
        >>> ledger.messages, ledger.bytes
        (10, 240)
        """
        check_name(content, CONTENTS, "content of messages")
        for sums in (self.total, self.by_content.setdefault(content, Traffic())):
            sums.messages += messages
            sums.floats += messages * floats
            sums.bytes += messages * floats * size

    def summary(self) -> Text:
        """The books as a table of text.

        Examples
        --------
        >>> ledger = Ledger(rounds=1)
        >>> ledger.record(Message("a", "b", 0, "dual", np.zeros(3)))
        >>> print(ledger.summary())
        content       messages      floats       bytes
        dual                 1           3          24
        all                  1           3          24
        1 rounds, 1 edges used; lost 0, late 0, inactive 0
        """
        lines = [f"{'content':13} {'messages':>8} {'floats':>11} {'bytes':>11}"]
        for name, sums in [*sorted(self.by_content.items()), ("all", self.total)]:
            lines.append(f"{name:13} {sums.messages:8d} {sums.floats:11d} {sums.bytes:11d}")
        missing = ", ".join(f"{what} {count}" for what, count in self.missing.items())
        lines.append(f"{self.rounds} rounds, {len(self.by_edge)} edges used; {missing}")
        return Text("\n".join(lines))

    def busiest(self, n: int = 5) -> list[tuple[tuple[Any, Any], int]]:
        """The n edges that carried most bytes, and how many.

        Parameters
        ----------
        n : int
        """
        return Counter({edge: sums.bytes for edge, sums in self.by_edge.items()}).most_common(n)
