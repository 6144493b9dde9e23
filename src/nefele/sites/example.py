"""A small federation for examples and tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from nefele.estimators.design import Rows
from nefele.sites.federation import Federation
from nefele.sites.members import Edge, Feature, Member, Target


def coast(**changes: Any) -> Federation:
    """Three members along a coast; oulu has two nodes, inari no address.

    Examples
    --------
    >>> federation = coast(alpha=0.5)
    >>> federation.alpha, [member.name for member in federation.members]
    (0.5, ['oulu', 'kemi', 'inari'])
    """
    values: dict[str, Any] = {
        "name": "coast",
        "features": (Feature("wind", 0, 40, "m/s"), Feature("pressure", 900, 1100, "hPa")),
        "target": Target("tmax", -50, 40, "C"),
        "members": (
            Member("oulu", ("oulu-1", "oulu-2"), "oulu.example:7447"),
            Member("kemi", ("kemi",), "kemi.example:7447"),
            Member("inari", ("inari",)),
        ),
        "edges": (
            Edge("oulu-1", "oulu-2"),
            Edge("oulu-2", "kemi"),
            Edge("kemi", "inari", 0.5),
        ),
    }
    return Federation(**{**values, **changes})


def made(name: str, days: float = 397) -> tuple[bytes, bytes]:
    """The certificates of a member and of its authority, as they are sent; their keys are lost.

    Examples
    --------
    >>> [content[:27] for content in made("oulu")]
    [b'-----BEGIN CERTIFICATE-----', b'-----BEGIN CERTIFICATE-----']
    """
    from nefele.sites import _certificates as x

    now = datetime.now(UTC)
    key, own = x.new_key(), x.new_key()
    authority = x.authority_certificate(key, "coast", 3650, now)
    end = now + timedelta(days=days)
    names = [name, f"{name}.example"]
    found = x.site_certificate(key, authority, own.public_key(), (name, "coast"), names, end, now)
    return x.pem(found), x.pem(authority)


def some_rows(federation: Federation, per_node: int = 12, seed: int = 0) -> dict[str, Any]:
    """Random rows of all members, within the bounds of a federation for regression.

    Examples
    --------
    >>> rows = some_rows(coast())
    >>> len(rows["oulu"].y), len(rows["kemi"].y)
    (24, 12)
    """
    rng, target = np.random.default_rng(seed), federation.target
    low, high = float(target.low or 0.0), float(target.high or 0.0)
    found = {}
    for member in federation.members:
        ids = np.repeat(np.array(member.nodes), per_node)
        X = np.column_stack([rng.uniform(f.low, f.high, len(ids)) for f in federation.features])
        bounds = np.array([[f.low, f.high] for f in federation.features])
        share = ((X - bounds[:, 0]) / (bounds[:, 1] - bounds[:, 0])).mean(axis=1)
        noise = rng.normal(scale=0.02 * (high - low), size=len(ids))
        y = (low + (high - low) * (0.3 + 0.4 * share) + noise).clip(low, high)
        found[member.name] = Rows(X, y, ids, np.ones(len(ids)))
    return found


def trial_of(federation: Federation, folder: Path) -> Federation:
    """Folders of all members on this machine, with keys and rows; the federation of this trial.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> trial_of(coast(), folder).name, (folder / "kemi" / "data.csv").exists()
    ('coast', True)
    """
    import polars as pl

    from nefele.sites.pilot import make_pilot

    names = [feature.name for feature in federation.features]
    tables = []
    for rows in some_rows(federation).values():
        columns = dict(zip(names, rows.X.T, strict=True))
        tables.append(
            pl.DataFrame({"node": rows.node_ids, **columns, federation.target.name: rows.y})
        )
    with TemporaryDirectory() as place:
        path = Path(place) / "all.csv"
        pl.concat(tables).write_csv(path)
        return make_pilot(federation, folder, path, "node", port=0)[0]
