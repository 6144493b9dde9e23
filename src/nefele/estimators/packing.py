"""Validated rows, and how they become the local datasets of a problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.data import LocalData
from nefele.estimators.signals import taken

Mask = NDArray[np.bool_]


_FORGOTTEN = 1e-6  # weight below which a row of an earlier batch is dropped


@dataclass(frozen=True, eq=False)
class Rows:
    """Validated rows: features, numeric target, node ids and weights > 0.

    `gaps` says which entries of X were missing and are filled in; None: none was. `signals` are
    what a user would expect of some rows, see `nefele.estimators.signals`; None: nothing is known.
    """

    X: Array
    y: Array
    node_ids: NDArray[Any]
    sample_weight: Array
    gaps: Mask | None = None
    signals: Array | None = None

    def take(self, index: NDArray[np.int64]) -> Rows:
        """Some of the rows."""
        return Rows(
            self.X[index],
            self.y[index],
            self.node_ids[index],
            self.sample_weight[index],
            None if self.gaps is None else self.gaps[index],
            None if self.signals is None else taken(self.signals, index, len(self.y)),
        )

    def faded(self, forget: float) -> Rows:
        """With less weight, and without rows that hardly count any more; at least one stays."""
        if forget == 1.0:
            return self
        weight = forget * self.sample_weight
        keep = np.flatnonzero((weight > _FORGOTTEN) | (weight == weight.max()))
        return replace(self, sample_weight=weight).take(keep)

    def filled_by(self, others: Rows) -> Rows:
        """With the gaps filled by the medians of other rows: none may know those held out."""
        if self.gaps is None or others.gaps is None:
            return self
        X = self.X.copy()
        for j in np.flatnonzero(self.gaps.any(axis=0)):
            known = others.X[~others.gaps[:, j], j]
            if known.size:
                X[self.gaps[:, j], j] = np.median(known)
        return replace(self, X=X)

    def then(self, other: Rows) -> Rows:
        """These rows and those of another batch."""
        ids = [self.node_ids, other.node_ids]
        mixed = len({a.dtype.kind for a in ids}) > 1
        gaps = [np.zeros(r.X.shape, bool) if r.gaps is None else r.gaps for r in (self, other)]
        return Rows(
            np.concatenate([self.X, other.X]),
            np.concatenate([self.y, other.y]),
            np.concatenate([a.astype(object) for a in ids] if mixed else ids),
            np.concatenate([self.sample_weight, other.sample_weight]),
            None if self.gaps is None and other.gaps is None else np.concatenate(gaps),
            _both(self, other),
        )

    @property
    def places(self) -> NDArray[np.int64]:
        """Row of each row of the problem, signals after all labels, before these are packed."""
        own = np.arange(len(self.y))
        return own if self.signals is None else np.append(own, self.signals[:, 0].astype(np.int64))


def _both(first: Rows, second: Rows) -> Array | None:
    """The signals of two batches, one after the other."""
    found = [rows.signals for rows in (first, second)]
    if found[1] is not None:
        found[1] = found[1] + [len(first.y), 0.0, 0.0]
    known = [one for one in found if one is not None]
    return np.concatenate(known) if known else None


def node_weight(data: LocalData, weighting: str) -> Array | None:
    """Factor of each node's mean loss: none, or m_i / mean(m) so that every row counts once.

    The mean is over the nodes with rows, so that both weightings agree when all have equally
    many and alpha keeps its meaning.
    """
    if weighting == "nodes":
        return None
    total = _totals(data)
    return np.asarray(total / total[total > 0].mean())


def packed(
    X: Array, target: Array, rows: Rows, nodes: NDArray[Any], weighting: str, shrink: Array | None
) -> LocalData:
    """Columns and a target of the rows as local datasets, with the signals as further rows.

    Signals leave the weight of the other rows, and so the balance with the coupling, as it is.
    """
    even = (rows.sample_weight == 1.0).all()
    weight = None if even else rows.sample_weight
    data = LocalData.from_long(X, target, rows.node_ids, nodes, sample_weight=weight)
    factor = node_weight(data, weighting)
    if rows.signals is not None:
        place, signal, strength = rows.places[len(rows.y) :], *rows.signals.T[1:]
        told = signal - (rows.y - target)[place]
        every = np.append(rows.sample_weight, strength * rows.sample_weight[place])
        before = _totals(data)
        data = LocalData.from_long(
            np.vstack([X, X[place]]),
            np.append(target, told),
            rows.node_ids[rows.places],
            nodes,
            sample_weight=every,
        )
        more = np.divide(_totals(data), before, out=np.ones_like(before), where=before > 0)
        factor = more if factor is None else more * factor
    return LocalData(
        data.X,
        data.y,
        data.ptr,
        data.ids,
        sample_weight=data.sample_weight,
        node_weight=factor,
        shrink=shrink,
    )


def _totals(data: LocalData) -> Array:
    """Number, or total weight, of the rows of each node."""
    weight = np.ones(data.n_rows) if data.sample_weight is None else data.sample_weight
    return np.asarray(np.bincount(data.row_node, weight, data.n_nodes))
