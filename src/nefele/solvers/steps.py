"""Steps of the primal-dual method: as printed, and scaled to the data.

The printed rule needs the degree of a node only. The other one needs two numbers that are sums
over all nodes: the typical sizes of parameters and of flows. Where it
matters, their bits do not depend on how the nodes are spread over parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nefele._checks import Array
from nefele.certificate.posed import Posed
from nefele.graph import Graph
from nefele.program import Program, Sum, largest, steady_totals

# First step scale, in units of (spread of local fits) / (lam mean A).
FIRST_GAMMA = 0.15
_LATER_GAMMA = 0.015
_GAMMA_LIMITS = (1e-3, 1e1)  # where the search turns round
_FAST = 3.0  # factor by which a stage should shrink the gap
_TURN = 3.0  # factor of a change of the step scale
_LONGEST = 1e6  # longest step of a prox in units of 1 / curvature
_FLAT = 1e-4  # least curvature of all losses together, relative to its bound
_ROUNDING = 1e-12  # distance, relative to the size of parameters, that is none


def scaled(
    graph: Graph, size: Array, gamma: float, longest: Any = np.inf, own: Any = slice(None)
) -> tuple[Array, Array]:
    """tau_i = gamma / sum_e f_e, at most `longest`, of own nodes; sigma_e = f_e / (2 gamma).

    f_e is the expected size of the flow of edge e. f_e = 1 and gamma = 1 are the printed steps,
    tau_i = 1/degree_i and sigma_e = 1/2 (NFL, Algorithm 1).

    Examples
    --------
    >>> from nefele.graphs import chain
    >>> tau, sigma = scaled(chain(3), np.ones(2), 1.0)
    >>> tau.tolist(), sigma.tolist()
    ([1.0, 0.5, 1.0], [0.5, 0.5])
    """
    flow = graph.at_ends(size)[own]
    tau = np.minimum(gamma / np.where(flow > 0, flow, 1.0), longest)
    return tau, size / (2 * gamma)


@dataclass
class Steps:
    """Steps of one method, and the sizes they come from."""

    unit: float  # typical size of parameters
    size: Array  # expected size of the flow of each edge
    longest: Array  # most useful step of each node
    gamma: float  # scale of the steps
    tau: Array
    sigma: Array


def first_steps(
    posed: Posed, printed: bool, gamma: float | None, sizes: tuple[float, float] | None = None
) -> Program[Steps]:
    """The steps to begin with: as printed, or scaled to the data, with `gamma` if it is given.

    `sizes` are those of `typical_sizes` where they are known already. The longest useful step of
    a prox takes it all but to the local minimiser.
    """
    graph, own = posed.graph, posed.own
    unit, size, scale = 1.0, np.ones(graph.n_edges), 1.0
    if not printed:
        unit, force = sizes or (yield from typical_sizes(posed))
        size = np.minimum(posed.scale, force)
        size = np.where(size > 0, size, 1.0)  # lam = 0: any step will do
        scale = gamma or FIRST_GAMMA * unit
    curvature = posed.loss.curvature()
    with np.errstate(divide="ignore"):
        longest = np.where(curvature > 0, _LONGEST / curvature, np.inf)
    tau, sigma = scaled(graph, size, scale, longest, own)
    return Steps(unit, size, longest, scale, tau, sigma)


def typical_sizes(posed: Posed) -> Program[tuple[float, float]]:
    """Typical sizes of parameters and of flows.

    The first is the distance of the (slightly regularised) local fits from the pooled one, the
    second the largest gradient there: flows hardly grow beyond it, however heavy an edge is.
    """
    loss, d = posed.loss, posed.d
    curvature = loss.curvature()
    known = loss.labelled & (curvature > 0)
    count, bend = yield from _totals(posed, known.astype(float), curvature[known])
    if not count:
        return 1.0, np.inf
    zero = np.zeros((len(known), d))
    step = 10 / np.where(known, curvature, bend / count)
    fits = loss.prox(zero, step)
    (mean,) = yield from _totals(posed, fits[known])
    mean = mean / count
    centre = np.broadcast_to((yield from _pooled(posed, mean)), zero.shape)
    away = np.sqrt(((fits - centre)[known] ** 2).sum(axis=1))
    away = np.where(away > _ROUNDING * np.abs(centre[:1]).max(initial=0.0), away, 0.0)
    pull = (centre - loss.prox(centre.copy(), 0.1 * step)) / (0.1 * step)[:, None]
    force = np.sqrt((pull[known] ** 2).sum(axis=1)).max(initial=0.0)
    spread = float(np.median(away)) if posed.whole else (yield from median(away, int(count)))
    most = yield Sum(np.array([away.max(initial=0.0), force]), largest=True)
    spread = spread or float(most[0]) or float(np.abs(centre[:1]).max(initial=0.0)) or 1.0
    spread = spread if np.isfinite(spread) else 1.0
    return spread, float(most[1]) if most[1] > 0 else np.inf


def _pooled(posed: Posed, start: Array) -> Program[Array]:
    """One Newton step towards the pooled optimum, where the loss has a Hessian."""
    loss, d = posed.loss, posed.d
    at = np.broadcast_to(start, (loss.n_nodes, d)).copy()
    hess = loss.hess(at) if loss.smooth else None
    there = yield Sum(np.array([hess is None], dtype=float), largest=True)
    if there[0] or hess is None:
        return start
    matrix, grad, bend = yield from _totals(posed, hess, loss.grad(at), loss.curvature())
    # Huber losses are straight far from the data: no step as long as their Hessian allows
    curved = yield from largest(not loss.affine_grad)
    least = _FLAT * bend if curved else 1e-10 * np.trace(matrix)
    matrix = matrix + least * np.eye(d)
    if not np.isfinite(matrix).all():  # exponentials overflow there
        return start
    try:
        moved = start - np.linalg.solve(matrix, grad)
    except np.linalg.LinAlgError:
        return start
    return moved if np.isfinite(moved).all() else start


def _totals(posed: Posed, *arrays: Array) -> Program[list[Array]]:
    """Sums over the first axis of each array and over all parts."""
    if posed.steady:
        return (yield from steady_totals(*arrays))
    sums = [rows.sum(axis=0) for rows in arrays]
    found = yield Sum(np.concatenate([np.ravel(s) for s in sums]))
    ends = np.cumsum([np.size(s) for s in sums])[:-1]
    return [f.reshape(s.shape) for f, s in zip(np.split(found, ends), sums, strict=True)]


def median(values: Array, count: int) -> Program[float]:
    """The median of `count` numbers >= 0 over all parts, exactly, by counting how many are less.

    Floats >= 0 have the order of their bits: every sum of 255 counts settles eight of these.

    Examples
    --------
    >>> from nefele.program import run_alone
    >>> run_alone(median(np.array([3.0, 1.0, 2.0, 8.0]), 4))
    2.5
    """
    bits = np.sort(values + 0.0).view(np.uint64)
    found = []
    for rank in {(count - 1) // 2, count // 2}:
        low = np.uint64(0)
        for shift in range(56, -1, -8):
            marks = low + (np.arange(1, 256, dtype=np.uint64) << np.uint64(shift))
            below = yield Sum(np.searchsorted(bits, marks).astype(float))
            low += np.uint64(int((below <= rank).sum())) << np.uint64(shift)
        found.append(float(low.view(np.float64)))
    return sum(found) / len(found)


class _Paced(Protocol):
    """What a search for the step scale remembers."""

    unit: float  # typical size of parameters
    gamma: float  # scale of the steps
    last: float | None  # gap at the last examined point
    pace: float  # by how much its logarithm fell in the last stage
    turn: int  # whether gamma is being lowered or raised


@dataclass
class Pace:
    """The state of such a search."""

    unit: float
    gamma: float
    last: float | None = None
    pace: float = 0.0
    turn: int = -1


def adapt(state: _Paced, gap: float) -> None:
    """Smaller steps for the flow after the first stage, then uphill in speed of progress.

    Examples
    --------
    >>> state = Pace(unit=1.0, gamma=0.15)
    >>> adapt(state, 0.1)
    >>> state.gamma, state.last
    (0.015, 0.1)
    """
    gap = max(gap, float(np.finfo(float).tiny))
    before, state.last = state.last, gap
    if before is None:
        state.gamma = _LATER_GAMMA * state.unit
    elif gap > before / _FAST:  # a stage that does better keeps its steps
        pace = float(np.log(before / gap))
        if pace < state.pace:
            state.turn = -state.turn
        state.pace = pace
        low, high = (limit * state.unit for limit in _GAMMA_LIMITS)
        if not low <= state.gamma * _TURN**state.turn <= high:
            state.turn = -state.turn
        state.gamma *= _TURN**state.turn
