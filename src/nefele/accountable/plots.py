"""Pictures of explanations and of errors by node; they need matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._draw.drawing import axes as one_axes
from nefele._draw.drawing import bars, new_axes, shorten

_MOST = 12  # bars of a picture; the rest is one more
_NUMBERED = 8  # bars with room for their values


def plot_explanation(found: Any, axes: Any = None) -> Any:
    """Shares of the rows of all nodes, and direct shares; hatched: the node's own."""
    pair = np.ravel(new_axes(1, 2, figsize=(10, 4), layout="constrained") if axes is None else axes)
    if len(pair) != 2:
        raise ValueError(f"axes must be two matplotlib Axes; got {len(pair)}.")
    names = [str(name) for name in found.nodes.tolist()]
    mine = {str(name) for name in found.members.tolist()}
    _largest(pair[0], names, found.share, mine, "share of the rows of")
    near = [f"own rows of {shorten(str(found.node))}", *map(str, found.neighbours.tolist())]
    shares = np.append(found.own_share, found.neighbour_share)
    _largest(pair[1], near, shares, {near[0]}, "direct share of")
    pair[0].set_xlabel(f"node (model of {shorten(str(found.node))})", parse_math=False)
    return pair


def plot_prediction(found: Any, ax: Any = None) -> Any:
    """What features add to one prediction; hatched: what lowers it."""
    ax = one_axes(ax)
    adds = found.features + found.curves
    order = np.argsort(-np.abs(adds), kind="stable")[:_MOST]
    names = [found.names[j] for j in order]
    bars(ax, names, adds[order], adds[order] >= 0, words=("raises", "lowers"))
    ax.set_ylabel(f"added to {found.base:.4g}")
    ax.set_title(f"prediction {found.value:.4g}", loc="right")
    return ax


def plot_errors(found: Any, ax: Any = None) -> Any:
    """The error of each node, largest first; hatched: the worst tenth."""
    ax = one_axes(ax)
    order = np.argsort(-found.errors, kind="stable")[: 4 * _MOST]
    names = [str(found.nodes[k]) for k in order]
    worst = np.isin(order, found.worst)
    bars(ax, names, found.errors[order], ~worst, words=("others", "worst tenth"), numbers=False)
    ax.set_ylabel(found.metric)
    ax.set_xlabel("node")
    return ax


def _largest(ax: Any, names: list[str], values: Any, mine: set[str], label: str) -> None:
    """The largest values as bars, the others as one."""
    values = np.asarray(values, dtype=float)
    order = np.argsort(-np.abs(values), kind="stable")
    top, rest = order[:_MOST], order[_MOST:]
    shown, heights = [names[k] for k in top], values[top]
    if values[rest].any():
        others = f"{np.count_nonzero(values[rest])} others"
        shown, heights = [*shown, others], np.append(heights, values[rest].sum())
    own = np.array([name in mine for name in shown])
    bars(ax, shown, heights, ~own, words=("others", "own"), numbers=len(shown) <= _NUMBERED)
    ax.set_ylabel(label)
