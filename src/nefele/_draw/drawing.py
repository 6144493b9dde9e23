"""Shared pieces of the pictures: axes, places of the nodes, edges, nodes, bars.

matplotlib is an extra, imported only when something is drawn. pyplot is used only to make new
axes, so that pictures can also be drawn into a Figure of their own, in any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array, check_finite, type_name
from nefele._draw.layout import force_layout
from nefele._draw.network import Network
from nefele._ids import as_ids, describe, did_you_mean
from nefele._words import visible

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.7"
GROUPS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#F0E442")  # not ORANGE
MARKERS = "osD^vP"
DASHED: dict[str, Any] = dict(color=ORANGE, linestyle=(0, (4, 2)), linewidth=2.2)

_NAMED = 12  # bars up to which each one has its number above it
_TICKS = 30
_LONG = 20  # letters up to which an id is written out
_TITLE = 45  # letters of a title up to which it has the usual size


def new_axes(rows: int = 1, columns: int = 1, **options: Any) -> Any:
    """New axes by pyplot."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError('Pictures need matplotlib: pip install "nefele[plot]".') from None
    return plt.subplots(rows, columns, **options)[1]


def axes(ax: Any) -> Any:
    """The Axes given, or new ones."""
    if ax is None:
        return new_axes(layout="constrained")
    if not hasattr(ax, "add_collection"):
        raise ValueError(
            f"ax must be one matplotlib Axes; got {type_name(ax)}. Use figure.add_subplot()."
        )
    return ax


def place(graph: Network, positions: Any = None) -> Array:
    """Where to draw the nodes, shape (n_nodes, 2).

    The positions given, checked: an array, or a mapping from node ids to pairs. Without them each
    component by forces, the components side by side.

    Examples
    --------
    >>> from nefele import Graph
    >>> place(Graph([0, 1], [0], [1]), [[0, 0], [3, 4]]).tolist()
    [[0.0, 0.0], [3.0, 4.0]]
    >>> place(Graph(["a", "b"], [0], [1]), {"b": (3, 4), "a": (0, 0)}).tolist()
    [[0.0, 0.0], [3.0, 4.0]]
    """
    if positions is None:
        ends = np.column_stack([graph.head, graph.tail])
        return force_layout(graph.n_nodes, ends, graph.weight)
    if isinstance(positions, Mapping):
        positions = _in_graph_order(graph, positions)
    given = as_float_array(positions, "positions", 2)
    if given.shape != (graph.n_nodes, 2):
        raise ValueError(f"positions must have shape ({graph.n_nodes}, 2); got {given.shape}.")
    check_finite(given, lambda at: f"positions, row {at[0]},")
    return given


def _in_graph_order(graph: Network, positions: Mapping[Any, Any]) -> list[Any]:
    """The values of a mapping from node ids; ids that are no nodes are ignored."""
    keys, pairs = as_ids(list(positions)), list(positions.values())
    at = graph.positions(keys)
    missing = graph.ids[np.setdiff1d(np.arange(graph.n_nodes), at)]
    if len(missing):
        hint = did_you_mean(missing, keys[at < 0])
        raise ValueError(f"positions must hold every node id; missing: {describe(missing)}.{hint}")
    known = np.flatnonzero(at >= 0)
    return [pairs[k] for k in known[np.argsort(at[known])]]


def shorten(name: str) -> str:
    r"""A name for a picture, cut when it is long; characters that no SVG may hold are escapes.

    Examples
    --------
    >>> shorten("a" * 30)
    'aaaaaaaaaaaaaaaaaaa…'
    >>> print(shorten("\x1b[1mOulu"))
    \x1b[1mOulu
    """
    name = visible(name)
    return name if len(name) <= _LONG else name[: _LONG - 1] + "…"


def name_edge(graph: Network, e: int) -> str:
    """Edge e for a title: its number and the ids of its ends, shortened.

    Examples
    --------
    >>> from nefele import Graph
    >>> name_edge(Graph(["a", "b"], [0], [1]), 0)
    'edge 0 ("a", "b")'
    """
    ends = graph.ids[[graph.head[e], graph.tail[e]]].tolist()
    a, b = (f'"{shorten(key)}"' if isinstance(key, str) else shorten(str(key)) for key in ends)
    return f"edge {e} ({a}, {b})"


def draw_edges(
    ax: Any,
    graph: Network,
    place: Array,
    which: Any = None,
    *,
    values: Any = None,
    top: float | None = None,
    **style: Any,
) -> Any:
    """Edges as one LineCollection, coloured by values in [0, top] if there are any.

    `which` is a mask or the positions of the edges, and `values` has an entry for each of them: the
    larger, the darker and wider, up to `top`, by default the largest. `style` is that of the
    LineCollection.
    """
    from matplotlib.collections import LineCollection

    which = slice(None) if which is None else which
    ends = np.stack([place[graph.head[which]], place[graph.tail[which]]], axis=1)
    if values is None:
        return ax.add_collection(LineCollection(list(ends), **style))
    top = top or float(np.max(values, initial=0.0)) or 1.0
    # the darkest last, on top of the others
    order = np.argsort(values, kind="stable")
    width = 0.6 + 3.4 * values / top
    lines = LineCollection(list(ends[order]), linewidths=width[order], cmap=_shades(), **style)
    lines.set_array(np.asarray(values)[order])
    lines.set_clim(0.0, top)
    return ax.add_collection(lines)


