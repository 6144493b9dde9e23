"""Figures that come out the same to the last byte: no date, no random ids, no user style."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from nefele.experiments.base import Cell, Experiment, groups

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")  # Okabe and Ito
MARKERS = ("o", "s", "^", "D", "v", "P")
_STYLE: dict[str, Any] = {
    "svg.hashsalt": "nefele",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "errorbar.capsize": 2.0,
    "lines.markersize": 3.5,
    "lines.linewidth": 1.2,
    "legend.frameon": False,
}


def has_matplotlib() -> bool:
    """Whether figures can be drawn.

    Examples
    --------
    >>> has_matplotlib() in (True, False)
    True
    """
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def svg(experiment: Experiment, cells: list[Cell], quick: bool = False) -> bytes:
    """The experiment's figure as SVG, with "quick run" in a corner when it is one.

    Examples
    --------
    >>> from nefele.experiments.runner import load
    >>> figure = svg(load("fig7"), [])
    Traceback (most recent call last):
    ValueError: fig7 has no cells to draw.
    """
    if experiment.draw is None or not cells:
        raise ValueError(f"{experiment.name} has no cells to draw.")
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", _STYLE]):
        figure = Figure(figsize=experiment.size, layout="constrained")
        experiment.draw(figure, cells)
        if quick:  # a title takes room of its own, so that it covers nothing
            figure.suptitle("quick run", x=0.995, ha="right", fontsize=7.0, color="#666666")
        out = io.BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def curves(
    ax: Any,
    cells: Sequence[Cell],
    x: str,
    by: str,
    pick: Sequence[str],
    label: str = "{}",
    log: bool = True,
) -> None:
    """Mean and standard deviation over the seeds against a setting, one curve per other setting.

    `x` and `by` name the settings, `pick` is the path of keys to the number in a cell, `label` the
    format of the legend; with `log` the vertical axis is logarithmic.
    """
    for k, ((value,), those) in enumerate(sorted(groups(cells, by).items())):
        points = sorted(groups(those, x).items())
        at = [key for (key,), _ in points]
        numbers = [np.array([_picked(cell, pick) for cell in found]) for _, found in points]
        mean = np.array([n.mean() for n in numbers])
        spread = np.array([n.std() for n in numbers])
        low = np.minimum(spread, 0.9 * mean) if log else spread  # a bar must not reach zero
        ax.errorbar(
            at,
            mean,
            yerr=np.stack([low, spread]),
            label=label.format(value),
            color=COLOURS[k % len(COLOURS)],
            marker=MARKERS[k % len(MARKERS)],
        )
    if log:
        ax.set_yscale("log")


def panels(figure: Any, cells: Sequence[Cell], titles: dict[str, str], x: str, by: str) -> None:
    """The estimation error of each method against the setting x, one curve per setting of `by`.

    `titles` has the title of each method's panel.
    """
    axes = figure.subplots(1, len(titles), sharey=True)
    for ax, (name, title) in zip(axes, titles.items(), strict=True):
        curves(ax, cells, x, by, (name, "mse"), by + " = {:g}")
        ax.set(title=title, xlabel=x)
    axes[0].set_ylabel("MSE (40)")
    axes[0].legend()


def log_ticks(ax: Any, values: Sequence[float]) -> None:
    """A logarithmic horizontal axis with ticks at these values only."""
    ax.set_xscale("log")
    ax.set_xticks(values, [f"{value:g}" for value in values])
    ax.set_xticks([], minor=True)


def _picked(cell: Cell, pick: Sequence[str]) -> float:
    value: Any = cell
    for key in pick:
        value = value[key]
    return float(value)
