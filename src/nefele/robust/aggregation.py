"""Robust combinations of a few vectors: what a node may take from neighbours it does not trust.

All functions take vectors as rows, shape (k, d), finite, of any size: norms are taken by scaling,
since 1e200 squared is infinite and would clip to zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array, check_count, check_finite, check_number

_STEPS = 100  # of Weiszfeld's iteration, at most
_FAR = 1e100  # in units of the rows' spread: only the direction of such a row counts
_STILL = 1e-9  # relative change at which it ends


def length(v: Array) -> Array:
    """Euclidean norm over the last axis, also of numbers whose squares overflow or vanish.

    Examples
    --------
    >>> bool(np.isclose(length(np.array([3e200, 4e200])), 5e200))
    True
    """
    size = np.abs(v).max(axis=-1, keepdims=True, initial=0.0)
    safe = np.where(size > 0, size, 1.0)
    return np.asarray(size[..., 0] * np.sqrt(((v / safe) ** 2).sum(axis=-1)))


def clipped(v: Array, radius: float) -> Array:
    """Vectors of at most this length: v min(1, radius / ||v||).

    Examples
    --------
    >>> clipped(np.array([[3e200, 4e200], [0.3, 0.4]]), 1.0).round(6).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    return np.where((length(v) > radius)[..., None], radius * _ways(v), v)


def _ways(v: Array) -> Array:
    """Vectors of length one in the directions of v, zero where v is."""
    size = np.abs(v).max(axis=-1, keepdims=True, initial=0.0)
    way = v / np.where(size > 0, size, 1.0)
    norm = np.sqrt((way**2).sum(axis=-1, keepdims=True))
    return np.asarray(way / np.where(norm > 0, norm, 1.0))


def between(a: Array, b: Array) -> Array:
    """A - b without overflow: largest numbers stay the largest ones."""
    top = np.finfo(float).max / 4
    return np.asarray(np.clip(a, -top, top) - np.clip(b, -top, top))


def trimmed_mean(rows: Any, trim: int) -> Array:
    """Mean of each coordinate without its `trim` smallest and `trim` largest entries.

    Parameters
    ----------
    rows : array of shape (k, d)
    trim : int
        At least 0, less than k / 2.

    Examples
    --------
    >>> trimmed_mean([[1.0], [2.0], [3.0], [1e9]], trim=1).tolist()
    [2.5]
    """
    rows = check_rows(rows)
    if not 0 <= check_count(trim, "trim") < len(rows) / 2:
        raise ValueError(
            f"trim must leave some of the {len(rows)} rows; got {trim}. Use less than half of them."
        )
    kept = np.sort(rows, axis=0)[trim : len(rows) - trim]
    return np.asarray((kept / len(kept)).sum(axis=0))