def draw_nodes(ax: Any, place: Array, groups: Any = None) -> None:
    """Nodes in black, or by group: a colour, and another marker when the colours are used up.

    Groups of one node are white: only what is together has a colour.
    """
    size = float(np.clip(2500 / len(place), 6, 45))
    style: dict[str, Any] = dict(s=size, zorder=3, edgecolors="black", linewidths=0.5)
    if groups is None:
        ax.scatter(*place.T, color="black", s=size, zorder=3)
        return
    _, label, count = np.unique(groups, return_inverse=True, return_counts=True)
    alone = count[label] == 1
    if alone.any():
        ax.scatter(*place[alone].T, color="white", **style)
    rank = np.cumsum(count > 1) - 1
    code = np.where(alone, -1, rank[label])
    turn = code // len(GROUPS)
    for marker in range(int(turn.max(initial=-1)) + 1):
        own = turn == marker
        colors = np.array(GROUPS)[code[own] % len(GROUPS)]
        ax.scatter(*place[own].T, c=colors, marker=MARKERS[marker % len(MARKERS)], **style)


def finish_graph(ax: Any, title: str) -> None:
    """The same scale on both axes, no frame."""
    shared = [group.get_siblings(ax) for group in (ax.get_shared_x_axes(), ax.get_shared_y_axes())]
    both = min(map(len, shared)) > 1  # then matplotlib cannot adapt the limits
    ax.set_aspect("equal", adjustable="box" if both else "datalim")
    ax.margins(0.06)
    ax.autoscale_view()
    ax.set_axis_off()
    style: dict[str, Any] = dict(fontsize="small") if len(title) > _TITLE else {}
    ax.set_title(title, parse_math=False, **style)  # ids may hold dollar signs


def colour_bar(ax: Any, lines: Any, label: str) -> None:
    """What the colours of the edges mean; nothing when all values are zero."""
    if lines.get_array().any():
        ax.figure.colorbar(lines, ax=ax, label=label, shrink=0.8)


def key(ax: Any, entries: list[tuple[str, dict[str, Any]]]) -> None:
    """A legend of lines below the picture, where it hides nothing."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=label, **style) for label, style in entries]
    if handles:
        below: dict[str, Any] = dict(loc="upper center", bbox_to_anchor=(0.5, 0.0), frameon=False)
        ax.legend(handles=handles, ncols=3 if len(handles) < 4 else 2, **below)


def bars(
    ax: Any,
    names: list[str],
    values: Array,
    good: Any = None,
    *,
    words: tuple[str, str] = ("", ""),
    numbers: bool = True,
) -> Any:
    """A bar for each name, blue, and orange with a hatch where not good.

    Infinite values have a bar up to the edge with an arrow head, NaN a cross at zero. `words` for
    good and not good are those of the legend; with `numbers`, few bars have their values above
    them.
    """
    values = np.asarray(values, dtype=np.float64)
    good = np.ones(len(values), dtype=bool) if good is None else np.asarray(good)
    finite = np.isfinite(values)
    top = float(np.abs(values[finite]).max(initial=0.0)) or 1.0
    height = np.clip(np.where(np.isnan(values), 0.0, values), -1.15 * top, 1.15 * top)
    at, width = np.arange(len(values)), 0.8 if len(values) <= 60 else 1.0
    for mask, color, hatch, word in ((good, BLUE, "", words[0]), (~good, ORANGE, "///", words[1])):
        if mask.any():
            style = dict(color=color, hatch=hatch, edgecolor="white", linewidth=0.0)
            ax.bar(at[mask], height[mask], width, label=word or None, **style)
    for mask, marker, word in (
        (values == np.inf, "^", "infinite"),
        (values == -np.inf, "v", "minus infinite"),
        (np.isnan(values), "x", "unknown"),
    ):
        if mask.any():
            ax.plot(at[mask], height[mask], marker, color="black", label=word, linestyle="none")
    if numbers and len(values) <= _NAMED:
        _write_numbers(ax, values, height)
    _name_ticks(ax, names)
    ax.axhline(0.0, color="black", linewidth=0.8)
    if (~good & (words[1] != "")).any() or not finite.all():
        # above the bars, where it hides none
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False)
    return ax


def _write_numbers(ax: Any, values: Array, height: Array) -> None:
    for x, (value, y) in enumerate(zip(values, height, strict=True)):
        above = y >= 0
        ax.annotate(
            f"{value:.3g}",
            (x, y),
            (0, 5 if above else -5),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
            fontsize="small",
        )
    ax.margins(y=0.12)


def _name_ticks(ax: Any, names: list[str]) -> None:
    """Names below the bars: turned when long, and only some of very many."""
    every = -(-len(names) // _TICKS)
    shown = [shorten(name) for name in names[::every]]
    room = 60 / max(len(shown), 1)
    turned = max((len(name) for name in shown), default=0) > room
    style = dict(rotation=90 if turned else 0, parse_math=False)
    ax.set_xticks(np.arange(len(names))[::every], shown, **style)
    if len(shown) > 15:
        ax.tick_params(axis="x", labelsize="small")
    ax.set_xlim(-0.7, max(len(names), 1) - 0.3)


def _shades() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("nefele", ["0.75", "#56B4E9", BLUE, "#00263d"])
