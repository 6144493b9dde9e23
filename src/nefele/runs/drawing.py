"""The pictures of a run, drawn by matplotlib where it is installed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from nefele.accountable import explain
from nefele.accountable.fair import fairness_of
from nefele.estimators import plot_residuals
from nefele.report import Picture
from nefele.runs.proofs import FinalFit
from nefele.runs.wording import PICTURES

Draw = Callable[[Any], object]

_MOST_EXPLAINED = 500  # nodes of a network of which one is explained
_MAPS = ("graph.svg", "proven.svg", "critical.svg", "influence.svg")  # drawn over the graph


def drawn(fit: FinalFit, draws: dict[str, Draw]) -> Iterator[tuple[str, Picture]]:
    """The pictures, none without matplotlib."""
    if fit.positions is None:
        return
    across, upwards = np.maximum(np.ptp(fit.positions, axis=0), 1e-3)
    height = float(np.clip(5.0 * upwards / across, 3.4, 6.4))  # of a map, as the map is
    for name, one in draws.items():

        def alone(figure: Any, one: Draw = one) -> object:
            return one(figure.subplots())

        yield from _picture(name, alone, (6.4, height if name in _MAPS else 4.0))


def residuals_drawn(model: Any) -> Iterator[tuple[str, Picture]]:
    """The residuals of a model of numbers, none without matplotlib."""
    if hasattr(model, "classes_"):
        return

    def four(figure: Any) -> object:
        figure.set_layout_engine("constrained")
        return plot_residuals(model, ax=figure.subplots(2, 2))

    yield from _picture("residuals.svg", four, (9.0, 7.0))


def errors_drawn(
    nodes: Any, held_out: Any, errors: Any, metric: str
) -> Iterator[tuple[str, Picture]]:
    """The errors of the nodes at held-out rows, none without matplotlib."""
    on = (held_out > 0) & np.isfinite(errors)
    if on.sum() < 2:
        return
    found = fairness_of(metric, nodes[on], held_out[on], errors[on])

    def one(figure: Any) -> object:
        figure.set_layout_engine("constrained")
        return found.plot(figure.subplots())

    yield from _picture("errors.svg", one, (9.0, 4.0))


def sources_drawn(model: Any, node: Any) -> Iterator[tuple[str, Picture]]:
    """What the model of a node is made of; none where there is no formula, or no matplotlib."""
    try:
        found = explain(model, node)
    except (ValueError, np.linalg.LinAlgError):
        return  # such as losses without second derivatives

    def two(figure: Any) -> object:
        figure.set_layout_engine("constrained")
        return found.plot(figure.subplots(1, 2))

    yield from _picture("sources.svg", two, (10.0, 4.0))


def accounts_drawn(
    model: Any, node_ids: Any, held: dict[str, Any], metric: str
) -> Iterator[tuple[str, Picture]]:
    """Errors by node, what the model of the node with the fewest rows is made of, residuals."""
    yield from errors_drawn(held["nodes"], held["held_out"], held["errors"], metric)
    if model.graph_.n_nodes <= _MOST_EXPLAINED:
        names, count = np.unique(node_ids, return_counts=True)
        yield from sources_drawn(model, names[[int(count.argmin())]].tolist()[0])
    yield from residuals_drawn(model)


def _picture(name: str, draw: Draw, size: tuple[float, float]) -> Iterator[tuple[str, Picture]]:
    """What `draw` puts into a Figure; nothing without matplotlib."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as letters that a font lacks
        with rc_context({"font.family": "sans-serif", "font.size": 10.0}):
            figure = Figure(figsize=size)
            draw(figure)
            picture = Picture.drawn(figure, *PICTURES[name])
    yield name, picture
