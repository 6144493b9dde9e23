"""Checkpoints of networks in training: one file, whole or not there, of one problem only."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nefele._checks import check_count
from nefele._records import DamagedError, VersionError, read_record, write_record
from nefele._torch.base import Tensor, torch
from nefele.networks.rounds import NetRound, Rounds

_KIND, _VERSION = "nefele networks checkpoint", 1


class InTraining(Protocol):
    """Rounds on their way: see `nefele.networks.training.Training`."""

    rounds: Rounds
    history: list[NetRound]
    best: dict[str, Tensor]
    best_round: int


@dataclass
class Checkpoint:
    """A file that is written after every so many rounds, and what it must be of."""

    path: Path
    every: int
    resume: bool
    mark: str

    def due(self, k: int) -> bool:
        """Whether round k is one to write after."""
        return k % self.every == 0

    def write(self, training: InTraining) -> None:
        """Where the rounds are, and the best round of early stopping."""
        method = training.rounds
        arrays = {name: _plain(value) for name, value in method.state().items()}
        arrays |= {f"best.{name}": _plain(value) for name, value in training.best.items()}
        facts = {
            "mark": self.mark,
            "history": [list(record) for record in training.history],
            "best_round": training.best_round,
            "drawn": method.source.drawn,
            "step": method.stack.step,
        }
        write_record(self.path, _KIND, _VERSION, facts, arrays)

    def read(self, training: InTraining) -> None:
        """Go on from the file."""
        try:
            facts, arrays = read_record(self.path, _KIND, _VERSION)
        except FileNotFoundError:
            raise ValueError(
                f"resume needs the checkpoint {str(self.path)!r}; there is no such file. Leave out "
                "resume to start afresh."
            ) from None
        except (DamagedError, VersionError) as error:
            raise ValueError(
                f"The checkpoint {str(self.path)!r} must be as it was written; it is not ({error})."
                " Leave out resume to start afresh."
            ) from None
        if facts["mark"] != self.mark:
            raise ValueError(
                f"The checkpoint {str(self.path)!r} must be of the same rows, graph, network and "
                "parameters; it is of others. Fit what it was written for, or leave out resume."
            )
        tensors = {name: torch.from_numpy(value) for name, value in arrays.items()}
        method = training.rounds
        method.restore({k: v for k, v in tensors.items() if not k.startswith("best.")})
        training.best = {
            k.removeprefix("best."): v for k, v in tensors.items() if k.startswith("best.")
        }
        training.history[:] = [NetRound(*record) for record in facts["history"]]
        training.best_round = facts["best_round"]
        method.source.drawn, method.stack.step = facts["drawn"], facts["step"]


def open_checkpoint(
    path: Any, every: Any, resume: bool, method: Rounds, options: dict[str, Any]
) -> Checkpoint | None:
    """The checkpoint that a fit asks for, its folder checked before any work."""
    if path is None:
        if resume:
            raise ValueError("resume needs checkpoint=, the file to go on from.")
        return None
    file = Path(path)
    check_count(every, "checkpoint_every", low=1)
    if not file.parent.is_dir() or file.is_dir():
        raise ValueError(f"checkpoint must be a file in a folder that exists; got {str(path)!r}.")
    return Checkpoint(file, int(every), resume, mark_of(method, options))


def mark_of(method: Rounds, options: dict[str, Any]) -> str:
    """A hash of all that decides the rounds: rows, graph, start, parameters."""
    task, source = method.task, method.source
    found = hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode())
    found.update(type(method).__name__.encode())
    found.update(repr(task.penalty).encode())
    found.update(repr(task.stack.module).encode())
    graph = task.graph
    for array in (graph.head, graph.tail, graph.weight, source.ptr, source.target, source.weight):
        found.update(np.ascontiguousarray(array).view(np.uint8).data)
    found.update(repr(graph.ids.tolist()).encode())
    found.update(np.ascontiguousarray(method.w[0].numpy()).view(np.uint8).data)
    found.update(_plain_on(task.columns.on))
    for first in range(0, len(source.places), 1024):
        rows = source.features.take(source.places[first : first + 1024])
        found.update(np.ascontiguousarray(rows.numpy()).view(np.uint8).data)
    return found.hexdigest()


def _plain_on(flags: Any) -> bytes:
    return np.packbits(flags).tobytes()


def _plain(value: Tensor) -> Any:
    return value.detach().numpy()
