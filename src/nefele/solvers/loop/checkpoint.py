"""Checkpoints of long solves: one file, replaced as a whole or not at all, without pickles.

What a checkpoint claims is not believed: it is of this very problem, by a hash of all of it, and
objective and bound are computed again from the points that it holds.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nefele._checks import Array, check_number, outside
from nefele._files import clear_parts
from nefele._records import DamagedError, VersionError, read_record, write_record
from nefele.problem import Problem
from nefele.result import Record
from nefele.solvers.loop.fingerprint import fingerprint

_KIND, _VERSION = "nefele checkpoint", 2
_NODES, _EDGES = ("w", "best_w", "dual_w"), ("u", "dual_u")
_COUNTS = ("iteration", "stage", "due")
_NUMBERS = ("seconds", "estimate", "least")
_OLD = 3600.0  # seconds after which what a process left half-written may be removed
_EXTRA = "extra_"  # first part of the names of the solver's own arrays


@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds.

    Attributes
    ----------
    w, u : arrays of shape (n_nodes, d) and (n_edges, d)
        Where the solver was.
    best_w : array of shape (n_nodes, d)
        The best point.
    dual_w, dual_u : arrays of shape (n_nodes, d) and (n_edges, d)
        The point and the flow from which the best lower bound was computed.
    facts : dict
        iteration, stage, due, seconds, bounded: where the loop was. estimate, least: guesses of
        the best bound. proof: how the bound was computed, None without one. scalars: the
        solver's own.
    history : list of Record
    extra : dict of arrays
        What else the solver and the losses remember, by name.
    path : Path, optional
        Where it was read.
    """

    w: Array
    u: Array
    best_w: Array
    dual_w: Array
    dual_u: Array
    facts: dict[str, Any]
    history: list[Record]
    extra: dict[str, Array] = field(default_factory=dict)
    path: Path | None = None


class Checkpoint:
    """Where and how often to save, in seconds; checks at once that the place can be written.

    It goes with one problem and one solver, named as it prints.
    """

    def __init__(self, path: Any, problem: Problem, solver: str, every: float) -> None:
        self.path = _as_path(path, "checkpoint").resolve()
        self.every = check_number(every, "checkpoint_every", low=0.0)
        self.marks = {"problem": fingerprint(problem), "solver": solver}
        self.next, self.failed = time.monotonic() + self.every, False
        if self.path.is_dir():
            raise ValueError(f"checkpoint must name a file; {str(self.path)!r} is a folder.")
        try:
            with tempfile.TemporaryFile(dir=self.path.parent):
                pass
        except OSError as error:
            raise ValueError(
                f"checkpoint must be in a folder that can be written; {str(self.path.parent)!r} "
                f"cannot ({error.strerror}). Create it, or name another one."
            ) from None
        if self.path.exists() and not _is_checkpoint(self.path):
            raise ValueError(
                f"checkpoint must be a new file or an older checkpoint; {str(self.path)!r} is "
                "neither and is not overwritten. Name another one, or delete it."
            )
        clear_parts(self.path.parent, self.path.name, _OLD)

    def due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() >= self.next

    def save(self, saved: Saved) -> None:
        """Write the file; when that fails the old one stays, and the solve goes on."""
        facts = {**self.marks, **saved.facts, "history": [list(r) for r in saved.history]}
        arrays = {name: getattr(saved, name) for name in (*_NODES, *_EDGES)}
        arrays |= {_EXTRA + name: array for name, array in saved.extra.items()}
        try:
            write_record(self.path, _KIND, _VERSION, facts, arrays)
        except OSError as error:
            if not self.failed:
                warnings.warn(
                    f"The checkpoint {str(self.path)!r} could not be written ({error.strerror}); "
                    "the solve goes on and the last checkpoint stays as it was.",
                    UserWarning,
                    stacklevel=outside(),
                )
            self.failed = True
        self.next = time.monotonic() + self.every  # a slow disk must not take all the time


def load(path: Any, problem: Problem, solver: str) -> Saved:
    """Read a checkpoint of this problem and solver."""
    path = _as_path(path, "resume")
    if not path.is_file():
        raise ValueError(f"No checkpoint {str(path)!r} to resume from.")
    try:
        facts, arrays = read_record(path, _KIND, _VERSION)
        names = [name for name in arrays if name.startswith(_EXTRA)]
        extra = {name.removeprefix(_EXTRA): arrays.pop(name) for name in names}
        marks = facts["problem"], facts["solver"]
        history = [Record(*row) for row in facts.pop("history")]
        sound = _sound(facts, history, arrays) and all(a.dtype == float for a in extra.values())
    except VersionError as error:
        raise ValueError(
            f"The checkpoint must have format {_VERSION}; {str(path)!r} has {error.found}. "
            "Resume it with the version of nefele that wrote it, or start afresh."
        ) from None
    except (DamagedError, KeyError, TypeError):
        sound = False
    if not sound:
        raise damaged(path)
    if marks[0] != fingerprint(problem):
        raise ValueError(
            f"The checkpoint {str(path)!r} must be of the same problem; graph, data, loss, penalty "
            "or lam differ. Solve the problem it was written for, or start afresh."
        )
    if marks[1] != solver:
        raise ValueError(
            f"The checkpoint {str(path)!r} must be of the same solver; it is of {marks[1]}, now "
            f"{solver} is asked for."
        )
    graph, d = problem.graph, problem.d
    shapes: dict[str, tuple[int, int]] = dict.fromkeys(_NODES, (graph.n_nodes, d))
    shapes.update(dict.fromkeys(_EDGES, (graph.n_edges, graph.width(d))))
    if any(arrays[name].shape != shape for name, shape in shapes.items()):
        raise damaged(path)
    return Saved(**arrays, facts=facts, history=history, extra=extra, path=path)


def damaged(path: Any) -> ValueError:
    """The error for a file that is no checkpoint, or not as it was written."""
    return ValueError(
        f"{str(path)!r} must be a checkpoint written by nefele; it is damaged or another kind of "
        "file. Leave out resume to start afresh."
    )


def _sound(facts: dict[str, Any], history: list[Record], arrays: dict[str, Any]) -> bool:
    """Whether everything is of the kind it should be; a hash does not say who computed it."""
    numbers = [facts[name] for name in _NUMBERS] + [x for record in history for x in record]
    return (
        set(arrays) == {*_NODES, *_EDGES}
        and all(a.dtype == np.float64 and np.isfinite(a).all() for a in arrays.values())
        and all(type(facts[name]) is int and 0 <= facts[name] < 2**62 for name in _COUNTS)
        and all(_is_number(x) for x in numbers)
        and isinstance(facts["scalars"], dict)
        and _are_numbers(facts["scalars"])
        and isinstance(facts["bounded"], bool)
        and (facts["proof"] is None or {"firm", "tol", "direct"} == set(facts["proof"]))
    )


def _is_number(value: Any) -> bool:
    return type(value) is float or (type(value) is int and abs(value) < 2**256)


def _are_numbers(scalars: dict[str, Any]) -> bool:
    """Numbers, or nothing, all the way down; only a generator of random numbers has a name."""
    return all(
        _are_numbers(value)
        if isinstance(value, dict)
        else value is None or _is_number(value) or (name == "bit_generator" and value == "PCG64")
        for name, value in scalars.items()
    )


def _is_checkpoint(path: Path) -> bool:
    try:
        read_record(path, _KIND, _VERSION)
    except VersionError:
        return True
    except DamagedError:
        return False
    return True


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
