"""What has come and was not looked at yet, of each sender no more than so much."""

from __future__ import annotations

import queue
import threading
from collections import Counter

# One that keeps in step has few messages on their way. What is dropped is said again.
_MOST_MESSAGES = 64
_MOST_BYTES = 1 << 26  # unless it is one message alone


class Mailbox:
    """A queue between the threads of carriers and the site, with a limit for each sender.

    Attributes
    ----------
    dropped : Counter of sender
        Messages beyond the limit.

    Examples
    --------
    >>> box = Mailbox()
    >>> for _ in range(100):
    ...     box.put("kemi", b"hello")
    >>> box.get(0.0), len(box), box.dropped["kemi"]
    (('kemi', b'hello'), 63, 36)
    """

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self._queue: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        self._messages: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._lock = threading.Lock()

    def put(self, sender: str, blob: bytes) -> None:
        """Keep a message, or drop and count it; from any thread."""
        with self._lock:
            count, size = self._messages[sender], self._bytes[sender] + len(blob)
            if count >= _MOST_MESSAGES or (count and size > _MOST_BYTES):
                self.dropped[sender] += 1
                return
            self._messages[sender], self._bytes[sender] = count + 1, size
        self._queue.put((sender, blob))

    def get(self, timeout: float) -> tuple[str, bytes] | None:
        """The next message, waited for so many seconds; None if none comes."""
        try:
            sender, blob = self._queue.get(timeout=timeout) if timeout else self._queue.get_nowait()
        except queue.Empty:
            return None
        with self._lock:
            self._messages[sender] -= 1
            self._bytes[sender] -= len(blob)
        return sender, blob

    def take_dropped(self) -> Counter[str]:
        """How many were dropped of each sender since this was asked last."""
        with self._lock:
            found, self.dropped = self.dropped, Counter()
        return found

    def __len__(self) -> int:
        return self._queue.qsize()
