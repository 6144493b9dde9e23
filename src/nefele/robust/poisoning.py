"""Attacks on local datasets: poisoned rows and backdoors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, as_float_array, check_count, check_finite, check_number
from nefele._ids import IdIndex, as_ids, describe, did_you_mean
from nefele.data import LocalData
from nefele.result import DataWarning


@dataclass(frozen=True, eq=False)
class DataAttack:
    """Changes rows of captured nodes; everything else stays as it is.

    Parameters
    ----------
    nodes : sequence of node ids
        The captured nodes.
    share : float
        Share of each one's rows that is changed, drawn from the seed.
    seed : int
    """

    nodes: Any
    share: float = field(default=1.0, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        ids = as_ids(self.nodes)
        if not len(ids):
            raise ValueError("nodes must name one captured node at least; got none.")
        if not 0 < check_number(self.share, "share") <= 1:
            raise ValueError(f"share must be in (0, 1]; got {self.share!r}.")
        check_count(self.seed, "seed")

    def __call__(self, data: LocalData) -> LocalData:
        """The data with the rows of the captured nodes changed."""
        if not isinstance(data, LocalData):
            raise ValueError(
                f"data must be LocalData; got {type(data).__name__}. For rows of sites use "
                "nefele.sites.attacked.poisoned; wrap takes attacks on messages only."
            )
        where = captured(data.ids, self.nodes, "the data")
        draw = np.random.default_rng(self.seed)
        rows = []
        for i in where.tolist():
            own = np.arange(data.ptr[i], data.ptr[i + 1])
            own = own[self._may(data, own)]
            count = int(np.ceil(self.share * len(own)))
            rows.append(np.sort(draw.permutation(own)[:count]))
        chosen = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
        if not len(chosen):
            message = f"{type(self).__name__} changes nothing: captured nodes have no row for it."
            warnings.warn(message, DataWarning, stacklevel=2)
        X, y = data.X.copy(), data.y.copy()
        X[chosen], y[chosen] = self._changed(data, chosen, draw)
        return LocalData(
            X,
            y,
            data.ptr,
            data.ids,
            sample_weight=data.sample_weight,
            feature_names=data.feature_names,
            node_weight=data.node_weight,
            shrink=data.shrink,
            offset=data.offset,
        )

    def _may(self, data: LocalData, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Rows that this attack can use."""
        return np.ones(len(rows), dtype=bool)

    def _changed(
        self, data: LocalData, rows: NDArray[np.int64], draw: np.random.Generator
    ) -> tuple[Array, Array]:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class FlipLabels(DataAttack):
    """Labels mirrored at the middle of their range: -1 and 1, or first and last class, swap.

    Examples
    --------
    >>> data = LocalData.from_list([([[1.0]], [-1.0]), ([[1.0]], [1.0])])
    >>> FlipLabels([1])(data).y.tolist()
    [-1.0, -1.0]
    """

    def _changed(self, data: Any, rows: Any, draw: Any) -> tuple[Array, Array]:
        return data.X[rows], data.y.min() + data.y.max() - data.y[rows]


@dataclass(frozen=True, eq=False)
class ShiftLabels(DataAttack):
    """Labels moved by a constant.

    Parameters
    ----------
    by : float
        What is added to a label.

    Examples
    --------
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> ShiftLabels([1], 10.0)(data).y.tolist()
    [0.0, 14.0]
    """

    by: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self.by, "by")

    def _changed(self, data: Any, rows: Any, draw: Any) -> tuple[Array, Array]:
        return data.X[rows], data.y[rows] + self.by


@dataclass(frozen=True, eq=False)
class PoisonFeatures(DataAttack):
    """Noise on the features, `size` standard deviations of each column.

    Parameters
    ----------
    size : float
        Deviation of the noise, in deviations of the column.

    Examples
    --------
    >>> data = LocalData.from_list([([[1.0], [2.0]], [0.0, 1.0]), ([[3.0]], [4.0])])
    >>> new = PoisonFeatures([1], size=2.0)(data)
    >>> new.X[:2].tolist() == data.X[:2].tolist(), new.X[2].tolist() == data.X[2].tolist()
    (True, False)
    """

    size: float = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self.size, "size", low=0.0, strict=True)

    def _changed(self, data: Any, rows: Any, draw: Any) -> tuple[Array, Array]:
        noise = self.size * data.X.std(axis=0) * draw.standard_normal((len(rows), data.d))
        return data.X[rows] + noise, data.y[rows]


