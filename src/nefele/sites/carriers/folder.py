"""Messages as files in a folder that two sites share, mounted or synced."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from nefele.sites.carriers import Receive
from nefele.sites.carriers.names import check_federation, check_neighbours

_MESSAGE = re.compile(r"[0-9]{20}\.msg")
_IDLE = 1.0  # seconds: the longest pause between two looks
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NO_FOLLOW
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW


class Folder:
    """A carrier over a folder, for sites that exchange files only.

    The n-th message is `path/federation/sender_to_receiver/n.msg`: written under another name and
    renamed, so it is whole or not there. The receiver reads and deletes it. The sender counts on
    from the files that are there and from the clock, so that a restart overwrites nothing.

    Parameters
    ----------
    most_bytes : int
        Longer messages are neither sent nor read.
    most_unread : int
        So many files wait for each neighbour; the oldest leaves for a new one.
    poll : float
        Seconds between looks while messages come; up to 1 s when none do.

    Attributes
    ----------
    refused : collections.Counter
        What was not taken: "too long", "foreign" (no message, or a link: left alone), "unread"
        (the oldest, removed), "not sent" (the folder could not be written), "unreadable".

    Examples
    --------
    >>> import tempfile, queue
    >>> came = queue.Queue()
    >>> with tempfile.TemporaryDirectory() as path:
    ...     a = Folder("a", ["b"], path, federation="f00d")
    ...     b = Folder("b", ["a"], path, federation="f00d")
    ...     a.open(print)
    ...     a.send("b", b"hello")
    ...     b.open(lambda *message: came.put(message))
    ...     came.get()
    ...     b.close(), a.close()
    ('a', b'hello')
    (None, None)
    """

    def __init__(
        self,
        me: str,
        neighbours: Iterable[str],
        path: str | os.PathLike[str],
        *,
        federation: str,
        most_bytes: int = 1 << 24,
        most_unread: int = 64,
        poll: float = 0.05,
    ) -> None:
        self.me, self.neighbours = me, sorted(neighbours)
        check_neighbours(me, self.neighbours)
        check_federation(federation)
        if most_bytes < 1 or most_unread < 1:
            got = f"{most_bytes!r} and {most_unread!r}"
            raise ValueError(f"most_bytes and most_unread must be >= 1; got {got}.")
        if not poll > 0:
            raise ValueError(f"poll must be > 0 seconds; got {poll!r}.")
        self.root = Path(path) / federation
        self.refused: Counter[str] = Counter()
        self._shared = Path(path)
        self._most_bytes, self._most_unread, self._poll = most_bytes, most_unread, poll
        self._foreign: set[str] = set()
        self._next: dict[str, int] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self, receive: Receive) -> None:
        """Begin to look for files; a ValueError when the folder cannot be used."""
        if self._thread is not None:
            raise ValueError("This carrier is open already. Close it first.")
        if not self._shared.is_dir():
            raise ValueError(f"No folder {str(self._shared)!r}. Make it, or mount it.")
        try:
            for other in self.neighbours:
                self._prepare(self._to(other))
                self._prepare(self._from(other))
        except OSError as error:
            raise ValueError(
                f"The folder {str(self._shared)!r} must be readable and writable; "
                f"{error.strerror or error}. Ask who shares it for the rights."
            ) from None
        self._stop.clear()
        self._thread = threading.Thread(
            target=self._watch, args=(receive,), name=f"nefele-folder-{self.me}", daemon=True
        )
        self._thread.start()

    def send(self, to: str, blob: bytes) -> None:
        """Write a message for a neighbour; what cannot be written is lost."""
        if to not in self.neighbours:
            raise ValueError(f"No neighbour {to!r}; neighbours: {', '.join(self.neighbours)}.")
        if len(blob) > self._most_bytes:
            self.refused["too long"] += 1
            return
        try:
            with self._lock:
                self._write(self._to(to), blob)
        except OSError:
            self.refused["not sent"] += 1

    def close(self) -> None:
        """Stop looking. Files that wait for others stay."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._thread = None

    def _to(self, other: str) -> Path:
        return self.root / f"{self.me}_to_{other}"

    def _from(self, other: str) -> Path:
        return self.root / f"{other}_to_{self.me}"

    def _prepare(self, folder: Path) -> None:
        """Make the folder if it is not there; try to write into it, and clear our half files."""
        for part in (self.root, folder):
            with contextlib.suppress(FileExistsError):
                part.mkdir()
            _check_own(part)
        half = f".{self.me}-"
        for name in os.listdir(folder):
            if name.startswith(half) and name.endswith(".part"):
                (folder / name).unlink(missing_ok=True)
        trial = folder / f"{half}{secrets.token_hex(4)}.part"
        trial.touch()
        trial.unlink()

    def _write(self, folder: Path, blob: bytes) -> None:
        _check_own(self.root)
        _check_own(folder)
        waiting = sorted(filter(_MESSAGE.fullmatch, os.listdir(folder)))
        for name in waiting[: max(0, len(waiting) - self._most_unread + 1)]:
            (folder / name).unlink(missing_ok=True)
            self.refused["unread"] += 1
        last = int(waiting[-1][:20]) if waiting else -1
        number = max(self._next.get(folder.name, _start()), last + 1)
        self._next[folder.name] = number + 1
        part = folder / f".{self.me}-{number}-{secrets.token_hex(4)}.part"
        handle = os.open(part, _WRITE, 0o660)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(blob)
            os.replace(part, folder / f"{number:020d}.msg")
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def _watch(self, receive: Receive) -> None:
        pause = self._poll
        while not self._stop.wait(pause):
            found = 0
            for other in self.neighbours:
                with contextlib.suppress(OSError):  # unmounted: it may come back
                    found += self._look(other, receive)
            pause = self._poll if found else min(pause * 1.5, max(_IDLE, self._poll))

    def _look(self, other: str, receive: Receive) -> int:
        folder = self._from(other)
        _check_own(self.root)
        _check_own(folder)
        taken = 0
        for name in sorted(os.listdir(folder)):
            file = folder / name
            if self._stop.is_set():
                break
            if not _MESSAGE.fullmatch(name) or not stat.S_ISREG(os.lstat(file).st_mode):
                self._count_foreign(file)
                continue
            try:
                with open(os.open(file, _READ), "rb") as opened:
                    blob = opened.read(self._most_bytes + 1)
                file.unlink()
            except OSError:
                self.refused["unreadable"] += 1
                continue
            taken += 1
            if len(blob) > self._most_bytes:
                self.refused["too long"] += 1
            else:
                receive(other, blob)
        return taken

    def _count_foreign(self, file: Path) -> None:
        """Count a file that is no message once; those being written are no strangers."""
        if not file.name.endswith(".part") and str(file) not in self._foreign:
            self._foreign.add(str(file))
            self.refused["foreign"] += 1


def _check_own(folder: Path) -> None:
    """An OSError when a folder is a link: it may lead out of what is shared."""
    if not stat.S_ISDIR(os.lstat(folder).st_mode):
        raise NotADirectoryError(0, f"{folder} is a link or a file, not a folder")


def _start() -> int:
    """Where a sender begins to count: after all that it wrote before a restart."""
    return time.time_ns()
