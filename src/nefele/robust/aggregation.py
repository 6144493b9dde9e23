"""Robust combinations of a few vectors: what a node may take from neighbours it does not trust.

All functions take vectors as rows, shape (k, d), finite, of any size: norms are taken by scaling,
since 1e200 squared is infinite and would clip to zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array, check_count, check_finite, check_number

_STEPS = 300  # of Weiszfeld's iteration, at most
_FAR = 1e100  # in units of the rows' spread: only the direction of such a row counts
_LARGEST = float(np.finfo(float).max) / 4
_STILL = 1e-9  # slope at which it ends, for each row


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
    return np.asarray(np.clip(a, -_LARGEST, _LARGEST) - np.clip(b, -_LARGEST, _LARGEST))


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

    Parameters
    ----------
    rows : array of shape (k, d)
        One vector each.

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

    Where a row itself is that point, it is found by its optimality; otherwise a step that ends
    within `smoothing` times the rows' spread of a row leaves it (Vardi and Zhang 2000). Less than
    half of the rows, wherever they are, keep it among the others.

    Parameters
    ----------
    rows : array of shape (k, d)
        One vector each.
    smoothing : float
        Distance from a row, relative to the spread of the rows, that counts as none.

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
    away = clipped(away, min(_FAR * unit, _LARGEST)) / unit  # in units of the rows' spread
    best = None if _slope(away, np.zeros_like(at), smoothing)[2] else _best_row(away)
    return rows[best] if best is not None else np.asarray(at + unit * _weiszfeld(away, smoothing))


def _slope(rows: Array, point: Array, smoothing: float) -> tuple[Array, float, bool]:
    """Where the sum of distances falls, the sum of weights, and whether nothing is to be gained."""
    away = rows - point
    distance = np.sqrt((away**2).sum(axis=1))  # no overflow: rows are clipped to _FAR
    far = distance > smoothing
    weight = 1 / distance[far]
    pull = (weight[:, None] * away[far]).sum(axis=0)
    size, held = float(length(pull)), float((~far).sum())
    if size <= held + _STILL * len(rows):
        return pull, 1.0, True
    return (1 - held / size) * pull, float(weight.sum()), False


def _best_row(rows: Array) -> int | None:
    """The row from which no other point is nearer to all; None when it is no row.

    The others pull with one unit each, and a row stays where as many rows as are there hold it.
    """
    apart = rows[None] - rows[:, None]
    pull = np.sqrt((_ways(apart).sum(axis=1) ** 2).sum(axis=1))
    held = (length(apart) == 0).sum(axis=1)
    still = np.flatnonzero(pull <= held)
    return int(still[0]) if still.size else None


def _weiszfeld(rows: Array, smoothing: float) -> Array:
    """The same for rows in units of their spread, none of which is the point; from zero."""
    point = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        pull, weight, done = _slope(rows, point, smoothing)
        if done:
            break
        point = point + pull / weight
    return point


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
    nearest = np.sort(distance, axis=1)[:, 1 : 1 + near]
    unit = float(nearest.max(axis=1).min()) or 1.0  # of the best row: squares of its like count
    nearest = np.minimum(nearest, _FAR * unit) / unit
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
