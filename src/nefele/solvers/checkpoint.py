"""Checkpoints of long solves: one file, replaced as a whole or not at all, without pickles."""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nefele._checks import Array, check_number
from nefele.problem import Problem
from nefele.result import Record

_VERSION = 1
_ARRAYS = ("w", "u", "best_w", "best_u")


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds.

    Attributes
    ----------
    w, u : arrays of shape (n_nodes, d) and (n_edges, d)
        Where the solver was.
    best_w, best_u : arrays
        The best point and the flow of the best lower bound.
    facts : dict
        Numbers: iteration, stage, seconds, the best bounds, the solver's own scalars.
    history : list of Record
    """

    w: Array
    u: Array
    best_w: Array
    best_u: Array
    facts: dict[str, Any]
    history: list[Record]


class Checkpoint:
    """Where and how often to save; checks at once that the place can be written.

    Parameters
    ----------
    path : str or Path
    problem : Problem
    solver : str
        How the solver prints: a checkpoint goes with one problem and one solver.
    every : float
        Seconds between two saves.
    """

    def __init__(self, path: Any, problem: Problem, solver: str, every: float) -> None:
        self.path = _as_path(path, "checkpoint").resolve()
        self.every = check_number(every, "checkpoint_every", low=0.0)
        self.marks = {"problem": fingerprint(problem), "solver": solver, "version": _VERSION}
        self.next, self.failed = time.monotonic() + self.every, False
        if self.path.is_dir():
            raise ValueError(f"checkpoint must name a file; {str(self.path)!r} is a folder.")
        try:
            self.part.touch()
            self.part.unlink()
        except OSError as error:
            raise ValueError(
                f"checkpoint must be in a folder that can be written; {str(self.path.parent)!r} "
                f"cannot ({error.strerror}). Create it, or name another one."
            ) from None
        if self.path.exists():
            try:
                _read(self.path, ())
            except ValueError:
                raise ValueError(
                    f"checkpoint must be a new file or an older checkpoint; {str(self.path)!r} is "
                    "neither and is not overwritten. Name another one, or delete it."
                ) from None

    @property
    def part(self) -> Path:
        """A file beside the real one: a rename replaces a file only on the same disk."""
        return self.path.with_name(f"{self.path.name}.{os.getpid()}.part")

    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() >= self.next

    def save(self, saved: Saved) -> None:
        """Write the file; when that fails the old one stays, and the solve goes on."""
        facts = {**self.marks, **saved.facts, "history": [list(r) for r in saved.history]}
        text = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
        try:
            self._replace({"facts": text, **{name: getattr(saved, name) for name in _ARRAYS}})
        except OSError as error:
            if not self.failed:
                warnings.warn(
                    f"The checkpoint {str(self.path)!r} could not be written ({error.strerror}); "
                    "the solve goes on and the last checkpoint stays as it was.",
                    UserWarning,
                    stacklevel=6,
                )
            self.failed = True
        self.next = time.monotonic() + self.every  # a slow disk must not take all the time

    def _replace(self, arrays: dict[str, Any]) -> None:
        try:
            with self.part.open("wb") as file:
                np.savez(file, **arrays)
                file.flush()
                os.fsync(file.fileno())
            os.replace(self.part, self.path)
        except BaseException:  # Ctrl-C as well
            self.part.unlink(missing_ok=True)
            raise


def load(path: Any, problem: Problem, solver: str) -> Saved:
    """Read a checkpoint of this problem and solver."""
    path = _as_path(path, "resume")
    if not path.is_file():
        raise ValueError(f"No checkpoint {str(path)!r} to resume from.")
    facts, arrays = _read(path, _ARRAYS)
    marks = {name: facts[name] for name in ("version", "problem", "solver")}
    history = [Record(*row) for row in facts.pop("history")]
    if marks["version"] != _VERSION:
        raise ValueError(
            f"The checkpoint must have format {_VERSION}; {str(path)!r} has {marks['version']}. "
            "Resume it with the version of nefele that wrote it, or start afresh."
        )
    if marks["problem"] != fingerprint(problem):
        raise ValueError(
            f"The checkpoint {str(path)!r} must be of the same problem; graph, data, loss, penalty "
            "or lam differ. Solve the problem it was written for, or start afresh."
        )
    if marks["solver"] != solver:
        raise ValueError(
            f"The checkpoint {str(path)!r} must be of the same solver; it is of "
            f"{marks['solver']}, now {solver} is asked for."
        )
    return Saved(**arrays, facts=facts, history=history)


def _read(path: Path, names: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Facts and arrays; nothing is unpickled, and the zip file's checksums are compared."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name], dtype=float) for name in names}
            facts = json.loads(bytes(file["facts"]).decode())
        if not {"version", "problem", "solver", "history"} <= facts.keys():
            raise ValueError("facts are missing")
    except Exception:  # whatever a damaged or foreign file provokes
        raise ValueError(
            f"{str(path)!r} must be a checkpoint written by nefele; it is damaged or another kind "
            "of file. Leave out resume to start afresh."
        ) from None
    return facts, arrays


def _as_path(path: Any, name: str) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise ValueError(f'{name} must be the name of a file, such as "run.npz"; got {path!r}.')
    return Path(os.fsdecode(path))


def solver_name(solver: Any) -> str:
    """How a solver and its settings are told apart from others.

    Examples
    --------
    >>> from nefele.solvers import ADMM
    >>> solver_name(ADMM())
    'ADMM(rho=None, balance=True)'
    """
    return repr(solver) if is_dataclass(solver) else type(solver).__name__


def fingerprint(problem: Problem) -> str:
    """A hash of graph, data, loss, penalty and lam.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> fingerprint(problem) == fingerprint(problem.with_lam(2.0))
    False
    """
    graph, data, loss = problem.graph, problem.data, problem.loss
    found = hashlib.sha256()
    for part in (problem.lam, type(problem.penalty).__name__, type(loss).__name__, loss.d):
        found.update(repr(part).encode())
    steps = np.linspace(0.5, 2.0, 3 * loss.d).reshape(3, loss.d)
    arrays = [graph.head, graph.tail, graph.weight, _rounded(problem.penalty.value(steps))]
    arrays.append(_rounded(loss.value(np.ones((loss.n_nodes, loss.d)))))
    if data is not None:
        arrays += [data.ptr, data.X, data.y, data.row_weight]
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _rounded(values: Array) -> Array:
    """Six digits: parameters of losses and penalties show in their values, rounding does not."""
    return np.round(values / (float(np.abs(values).max(initial=0.0)) or 1.0), 6) + 0.0
