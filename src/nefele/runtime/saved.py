"""The state of one part of a solve, as a checkpoint has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nefele._checks import Array


@dataclass
class SavedPart:
    """Where a part was after iteration k.

    Attributes
    ----------
    k : int
    nodes, edges : dicts of name to array
        Rows of the own nodes, and of the edges at them.
    facts : dict
        Numbers that are the same in all parts; anything that JSON can hold.
    memory : dict of name to array
        First guesses that the losses remember; of the very same part only.
    """

    k: int
    nodes: dict[str, Array] = field(repr=False)
    edges: dict[str, Array] = field(repr=False)
    facts: dict[str, Any] = field(repr=False)
    memory: dict[str, Array] = field(default_factory=dict, repr=False)
