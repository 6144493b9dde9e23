"""What a fit with very many parameters takes, said before it begins."""

from __future__ import annotations

from typing import Any

from nefele._ids import distinct

_MUCH = 2**30  # bytes of the matrices from which they are worth a word
_MANY = 3000  # parameters of a node from which its matrix alone takes long


def print_nothing(text: str) -> None:
    """For callers that are not told anything before the work begins."""


def size_note(inputs: Any, task: str) -> str | None:
    """A sentence about memory and time for inputs whose matrices are large, else None.

    Each node has a matrix of second derivatives, with a row and a column for each parameter.
    """
    p = parameters(inputs, task)
    n = len(distinct(inputs.ids))
    size = 8 * n * p * p
    if size < _MUCH and p < _MANY:
        return None
    return (
        f"{p} parameters at each of {n} nodes: their matrices take {size / 2**30:.1f} GiB, several "
        "times that while they are solved, and minutes to hours. Fewer columns by --features take "
        "less."
    )


def parameters(inputs: Any, task: str) -> int:
    """Number of parameters of a node: for more than two classes, those of each class."""
    classes = len(distinct(inputs.y)) if task == "classification" else 2
    return (len(inputs.parameters) + 1) * (classes if classes > 2 else 1)
