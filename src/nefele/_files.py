"""Files that are whole or not there, and one writer for a folder."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

PART = ".part"  # how files end that are still being written
LOCK = ".lock"
_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_LONGEST = 40  # characters of a name that its part bears too: names have a limit


def write_whole(path: Path, fill: Callable[[Path], object]) -> None:
    """Let `fill` write a file beside the real one, then put it in its place.

    A crash at any point, of the machine too, leaves the old file or the new one. A rename replaces
    a file only on the same disk, hence beside it; `clear_parts` removes what a crash left there.
    The file behind a link is the one that is replaced, and who may read it stays the same.
    """
    path = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name[:_LONGEST]}.{os.getpid()}-", suffix=PART
    )
    os.close(handle)
    part = Path(name)
    try:
        fill(part)
        part.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
        _sync(part)
        os.replace(part, path)
        sync_folder(path.parent)
    except BaseException:  # Ctrl-C as well
        part.unlink(missing_ok=True)
        raise


def clear_parts(folder: Path, of: str = "", older: float = 0.0) -> None:
    """Remove what processes that are gone left half-written in a folder, or of one file in it.

    Only what is `older`, in seconds: processes elsewhere that share the folder are not seen here.
    """
    for part in folder.glob(f".*-*{PART}"):
        name, _, owner = part.name.removesuffix(PART).rpartition("-")[0].rpartition(".")
        if of and name != f".{of[:_LONGEST]}":
            continue
        if owner.isdecimal() and not is_alive(int(owner)) and _age(part) >= older:
            part.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder outlive a crash of the machine, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some file systems have no such thing
            os.fsync(handle)
    finally:
        os.close(handle)


class LockedError(ValueError):
    """Another process writes into a folder."""


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; a LockedError when another process holds it.

    The system lets go of the lock of a process that ends, however it ends. The file is removed at
    the end; whoever waited at one that was removed looks again. Where the file system has no locks
    nobody is refused.
    """
    path = folder / LOCK
    file = _locked(path)
    if file is None:
        raise LockedError(
            f"{str(folder)!r} must have one writer at a time; {_owner(path)} is writing into it "
            "now. Wait until it is done, or name another folder."
        )
    with _held(file, path):
        yield


@contextmanager
def one_at_a_time(path: Path, seconds: float = 60.0) -> Iterator[None]:
    """Hold the lock of a file, after waiting for others; a LockedError when they take too long.

    The lock is a file beside it, as for a folder.
    """
    lock = path.with_name(path.name + LOCK)
    end = time.monotonic() + seconds
    while (file := _locked(lock)) is None:
        if time.monotonic() > end:
            raise LockedError(
                f"{str(path)!r} must have one writer at a time; {_owner(lock)} has held it for "
                f"{seconds:g} seconds. Wait until it is done."
            )
        time.sleep(0.01)
    with _held(file, lock):
        yield


def _locked(path: Path) -> IO[bytes] | None:
    """The locked file, or None while another process holds it."""
    while True:
        file = path.open("a+b")
        if not _take(file):
            file.close()
            return None
        if _is_at(file, path):
            return file
        file.close()


@contextmanager
def _held(file: IO[bytes], path: Path) -> Iterator[None]:
    try:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
        file.flush()
        yield
    finally:
        if os.name == "posix":  # elsewhere open files cannot be removed
            path.unlink(missing_ok=True)
        file.close()


def _take(file: IO[bytes]) -> bool:
    """Whether the lock could be had at once, or there are no locks here."""
    try:
        if os.name == "posix":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            file.seek(2**20)  # beyond what is written: a locked byte cannot be read
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError as error:
        return error.errno not in _HELD
    return True


def _owner(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace") or "another process"
    except OSError:
        return "another process"


def _is_at(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0) if os.name == "posix" else None
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    """Permissions that new files do not get; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
