"""Places of the nodes on a page: given positions, a projection, or a force layout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._draw.layout import force_layout

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Places:
    """Places of shape (n, 2) inside a box (width, height) with sides of at most 1, y upwards.

    On a map, `globe` has longitude and latitude of the lower left corner, and the degrees per unit
    of x and of y.
    """

    xy: Array
    box: tuple[float, float]
    globe: tuple[float, float, float, float] | None = None


def place(n: int, edges: Ints, positions: Array | None, geographic: bool) -> Places:
    """Places of n nodes.

    Examples
    --------
    >>> place(2, np.array([[0, 1]]), np.array([[0.0, 0.0], [4.0, 2.0]]), False).xy.tolist()
    [[0.0, 0.0], [1.0, 0.5]]
    """
    if positions is None:
        return _fit(force_layout(n, edges))
    filled = _fill(np.array(positions, dtype=np.float64), edges)
    return _map(filled) if geographic else _fit(filled)


def _fit(xy: Array) -> Places:
    low = xy.min(axis=0)
    span = xy.max(axis=0) - low
    side = float(span.max())
    if not side > 0:
        return Places(np.full_like(xy, 0.5), (1.0, 1.0))
    return Places((xy - low) / side, (float(span[0] / side), float(span[1] / side)))


def _map(lonlat: Array) -> Places:
    """Equirectangular, longitudes shortened by the cosine of the middle latitude."""
    lon, lat = lonlat.T
    across = np.where(lon < 0, lon + 360, lon)
    if np.ptp(across) < np.ptp(lon):
        lon = across  # the nodes lie on both sides of the date line
    shrink = max(float(np.cos(np.radians((lat.min() + lat.max()) / 2))), 0.05)
    placed = _fit(np.column_stack([lon * shrink, lat]))
    side = max(float(np.ptp(lon)) * shrink, float(np.ptp(lat)))
    if not side > 0:
        return placed
    return Places(placed.xy, placed.box, (float(lon.min()), float(lat.min()), side / shrink, side))


def _fill(xy: Array, edges: Ints) -> Array:
    """Give nodes without a position the mean of their neighbours, or the middle."""
    xy = np.where(np.isfinite(xy), xy, np.nan)
    for _ in range(3):
        missing = np.isnan(xy[:, 0] + xy[:, 1])
        if not missing.any():
            return xy
        both = np.concatenate([edges, edges[:, ::-1]])
        both = both[missing[both[:, 0]] & ~missing[both[:, 1]]]
        total = np.zeros_like(xy)
        np.add.at(total, both[:, 0], xy[both[:, 1]])
        count = np.bincount(both[:, 0], minlength=len(xy))
        found = count > 0
        xy[found] = total[found] / count[found, None]
    missing = np.isnan(xy[:, 0] + xy[:, 1])
    xy[missing] = 0.0 if missing.all() else xy[~missing].mean(axis=0)
    return xy
