"""Points in space or on the Earth: lengths of edges, and weights that depend on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array, check_finite, check_name, check_number
from nefele.graph import Index

EARTH_RADIUS_KM = 6371.0088


def check_weighting(weight: str, scale: float | None) -> None:
    """Check the arguments of `edge_weight` before any work is done."""
    check_name(weight, ("unit", "exp", "inverse"), "weight")
    if scale is not None:
        check_number(scale, "scale", low=0.0, strict=True)


def embed(points: Any, metric: str) -> Array:
    """Points in a Euclidean space where the nearest are the nearest by the metric.

    Latitude and longitude become points of the unit sphere: a longer arc has a longer chord.
    """
    check_name(metric, ("euclidean", "haversine"), "metric")
    values = as_float_array(points, "points", 2)
    check_finite(values, lambda at: f"points at row {at[0]}, column {at[1]}")
    if not values.size:
        raise ValueError(f"points must have rows and columns; got shape {values.shape}.")
    if metric == "euclidean":
        return values
    if values.shape[1] != 2:
        raise ValueError(f"points must be (latitude, longitude); got {values.shape[1]} column(s).")
    bad = np.flatnonzero(np.abs(values[:, 0]) > 90)
    if bad.size:
        raise ValueError(
            f"latitude must lie in [-90, 90] degrees; got {values[bad[0], 0]} at row {bad[0]}. "
            "Give (latitude, longitude), in this order."
        )
    lat, lon = np.radians(values).T
    return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])


def chord(arc: float) -> float:
    """Chord of the unit sphere below an arc in kilometres on the Earth: 2 sin(arc / 2R)."""
    return float(2.0 * np.sin(min(arc / EARTH_RADIUS_KM, np.pi) / 2.0))


def edge_length(position: Array, i: Index, j: Index, metric: str) -> Array:
    """Distance of the ends of each edge, in kilometres for "haversine"."""
    length = np.asarray(np.linalg.norm(position[i] - position[j], axis=1))
    if metric == "haversine":
        return 2.0 * EARTH_RADIUS_KM * np.arcsin(np.minimum(length / 2.0, 1.0))
    return length


def edge_weight(
    position: Array, i: Index, j: Index, metric: str, weight: str, scale: float | None
) -> Array:
    """A_e = 1, exp(-l_e / scale) or 1 / l_e, with the length l_e of edge e."""
    if weight == "unit":
        return np.ones(len(i))
    length = edge_length(position, i, j, metric)
    if weight == "exp":
        if scale is None:
            scale = float(length.mean()) if length.any() else 1.0
        # never exactly zero: a far neighbour stays a neighbour
        return np.maximum(np.exp(-length / scale), np.finfo(np.float64).tiny)
    zero = np.flatnonzero(length == 0)
    if zero.size:
        raise ValueError(
            f'weight="inverse" needs distinct points; rows {i[zero[0]]} and {j[zero[0]]} '
            'coincide. Use weight="exp" or "unit".'
        )
    return 1.0 / length