def coordinate_median(rows: Any) -> Array:
    """Median of each coordinate.

    Examples
    --------
    >>> coordinate_median([[1.0, 5.0], [2.0, 4.0], [1e9, -1e9]]).tolist()
    [2.0, 4.0]
    """
    rows = np.sort(check_rows(rows), axis=0)
    k = len(rows)
    return np.asarray(rows[(k - 1) // 2] / 2 + rows[k // 2] / 2)


def geometric_median(rows: Any, smoothing: float = 1e-9) -> Array:
    """The point with the least sum of distances to the rows, by Weiszfeld's iteration.

    Distances below `smoothing` times the rows' spread count as that, so that a step is always
    defined. Less than half of the rows, wherever they are, keep it among the others.

    Examples
    --------
    >>> geometric_median([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1e12, 1e12]]).round(3).tolist()
    [0.5, 0.5]
    """
    rows = check_rows(rows)
    smoothing = check_number(smoothing, "smoothing", low=0.0, strict=True)
    at = coordinate_median(rows)
    away = between(rows, at)
    unit = float(np.median(length(away)))
    if not unit > 0:  # half of the rows are here: no point is nearer to them
        return at
    away = clipped(away, _FAR * unit) / unit  # in units of the rows' spread
    point = np.zeros_like(at)
    for _ in range(_STEPS):
        # Squares of rows that are clipped to _FAR do not overflow.
        distance = np.sqrt(((away - point) ** 2).sum(axis=1))
        weight = 1 / np.maximum(distance, smoothing)
        new = ((weight / weight.sum())[:, None] * away).sum(axis=0)
        moved, point = float(length(new - point)), new
        if moved <= _STILL * max(float(length(point)), 1.0):
            break
    return np.asarray(at + unit * point)


def krum(rows: Any, attackers: int) -> Array:
    """The row with the least sum of squared distances to its k - attackers - 2 nearest others.

    Parameters
    ----------
    rows : array of shape (k, d)
    attackers : int
        How many rows may be bad; Krum needs k >= attackers + 3, its promise 2 attackers + 3.

    Examples
    --------
    >>> krum([[1.0], [1.1], [0.9], [1.05], [50.0]], attackers=1).tolist()
    [1.05]
    """
    rows = check_rows(rows)
    near = len(rows) - check_count(attackers, "attackers") - 2
    if near < 1:
        raise ValueError(
            f"Krum needs attackers + 3 rows at least; got {len(rows)} rows, attackers={attackers}. "
            "Use coordinate_median for so few neighbours."
        )
    distance = length(between(rows[:, None], rows[None]))
    top = float(distance.max(initial=0.0))
    nearest = np.sort(distance / (top or 1.0), axis=1)[:, 1 : 1 + near]
    return np.asarray(rows[int(np.argmin((nearest**2).sum(axis=1)))])


def centred_clipping(rows: Any, centre: Any, radius: float, steps: int = 3) -> Array:
    """The centre moved by the mean of the clipped differences, a few times.

    Parameters
    ----------
    rows : array of shape (k, d)
    centre : array of shape (d,)
        Where to begin, such as the own model: no step is longer than `radius`.
    radius : float
    steps : int

    Examples
    --------
    >>> centred_clipping([[1.0], [1.0], [1e9]], [0.0], radius=1.0, steps=1).tolist()
    [1.0]
    """
    rows = check_rows(rows)
    at = _centre(centre, rows)
    radius = check_number(radius, "radius", low=0.0, strict=True)
    for _ in range(check_count(steps, "steps", low=1)):
        at = at + clipped(between(rows, at), radius).mean(axis=0)
    return at


def fltrust(rows: Any, own: Any) -> Array:
    """Mean of updates, each scaled to the length of the own one, weighted by ReLU(cosine).

    Cao et al. 2021. Where no update points the way of the own one, it is the own one.

    Parameters
    ----------
    rows : array of shape (k, d)
        Updates of others: what has changed in their models, not the models.
    own : array of shape (d,)
        The update that is trusted.

    Examples
    --------
    >>> fltrust([[2.0, 0.0], [-1e9, 0.0]], own=[1.0, 0.0]).tolist()
    [1.0, 0.0]
    """
    rows = check_rows(rows)
    own = _centre(own, rows)
    norm, unit = float(length(own)), _ways(rows)
    trust = np.maximum(unit @ _ways(own), 0.0)
    total = float(trust.sum())
    return own if not total > 0 else np.asarray(norm * (trust / total) @ unit)


def check_rows(rows: Any) -> Array:
    """Finite rows of shape (k, d), k and d at least 1; otherwise a ValueError."""
    rows = as_float_array(rows, "rows", 2)
    if not rows.size:
        raise ValueError(f"rows must hold one vector at least; got shape {rows.shape}.")
    check_finite(rows, lambda at: f"rows[{at[0]}, {at[1]}]")
    return rows


def _centre(value: Any, rows: Array) -> Array:
    centre = as_float_array(value, "centre", 1)
    if centre.shape != rows.shape[1:]:
        raise ValueError(
            f"The own vector must have the rows' length {rows.shape[1]}; got {len(centre)}."
        )
    check_finite(centre, lambda at: f"the own vector [{at[0]}]")
    return centre
