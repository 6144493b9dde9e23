"""The rows of a site, checked against what the federation agreed to."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._ids import describe
from nefele.estimators.design import Rows
from nefele.runs.tables import Table
from nefele.sites._toml import read_bytes
from nefele.sites.config import SiteConfig
from nefele.sites.federation import Federation


def read_rows(federation: Federation, config: SiteConfig) -> Rows:
    """Features in the agreed order and within the agreed bounds, the target, and the nodes.

    Classes are -1 and 1 for two of them, otherwise their places in the agreed list. A member
    whose file is not there, because it has no rows yet, must have an empty table with a header.
    """
    table = Table.read(config.data, empty=True)
    columns = config.columns_of(federation)
    X = np.empty((table.frame.height, len(federation.features)))
    for j, feature in enumerate(federation.features):
        name = columns[feature.name]
        X[:, j] = _bounded(table, name, feature.low, feature.high)
    target = federation.target
    name = columns[target.name]
    if target.classes is None:
        y = _bounded(table, name, float(target.low or 0.0), float(target.high or 0.0))
    else:
        y = _codes(table, name, target.classes)
    ids = _nodes(table, federation, config)
    return Rows(X, y, ids, np.ones(len(y)))


def _bounded(table: Table, name: str, low: float, high: float) -> Array:
    values = table.numbers(table.check_column(name))
    gone = np.isnan(values)
    if gone.any():
        raise ValueError(
            f'{table.name}: column "{name}" must not be empty; it is at '
            f"{table.line(int(gone.argmax()))}. Leave out rows with missing values."
        )
    far = (values < low) | (values > high)
    if far.any():
        row = int(far.argmax())
        raise ValueError(
            f'{table.name}: column "{name}" must be within the agreed {low:g} to {high:g}; got '
            f"{values[row]:g} at {table.line(row)}, {int(far.sum())} such value(s) in all. Check "
            "the unit, or leave these rows out."
        )
    return values


def _codes(table: Table, name: str, classes: tuple[str, ...]) -> Array:
    labels = np.asarray(table.labels(table.check_column(name)), dtype=str)
    order = np.argsort(classes)
    place = np.searchsorted(np.array(classes)[order], labels).clip(0, len(classes) - 1)
    code = order[place]
    strange = np.array(classes)[code] != labels
    if strange.any():
        raise ValueError(
            f'{table.name}: column "{name}" must hold the agreed classes {", ".join(classes)}; got '
            f"{describe(np.unique(labels[strange]))}."
        )
    return 2.0 * code - 1.0 if len(classes) == 2 else code.astype(float)


def _nodes(table: Table, federation: Federation, config: SiteConfig) -> NDArray[Any]:
    own = federation.member(config.name).nodes
    if config.node is None:
        if len(own) > 1:
            raise ValueError(
                f"site.toml must name the column of the node ids, since {config.name} has "
                f'{len(own)} nodes: {describe(np.array(own))}. Add a line node = "..."'
            )
        return np.full(table.frame.height, own[0])
    ids = np.asarray(table.ids(config.node), dtype=str)
    strange = ~np.isin(ids, own)
    if strange.any():
        raise ValueError(
            f'{table.name}: column "{config.node}" must hold nodes of {config.name}, which are '
            f"{describe(np.array(own))}; got {describe(np.unique(ids[strange]))} at "
            f"{table.line(int(strange.argmax()))}."
        )
    return ids


def read_shared(federation: Federation, config: SiteConfig) -> Array:
    """The agreed shared rows, features in the agreed order and within bounds, shape (m', d).

    All members have the same bytes: the columns have the names of the federation, not of the site.
    Other methods than "predictions" have none.
    """
    if federation.method != "predictions":
        return np.zeros((0, len(federation.features)))
    content = read_bytes(config.shared, 'Get the file that all agreed to, or add shared = "..."')
    found = hashlib.sha256(content).hexdigest()
    if found != federation.shared:
        raise ValueError(
            f"{config.shared.name} must be the shared rows that all agreed to, SHA-256 "
            f"{str(federation.shared)[:16]}...; got {found[:16]}... Get the agreed file."
        )
    table = Table.read(config.shared)
    names = [feature.name for feature in federation.features]
    more = [name for name in table.columns if name not in names]
    if more:
        raise ValueError(
            f"{table.name} must have the columns {', '.join(names)} and no others; got "
            f"{', '.join(more)}. Agree to a file without them."
        )
    columns = [_bounded(table, f.name, f.low, f.high) for f in federation.features]
    return np.column_stack(columns)
