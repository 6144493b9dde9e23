"""What may be spent on the privacy of some data, what was spent, and by which release."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nefele._checks import check_count, check_name, check_number
from nefele._words import Text, at_most
from nefele.privacy.accountant import calibrate, check_target, epsilon_of
from nefele.privacy.ledger import Ledger, LedgerError, head_of, is_after, opening
from nefele.privacy.sensitivity import UNITS

_LEAST = 0.01  # an epsilon below which a release is nothing but noise
_SLACK = 1e-6  # of epsilon: rounding of what is computed again


class BudgetError(ValueError):
    """A release would cost more than is left. Nothing was released.

    Examples
    --------
    >>> try:
    ...     Budget(0.1, 1e-6).spend("statistics", multiplier=5.0)
    ... except BudgetError as error:
    ...     print(str(error)[:44])
    This release would bring epsilon to 0.834 of
    """


@dataclass(frozen=True)
class Release:
    """One entry of a budget.

    Attributes
    ----------
    what : str
        What was released, such as "statistics".
    multiplier : float
        Noise in units of the sensitivity.
    count : int
        How many times.
    outside : tuple of str
        What was chosen on raw rows, which no accountant covers.
    """

    what: str
    multiplier: float
    count: int
    outside: tuple[str, ...] = ()


class Budget:
    """An account of all releases from the same data; whatever is released is recorded first.

    Releases compose: the epsilon of all of them together is computed from their noise, which is
    less than the sum of their epsilons. A release that is recorded counts, even when the process
    is killed before it was made.

    Parameters
    ----------
    epsilon, delta : float
        What all releases together may cost.
    unit : {"record", "node"}
        Whose privacy is counted.
    path : str or Path, optional
        The file of the account, beside the data. It is made, or gone on with; then `epsilon` and
        `delta` must be those in it, or be left out. Processes that share the file take turns.
        Without a path the account lives as long as this object, of which copies are the same, and
        in the process that made it.

    Examples
    --------
    >>> budget = Budget(1.0, 1e-6)
    >>> budget.spend("statistics", multiplier=8.0)
    >>> round(budget.spent, 2), round(budget.left, 2)
    (0.5, 0.5)
    >>> budget.spend("statistics", multiplier=4.0)
    Traceback (most recent call last):
    ...
    nefele.privacy.budget.BudgetError: This release would bring epsilon to 1.2 of 1 at delta
    1e-06; 0.504 is spent. A release of epsilon 0.838 or less still fits. Nothing was released.
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        unit: str | None = None,
        path: Any = None,
    ) -> None:
        self.path = None if path is None else Path(os.fspath(path)).absolute()
        self._ledger = None if self.path is None else Ledger(self.path)
        self._memory: list[dict[str, Any]] = []
        self._lock, self._process = threading.RLock(), os.getpid()
        self._seen: dict[str, Any] | None = None  # the newest head: nothing older is believed
        facts = {"epsilon": epsilon, "delta": delta, "unit": unit}
        with self._entries() as entries:
            if entries:
                self._compare(entries[0], facts)
            else:
                entries.append(opening(self._checked(facts)))
            first = dict(entries[0])
        self.epsilon, self.delta = float(first["epsilon"]), float(first["delta"])
        self.unit = str(first["unit"])

    @classmethod
    def open(cls, path: Any) -> Budget:
        """The account in a file that must be there.

        Parameters
        ----------
        path : str or Path
        """
        if not os.path.isfile(path) and not os.path.isfile(f"{os.fspath(path)}.head"):
            raise ValueError(
                f"No budget file {str(path)!r}. Make it by Budget(epsilon, delta, path=...)."
            )
        return cls(path=path)

    @property
    def releases(self) -> tuple[Release, ...]:
        """All that was spent, in order."""
        return tuple(_release(entry) for entry in self._read()[1:])

    @property
    def spent(self) -> float:
        """Epsilon of all releases together, at the account's delta."""
        return self._cost(self.releases)

    @property
    def left(self) -> float:
        """Epsilon minus what is spent; releases compose, so that more than this may fit in."""
        return max(self.epsilon - self.spent, 0.0)

    @property
    def head(self) -> dict[str, Any]:
        """The state of the account, for files that must never meet an older one."""
        return head_of(self._read())

    def check_head(self, head: dict[str, Any]) -> None:
        """Raise ValueError when the account is older than it was at `head`, or another one.

        Parameters
        ----------
        head : dict
            As `head` was.
        """
        if not is_after(self._read(), head):
            raise LedgerError(
                "The budget must hold all that was spent when this model or run was saved; it is "
                "an older copy, or another budget. Bring back the newest copy."
            )

    def spend(
        self,
        what: str,
        multiplier: float,
        count: int = 1,
        *,
        unit: str | None = None,
        outside: Iterable[str] = (),
    ) -> None:
        """Record a release before it is made; BudgetError when it would cost too much.

        Parameters
        ----------
        what : str
        multiplier : float
            Deviation of the noise in units of the sensitivity.
        count : int
            How many releases with this noise.
        unit : {"record", "node"}, optional
            Of the release; default: the account's.
        outside : sequence of str
            What was chosen on raw rows.
        """
        check_number(multiplier, "multiplier", low=0.0, strict=True)
        entry = Release(str(what), float(multiplier), check_count(count, "count", low=1))
        if self.unit == "node" and unit == "record":
            raise BudgetError(
                'The budget counts whole nodes; noise for single records (unit="record") hides no '
                'node. Use unit="node", or a budget of its own. Nothing was released.'
            )
        with self._entries() as entries:
            before = [_release(e) for e in entries[1:]]
            after = self._cost([*before, entry])
            if not after <= self.epsilon * (1 + _SLACK):
                raise BudgetError(
                    f"This release would bring epsilon to {after:.3g} of {self.epsilon:g} at delta "
                    f"{self.delta:g}; {self._cost(before):.3g} is spent. {self._advice(before)} "
                    "Nothing was released."
                )
            facts = {"what": entry.what, "multiplier": entry.multiplier, "count": entry.count}
            entries.append({**facts, "outside": [str(text) for text in outside]})

    def summary(self) -> Text:
        """The account in words.

        Returns
        -------
        str
        """
        lines = [
            f"epsilon {self.spent:.4g} of {self.epsilon:g} spent at delta {self.delta:g}, per "
            f"{self.unit}, {self.left:.4g} left"
        ]
        for k, release in enumerate(self.releases, 1):
            times = "" if release.count == 1 else f", {release.count} times"
            lines.append(f"{k}. {release.what}: noise multiplier {release.multiplier:.4g}{times}")
            lines += [f"   outside the accountant: {text}" for text in release.outside]
        return Text("\n".join(lines))

    def __repr__(self) -> str:
        where = "" if self.path is None else f", path={str(self.path)!r}"
        return f"Budget({self.epsilon:g}, {self.delta:g}, unit={self.unit!r}{where})"

    def __copy__(self) -> Budget:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Budget:
        return self  # a copy that spends for itself would make a second budget of one

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise TypeError(
                "A budget without a file must stay in one process, or each copy would be spent "
                "by itself. Name a file: Budget(epsilon, delta, path=...)."
            )
        return (_opened, (self.path, self._seen))

    @contextmanager
    def _entries(self) -> Iterator[list[dict[str, Any]]]:
        """The entries, for one thread at a time; what is appended is kept."""
        self._check_process()
        with self._lock:
            if self._ledger is None:
                yield self._memory
                return
            with self._ledger.changing() as entries:
                self._check_seen(entries)
                yield entries
            self._seen = head_of(entries)

    def _read(self) -> list[dict[str, Any]]:
        self._check_process()
        with self._lock:
            if self._ledger is None:
                return list(self._memory)
            entries = self._ledger.read()
            self._check_seen(entries)
            self._seen = head_of(entries)
            return entries

    def _check_process(self) -> None:
        if self._ledger is None and os.getpid() != self._process:
            raise BudgetError(
                "A budget without a file must stay in the process that made it; a fork has a copy "
                "that would be spent by itself. Name a file: Budget(epsilon, delta, path=...). "
                "Nothing was released."
            )

    def _check_seen(self, entries: list[dict[str, Any]]) -> None:
        """Ledger and head may both be gone, or both be older ones; this object still knows."""
        if self._seen is not None and not (entries and is_after(entries, self._seen)):
            raise LedgerError(
                f"The budget {str(self.path)!r} must hold all that was spent; it is gone, another "
                "one, or an older copy. Bring back the newest copy of it and of its head."
            )

    def _cost(self, releases: Iterable[Release]) -> float:
        return epsilon_of([(r.multiplier, r.count) for r in releases], self.delta)

    def _advice(self, before: Iterable[Release]) -> str:
        """What still fits: noise of multiplier z costs 1 / z^2, and these costs add up."""
        room = calibrate(self.epsilon, self.delta) ** -2
        room -= sum(r.count / r.multiplier**2 for r in before)
        most = epsilon_of([(room**-0.5, 1)], self.delta) if room > 0 else 0.0
        if most >= _LEAST:
            return f"A release of epsilon {-float(at_most(-most, 3)):g} or less still fits."
        return (
            "No further release fits, however noisy. An account does not grow: who answers for the "
            "data may open another one, Budget(epsilon, delta, path=...) or --budget FILE "
            "--total-epsilon E, and what is spent there comes on top of this one."
        )

    def _checked(self, facts: dict[str, Any]) -> dict[str, Any]:
        check_target(facts["epsilon"], facts["delta"])
        unit = check_name(facts["unit"] or "record", UNITS, "unit of privacy")
        return {"epsilon": float(facts["epsilon"]), "delta": float(facts["delta"]), "unit": unit}

    def _compare(self, first: dict[str, Any], facts: dict[str, Any]) -> None:
        for name, value in facts.items():
            same = value is None or value == first[name]
            if not same and not (
                isinstance(value, float | int) and math.isclose(value, first[name])
            ):
                raise ValueError(
                    f"{name} must be that of the budget {str(self.path)!r}, {first[name]!r}; got "
                    f"{value!r}. Leave it out to go on with the file, or name another one."
                )


def _opened(path: Path, seen: dict[str, Any] | None) -> Budget:
    """A budget from another process, with what was known of it there."""
    found = Budget.open(path)
    if seen is not None:
        found.check_head(seen)
    return found


def _release(entry: dict[str, Any]) -> Release:
    return Release(entry["what"], entry["multiplier"], entry["count"], tuple(entry["outside"]))
