"""Checkpoints of a solve by parts: one file per part, all of one iteration, or none.

A folder holds the files of the last two iterations that all parts have kept. A small file, written
when all others are there, makes them one checkpoint. Rows are told by the positions of nodes in the
whole network, so that a solve may go on with other parts than those that wrote it.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nefele._checks import Array, check_count
from nefele._files import clear_parts, write_whole
from nefele._records import Arrays, DamagedError, VersionError, read_record, write_record
from nefele.program import Program, largest, total
from nefele.runtime.part import Part
from nefele.runtime.saved import SavedPart

_KIND, _VERSION = "nefele part of a checkpoint", 1
_COMMON = re.compile(r"checkpoint-(\d{9})\.json")
_OWN = re.compile(r"part-(\d{9})-\d{5,}\.npz")
_KEPT = 2  # checkpoints
_OLD = 3600.0  # seconds after which what a process left half-written may be removed
_NODE, _EDGE, _LOSS = "node_", "edge_", "loss_"  # how names of arrays begin


@dataclass(frozen=True)
class Checkpoints:
    """Where a solve by parts keeps its state, how often, and what it is the state of.

    Parameters
    ----------
    folder : Path
    every : int
        Iterations from one checkpoint to the next.
    marks : dict of str to str
        What tells the problem and the solver from others.
    resume : bool
        Whether there must be a checkpoint to go on from.
    """

    folder: Path
    every: int
    marks: dict[str, str]
    resume: bool = False

    def store(self, part: Part, number: int, parts: int) -> PartStore:
        """These checkpoints as one part sees them."""
        return PartStore(self, part, number, parts)

    def begin(self) -> None:
        """Before any part works: without resume, what an earlier solve has kept is no start."""
        if not self.resume:
            for k in self.iterations():
                (self.folder / f"checkpoint-{k:09d}.json").unlink(missing_ok=True)

    def iterations(self) -> list[int]:
        """Those that all parts have kept, the last first."""
        return sorted((k for k, _ in self._files(_COMMON)), reverse=True)

    def drop(self, kept: list[int]) -> None:
        """Remove the parts' files of all other iterations, and nothing else that is there."""
        for k, path in self._files(_OWN):
            if k not in kept:
                path.unlink(missing_ok=True)

    def _files(self, pattern: re.Pattern[str]) -> list[tuple[int, Path]]:
        """Iterations and files whose names are of this form."""
        named = [(pattern.fullmatch(path.name), path) for path in self.folder.glob("*-*")]
        return [(int(name[1]), path) for name, path in named if name and path.is_file()]

    def common(self, k: int) -> dict[str, Any]:
        """What the common file of iteration k says; a DamagedError where it is none."""
        try:
            facts = json.loads((self.folder / f"checkpoint-{k:09d}.json").read_text("utf-8"))
            if facts["version"] != _VERSION or facts["k"] != k or int(facts["parts"]) < 1:
                raise DamagedError("another version")
            dict(facts["marks"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            raise DamagedError("damaged, or another kind of file") from None
        return facts


def checkpoints(
    folder: Any, every: Any, marks: dict[str, str], resume: bool = False, most: int | None = None
) -> Checkpoints:
    """Checkpoints in a folder, after a look whether it can be written and what it holds.

    To go on from them there must be one, at most at iteration `most`.
    """
    if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
        raise ValueError(f'checkpoint must be the name of a folder, such as "run"; got {folder!r}.')
    every = check_count(every, "every", low=1)
    path = Path(os.fsdecode(folder)).resolve()
    if path.exists() and not path.is_dir():
        raise ValueError(f"checkpoint must name a folder; {str(path)!r} is a file.")
    made = Checkpoints(path, every, marks, resume)
    if resume and not (path.is_dir() and made.iterations()):
        raise ValueError(f"No checkpoint in {str(path)!r} to resume from.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise ValueError(
            f"checkpoint must be a folder that can be written; {str(path)!r} cannot "
            f"({error.strerror}). Name another one."
        ) from None
    _same(made)
    if resume and most is not None and made.iterations()[0] > most:
        raise ValueError(
            f"max_iter must be at least the iteration to resume at, {made.iterations()[0]}; got "
            f"{most}. Iterations before a checkpoint count."
        )
    clear_parts(path, older=_OLD)
    return made


def _same(made: Checkpoints) -> None:
    """Refuse checkpoints of another problem or solver: to resume, and to write over."""
    for k in made.iterations():
        try:
            found = made.common(k)["marks"]
        except DamagedError:
            continue
        wrong = [name for name, mark in made.marks.items() if found.get(name) != mark]
        if wrong:
            raise ValueError(
                f"The checkpoints in {str(made.folder)!r} must be of the same problem and solver; "
                f"the {wrong[0]} differs. Solve what they were written for, or name another folder."
            )


class PartStore:
    """The checkpoints as one part sees them: it writes its own file, and reads its own rows."""

    def __init__(self, made: Checkpoints, part: Part, number: int, parts: int) -> None:
        self.made, self.part, self.number, self.parts = made, part, number, parts
        self.failed = ""  # why the last one could not be written

    def due(self, k: int) -> bool:
        return k % self.made.every == 0

    def save(self, saved: SavedPart) -> Program[None]:
        """Write this part's file; when all are there the first part says so, and old ones go."""
        part, bad = self.part, False
        facts = {**saved.facts, "k": saved.k, "marks": self.made.marks}
        arrays: Arrays = {"nodes": part.nodes, "ends": part.ends}
        arrays |= {_NODE + name: rows for name, rows in saved.nodes.items()}
        arrays |= {_EDGE + name: rows for name, rows in saved.edges.items()}
        arrays |= {_LOSS + name: rows for name, rows in saved.memory.items()}
        try:
            write_record(self._file(saved.k, self.number), _KIND, _VERSION, facts, arrays)
        except OSError as error:
            bad, self.failed = True, str(error)
        if (yield from largest(bad)):
            return  # the last one stays
        if self.number == 0:
            common = {"version": _VERSION, "k": saved.k, "parts": self.parts}
            text = json.dumps({**common, "marks": self.made.marks})
            try:
                write_whole(
                    self.made.folder / f"checkpoint-{saved.k:09d}.json",
                    lambda path: path.write_text(text, encoding="utf-8"),
                )
            except OSError as error:
                bad, self.failed = True, str(error)
        if not (yield from largest(bad)) and self.number == 0:
            self._drop_old()

    def load(self) -> Program[SavedPart | None]:
        """The state at the last iteration of which all files are whole; None without."""
        tried, waiting = "no common file can be read", self._whole() if self.number == 0 else []
        while True:
            k = int((yield from total(waiting.pop(0) + 1 if waiting else 0))) - 1
            if k < 0:
                break
            found, bad = self._read(k)
            number = int((yield from largest(bad)))
            if number < 0:
                return found
            tried = f"part {number} of iteration {k} is missing, damaged or of another solve"
        if self.made.resume:
            raise ValueError(
                f"A checkpoint must have all its files, as they were written; of those in "
                f"{str(self.made.folder)!r} none is whole: {tried}. Leave out resume to start "
                "afresh."
            )
        return None

    def _whole(self) -> list[int]:
        """Iterations whose common file can be read, the last first."""
        found = []
        for k in self.made.iterations():
            with suppress(DamagedError):
                self.made.common(k)
                found.append(k)
        return found

    def _read(self, k: int) -> tuple[SavedPart | None, int]:
        """Own rows at iteration k and -1, or None and the number of a file that is not whole."""
        number = 0
        try:
            parts = int(self.made.common(k)["parts"])
            if parts == self.parts:  # probably the same parts: one file is enough
                number = self.number
                facts, arrays = self._record(k, number)
                if np.array_equal(arrays["nodes"], self.part.nodes):
                    return _saved(k, facts, arrays), -1
            picked = _Picked(self.part)
            for number in range(parts):
                picked.add(*self._record(k, number))
            return picked.saved(k), -1
        except (DamagedError, VersionError, OSError, KeyError):
            return None, number

    def _record(self, k: int, number: int) -> tuple[dict[str, Any], Arrays]:
        facts, arrays = read_record(self._file(k, number), _KIND, _VERSION)
        if facts["k"] != k or facts["marks"] != self.made.marks:
            raise DamagedError("of another iteration or solve")
        return facts, arrays

    def _file(self, k: int, number: int) -> Path:
        return self.made.folder / f"part-{k:09d}-{number:05d}.npz"

    def _drop_old(self) -> None:
        """Remove all but the last ones: what makes files a checkpoint goes before the files."""
        kept = self.made.iterations()[:_KEPT]
        for k in self.made.iterations()[_KEPT:]:
            (self.made.folder / f"checkpoint-{k:09d}.json").unlink(missing_ok=True)
        self.made.drop(kept)


class _Picked:
    """Rows of one part, picked from the files of all parts that once were."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.nodes: dict[str, Array] = {}
        self.edges: dict[str, Array] = {}
        self.facts: dict[str, Any] = {}
        self.missing = np.ones(len(part.nodes), dtype=bool), np.ones(len(part.edges), dtype=bool)

    def add(self, facts: dict[str, Any], arrays: Arrays) -> None:
        size = 1 + max(int(self.part.ends.max(initial=0)), int(arrays["ends"].max(initial=0)))
        keys = [(self.part.nodes, arrays["nodes"])]
        keys += [(_keys(self.part.ends, size), _keys(arrays["ends"], size))]
        out = (self.nodes, _NODE), (self.edges, _EDGE)
        for (mine, theirs), (rows, kind), missing in zip(keys, out, self.missing, strict=True):
            _, here, there = np.intersect1d(mine, theirs, return_indices=True)
            missing[here] = False
            for name, array in arrays.items():
                if name.startswith(kind):
                    zero = np.zeros((len(mine), *array.shape[1:]))
                    rows.setdefault(name.removeprefix(kind), zero)[here] = array[there]
        self.facts = facts

    def saved(self, k: int) -> SavedPart:
        if any(missing.any() for missing in self.missing):
            raise DamagedError("not all nodes and edges are there")
        return SavedPart(k, self.nodes, self.edges, self.facts)


def _keys(ends: Any, size: int) -> Any:
    """One number for each edge."""
    return ends[0] * size + ends[1]


def _saved(k: int, facts: dict[str, Any], arrays: Arrays) -> SavedPart:
    kinds = [
        {name.removeprefix(kind): a for name, a in arrays.items() if name.startswith(kind)}
        for kind in (_NODE, _EDGE, _LOSS)
    ]
    return SavedPart(k, kinds[0], kinds[1], facts, kinds[2])
