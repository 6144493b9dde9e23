"""One MPI process per part, for clusters with a scheduler.

Under mpiexec or srun all processes call the same solve, and each does its own part. A process that
is alone starts as many as there are parts on its machine, by mpiexec; when one of them is lost all
begin again at the last common checkpoint.
"""

from __future__ import annotations

import os
import pickle
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele._files import is_alive, write_whole
from nefele.result import Record
from nefele.runtime.job import Done, Job, Told, WorkersLostError, work
from nefele.runtime.optional import need

LAUNCHER = "NEFELE_MPIEXEC"  # names another command than mpiexec, such as "mpiexec --bind-to none"
_POLL = 0.05  # seconds
_LOOK = 16  # messages sent after which it is asked which of them have arrived
_WORLD = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK")
_RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
_HERE = {
    "OMPI_MCA_mpi_yield_when_idle": "1",  # busy cores: 0.06 ms a message instead of 16
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,sm",  # shared memory: nothing listens
    "OMPI_MCA_btl_sm_backing_directory": tempfile.gettempdir(),
    # Rows of a few thousand nodes are on their way at once, not when their receiver asks for them.
    "OMPI_MCA_btl_sm_eager_limit": "65536",
    "OMPI_MCA_btl_sm_max_send_size": "65536",
}

Watch = Callable[[Record], Any]


class RankPost:
    """Messages between MPI processes."""

    def __init__(self, mpi: Any) -> None:
        self.world, self.number, self.status = mpi.COMM_WORLD, mpi.DOUBLE, mpi.Status()
        self.sent: list[tuple[Any, Array]] = []  # on their way; the arrays must stay

    def send(self, to: int, kind: int, array: Array) -> None:
        rows = np.ascontiguousarray(array, dtype=float)
        if len(self.sent) >= _LOOK:
            self.sent = [(way, kept) for way, kept in self.sent if not way.Test()]
        self.sent.append((self.world.Isend((rows, self.number), to, kind), rows))

    def receive(self, sender: int, kind: int) -> Array:
        self.world.Probe(sender, kind, self.status)
        out = np.empty(self.status.Get_count(self.number))
        self.world.Recv((out, self.number), sender, kind)
        return out


def mpi_module() -> Any:
    """The MPI of mpi4py."""
    return need("mpi4py.MPI", "mpi", "mpi4py and an MPI library, which run parts by MPI")


def run_ranks(
    job: Job, sources: list[Any], watch: Watch | None, restarts: int
) -> tuple[list[Done], int]:
    """Work until all parts are done; what they give back, and how many attempts were lost.

    The list of sources is emptied.
    """
    if any(name in os.environ for name in _WORLD):
        return _among_ranks(job, sources, watch), 0
    need("mpi4py", "mpi", "mpi4py, which runs parts by MPI")
    with tempfile.TemporaryDirectory(prefix="nefele-mpi-") as folder:
        return _Launched(job, sources, Path(folder), watch, restarts).run()


def _among_ranks(job: Job, sources: list[Any], watch: Watch | None) -> list[Done]:
    """All processes of a scheduler are here: do the own part, and hear what the others found."""
    mpi = mpi_module()
    rank, size = mpi.COMM_WORLD.Get_rank(), mpi.COMM_WORLD.Get_size()
    if size != job.parts:
        raise ValueError(
            f"parts must be the number of MPI processes, {size}; got {job.parts}. Start as many "
            "processes as there are parts."
        )
    told = watch if watch is not None and rank == 0 else Told()
    source = sources[rank]
    sources.clear()
    part, source = _open_together(mpi.COMM_WORLD, source), source.opened()
    try:
        done = work(job, rank, source, part, RankPost(mpi), told)
    except Exception as error:  # the others would wait for ever
        print(f"Error in process {rank}: {error}", file=sys.stderr, flush=True)
        mpi.COMM_WORLD.Abort(1)
        raise
    return list(mpi.COMM_WORLD.allgather(done))


def _open_together(world: Any, source: Any) -> Any:
    """The own part; where one process cannot open its part, all say so and none waits for it."""
    part, failed = None, None
    try:
        part = source.open()
    except Exception as error:
        failed = error
    said = [text for text in world.allgather(None if failed is None else str(failed)) if text]
    if failed is not None:
        raise failed
    if said:
        raise ValueError(said[0])
    return part


def is_first() -> bool:
    """Whether this process is the one of its kind that speaks: the first rank, or no rank."""
    return all(os.environ.get(name, "0") == "0" for name in _RANK)


