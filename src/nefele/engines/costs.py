"""What a solve by parts has cost, and what bounds its speed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

from nefele._checks import outside
from nefele.runtime.job import Done

_EVEN = 1.2  # most work of a part, relative to the mean, that counts as even
_MUCH = 0.1  # share of the seconds outside of all phases from which they are told
_MOSTLY = 0.5  # share of the waiting that uneven work explains, from which it is what counts


@dataclass(frozen=True)
class PartCosts:
    """One part: its size, seconds by phase, and what it has sent.

    Attributes
    ----------
    nodes, edges, seen : int
        Own nodes, edges at them, nodes of others that they see.
    compute, exchange, sums : float
        Seconds of own work, of waiting for rows, of waiting for sums.
    exchanges, messages, bytes : int
        Exchanges of rows, the messages in them, and the bytes that they sent.

    Examples
    --------
    >>> part = PartCosts(10, 20, 2, compute=3.0, exchange=1.0, sums=0.0, exchanges=5, messages=5,
    ...                  bytes=80)
    >>> part.compute + part.exchange + part.sums
    4.0
    """

    nodes: int
    edges: int
    seen: int
    compute: float
    exchange: float
    sums: float
    exchanges: int
    messages: int
    bytes: int


@dataclass(frozen=True)
class Costs:
    """What a solve by parts has cost.

    Attributes
    ----------
    engine : str
    parts : list of PartCosts
    seconds : float
        From the start of the parts to the end.
    lost : int
        Workers that were lost and replaced.

    Examples
    --------
    >>> parts = [PartCosts(10, 20, 2, 3.0, 1.0, 0.0, 5, 5, 80)] * 2
    >>> costs = Costs("ray", parts, seconds=4.0)
    >>> costs.imbalance, costs.bound_by
    (1.0, 'compute')
    >>> print(costs)
    ray, 2 parts, 4.0 s: bound by compute (75% of the time; exchange 25%, sums 0%). Work is even:
    the slowest part has 1.00 times the mean. 160 bytes in 10 messages.
    """

    engine: str
    parts: list[PartCosts] = field(repr=False)
    seconds: float
    lost: int = 0

    @property
    def imbalance(self) -> float:
        """Most seconds of own work of a part, relative to the mean."""
        work = [part.compute for part in self.parts]
        return max(work) * len(work) / sum(work) if sum(work) > 0 else 1.0

    @property
    def shares(self) -> dict[str, float]:
        """Shares of compute, exchange and sums in the time of all parts together."""
        names = ("compute", "exchange", "sums")
        times = {name: sum(getattr(part, name) for part in self.parts) for name in names}
        whole = sum(times.values()) or 1.0
        return {name: time / whole for name, time in times.items()}

    @property
    def outside(self) -> float:
        """Seconds in no phase of a part: to start processes, to read, and for work lost."""
        times = [part.compute + part.exchange + part.sums for part in self.parts]
        in_turn = self.engine == "in_process"
        return max(0.0, self.seconds - (sum(times) if in_turn else max(times, default=0.0)))

    @property
    def bound_by(self) -> str:
        """What would make the solve faster: "compute", "imbalance", "exchange" or "sums"."""
        shares = self.shares
        waits = shares["exchange"] + shares["sums"]
        if (self.imbalance - 1) * shares["compute"] > _MOSTLY * waits and self.imbalance > _EVEN:
            return "imbalance"  # others wait for the slowest, not for messages
        return max(shares, key=lambda name: shares[name])

    def __str__(self) -> str:
        shares, bound = self.shares, self.bound_by
        told = "compute" if bound == "imbalance" else bound
        others = ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if name != told)
        even = "even" if self.imbalance <= _EVEN else "uneven"
        sent = sum(part.bytes for part in self.parts)
        messages = sum(part.messages for part in self.parts)
        lost = f" Workers lost and replaced: {self.lost}." if self.lost else ""
        outside = ""
        if self.outside > _MUCH * self.seconds:
            outside = (
                f" {self.outside:.1f} s more than these phases: to start processes, to read, and "
                "for work that was lost."
            )
        of = f"{shares[told]:.0%} of the time" if told == bound else f"compute {shares[told]:.0%}"
        return (
            f"{self.engine}, {len(self.parts)} parts, {self.seconds:.1f} s: bound by {bound} "
            f"({of}; {others}). Work is {even}: the slowest part has {self.imbalance:.2f} times "
            f"the mean. {sent:,} bytes in {messages:,} messages.{outside}{lost}"
        )


def warn_unsaved(done: list[Done]) -> None:
    """Warn of checkpoints that could not be written."""
    why = [one.ended.unsaved for one in done if one.ended.unsaved]
    if why:
        warnings.warn(
            f"Checkpoints could not be written by {len(why)} parts ({why[0]}); the last one that "
            "all parts have stays.",
            UserWarning,
            stacklevel=outside(),
        )


def costs_of(engine: str, done: list[Done], seconds: float, lost: int = 0) -> Costs:
    """The costs of a solve from what its parts gave back."""
    parts = [
        PartCosts(
            part.nodes,
            part.edges,
            part.seen,
            part.costs.compute,
            part.costs.exchange,
            part.costs.sums,
            part.costs.exchanges,
            part.costs.messages,
            part.costs.bytes,
        )
        for part in done
    ]
    return Costs(engine, parts, seconds, lost)
