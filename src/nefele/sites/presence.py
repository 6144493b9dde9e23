"""Who is there, who has been silent for too long, and who may go on without them.

A network that is cut leaves parts that hear nothing of each other. At most one of them goes on: the
one with more than half of the members, or with half of them and the first one of the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

GRACE = 4.0  # seconds in which those behind one cut fall silent
Part = Callable[[Iterable[str]], list[str]]


def part_of(links: Mapping[str, Iterable[str]], me: str, gone: Iterable[str]) -> list[str]:
    """The members that still hang together with one when some have gone, in their order.

    Examples
    --------
    >>> part_of({"a": ["b"], "b": ["a", "c"], "c": ["b"]}, "a", ["b"])
    ['a']
    """
    away, found, new = set(gone), {me}, [me]
    while new:
        near = {q for name in new for q in links[name] if q not in away}
        new = sorted(near - found)
        found.update(new)
    return [name for name in links if name in found]


def goes_on(members: Sequence[str], part: Sequence[str]) -> bool:
    """Whether a part of the members may go on without the others.

    Examples
    --------
    >>> goes_on("abcd", "ab"), goes_on("abcd", "cd"), goes_on("abcd", "bcd")
    (True, False, True)
    """
    twice = 2 * len(part)
    return twice > len(members) or (twice == len(members) and members[0] in part)


class Presence:
    """What a site knows of who is there, by a clock that runs only while it listens.

    While a site computes, replays its journal or is suspended, it cannot hear: that is no silence
    of others. One that was never heard is missed only since more than half of all members are
    known to have begun, so that neither early nor late starters are.

    Parameters
    ----------
    members : list of str
        All of the federation, in the agreed order.
    me : str
    peers : list of str
    patience : float, optional
        Seconds of silence after which a peer counts as absent; default: never.
    part : callable, optional
        Gives the members that hang together with this one when some have gone; by default all
        others.
    begun : bool
        Whether the run began before.

    Attributes
    ----------
    listened : float
        Seconds, so far.
    why : str
        Why somebody that is absent is waited for all the same; "" when nobody is.

    Examples
    --------
    >>> presence = Presence(["a", "b", "c"], "a", ["b", "c"], patience=600)
    >>> presence.listened = 1000.0
    >>> presence.missed(["b", "c"]), presence.why[:46]
    ([], '1 of 3 members are known to have begun; nobody')
    >>> presence.heard("b")
    >>> presence.listened = 1700.0
    >>> presence.heard("b")
    >>> presence.missed(["c"])
    ['c']
    """

    def __init__(
        self,
        members: Sequence[str],
        me: str,
        peers: Sequence[str],
        patience: float | None = None,
        part: Part | None = None,
        begun: bool = False,
    ) -> None:
        self.members, self.me, self.patience = list(members), me, patience
        self.listened, self.why = 0.0, ""
        self._part = part or (lambda gone: [q for q in self.members if q not in set(gone)])
        self._last = dict.fromkeys(peers, 0.0)
        self._silent = set(peers)  # never heard
        self.known = set(members) if begun else {me}  # to have begun
        self._begun = 0.0 if begun else None

    @property
    def last_word(self) -> float:
        """When anybody was heard last."""
        return max(self._last.values(), default=0.0)

    @property
    def begun(self) -> bool:
        """Whether more than half of the members are known to have begun."""
        if self._begun is None and 2 * len(self.known) > len(self.members):
            self._begun = self.listened
        return self._begun is not None

    def heard(self, name: str) -> None:
        """A peer has said something that counts."""
        self._last[name] = self.listened
        self._silent.discard(name)
        self.told([name])

    def told(self, names: Iterable[str]) -> None:
        """Some have begun, as others say."""
        self.known.update(names)
        _ = self.begun  # from now on, perhaps

    def _silence(self, name: str) -> float:
        since = self._last[name]
        if name in self._silent:
            since = max(since, self._begun or 0.0)
        return self.listened - since

    def pace(self, waiting: Iterable[str]) -> float:
        """The longest pause between two questions, so that who is there is heard in time."""
        return self.patience / 8 if self.patience and self.doubts(waiting) else math.inf

    def doubts(self, waiting: Iterable[str]) -> bool:
        """Whether somebody may be missed soon: then all peers are asked whether they are there."""
        return self.patience is not None and any(
            self._silence(name) > self.patience / 2 for name in waiting
        )

    def missed(self, waiting: Sequence[str], gone: Sequence[str] = ()) -> list[str]:
        """Who has been away too long, once one that is waited for has, if one may go on without.

        With them all to whom only they lead; nobody when this part has to wait.
        """
        self.why = ""
        if self.patience is None:
            return []
        silent = {name: self._silence(name) for name in waiting}
        if not any(seconds > self.patience for seconds in silent.values()):
            return []
        if not self.begun:
            self.why = (
                f"{len(self.known)} of {len(self.members)} members are known to have begun; nobody "
                "is missed before more than half have"
            )
            return []
        # Those behind one cut go together, or each half would first count some of the other.
        enough = self.patience - min(GRACE, self.patience / 2)
        away = [name for name in self._last if self._silence(name) > enough]
        return self.without([*gone, *away], gone)

    def without(self, away: Iterable[str], gone: Sequence[str] = ()) -> list[str]:
        """All that leave when some are away, but for those already gone; [] if one has to wait."""
        away = list(away)
        if self.me in away:
            return [name for name in away if name not in gone]
        part = self._part(away)
        if not goes_on(self.members, part):
            self.why = (
                f"without {', '.join(away)} this part has {len(part)} of {len(self.members)} "
                "members; it waits, since the others may go on"
            )
            return []
        self.why = ""
        return [name for name in self.members if name not in part and name not in gone]
