"""Features as people have them: arrays of any shape, or one dataset of torch per node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nefele._checks import Array, is_frame, type_name
from nefele._ids import describe
from nefele._torch.base import Tensor, torch

Index = NDArray[np.int64]


class Features(Protocol):
    """Rows that a network can be given, by their numbers."""

    shape: tuple[int, ...]  # of one row

    def __len__(self) -> int: ...

    def take(self, at: Index) -> Tensor:
        """Some rows, shape (len(at), *shape)."""
        ...


class ArrayFeatures:
    """Rows of an array, which is neither copied nor converted as a whole.

    With `dtype` rows become numbers of this kind; without one they stay integers, such as the
    tokens of a text.
    """

    def __init__(self, values: NDArray[Any], dtype: torch.dtype | None) -> None:
        self.values, self.dtype = values, dtype
        self.shape = values.shape[1:]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, at: Index) -> Tensor:
        rows = torch.from_numpy(np.ascontiguousarray(self.values[at]))
        return rows.long() if self.dtype is None else rows.to(self.dtype)


class DatasetFeatures:
    """Rows of datasets, one after the other; an item is fetched whenever a batch needs it."""

    def __init__(self, datasets: list[Any], dtype: torch.dtype | None) -> None:
        self.datasets, self.dtype = datasets, dtype
        self.starts = np.cumsum([0, *(len(d) for d in datasets)])
        first = next(i for i, d in enumerate(datasets) if len(d))
        self.shape = tuple(np.shape(features_of(datasets[first][0])))

    def __len__(self) -> int:
        return int(self.starts[-1])

    def take(self, at: Index) -> Tensor:
        which = np.searchsorted(self.starts, at, side="right") - 1
        items = [
            torch.as_tensor(features_of(self.datasets[d][int(i - self.starts[d])]))
            for d, i in zip(which, at, strict=True)
        ]
        if not items:
            return torch.zeros(0, *self.shape, dtype=self.dtype or torch.int64)
        rows = torch.stack(items)
        return rows.long() if self.dtype is None else rows.to(self.dtype)


def features_of(item: Any) -> Any:
    """The features of a dataset's item: all of it, or the first of (features, target)."""
    return item[0] if isinstance(item, tuple | list) else item


class Sets(NamedTuple):
    """Datasets by node."""

    ids: NDArray[Any]
    datasets: list[Any]

    @property
    def row_ids(self) -> NDArray[Any]:
        """The node of each row."""
        return np.repeat(self.ids, [len(d) for d in self.datasets])

    def targets(self) -> Array:
        """The second entries of all items, in one pass that looks at the features as well."""
        found: list[Any] = []
        shape: tuple[int, ...] | None = None
        for node, dataset in zip(self.ids.tolist(), self.datasets, strict=True):
            for k in range(len(dataset)):
                item = dataset[k]
                shape = _checked(item, shape, f"item {k} of node {node!r}")
                found.append(item[1].item() if hasattr(item[1], "item") else item[1])
        return np.asarray(found)


def _checked(item: Any, shape: tuple[int, ...] | None, where: str) -> tuple[int, ...]:
    """The shape of an item's features, which must be that of the first."""
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise ValueError(
            f"Items of a dataset must be pairs (features, target) in fit; got {type_name(item)} "
            f"at {where}."
        )
    features = torch.as_tensor(item[0])
    found = tuple(features.shape)
    if found != (found if shape is None else shape):
        raise ValueError(
            f"Items of all datasets must have one shape, {shape} as the first; got {found} at "
            f"{where}."
        )
    if not bool(torch.isfinite(features).all()):
        raise ValueError(f"Features must not be NaN or inf; got one in {where}. Drop it.")
    return found


def as_sets(X: Any) -> Sets | None:
    """X as datasets by node, if that is what it is: a dict, or a list in the order of the nodes."""
    if isinstance(X, Mapping) and not is_frame(X) and not sparse.issparse(X):
        ids, datasets = list(X), list(X.values())
    elif isinstance(X, Sequence) and len(X) and all(_is_dataset(one) for one in X):
        ids, datasets = list(range(len(X))), list(X)
    else:
        return None
    wrong = [k for k, d in zip(ids, datasets, strict=True) if not _is_dataset(d)]
    if wrong:
        raise ValueError(
            "A dict as X must have a dataset for each node, an object with len() and items "
            f"(features, target); got {type_name(datasets[ids.index(wrong[0])])} for node "
            f"{wrong[0]!r}."
        )
    if not any(len(d) for d in datasets):
        raise ValueError(
            f"Datasets must have an item at least; all of {describe(_ids(ids))} are empty."
        )
    return Sets(_ids(ids), datasets)


def _ids(ids: list[Any]) -> NDArray[Any]:
    plain = np.array(ids) if len({type(one) for one in ids}) == 1 else None
    if plain is not None and plain.ndim == 1:
        return plain
    made = np.empty(len(ids), dtype=object)
    made[:] = ids
    return made


def _is_dataset(value: Any) -> bool:
    known = isinstance(value, torch.utils.data.Dataset)
    return known or (
        hasattr(value, "__len__")
        and hasattr(value, "__getitem__")
        and not isinstance(value, str | bytes | Mapping | np.ndarray | list | tuple | Tensor)
        and not is_frame(value)
        and not hasattr(value, "dtype")
    )


def as_array(X: Any) -> NDArray[Any] | None:
    """X as an array of three axes or more, if that is what it is; None for tables and matrices."""
    if isinstance(X, Tensor):
        X = X.detach().cpu().numpy()
    if _depth(X) > 2:
        X = np.asarray(X)
    if is_frame(X) or not hasattr(X, "ndim") or X.ndim < 3:
        return None
    values = np.asarray(X)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers; got an array of dtype {values.dtype}.")
    for first in range(0, len(values), 4096) if values.dtype.kind == "f" else ():
        finite = np.isfinite(values[first : first + 4096])
        if not finite.all():
            row = first + int(np.argwhere(~finite)[0, 0])
            raise ValueError(f"X must not contain NaN or inf; got one in row {row}. Drop it.")
    return values


def _depth(X: Any) -> int:
    """How deep lists are nested, by the first of each."""
    return 1 + _depth(X[0]) if isinstance(X, list) and X else 0
