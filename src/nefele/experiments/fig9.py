"""NFL, Sec. VI-E, Fig. 9: the models of the stations, coupled and alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele.experiments.base import Cell, Experiment, Inputs, Row, exact
from nefele.experiments.figures import COLOURS
from nefele.experiments.weather import LAM, load_weather
from nefele.problem import Problem

PANELS = (("l2", LAM), ("l1", LAM), ("l2", 0.0))


def cells(quick: bool, inputs: Inputs) -> list[Cell]:
    """The first split, penalty and lam."""
    return [{"penalty": penalty, "lam": lam, "seed": 0} for penalty, lam in PANELS]


def compute(setting: Cell, inputs: Inputs) -> Cell:
    """The models, and how many of them differ."""
    assert inputs.weather is not None
    weather = load_weather(inputs.weather)
    train, _ = weather.split(setting["seed"])
    data = weather.local_data(train)
    solved = exact(Problem(weather.graph(), data, penalty=setting["penalty"], lam=setting["lam"]))
    models = len(np.unique(solved.result.clusters()))
    return {**solved.facts(models=models), "w": solved.w}


def rows(done: list[Cell]) -> list[Row]:
    """Distinct models: few when coupled by a norm, one per station when alone."""
    table = []
    for cell in done:
        alone, stations = cell["lam"] == 0, len(cell["w"])
        text = "no two alike: no clustering, in the paper's words"
        if not alone:
            text = "groups of equal models; 'few dense clusters' in the paper's words"
        table.append(
            Row(
                f"{cell['penalty']}, lam {cell['lam']:g}",
                f"distinct models of {stations}",
                cell["models"],
                gap=cell["gap"],
                converged=cell["converged"],
                expected=(stations, stations) if alone else (1, stations - 1),
                because=text,
            )
        )
    return table


def draw(figure: Any, done: list[Cell]) -> None:
    """Weights of the two temperatures, one dot per station."""
    axes = figure.subplots(1, len(done), sharex=True, sharey=True)
    for ax, cell in zip(axes, done, strict=True):
        w = np.array(cell["w"])
        ax.scatter(w[:, 0], w[:, 1], s=10, color=COLOURS[0], alpha=0.4, linewidths=0)
        name = "alone, lam 0" if cell["lam"] == 0 else f"{cell['penalty']}, lam {cell['lam']:g}"
        ax.set(title=f"{name}: {cell['models']:g} models", xlabel="weight of the day before")
    axes[0].set_ylabel("weight of the minimum")


EXPERIMENT = Experiment(
    "fig9",
    "weather: models of the stations, coupled and alone",
    "NFL, Sec. VI-E, Fig. 9",
    cells,
    compute,
    rows,
    draw,
    needs="weather",
)
