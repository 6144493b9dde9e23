"""One Ray actor per part: rows and sums go from actor to actor.

The process that asked for the solve starts the actors, hears of their progress, and brings all of
them back to the last common checkpoint when one is lost. It sees neither rows nor sums.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from nefele._checks import Array
from nefele.result import Record
from nefele.runtime.job import Done, Job, Source, Told, WorkersLostError, work
from nefele.runtime.optional import need

_POLL = 0.2  # seconds between two looks at the progress
_POST = "post"  # the thread of an actor that hears while another computes


class HaltedError(RuntimeError):
    """Another actor was lost: all go back."""


class Mailbox:
    """What has come for one actor, by sender, kind and number; of the present attempt only."""

    def __init__(self) -> None:
        self.attempt = self.over = 0  # the present attempt, and the last one that was halted
        self.there: dict[tuple[int, int, int], Array] = {}
        self.early: dict[int, dict[tuple[int, int, int], Array]] = defaultdict(dict)
        self.news = threading.Condition()

    def begin(self, attempt: int) -> None:
        """Drop what is left of earlier attempts."""
        with self.news:
            self.attempt = attempt
            self.there = self.early.pop(attempt, {})

    def halt(self, attempt: int) -> None:
        """Wake who waits, to end this attempt, or not to begin it."""
        with self.news:
            self.over = attempt
            self.news.notify_all()

    def put(self, attempt: int, key: tuple[int, int, int], array: Array) -> None:
        """What arrives before an attempt has begun here waits for it."""
        with self.news:
            if attempt == self.attempt:
                self.there[key] = array
                self.news.notify_all()
            elif attempt > self.attempt:
                self.early[attempt][key] = array

    def take(self, key: tuple[int, int, int]) -> Array:
        """Wait for a message."""
        with self.news:
            while key not in self.there:
                if self.attempt <= self.over:
                    raise HaltedError
                self.news.wait()
            return self.there.pop(key)


class ActorPost:
    """Messages by calls of the other actors' `hear`."""

    def __init__(self, number: int, attempt: int, peers: dict[int, Any], box: Mailbox) -> None:
        self.number, self.attempt, self.box = number, attempt, box
        quick = {"concurrency_group": _POST, "num_returns": 0, "enable_task_events": False}
        self.hear = {k: peer.hear.options(**quick) for k, peer in peers.items()}
        self.sent: dict[tuple[int, int], int] = defaultdict(int)
        self.taken: dict[tuple[int, int], int] = defaultdict(int)

    def send(self, to: int, kind: int, array: Array) -> None:
        self.sent[to, kind] += 1
        self.hear[to].remote(self.attempt, (self.number, kind, self.sent[to, kind]), array)

    def receive(self, sender: int, kind: int) -> Array:
        self.taken[sender, kind] += 1
        return self.box.take((sender, kind, self.taken[sender, kind]))


class Worker:
    """An actor: one part, opened once, and as many attempts as it takes."""

    def __init__(self, number: int) -> None:
        self.number, self.box, self.told = number, Mailbox(), Told()

    def open(self, source: Source) -> int:
        """Take the part; returns the id of this process."""
        self.part = source.open()
        self.source = source.opened()
        return os.getpid()

    def run(self, attempt: int, job: Job, peers: dict[int, Any]) -> Done | None:
        """Work until all is done, or None when the attempt was halted."""
        self.box.begin(attempt)
        self.told.records.clear()
        post = ActorPost(self.number, attempt, peers, self.box)
        try:
            return work(job, self.number, self.source, self.part.fresh(), post, self.told)
        except HaltedError:
            return None

    def hear(self, attempt: int, key: tuple[int, int, int], array: Array) -> None:
        """Take a message."""
        self.box.put(attempt, key, array)

    def halt(self, attempt: int) -> None:
        """End an attempt."""
        self.box.halt(attempt)

    def progress(self, since: int) -> list[Record]:
        """Examined points that are new."""
        return self.told.records[since:]

    def stop(self) -> None:
        """Stop at the next examined point."""
        self.told.stop = True


