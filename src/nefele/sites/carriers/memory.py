"""Messages between sites in one process, with faults drawn from a seed: for tests and notebooks."""

from __future__ import annotations

import heapq
import random
import threading
import time
from collections import Counter
from itertools import count
from typing import Any

from nefele.sites.carriers import Receive
from nefele.sites.carriers.names import check_name


class Hub:
    """Carriers in one process that may lose, repeat, reorder and delay messages.

    The fate of the n-th message from one site to another depends on the seed, the two names and n,
    not on time. A message is handed over inside `send`, in the sender's thread, unless it waits.

    Parameters
    ----------
    loss, duplicate, reorder : float
        How likely a message is lost, comes twice, or waits until the next one overtook it.
    jitter : float
        Longest delay in seconds; delays are drawn between 0 and it.

    Examples
    --------
    >>> hub = Hub()
    >>> a, b = hub.carrier("a"), hub.carrier("b")
    >>> a.open(print), b.open(print)
    (None, None)
    >>> a.send("b", b"hello")
    a b'hello'
    >>> a.close(), b.close()
    (None, None)
    """

    def __init__(
        self,
        loss: float = 0.0,
        duplicate: float = 0.0,
        reorder: float = 0.0,
        jitter: float = 0.0,
        seed: int = 0,
    ) -> None:
        for what, value in (("loss", loss), ("duplicate", duplicate), ("reorder", reorder)):
            if not 0 <= value <= 1:
                raise ValueError(f"{what} must be in [0, 1]; got {value!r}.")
        if not 0 <= jitter < float("inf"):
            raise ValueError(f"jitter must be a number of seconds >= 0; got {jitter!r}.")
        self._loss, self._duplicate, self._reorder = loss, duplicate, reorder
        self._jitter, self._seed = jitter, seed
        self._open: dict[str, Receive] = {}
        self._sent: Counter[tuple[str, str]] = Counter()
        self._held: dict[tuple[str, str], bytes] = {}
        self._clock: _Clock | None = None
        self._lock = threading.Lock()

    def carrier(self, name: str) -> Memory:
        """Return the carrier of a site; of each name one is open at a time."""
        return Memory(self, check_name(name))

    def _join(self, name: str, receive: Receive) -> None:
        with self._lock:
            if name in self._open:
                raise ValueError(f"The carrier of {name!r} is open already. Close it first.")
            self._open[name] = receive
            if self._clock is None and self._jitter:
                self._clock = _Clock()

    def _leave(self, name: str) -> None:
        with self._lock:
            self._open.pop(name, None)
            clock = None
            if not self._open:
                clock, self._clock = self._clock, None
                self._held.clear()
        if clock is not None:
            clock.end()

    def _send(self, sender: str, to: str, blob: bytes) -> None:
        pair = sender, to
        with self._lock:
            self._sent[pair] += 1
            draws = random.Random(f"{self._seed}/{sender}/{to}/{self._sent[pair]}")
            lost, twice, late = (draws.random() for _ in range(3))
            if lost < self._loss:
                return
            due = [blob] * (2 if twice < self._duplicate else 1)
            delays = [self._jitter * draws.random() for _ in due]
            overtaken = self._held.pop(pair, None)
            if overtaken is None and late < self._reorder:
                self._held[pair] = due.pop()
            elif overtaken is not None:
                due.append(overtaken)
                delays.append(self._jitter * draws.random())
        for one, delay in zip(due, delays, strict=False):
            clock = self._clock
            if not delay:
                self._deliver(pair, one)
            elif clock is not None:
                clock.at(delay, self._deliver, pair, one)

    def _deliver(self, pair: tuple[str, str], blob: bytes) -> None:
        receive = self._open.get(pair[1])
        if receive is not None:
            receive(pair[0], blob)


class Memory:
    """The carrier of one site on a hub."""

    def __init__(self, hub: Hub, name: str) -> None:
        self.name = name
        self._hub = hub
        self._opened = False

    def open(self, receive: Receive) -> None:
        """Begin; `receive(sender, blob)` is called for all that comes."""
        self._hub._join(self.name, receive)
        self._opened = True

    def send(self, to: str, blob: bytes) -> None:
        """Hand bytes to another site; when that is not open they are lost."""
        if self._opened:
            self._hub._send(self.name, to, bytes(blob))

    def close(self) -> None:
        """End; messages to this site are lost from now on."""
        if self._opened:
            self._opened = False
            self._hub._leave(self.name)


class _Clock:
    """One thread that makes calls when they are due."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, tuple[Any, ...]]] = []
        self._order = count()
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="nefele-memory", daemon=True)
        self._thread.start()

    def at(self, delay: float, *call: Any) -> None:
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + delay, next(self._order), call))
            self._changed.notify()

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._ended and (not self._due or self._due[0][0] > time.monotonic()):
                    wait = self._due[0][0] - time.monotonic() if self._due else None
                    self._changed.wait(wait)
                if self._ended:
                    return
                _, _, (call, *args) = heapq.heappop(self._due)
            call(*args)
