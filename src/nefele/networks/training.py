"""The rounds of any method: history, progress, early stopping, checkpoints, Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from types import FrameType

import numpy as np

from nefele._progress import Line, progress
from nefele._torch.base import Tensor, torch
from nefele.networks.checkpoints import Checkpoint
from nefele.networks.rounds import NetRound, Rounds
from nefele.networks.rows import Source
from nefele.result import Status

_PROGRESS = 1e-4  # relative fall of the held-out loss that counts


@dataclass
class Training:
    """All rounds of a method.

    Attributes
    ----------
    rounds : Rounds
    held : Source or None
        Rows for early stopping.
    patience : int or None
        Rounds without progress on the held-out rows after which to stop.
    verbose : bool or int
        Whether to show progress; a number: that of every so many rounds.
    checkpoint : Checkpoint or None
    history : list of NetRound
    status : Status
    best : tensor or None
        The state at the best round so far, with early stopping.
    """

    rounds: Rounds
    held: Source | None = None
    patience: int | None = None
    verbose: bool | int = False
    checkpoint: Checkpoint | None = None
    history: list[NetRound] = field(default_factory=list)
    status: Status = Status.UNCERTIFIED
    best: dict[str, Tensor] = field(default_factory=dict)
    best_round: int = 0

    def run(self) -> None:
        """All rounds, or until early stopping or Ctrl-C; `rounds.w` is what was found."""
        method, total = self.rounds, self.rounds.task.rounds
        before = 0.0
        if self.checkpoint is not None and self.checkpoint.resume:
            self.checkpoint.read(self)
            before = self.history[-1].seconds if self.history else 0.0
        started = time.perf_counter() - before
        with _ends_of_rounds() as asked, self._shown() as line:
            for k in range(len(self.history) + 1, total + 1):
                if self._stuck():
                    break
                self._one(k, started, line)
                if asked and k < total:
                    self.status = Status.INTERRUPTED
                    if self.checkpoint is not None:
                        self.checkpoint.write(self)
                    break
        if self.best:
            method.w.copy_(self.best["w"])
            for name, value in method.stack.statistics.items():
                value.copy_(self.best[f"statistics.{name}"])
        self._exact()

    def _shown(self) -> AbstractContextManager[Line]:
        """A line that tells of every k-th round where a number asks for it."""
        return progress(self.verbose) if self.verbose is True else progress(self.verbose, every=0.0)

    def _one(self, k: int, started: float, line: Line) -> None:
        method = self.rounds
        method.stack.module.train()
        method.set_rate(k)
        losses = method.round(k)
        if not bool(torch.isfinite(method.w).all()):
            raise ValueError(
                f"Training diverged: parameters are NaN or inf in round {k}. Lower lr, or "
                "scale the features and the target."
            )
        exact = method.task.batch_size is None
        loss = float(method.losses_on(method.source).sum()) if exact else float(losses.sum())
        held = self._held_loss()
        seconds = time.perf_counter() - started
        record = NetRound(
            k, loss + method.coupling(), loss, method.spread(), seconds, method.bytes, held
        )
        self.history.append(record)
        self._remember(record)
        if self.verbose and (k % self.verbose == 0 or k == method.task.rounds):
            line.show(_words(record, method.task.rounds))
        if self.checkpoint is not None and self.checkpoint.due(k):
            self.checkpoint.write(self)

    def _held_loss(self) -> float:
        if self.held is None or self.patience is None:
            return np.nan
        there = self.held.counts > 0
        return float(self.rounds.losses_on(self.held)[there].mean()) if there.any() else np.nan

    def _remember(self, record: NetRound) -> None:
        if self.patience is None or np.isnan(record.held_out):
            return
        least = min((r.held_out for r in self.history[:-1]), default=np.inf)
        if record.held_out < least:
            method = self.rounds
            self.best_round = record.round
            self.best = {"w": method.w.clone()}
            for name, value in method.stack.statistics.items():
                self.best[f"statistics.{name}"] = value.clone()

    def _stuck(self) -> bool:
        """Whether the last rounds brought nothing over what there was before."""
        if self.patience is None or len(self.history) <= self.patience:
            return False
        losses = [r.held_out for r in self.history]
        best = min(losses[: -self.patience])
        if min(losses[-self.patience :]) <= best - _PROGRESS * abs(best):
            return False
        self.status = Status.STOPPED
        return True

    def _exact(self) -> None:
        """The last record, or the best one, with the losses of all rows."""
        method = self.rounds
        at = self.best_round - 1 if self.best else len(self.history) - 1
        loss = float(method.losses_on(method.source).sum())
        self.history[at] = self.history[at]._replace(
            loss=loss, objective=loss + method.coupling(), spread=method.spread()
        )


@contextmanager
def _ends_of_rounds() -> Iterator[list[int]]:
    """Ctrl-C is noted, so that a round is finished first; the second one interrupts at once."""
    asked: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    here = threading.current_thread() is threading.main_thread()
    if not here or before is not signal.default_int_handler:
        yield asked
        return

    def note(number: int, frame: FrameType | None) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


def _words(record: NetRound, rounds: int) -> str:
    held = "" if np.isnan(record.held_out) else f", held-out loss {record.held_out:.5g}"
    return (
        f"round {record.round} of {rounds}: objective {record.objective:.6g}, loss "
        f"{record.loss:.6g}, spread {record.spread:.3g}{held}"
    )
