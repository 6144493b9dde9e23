"""Coordinates of the nodes, by node id: on a plane, or latitude and longitude."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from nefele._checks import Array, as_float_array, check_finite, is_frame, type_name
from nefele._ids import IdIndex, as_ids
from nefele.graphs.points import embed

_EARTH = ({"lat", "latitude"}, {"lon", "lng", "long", "longitude"})
_DEGREES = (("latitude", -90, 90), ("longitude", -180, 360))


def is_coordinate(name: str) -> bool:
    """Whether a column is called latitude or longitude.

    Examples
    --------
    >>> is_coordinate("Lat"), is_coordinate("late")
    (True, False)
    """
    return name.strip().lower() in _EARTH[0] | _EARTH[1]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Ids of nodes and their points, shape (n, k).

    With the metric "haversine" the points are (latitude, longitude) in degrees.
    """

    ids: NDArray[Any]
    points: Array
    metric: str

    def __post_init__(self) -> None:
        if self.metric == "haversine" and self.points.shape[1] == 2:
            _check_degrees(self.ids, self.points)

    def nearest(self, of: NDArray[Any], among: NDArray[Any]) -> NDArray[np.int64]:
        """Position in `among` of the nearest node to each id of `of`; -1 without coordinates."""
        index = IdIndex(self.ids)
        here, there = index.positions(of), index.positions(among)
        out = np.full(len(of), -1, dtype=np.int64)
        known = np.flatnonzero(there >= 0)
        if known.size and (here >= 0).any():
            place = embed(self.points, self.metric)
            found = cKDTree(place[there[known]]).query(place[here[here >= 0]])[1]
            out[here >= 0] = known[found]
        return out


def _check_degrees(ids: NDArray[Any], points: Array) -> None:
    for column, (name, low, high) in enumerate(_DEGREES):
        bad = np.flatnonzero((points[:, column] < low) | (points[:, column] > high))
        if bad.size:
            raise ValueError(
                f"{name} must lie in [{low}, {high}] degrees; got {points[bad[0], column]} at node "
                f"{ids[bad[:1]].tolist()[0]!r}. Give (latitude, longitude), in this order, or "
                'metric="euclidean".'
            )


def metric_of(names: list[str] | None) -> str:
    """Great-circle distances when the columns are called latitude and longitude."""
    lowered = [str(name).lower() for name in names or []]
    if len(lowered) > 2 and all(set(lowered) & group for group in _EARTH):
        rest = [name for name in lowered if name not in _EARTH[0] | _EARTH[1]]
        raise ValueError(
            f"coords must have latitude and longitude alone, or no columns of these names; got "
            f"also {', '.join(rest)}. Leave them out, or rename all for distances on a plane."
        )
    if len(lowered) != 2:
        return "euclidean"
    both = all(name in _EARTH[k] for k, name in enumerate(lowered))
    if not both and all(name in _EARTH[1 - k] for k, name in enumerate(lowered)):
        raise ValueError(f"coords must be (latitude, longitude), in this order; got {names}.")
    return "haversine" if both else "euclidean"


def as_coordinates(coords: Any, node: Any = None) -> Coordinates:
    """Coordinates from a dict {id: point} or a table with one row per node.

    The ids of a table are its column called `node`, or its only column that is no number, or the
    index of a pandas table. Columns called lat(itude) and lon(gitude) mean places on the Earth.

    Examples
    --------
    >>> found = as_coordinates({"Oulu": (65.0, 25.5), "Kemi": (65.7, 24.6)})
    >>> found.ids.tolist(), found.metric
    (['Oulu', 'Kemi'], 'euclidean')
    """
    if isinstance(coords, Coordinates):
        return coords
    if isinstance(coords, Mapping):
        ids = as_ids(list(coords))
        points = as_float_array(list(coords.values()), "coords", 2)
        metric = "euclidean"
    elif is_frame(coords):
        ids, points, metric = _from_frame(coords, node)
    else:
        raise ValueError(
            "coords must be a dict {node id: point} or a table with one row per node; got "
            f"{type_name(coords)}."
        )
    if not IdIndex(ids).unique:
        raise ValueError(
            f"coords must have one row per node; {IdIndex(ids).first_duplicate()!r} "
            "is there more than once."
        )
    check_finite(points, lambda at: f"coords of node {ids[at[0] : at[0] + 1].tolist()[0]!r}")
    return Coordinates(ids, points, metric)


def _from_frame(table: Any, node: Any) -> tuple[NDArray[Any], Array, str]:
    names = list(table.columns)
    if node in names:
        key = node
    else:
        text = [
            name for name in names if np.asarray(table[name].to_numpy()).dtype.kind not in "fiub"
        ]
        key = text[0] if len(text) == 1 else None
    if key is None and not hasattr(table, "index"):
        raise ValueError(
            f"coords must have a column with the node ids, called {node or 'as node='!r}; got "
            f"{', '.join(map(str, names))}."
        )
    ids = as_ids(table.index if key is None else table[key])
    columns = [name for name in names if name != key]
    points = as_float_array(table[columns], "coords", 2)
    return ids, points, metric_of(columns)