class _Launched:
    """Processes on this machine, and the folder through which they are told what to do."""

    def __init__(
        self, job: Job, sources: list[Any], folder: Path, watch: Watch | None, restarts: int
    ) -> None:
        self.job, self.folder, self.watch, self.restarts = job, folder, watch, restarts
        for number in range(job.parts):  # one at a time: they are large
            _write(folder / f"source-{number}", sources.pop(0))
        _write(folder / "job", job)
        (folder / "asks").write_text(str(os.getpid()), encoding="utf-8")

    def run(self) -> tuple[list[Done], int]:
        lost = 0
        while (error := self._attempt()) is not None:
            lost += 1
            if lost > self.restarts:
                raise WorkersLostError(
                    f"MPI processes may be lost at most {self.restarts} times; now they ended "
                    f"again. The last they said: {error}"
                )
        numbers = range(self.job.parts)
        return [_read(self.folder / f"done-{number}") for number in numbers], lost

    def _attempt(self) -> str | None:
        """One attempt: None when all is done, or else what the processes said before they ended."""
        for path in (*self.folder.glob("told-*"), *self.folder.glob("began-*")):
            path.unlink()
        said, seen = self.folder / "said", 0
        with said.open("wb") as out:
            process = subprocess.Popen(
                _command(self.job.parts, self.folder),
                env={**_HERE, **os.environ},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
            try:
                while process.poll() is None:
                    time.sleep(_POLL)
                    seen = self._tell(seen)
                self._tell(seen)
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
        for path in self.folder.glob("error-*"):
            raise _read(path)
        if process.returncode == 0:
            return None
        words = " ".join(said.read_text(encoding="utf-8", errors="replace")[-2000:].split())
        if not any(self.folder.glob("began-*")):
            raise ValueError(_began_nothing(words))
        return words

    def _tell(self, seen: int) -> int:
        """Tell what is new of the examined points."""
        while self.watch is not None and (path := self.folder / f"told-{seen}").exists():
            if self.watch(_read(path)) is True:
                (self.folder / "stop").touch()
            seen += 1
        return seen


def _began_nothing(words: str) -> str:
    """Why no process began, by what mpiexec said."""
    if "as root" in words:
        return (
            "engine='mpi' needs an mpiexec that can start processes here; Open MPI starts none for "
            "root, such as in a container, unless the environment has OMPI_ALLOW_RUN_AS_ROOT=1 and "
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1. Set both, or be another user."
        )
    return (
        "engine='mpi' needs an mpiexec that can start processes here; no Python process began. It "
        f"said: {words or 'nothing'}"
    )


def _command(parts: int, folder: Path) -> list[str]:
    """How the processes are started."""
    given = os.environ.get(LAUNCHER)
    beside = Path(sysconfig.get_path("scripts")) / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if given is None and found is None:
        raise ImportError(
            "mpiexec must be installed; it is neither beside Python nor on the path. "
            'Install it by pip install "nefele[mpi]".'
        )
    start = [str(found)] if given is None else shlex.split(given)
    many = ["-n", str(parts), "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    return [*start, *many, sys.executable, "-m", "nefele.runtime.drivers.mpi_ranks", str(folder)]


class _ToFolder:
    """Tells of examined points by files, and hears of a wish to stop in the same way."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def __call__(self, record: Record) -> bool:
        _write(self.folder / f"told-{self.count}", record)
        self.count += 1
        return (self.folder / "stop").exists()


def _write(path: Path, value: Any) -> None:
    write_whole(path, lambda part: part.write_bytes(pickle.dumps(value, protocol=5)))


def _read(path: Path) -> Any:
    """What another process of this very solve has written, in a folder of its own."""
    return pickle.loads(path.read_bytes())


def _end_with(asks: int, folder: Path) -> None:
    """End this process, and with it all others, when nobody is there to hear what they find."""
    while is_alive(asks):
        time.sleep(1.0)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def main(folder: Path) -> None:
    """One of the processes that were started here."""
    asks = int((folder / "asks").read_text(encoding="utf-8"))
    threading.Thread(target=_end_with, args=(asks, folder), daemon=True).start()
    mpi = mpi_module()
    rank = mpi.COMM_WORLD.Get_rank()
    (folder / f"began-{rank}").touch()
    try:
        job, source = _read(folder / "job"), _read(folder / f"source-{rank}")
        told = _ToFolder(folder) if rank == 0 else Told()
        part, source = source.open(), source.opened()
        done = work(job, rank, source, part, RankPost(mpi), told)
        _write(folder / f"done-{rank}", done)
    except Exception as error:
        _write_error(folder / f"error-{rank}", error)
        mpi.COMM_WORLD.Abort(1)
    mpi.COMM_WORLD.Barrier()


def _write_error(path: Path, error: Exception) -> None:
    """The error, or its words where it cannot be written as it is."""
    try:
        _write(path, error)
    except Exception:
        _write(path, RuntimeError(f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