class Actors:
    """Drives a job by Ray actors.

    Parameters
    ----------
    job : Job
    sources : list of Source
        One per part; the list is emptied.
    restarts : int
        How often a lost actor may be replaced.
    watch : callable, optional
        Is told of every examined point, here; returning True stops the solve.

    Attributes
    ----------
    lost : int
        Actors that were replaced.
    """

    def __init__(
        self,
        job: Job,
        sources: list[Any],
        restarts: int,
        watch: Callable[[Record], Any] | None = None,
    ) -> None:
        self.ray = need("ray", "ray", "Ray, which runs parts on many machines")
        self.job, self.restarts, self.watch, self.lost = job, restarts, watch, 0
        self.sources = []
        while sources:  # one at a time: they are large, and Ray has its own copies
            self.sources.append(self.ray.put(sources.pop(0)))
        self.workers: dict[int, Any] = {}
        self.kind = self.ray.remote(num_cpus=1, concurrency_groups={_POST: 1})(Worker)

    def run(self) -> list[Done]:
        """Work until all parts are done; a WorkersLostError when actors are lost too often."""
        attempt, found = 0, None
        try:
            self._fill()
            while found is None:
                attempt += 1
                found = self._attempt(attempt)
        finally:
            for worker in self.workers.values():
                self.ray.kill(worker)
        return found

    def _fill(self) -> None:
        """Start the actors that are missing, and have them open their parts."""
        ray, opened = self.ray, {}
        for number, source in enumerate(self.sources):
            if number not in self.workers:
                worker = self.workers[number] = self.kind.remote(number)
                opened[number] = worker.open.remote(source)
        for number, done in opened.items():
            try:
                ray.get(done)
            except ray.exceptions.RayActorError:
                self._gone(number)
                return self._fill()

    def _attempt(self, attempt: int) -> list[Done] | None:
        """One attempt; None when an actor was lost and all have to go back."""
        ray, seen = self.ray, 0
        runs = {
            worker.run.remote(attempt, self.job, self.workers): number
            for number, worker in self.workers.items()
        }
        waiting, found = list(runs), {}
        while waiting:
            ready, waiting = ray.wait(waiting, num_returns=1, timeout=_POLL)
            seen += self._told(seen)
            for run in ready:
                try:
                    found[runs[run]] = ray.get(run)
                except ray.exceptions.RayActorError:
                    self._gone(runs[run])
                    self._return(attempt, waiting)
                    return None
                except ray.exceptions.RayTaskError as error:
                    raise error.cause from None
        return [found[number] for number in sorted(found)]

    def _gone(self, number: int) -> None:
        """Count a lost actor, and forget it."""
        del self.workers[number]
        self.lost += 1
        if self.lost > self.restarts:
            raise WorkersLostError(
                f"At most {self.restarts} actors may be lost; now part {number} has lost its "
                "actor. See the logs of Ray for the reason, such as too little memory."
            )

    def _return(self, attempt: int, running: list[Any]) -> None:
        """Halt all who still run, and replace those who are gone."""
        ray = self.ray
        for number, worker in list(self.workers.items()):
            try:
                ray.get(worker.halt.options(concurrency_group=_POST).remote(attempt))
            except ray.exceptions.RayActorError:
                self._gone(number)
        for run in running:
            try:
                ray.get(run)
            except ray.exceptions.RayError:  # its actor is gone, too, or ended by itself
                continue
        self._fill()

    def _told(self, seen: int) -> int:
        """Tell what is new; returns how much that is."""
        ray, first = self.ray, self.workers.get(0)
        if self.watch is None or first is None:
            return 0
        try:
            records = ray.get(first.progress.options(concurrency_group=_POST).remote(seen))
        except ray.exceptions.RayActorError:
            return 0  # its run will say so
        for record in records:
            if self.watch(record) is True:
                first.stop.options(concurrency_group=_POST).remote()
        return len(records)
