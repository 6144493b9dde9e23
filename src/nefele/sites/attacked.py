"""A federation under attack: poisoned rows of members, and members that are nobody.

Attacks on messages need nothing of this: they wrap a member's program, see `learn_together`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nefele._ids import as_ids, describe
from nefele.data import LocalData
from nefele.estimators.design import Rows
from nefele.robust.poisoning import DataAttack
from nefele.robust.sybil import Sybil
from nefele.sites.federation import Federation
from nefele.sites.members import Edge, Member


def poisoned(rows: Mapping[str, Rows], attack: DataAttack) -> dict[str, Rows]:
    """The rows of all members, those of captured nodes changed by an attack.

    A member knows its own rows only: what an attack takes from the data, such as the range of the
    labels, is that of the captured member.

    Parameters
    ----------
    rows : dict of member to Rows
        As for `learn_together`.
    attack : DataAttack
        Such as `nefele.robust.FlipLabels(["kemi"])`; its nodes are nodes of the federation.

    Returns
    -------
    dict of member to Rows

    Examples
    --------
    >>> from nefele.robust import ShiftLabels
    >>> from nefele.sites.example import coast, some_rows
    >>> rows = some_rows(coast())
    >>> bad = poisoned(rows, ShiftLabels(["kemi"], 10.0))
    >>> (bad["kemi"].y - rows["kemi"].y).round(9).max(), bad["oulu"] is rows["oulu"]
    (np.float64(10.0), True)
    """
    if not isinstance(attack, DataAttack):
        raise ValueError(
            f"attack must be one on data, such as FlipLabels; got {type(attack).__name__}. Give "
            "attacks on messages to wrap of learn_together."
        )
    wanted = as_ids(attack.nodes).astype(str)
    known = {name: np.unique(np.asarray(own.node_ids).astype(str)) for name, own in rows.items()}
    every = np.concatenate([np.zeros(0, dtype=str), *known.values()])
    if strange := [node for node in wanted.tolist() if node not in set(every.tolist())]:
        raise ValueError(
            f"Captured nodes must be nodes with rows; unknown: {describe(np.array(strange))}. "
            f"Nodes with rows: {describe(every)}."
        )
    caught = {name: wanted[np.isin(wanted, nodes)] for name, nodes in known.items()}
    return {
        name: _changed(own, replace(attack, nodes=caught[name])) if len(caught[name]) else own
        for name, own in rows.items()
    }


def _changed(rows: Rows, attack: DataAttack) -> Rows:
    """The rows of one member after an attack, in their order."""
    ids, place = np.unique(np.asarray(rows.node_ids).astype(str), return_inverse=True)
    order = np.argsort(place, kind="stable")
    ends = np.concatenate([[0], np.bincount(place, minlength=len(ids)).cumsum()])
    data = attack(LocalData(rows.X[order], rows.y[order], ends, ids))
    X, y = rows.X.copy(), rows.y.copy()
    X[order], y[order] = data.X, data.y
    return replace(rows, X=X, y=y)


def with_sybils(federation: Federation, attack: Sybil) -> Federation:
    """The federation with false members, one for each node that the attack adds.

    They have the edges that the attack gives them in one process and no rows: what they say is
    what `wrap` of `learn_together` has for them. Where members have addresses, theirs end in
    .invalid: give others to run such members.

    Parameters
    ----------
    federation : Federation
    attack : Sybil
        Its nodes are nodes of the federation.

    Returns
    -------
    Federation
        Another one: its hash differs. Sites that keep the old file do not talk to it, so this is
        what a founder can do who signs false members.

    Examples
    --------
    >>> from nefele.robust import Sybil
    >>> from nefele.sites.example import coast
    >>> attacked = with_sybils(coast(), Sybil(["kemi"], count=2, degree=1))
    >>> [member.name for member in attacked.members][3:], len(attacked.edges)
    (['sybil-0', 'sybil-1'], 5)
    """
    if not isinstance(attack, Sybil):
        raise ValueError(f"attack must be a Sybil; got {type(attack).__name__}.")
    old = federation.graph()
    new = attack(old)
    ids = new.ids.tolist()
    where = "{}.invalid:7447" if federation.has_addresses else None
    members = [Member(q, (q,), where and where.format(q)) for q in ids[old.n_nodes :]]
    added = np.flatnonzero((new.head >= old.n_nodes) | (new.tail >= old.n_nodes))
    edges = [Edge(ids[new.head[e]], ids[new.tail[e]], float(new.weight[e])) for e in added]
    return replace(
        federation,
        members=(*federation.members, *members),
        edges=(*federation.edges, *edges),
    )
