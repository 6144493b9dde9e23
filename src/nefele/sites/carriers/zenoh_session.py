"""A Zenoh session that leaves no thread behind when it ends."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any

_PATIENCE = 2.0  # seconds for threads of callbacks to end: less is needed, unless one waits for us
# Threads of Zenoh by their tasks: one does them all.
_ONE_THREAD = (
    "(app: (worker_threads: 1), rx: (handover: app), tx: (handover: app), "
    "net: (handover: app), acc: (handover: app))"
)


def use_one_thread() -> None:
    """Let Zenoh work in one thread of this process, unless the environment says otherwise.

    For a process that does nothing but run a site, before its first session: 20 sites of degree 4
    on two cores then need .85 of the CPU and .86 of the time for a round.
    """
    os.environ.setdefault("ZENOH_RUNTIME", _ONE_THREAD)


class Session:
    """A session with the given settings; a ValueError when Zenoh cannot open it.

    Parameters
    ----------
    values : mapping of str to plain values
        By the paths of Zenoh's configuration.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._zenoh = import_zenoh()
        config = self._zenoh.Config()
        for path, value in values.items():
            config.insert_json5(path, json.dumps(value))
        try:
            self._session = self._zenoh.open(config)
        except self._zenoh.ZError as error:
            why = str(error).split(" at /")[0]
            if "in use" in why:
                why += ". Another program listens there: end it, or use listen = ... in site.toml"
            raise ValueError(f"Zenoh cannot open a session: {why}.") from None
        self._subscribers = 0
        self._ended: queue.SimpleQueue[threading.Thread] = queue.SimpleQueue()

    def subscribe(self, key: str, take: Callable[[Any], object]) -> None:
        """Call `take(sample)` for all that comes with a key, in a thread of its own."""

        # Called straight from Zenoh's own threads it would be no faster, and could block the link.
        def end() -> None:
            self._ended.put(threading.current_thread())

        self._session.declare_subscriber(key, self._zenoh.handlers.Callback(take, end))
        self._subscribers += 1

    def publisher(self, key: str) -> Any:
        """A publisher that never waits long: what finds no place in the queues is dropped."""
        drop = self._zenoh.CongestionControl.DROP
        return self._session.declare_publisher(key, express=True, congestion_control=drop)

    def close(self) -> None:
        """End the session, and wait for its threads: they must not outlive the interpreter."""
        self._session.close()
        try:
            for _ in range(self._subscribers):
                thread = self._ended.get(timeout=_PATIENCE)
                if thread is not threading.current_thread():
                    thread.join(_PATIENCE)
        except queue.Empty:  # `close` was called by a callback, or one of them does not return
            pass


def import_zenoh() -> Any:
    """Return the package; an ImportError with the command that installs it."""
    try:
        import zenoh
    except ImportError:
        raise ImportError('Zenoh is missing. Run: pip install "nefele[sites]"') from None
    return zenoh
