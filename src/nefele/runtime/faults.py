"""Faults of a network, drawn from a seed: nodes that sit out, links that lose or delay.

What happens in a round depends on the seed and the round alone, not on the order in which
messages are sent, so that a run can be repeated bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nefele._checks import check_count, check_number
from nefele._ids import IdIndex, as_ids, describe
from nefele.runtime.messages import Ledger, Message

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Faults:
    """What goes wrong, and until when.

    Parameters
    ----------
    node_dropout : float
        Probability in [0, 1] that a node is offline in a round: it neither moves nor sends, and
        what arrives for it in this round is lost.
    link_loss : float
        Probability in [0, 1] that a message is lost.
    delay : int
        Messages come 0 to `delay` rounds late, each number equally likely.
    stragglers : float or list of node ids
        Slow nodes, or their share, drawn once: they move only every (max(delay, 1) + 1)-th round.
    until : int, optional
        The first round without faults; default: they never end. Messages on their way still
        come late.
    seed : int
        Seed of all draws.

    Examples
    --------
    >>> faults = Faults(node_dropout=0.5, link_loss=0.3, until=10, seed=1)
    >>> faults.online(3, 4).tolist(), faults.online(10, 4).tolist()
    ([False, True, False, True], [True, True, True, True])
    """

    node_dropout: float = 0.0
    link_loss: float = 0.0
    delay: int = 0
    stragglers: Any = 0.0
    until: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("node_dropout", "link_loss"):
            _check_share(getattr(self, name), name)
        if _is_list(self.stragglers):
            object.__setattr__(self, "stragglers", tuple(self.stragglers))
        else:
            _check_share(self.stragglers, "stragglers")
        check_count(self.delay, "delay")
        check_count(self.seed, "seed")
        if self.until is not None:
            check_count(self.until, "until")

    def happen(self, k: int) -> bool:
        """Whether there are faults in round k.

        Parameters
        ----------
        k : int
            Number of the round.
        """
        return self.until is None or k < self.until

    def online(self, k: int, n_nodes: int) -> Mask:
        """Nodes that take part in round k, shape (n_nodes,).

        Parameters
        ----------
        k : int
            Number of the round.
        n_nodes : int
        """
        if not self.node_dropout or not self.happen(k):
            return np.ones(n_nodes, dtype=bool)
        return self._draws(k, 0).random(n_nodes) >= self.node_dropout

    def slow(self, ids: Any) -> Mask:
        """The stragglers among the nodes with these ids, shape (n_nodes,).

        Parameters
        ----------
        ids : sequence of node ids
        """
        ids = as_ids(ids)
        if not _is_list(self.stragglers):
            order = self._draws(0, 1).permutation(len(ids))
            return order < round(float(self.stragglers) * len(ids))
        known = IdIndex(ids).positions(as_ids(self.stragglers))
        if (known < 0).any():
            raise ValueError(
                f"stragglers must be nodes of the graph; got also "
                f"{describe(as_ids(self.stragglers)[known < 0])}. Known are {describe(ids)}."
            )
        out = np.zeros(len(ids), dtype=bool)
        out[known] = True
        return out

    def moving(self, k: int, slow: Mask) -> Mask:
        """Nodes that move in round k, shape (n_nodes,), given which of them are slow.

        Parameters
        ----------
        k : int
            Number of the round.
        slow : bool array of shape (n_nodes,)
        """
        period = max(self.delay, 1) + 1
        rests = slow & ((k + np.arange(len(slow))) % period != 0)
        return self.online(k, len(slow)) & ~(rests if self.happen(k) else np.zeros_like(rests))

    def links(self, k: int, n_links: int) -> tuple[Mask, NDArray[np.int64]]:
        """Links that lose what is sent in round k, and by how many rounds the others are late.

        Parameters
        ----------
        k : int
            Number of the round.
        n_links : int
        """
        lost, late = np.zeros(n_links, dtype=bool), np.zeros(n_links, dtype=np.int64)
        if self.happen(k):
            draws = self._draws(k, 2)
            lost |= draws.random(n_links) < self.link_loss
            late += draws.integers(0, self.delay + 1, n_links)
        return lost, late

    def _draws(self, k: int, what: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, what, k])


class Post:
    """Carries messages over numbered links under given faults, and keeps the books.

    `receivers` has the position of the node at the end of each link; -1 for a site that is always
    online. `finite` says whether numbers that are not finite are refused.

    Examples
    --------
    >>> post = Post(np.array([1]), None, ["a", "b"])
    >>> post.begin(0)
    >>> post.send(0, Message("a", "b", 0, "dual", np.ones(2)))
    >>> [(link, message.payload.tolist()) for link, message in post.deliver()]
    [(0, [1.0, 1.0])]
    """

    def __init__(
        self, receivers: NDArray[np.int64], faults: Faults | None, ids: Any, finite: bool = True
    ) -> None:
        if faults is not None and not isinstance(faults, Faults):
            raise ValueError(
                f"faults must be a nefele.runtime.Faults or None; got {type(faults).__name__}."
            )
        self.faults = Faults() if faults is None else faults
        self.receivers, self.finite = receivers, finite
        self.ledger = Ledger()
        self.slow = self.faults.slow(ids)
        self.moving = self._online = np.ones(len(self.slow), dtype=bool)
        self.k = 0
        self._waiting: list[_Waiting] = []

    def begin(self, k: int) -> None:
        """Start round k: draw who moves and what becomes of the messages."""
        self.k = k
        self._online = self.faults.online(k, len(self.slow))
        self.moving = self.faults.moving(k, self.slow)
        self._lost, self._late = self.faults.links(k, len(self.receivers))
        self.ledger.rounds = max(self.ledger.rounds, k)
        self.ledger.inactive += int((~self.moving).sum()) if k else 0

    def send(self, link: int, message: Message, hop: int = 0) -> None:
        """Take a message; it arrives `hop` rounds later, or when the faults let it."""
        late = int(self._late[link])
        fate = "lost" if self._lost[link] else "late" if late else "delivered"
        self.ledger.record(message, fate)
        if fate != "lost":
            self._waiting.append(_Waiting(self.k + hop + late, link, message, late > 0))

    def deliver(self) -> list[tuple[int, Message]]:
        """What has arrived by now, by link, older messages first.

        A message whose numbers are not all finite is refused, unless they may be so: for the node
        that should hear it, it is as good as lost.
        """
        due: list[_Waiting] = []
        wait: list[_Waiting] = []
        for item in self._waiting:
            (due if item.round <= self.k else wait).append(item)
        self._waiting = wait
        out = []
        for item in sorted(due, key=lambda item: (item.link, item.message.round)):
            receiver = self.receivers[item.link]
            if receiver >= 0 and not self._online[receiver]:
                self.ledger.miss(item.late)
            elif self.finite and not np.isfinite(item.message.payload).all():
                self.ledger.miss(item.late, refused=True)
            else:
                out.append((item.link, item.message))
        return out


class _Waiting(NamedTuple):
    """A message on its way, and the round in which it arrives."""

    round: int
    link: int
    message: Message
    late: bool


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


def _check_share(value: Any, name: str) -> None:
    if check_number(value, name, low=0.0) > 1:
        raise ValueError(f"{name} must be in [0, 1]; got {value!r}.")
