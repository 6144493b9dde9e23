"""What a model takes from its own rows and from each neighbour, as the neighbours are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.accountable.active import inner_penalty
from nefele.accountable.system import System
from nefele.penalties import L2Norm, Lp

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Direct:
    """What a node (or all that are held equal to it) takes from its own rows and each neighbour.

    Attributes
    ----------
    members : int array
        Places of the nodes that move as one with the node, itself among them.
    own : array of shape (d,)
        The part of their rows.
    own_share, ridge_share : float
        Parts of the identity; with those of the neighbours they sum to 1.
    nodes : int array of shape (k,)
        Places of the neighbours outside.
    parts : array of shape (k, d)
    shares : array of shape (k,)
    """

    members: Index
    own: Array
    own_share: float
    ridge_share: float
    nodes: Index
    parts: Array
    shares: Array


def _inverse(matrix: Array) -> Array:
    """Of a curvature whose parameters may be of unlike size; what has none stays free."""
    size = np.sqrt(matrix.diagonal())
    scale = 1 / np.where(size > 0, size, 1.0)
    middle = np.linalg.pinv(scale[:, None] * matrix * scale, hermitian=True)
    return np.asarray(scale[:, None] * middle * scale)


def direct(system: System) -> Direct | None:
    """Own rows and neighbours; None where parameters are held together one by one."""
    tied = np.asarray(system.fused.any(axis=1))
    whole = isinstance(inner_penalty(system.problem)[0], L2Norm | Lp) and bool(
        (system.fused.all(axis=1) == tied).all()
    )
    if (tied.any() and not whole) or system.largest.any():
        return None
    labels = system.graph.joined(tied)
    inside = labels == labels[system.at]
    head, tail = system.graph.head, system.graph.tail
    edges = np.flatnonzero((inside[head] != inside[tail]) & system.part[head])
    others = np.where(inside[head[edges]], tail[edges], head[edges])
    sign = np.where(inside[head[edges]], 1.0, -1.0)
    C, H = system.edge_curvature[edges], system.H[inside].sum(axis=0)
    inverse = _inverse(H + C.sum(axis=0))
    take = (C @ system.w[others][..., None])[..., 0] - sign[:, None] * system.edge_pull[edges]
    nodes, place = np.unique(others, return_inverse=True)
    parts, shares = np.zeros((len(nodes), system.d)), np.zeros(len(nodes))
    np.add.at(parts, place, take @ inverse)
    np.add.at(shares, place, np.einsum("kl,elk->e", inverse, C))
    size = max(int(system.live.sum()), 1)
    gram = system.grams[inside].sum(axis=0)
    own = inverse @ system.asks[inside].sum(axis=0)
    kept = float(np.einsum("kl,lk->", inverse, gram)) / size
    shrunk = float(np.einsum("kl,lk->", inverse, H - gram)) / size
    # a dead column is held by the coupling alone: it is no part of what is shared out
    dead = np.einsum("kl,elk->e", inverse[~system.live], C[:, :, ~system.live])
    np.subtract.at(shares, place, dead)
    return Direct(np.flatnonzero(inside), own, kept, shrunk, nodes, parts, shares / size)
