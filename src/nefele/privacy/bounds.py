"""Bounds of rows, declared beforehand: what lies outside is moved to the border."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array, check_name, check_number

OUTSIDE = ("clip", "raise")


@dataclass(frozen=True)
class Bounds:
    """How large features and target may be, known without looking at the data.

    Bounds read off the data would tell about single rows: the largest one is the value of some
    record. Take them from what the columns mean.

    Parameters
    ----------
    x : float, list of (low, high), or dict {feature: (low, high)}
        A number bounds the Euclidean norm of each row of features. Ranges bound each feature; a
        single pair holds for all of them.
    y : (low, high) or float, optional
        Range of the target; a number b stands for (-b, b). Classes need none.
    outside : {"clip", "raise"}
        What happens to a row outside: it is moved to the border, or the fit is refused before
        anything leaves the node. A refusal says that there is such a row.

    Examples
    --------
    >>> bounds = Bounds(x=[(-30, 40), (0, 100)], y=(-40, 45))
    >>> X, y, share = bounds.fixed(2).unit([[5.0, 120.0]], [2.5])
    >>> X.round(3).tolist(), y.tolist(), share
    ([[0.0, 0.707]], [0.0], 1.0)
    """

    x: Any = None
    y: Any = None
    outside: str = "clip"

    def __post_init__(self) -> None:
        if self.x is None:
            raise ValueError(
                "Bounds must have x: the largest norm of a row of features, such as x=1.0, or a "
                "range for each feature, such as x=[(0, 1), (-5, 5)]."
            )
        if isinstance(self.x, Mapping):
            for name, pair in self.x.items():
                _pair(pair, f"The bounds of feature {name!r}")
        elif np.ndim(self.x) == 0:
            check_number(self.x, "The bound x of the norm", low=0.0, strict=True)
        else:
            for j, pair in enumerate(_pairs(self.x)):
                _pair(pair, f"The bounds of feature {j}")
        if self.y is not None:
            _pair(_symmetric(self.y), "The bounds of y")
        check_name(self.outside, OUTSIDE, "rule for rows outside the bounds")

    @property
    def target(self) -> tuple[float, float]:
        """Lowest and highest target; (-1, 1) without bounds."""
        return (-1.0, 1.0) if self.y is None else _pair(_symmetric(self.y), "The bounds of y")

    def fixed(self, d: int, names: Sequence[str] | None = None) -> Box:
        """These bounds for d features, by name where they are given so.

        Parameters
        ----------
        d : int
            Number of features.
        names : sequence of str, optional
            Their names, in order.
        """
        low, high = self.target
        middle, half, has = (low + high) / 2, (high - low) / 2, self.y is not None
        if not isinstance(self.x, Mapping) and np.ndim(self.x) == 0:
            width = np.full(d, float(self.x))
            return Box(np.zeros(d), width, False, middle, half, has, self.outside)
        pairs = np.array(self._by_feature(d, names), dtype=np.float64).reshape(d, 2)
        centre, width = pairs.mean(axis=1), (pairs[:, 1] - pairs[:, 0]) / 2
        # Features are scaled alike, so that a row in the box has norm at most 1.
        root = np.sqrt(max(d, 1))
        return Box(centre, width * root, True, middle, half, has, self.outside)

    def _by_feature(self, d: int, names: Sequence[str] | None) -> list[Any]:
        if not isinstance(self.x, Mapping):
            pairs = _pairs(self.x)
            pairs = list(pairs) * d if len(pairs) == 1 else list(pairs)
            if len(pairs) != d:
                raise ValueError(
                    f"The bounds x must have a range for each of the {d} features; got "
                    f"{len(pairs)}."
                )
            return pairs
        names = [str(j) for j in range(d)] if names is None else [str(name) for name in names]
        given = {str(name): pair for name, pair in self.x.items()}
        missing = [name for name in names if name not in given]
        if missing or len(given) != d:
            more = [name for name in given if name not in names]
            raise ValueError(
                f"The bounds x must have the features of X. Missing: {missing or 'none'}; "
                f"unknown: {more or 'none'}."
            )
        return [given[name] for name in names]


@dataclass(frozen=True, eq=False)
class Box:
    """Bounds for a number of features, and the units in which bounded rows are short.

    (x - centre) / width has norm at most 1, (y - middle) / half is in [-1, 1].
    """

    centre: Array
    width: Array
    by_feature: bool
    middle: float
    half: float
    has_target: bool
    outside: str = "clip"

    def unit(self, X: Any, y: Any = None) -> tuple[Array, Array, float]:
        """Bounded rows in these units, and the share of rows that had to be moved.

        y comes back as it is where the target has no bounds.
        """
        X = as_float_array(X, "X", 2)
        y = np.zeros(len(X)) if y is None else as_float_array(y, "y", 1)
        if X.shape[1] != len(self.centre):
            raise ValueError(f"X must have {len(self.centre)} features; got {X.shape[1]}.")
        if not (np.isfinite(X).all() and np.isfinite(y).all()):
            raise ValueError("Rows must be finite before they are bounded. Drop or fill them.")
        inner, moved = self._features((X - self.centre) / self.width)
        if self.has_target:
            scaled = (y - self.middle) / self.half
            y = np.clip(scaled, -1.0, 1.0)
            moved |= y != scaled
        if moved.any() and self.outside == "raise":
            raise ValueError(
                f"All rows must lie inside the declared bounds; {int(moved.sum())} of {len(X)} do "
                'not. Correct them, declare other bounds, or use outside="clip". Nothing was '
                "released."
            )
        return inner, y, float(moved.mean()) if len(X) else 0.0

    def _features(self, Z: Array) -> tuple[Array, Any]:
        if self.by_feature:
            border = 1 / np.sqrt(max(Z.shape[1], 1))
            inner = np.clip(Z, -border, border)
            # Rounding of an exact border is no crossing of it.
            return inner, (np.abs(Z) > border * (1 + 1e-12)).any(axis=1)
        largest = np.abs(Z).max(axis=1, initial=0.0, keepdims=True)
        largest[largest == 0] = 1.0
        # Squares of huge numbers overflow: norms by scaling.
        norm = largest * np.linalg.norm(Z / largest, axis=1, keepdims=True)
        moved = norm[:, 0] > 1 + 1e-12
        return np.where(norm > 1, Z / np.maximum(norm, 1.0), Z), moved

    @property
    def stretch(self) -> float:
        """Factor that gives features deviation 1 if rows fill the bounds evenly.

        So alpha means about what it means for standardised features, which are not to be had.
        """
        d = len(self.centre)
        return float(np.sqrt(3 * max(d, 1) if self.by_feature else d + 2))


def _pairs(x: Any) -> list[Any]:
    pairs = list(x)
    if len(pairs) == 2 and np.ndim(pairs[0]) == 0:  # one range for all features
        return [tuple(pairs)]
    return pairs


def _symmetric(y: Any) -> Any:
    if np.ndim(y):
        return y
    bound = check_number(y, "The bound of y", low=0.0, strict=True)
    return (-bound, bound)


def _pair(pair: Any, what: str) -> tuple[float, float]:
    if np.ndim(pair) != 1 or len(pair) != 2:
        raise ValueError(f"{what} must be a pair (low, high); got {pair!r}.")
    low, high = (check_number(value, what) for value in pair)
    if not low < high:
        raise ValueError(f"{what} must have low < high; got {pair!r}.")
    return low, high
