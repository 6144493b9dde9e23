"""Tables of parts and their index: whether they can be what they must, before they are written.

Parts that do not agree on the edges between them would wait for each other for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nefele._checks import as_float_array, check_count, check_finite, type_name
from nefele._ids import as_ids
from nefele.engines.tables import Index, PartsIndex, PartTable

_WHOLE = ("position", "part", "component", "counts", "head", "tail")


def checked(table: PartTable, number: Any, features: Any) -> tuple[PartTable, list[str]]:
    """The table of a part as arrays of the right kinds, and the names of its features.

    A ValueError where it cannot be a part.
    """
    number = check_count(number, "number")
    if not isinstance(table, PartTable):
        raise ValueError(f"table must be a PartTable; got {type_name(table)}.")
    names = _names(features)
    arrays: dict[str, Any] = {name: _whole(getattr(table, name), name) for name in _WHOLE}
    for name, ndim in (("X", 2), ("y", 1), ("weight", 1)):
        arrays[name] = as_float_array(getattr(table, name), name, ndim)
        check_finite(arrays[name], partial(_place, name, number))
    found = replace(table, ids=as_ids(table.ids), **arrays)
    _check_nodes(found, number)
    _check_rows(found, number, names)
    _check_edges(found, number)
    return found, names


def check_index(index: Any) -> None:
    """Whether the parts of an index belong together; a ValueError where they do not."""
    if not isinstance(index, PartsIndex):
        raise ValueError(f"index must be a PartsIndex; got {type_name(index)}.")
    parts = index.parts
    if not parts:
        raise ValueError("An index must have parts; it has none.")
    for k, part in enumerate(parts):
        if part.components > index.components:
            raise ValueError(
                f"components must be above the component of every node; got {index.components}, "
                f"and part {k} has a node of component {part.components - 1}."
            )
        for at, q in enumerate(part.neighbours):
            if not 0 <= q < len(parts) or q == k:
                raise ValueError(
                    f"An index must have all parts; part {k} has edges to part {q}, and there are "
                    f"parts 0 to {len(parts) - 1}. Give the entries of all parts, in their order."
                )
            other = parts[q]
            mutual = k in other.neighbours
            both = mutual and part.shared and other.shared
            if not mutual or (both and part.shared[at] != other.shared[other.neighbours.index(k)]):
                raise ValueError(
                    f"Two parts must have the same edges between them; parts {k} and {q} differ "
                    "in these edges, their weights, or the components of their ends. Write both "
                    "parts again, each with all edges at its own nodes."
                )


def _place(name: str, number: int, at: tuple[int, ...]) -> str:
    return f"{name}{list(map(int, at))} of part {number}"


def _names(features: Any) -> list[str]:
    listed = isinstance(features, Sequence) and not isinstance(features, str)
    names = list(features) if listed else []
    if not names or not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
        raise ValueError(f"features must be a list of different names; got {features!r}.")
    return names


def _whole(values: Any, name: str) -> Index:
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and len(array)):
        raise ValueError(f"{name} must be whole numbers, in one dimension; got {values!r}.")
    return array.astype(np.int64)


def _check_nodes(table: PartTable, number: int) -> None:
    n = len(table.position)
    for name in ("part", "component", "ids", "counts"):
        if len(getattr(table, name)) != n:
            raise ValueError(
                f"{name} must have an entry for each of the {n} nodes of part {number}; got "
                f"{len(getattr(table, name))}."
            )
    for name in ("position", "part", "component", "counts"):
        if getattr(table, name).min(initial=0) < 0:
            raise ValueError(f"{name} must be >= 0; got {getattr(table, name).min()}.")
    if (np.diff(table.position) <= 0).any():
        raise ValueError(f"position must be ascending in part {number}; it is not.")
    if not (table.part == number).any():
        raise ValueError(f"A part must have a node; none of these nodes is in part {number}.")


def _check_rows(table: PartTable, number: int, names: list[str]) -> None:
    if table.X.shape[1] != len(names):
        raise ValueError(
            f"features must name the {table.X.shape[1]} columns of X; got {len(names)} names."
        )
    rows = int(table.counts.sum())
    if not rows == len(table.y) == len(table.X):
        raise ValueError(
            f"X and y must have as many rows as counts say, {rows}; part {number} has "
            f"{len(table.X)} and {len(table.y)}."
        )
    if table.counts[table.part != number].any():
        raise ValueError(f"counts must be 0 for nodes of others; part {number} has rows of them.")


def _check_edges(table: PartTable, number: int) -> None:
    head, tail, own = table.head, table.tail, table.position[table.part == number]
    if not len(head) == len(tail) == len(table.weight):
        raise ValueError(
            f"head, tail and weight must have an entry for each edge; part {number} has "
            f"{len(head)}, {len(tail)} and {len(table.weight)}."
        )
    if (table.weight <= 0).any():
        raise ValueError(f"weight must be > 0; got {table.weight.min():g} in part {number}.")
    lost = np.setdiff1d(np.concatenate([head, tail]), table.position)
    if len(lost):
        raise ValueError(
            f"The ends of edges must be among the positions of part {number}; {lost[0]} is not."
        )
    if (head >= tail).any() or (np.lexsort((tail, head)) != np.arange(len(head))).any():
        raise ValueError(f"Edges must have head < tail and be ascending; in part {number} not.")
    if ((np.diff(head) == 0) & (np.diff(tail) == 0)).any():
        raise ValueError(f"Edges must be different; part {number} has one twice.")
    if not (np.isin(head, own) | np.isin(tail, own)).all():
        raise ValueError(f"Each edge must have an end in part {number}; one has none.")
    stray = np.setdiff1d(table.position[table.part != number], np.concatenate([head, tail]))
    if len(stray):
        raise ValueError(
            f"Nodes of others must be at an edge of part {number}; the one at position "
            f"{stray[0]} is not."
        )
