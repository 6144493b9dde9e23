"""Reduced solves by parts: groups that the flow holds together are moved as wholes.

The groups reach across parts, so their labels travel along fused edges until none changes. The
problem of the groups is small: its terms are summed over all parts, the first part solves it, and
all parts hear the parameters of the groups. See `nefele.solvers.primal_dual.quotient`.
"""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.graph import Graph
from nefele.losses.quadratic import BoundQuadratic
from nefele.losses.squared import BoundSquared
from nefele.problem import Problem
from nefele.program import Program, Sum, largest, total
from nefele.runtime.part import Index, Part
from nefele.solvers.primal_dual.polish import polish
from nefele.solvers.primal_dual.solver import iterated

_MOST_GROUPS = 20_000
_MOST_LINKS = 200_000  # edges between groups, each part's counted by itself
_HOPS = 1000  # from part to part, most that a label travels


def reduced(part: Part, w: Array, u: Array) -> Program[Array | None]:
    """Parameters of the own nodes with groups moved as wholes; None where that is no use.

    For quadratic losses and norms as penalties.
    """
    loss = part.loss
    suits = isinstance(loss, BoundSquared | BoundQuadratic) and loss.smooth
    if (yield from largest(not (suits and part.coupled and part.penalty.is_norm))):
        return None
    fused = np.asarray(part.penalty.fused(u, part.scale).all(axis=1))
    lead = yield from leaders(part, fused)
    if lead is None:
        return None
    own = np.unique(lead[part.own][lead[part.own] == part.nodes])
    nodes, groups = yield Sum(np.array([len(part.nodes), len(own)], dtype=float))
    if groups > min(nodes / 2, _MOST_GROUPS):  # hardly reduced, or no small problem
        return None
    roots = np.sort((yield from gathered(part, own[:, None].astype(float)))[:, 0])
    label = np.searchsorted(roots, lead)
    small = yield from _small(part, w, u, label, len(roots))
    if small is None:
        return None
    found = np.zeros((len(roots), part.d))
    if part.name == 0:
        found = _solved(*small)
    return (yield Sum(found))[label[part.own]]


def leaders(part: Part, fused: np.ndarray) -> Program[Index | None]:
    """The first node, by position, of the group of each own and seen node.

    None when groups reach across very many parts.
    """
    groups = part.graph.joined(fused)
    lead = _positions(part)
    for _ in range(_HOPS):
        first = np.full(int(groups.max(initial=-1)) + 1, np.inf)
        np.minimum.at(first, groups, lead)
        mine = first[groups]
        seen = (yield from part.seen(mine[part.own][:, None], "correction"))[:, 0]
        lead = np.minimum(mine, seen)
        if not (yield from largest(bool((lead < mine).any()))):
            return lead.astype(np.int64)
    return None


def _positions(part: Part) -> Array:
    """Positions of own and seen nodes in the whole graph."""
    out = np.empty(part.graph.n_nodes)
    out[part.own] = part.nodes
    out[part.graph.head], out[part.graph.tail] = part.ends
    return out


def gathered(part: Part, rows: Array) -> Program[Array]:
    """The rows of all parts, one below the other in the order of the parts."""
    parts = int((yield from total(1.0)))
    sizes = np.zeros(parts)
    sizes[part.name] = len(rows)
    sizes = (yield Sum(sizes)).astype(int)
    out = np.zeros((int(sizes.sum()), rows.shape[1]))
    first = int(sizes[: part.name].sum())
    out[first : first + len(rows)] = rows
    return np.asarray((yield Sum(out)))


def _small(
    part: Part, w: Array, u: Array, label: Index, k: int
) -> Program[tuple[Problem, Array, Array] | None]:
    """The problem of the groups, where they are, and the flow between them."""
    loss, d = part.loss, part.d
    assert isinstance(loss, BoundSquared | BoundQuadratic)
    at = label[part.own]
    value = loss.value(np.zeros_like(w))
    terms = [loss.H.reshape(-1, d * d), loss.b, value[:, None], w, np.ones((len(w), 1))]
    sums = yield Sum(np.concatenate([_summed(at, k, rows) for rows in terms], axis=1))
    H, b, c, middle, count = np.split(sums, np.cumsum([d * d, d, 1, d]), axis=1)
    head, tail = (label[ends][part.counted] for ends in (part.graph.head, part.graph.tail))
    across = head != tail
    head, tail, flow = head[across], tail[across], u[part.counted][across]
    weight = part.graph.weight[part.counted][across]
    pairs, place = np.unique(
        np.minimum(head, tail) * k + np.maximum(head, tail), return_inverse=True
    )
    if (yield from total(len(pairs))) > _MOST_LINKS:
        return None
    flow = np.where((head < tail)[:, None], flow, -flow)
    mine = [_summed(place, len(pairs), rows) for rows in (weight[:, None], flow)]
    links = yield from gathered(part, np.hstack([pairs[:, None].astype(float), *mine]))
    pairs, place = np.unique(links[:, 0].astype(np.int64), return_inverse=True)
    links = _summed(place, len(pairs), links[:, 1:])
    graph = Graph(np.arange(k), pairs // k, pairs % k, links[:, 0])
    bound = BoundQuadratic(H.reshape(k, d, d), b, c[:, 0])
    problem = Problem(graph, None, loss=bound, penalty=part.penalty, lam=part.lam)
    return problem, middle / count, links[:, 1:]


def _summed(at: Index, k: int, rows: Array) -> Array:
    """Sums of rows by group, shape (k, columns)."""
    return np.stack([np.bincount(at, column, k) for column in rows.T], axis=1)


def _solved(problem: Problem, w: Array, u: Array) -> Array:
    """Nearly optimal parameters of the groups."""
    better = polish(problem, w, u)
    if better is None:
        w, u = iterated(problem, w, u)
        better = polish(problem, w, u)
    return w if better is None else better.w
