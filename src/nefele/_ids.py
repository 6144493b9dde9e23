"""Node ids: kept as they came ("007" stays a string), matched by value and never by position."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._words import short


def as_ids(values: Any, what: str = "node id") -> NDArray[Any]:
    """One-dimensional id array: int64, text, or objects when the types are mixed.

    Floats that are whole numbers become integers (a table with a gap turns its integer
    column into floats); a missing id is an error.
    """
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    elif hasattr(values, "__array__"):
        values = np.asarray(values)
    raw = values if isinstance(values, np.ndarray) else _to_array(values, what)
    if raw.ndim != 1:
        raise ValueError(f"{what}s must be one-dimensional; got shape {raw.shape}.")
    if raw.dtype.kind == "u" and raw.size and raw.max() > np.iinfo(np.int64).max:
        return raw.astype(object)
    if raw.dtype.kind in "iu":
        return raw.astype(np.int64, copy=False)
    if raw.dtype.kind == "U":
        return raw
    if raw.dtype.kind == "f":
        return _from_floats(raw, what)
    if raw.dtype.kind == "b":
        return raw.astype(object)
    return _from_objects(raw.astype(object, copy=False), what)


def _to_array(values: Any, what: str) -> NDArray[Any]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise ValueError(f"{what}s must be a sequence; got {values!r}. Put it into a list.")
    items = list(values)
    out = np.empty(len(items), dtype=object)
    for i, item in enumerate(items):  # one by one: an id may be a tuple
        out[i] = item
    return out


def _from_floats(raw: NDArray[Any], what: str) -> NDArray[Any]:
    bad = np.flatnonzero(~np.isfinite(raw))
    if bad.size:
        raise ValueError(f"{what} must not be missing; got {raw[bad[0]]} at position {bad[0]}.")
    if np.all((raw == np.floor(raw)) & (np.abs(raw) < 2.0**63)):
        return raw.astype(np.int64)
    return raw.astype(object)


def _from_objects(raw: NDArray[Any], what: str) -> NDArray[Any]:
    kinds = set(map(type, raw.tolist()))
    if kinds and all(issubclass(k, str) for k in kinds):
        return raw.astype(str)
    if kinds and all(issubclass(k, int | np.integer) and k is not bool for k in kinds):
        try:
            return raw.astype(np.int64)
        except OverflowError:  # beyond 64 bits: kept as Python integers
            return raw
    try:
        set(raw.tolist())
    except TypeError as error:
        raise ValueError(f"{what}s must be hashable; {error}.") from None
    for position, value in enumerate(raw.tolist()):
        if value is None or str(value) == "<NA>" or value != value:
            raise ValueError(f"{what} must not be missing; got {value} at position {position}.")
    if kinds and all(issubclass(k, int | float | np.number) and k is not bool for k in kinds):
        return _from_floats_or_objects(raw, what)
    return raw


def _from_floats_or_objects(raw: NDArray[Any], what: str) -> NDArray[Any]:
    ids = _from_floats(raw.astype(np.float64), what)
    same = ids.dtype.kind == "i" and ids.tolist() == raw.tolist()
    return ids if same else raw


class IdIndex:
    """Position of each id; unknown ids get -1."""

    def __init__(self, ids: NDArray[Any]) -> None:
        self.ids = ids
        self._kind = _kind(ids)
        if self._kind == "object":
            self._lookup = {key: i for i, key in enumerate(ids.tolist())}
            self.unique = len(self._lookup) == len(ids)
            return
        self._ordered = _is_range(ids)
        self._order = np.argsort(ids, kind="stable") if not self._ordered else np.arange(0)
        self._sorted = ids[self._order] if not self._ordered else ids
        self.unique = bool(self._ordered or np.all(self._sorted[1:] != self._sorted[:-1]))

    def first_duplicate(self) -> Any:
        """An id that stands more than once (call when `unique` is False)."""
        seen = set()
        for key in self.ids.tolist():
            if key in seen:
                return key
            seen.add(key)
        return None

    def positions(self, keys: NDArray[Any]) -> NDArray[np.int64]:
        """Position of every key in the ids, -1 where it is unknown."""
        if "object" in (self._kind, _kind(keys)):
            if self._kind == "object":
                lookup = self._lookup
            else:
                lookup = {key: i for i, key in enumerate(self.ids.tolist())}
            return np.fromiter((lookup.get(k, -1) for k in keys.tolist()), np.int64, len(keys))
        if self._kind != _kind(keys) or not len(self.ids):
            return np.full(len(keys), -1, dtype=np.int64)
        if self._ordered:
            first = self.ids[0]
            inside = (keys >= first) & (keys <= self.ids[-1])
            return np.where(inside, keys - first, -1)
        slot = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        return np.where(self._sorted[slot] == keys, self._order[slot], -1)


def _kind(ids: NDArray[Any]) -> str:
    return {"i": "int", "U": "text"}.get(ids.dtype.kind, "object")


def _is_range(ids: NDArray[Any]) -> bool:
    return bool(
        ids.dtype.kind == "i"
        and len(ids)
        and int(ids[-1]) - int(ids[0]) == len(ids) - 1
        and np.all(np.diff(ids) == 1)
    )


def distinct(*columns: NDArray[Any]) -> NDArray[Any]:
    """The distinct ids of several columns: sorted, or in order of appearance for mixed types."""
    kinds = {_kind(c) for c in columns if len(c)}
    if kinds <= {"int"} or kinds <= {"text"}:
        return np.unique(np.concatenate([c for c in columns if len(c)] or [columns[0]]))
    return as_ids(list(dict.fromkeys(key for c in columns for key in c.tolist())))


def describe(ids: NDArray[Any], most: int = 5) -> str:
    """A short list of ids for an error message."""
    shown = ", ".join(short(key) for key in ids[:most].tolist())
    return shown + (f", ... ({len(ids)} in all)" if len(ids) > most else "")


def did_you_mean(known: NDArray[Any], unknown: NDArray[Any]) -> str:
    """' Did you mean ...?' for the first unknown id that is like a known one; else nothing."""
    texts = [key for key in known.tolist()[:10_000] if isinstance(key, str)]
    folded = {key.strip().lower(): key for key in texts}
    for key in unknown.tolist()[:5]:
        if isinstance(key, str):
            near = get_close_matches(key.strip().lower(), folded, 1, 0.8)
            if near:
                return f" Did you mean {folded[near[0]]!r} by {key!r}?"
    return ""


_ADVICE = {  # where the ids stand: who must know them, and what to do
    "the data": ("the graph", "Add the nodes to the graph or drop these rows."),
    "loss": ("the graph", "Add the nodes to the graph or drop these keys of the dict."),
    "candidates": ("the graph", "Add the nodes to the graph or drop these candidates."),
    "node_weight": ("nodes", "Add these ids to nodes or drop these keys of the dict."),
    "the rows": ("nodes", "Add these ids to nodes or drop these rows."),
    "the edges": ("nodes", "Add these ids to nodes or drop these edges."),
}


def unknown_ids_message(known: NDArray[Any], unknown: NDArray[Any], where: str) -> str:
    """Error text for ids that the graph or `nodes` lacks, with a hint on mixed-up types."""
    owner, advice = _ADVICE[where]
    place = "a node of the graph" if owner == "the graph" else f"in {owner}"
    text = f"Every node id of {where} must be {place}; unknown: {describe(unknown)}."
    if len(known) and _kind(known) != _kind(unknown):
        return (
            f"{text} The ids of {owner} are {_kind(known)} such as {describe(known[:1])}, these "
            f"are {_kind(unknown)} such as {describe(unknown[:1])}: convert one side."
        )
    hint = did_you_mean(known, unknown)
    return f"{text}{hint} The ids of {owner}: {describe(known)}. {advice}"