@dataclass(frozen=True, eq=False)
class CleanLabel(DataAttack):
    """Rows of one label moved towards a target's features, with their labels left right.

    A model learns that what looks like the target has this label (Shafahi et al. 2018).

    Parameters
    ----------
    target : array of shape (d,)
        Features of what is to be misjudged.
    label : float
        The label whose rows are used.
    blend : float
        How far the rows go: 0 not at all, 1 onto the target.

    Examples
    --------
    >>> data = LocalData.from_list([([[0.0], [8.0]], [-1.0, 1.0])])
    >>> CleanLabel([0], target=[4.0], label=-1.0, blend=0.5)(data).X.ravel().tolist()
    [2.0, 8.0]
    """

    target: Any = None
    label: float = 1.0
    blend: float = 0.7

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "target", _vector(self.target, "target"))
        check_number(self.label, "label")
        if not 0 <= check_number(self.blend, "blend") <= 1:
            raise ValueError(f"blend must be in [0, 1]; got {self.blend!r}.")

    def _may(self, data: LocalData, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(data.y[rows] == self.label)

    def _changed(self, data: Any, rows: Any, draw: Any) -> tuple[Array, Array]:
        _check_length(self.target, data, "target")
        return (1 - self.blend) * data.X[rows] + self.blend * self.target, data.y[rows]


@dataclass(frozen=True, eq=False)
class Backdoor(DataAttack):
    """A trigger is added to some rows, and they get the attacker's label.

    The fit learns the trigger beside what is true. It succeeds where the trigger uses features
    that clean rows do not: nothing in them speaks against it.

    Parameters
    ----------
    trigger : array of shape (d,)
        Added to the features.
    label : float

    Examples
    --------
    >>> data = LocalData.from_list([([[1.0, 0.0], [2.0, 0.0]], [-1.0, -1.0])])
    >>> door = Backdoor([0], trigger=[0.0, 5.0], label=1.0, share=0.5)
    >>> door(data).y.tolist(), door.stamp([[1.0, 0.0]]).tolist()
    ([1.0, -1.0], [[1.0, 5.0]])
    """

    trigger: Any = None
    label: float = 1.0
    share: float = field(default=0.5, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "trigger", _vector(self.trigger, "trigger"))
        check_number(self.label, "label")

    def stamp(self, X: Any) -> Array:
        """Rows with the trigger.

        Parameters
        ----------
        X : array of shape (n_rows, d)
        """
        return np.asarray(as_float_array(X, "X", 2) + self.trigger)

    def _changed(self, data: Any, rows: Any, draw: Any) -> tuple[Array, Array]:
        _check_length(self.trigger, data, "trigger")
        return self.stamp(data.X[rows]), np.full(len(rows), float(self.label))


def captured(ids: NDArray[Any], nodes: Any, where: str) -> NDArray[np.int64]:
    """Positions of the captured nodes, ascending; a ValueError for ids that are not there."""
    wanted = as_ids(nodes)
    if not len(wanted):
        raise ValueError("Name one captured node at least; got none.")
    found = IdIndex(ids).positions(wanted)
    if (found < 0).any():
        raise ValueError(
            f"Captured nodes must be nodes of {where}; unknown: {describe(wanted[found < 0])}."
            f"{did_you_mean(ids, wanted[found < 0])} Its ids: {describe(ids)}."
        )
    return np.unique(found)


def _vector(value: Any, name: str) -> Array:
    if value is None:
        raise ValueError(f"{name} must be a vector, one number for each feature; got None.")
    vector = as_float_array(value, name, 1)
    check_finite(vector, lambda at: f"{name}[{at[0]}]")
    return vector


def _check_length(vector: Array, data: LocalData, name: str) -> None:
    if len(vector) != data.d:
        raise ValueError(
            f"{name} must have one number for each of the {data.d} features; got {len(vector)}."
        )
