"""NFL, Sec. VI-B, Fig. 5: the chain with noisy labels, 60% of the nodes with data."""

from __future__ import annotations

from typing import Any

from nefele.experiments.base import Cell, Experiment, Inputs, Row, groups, over_seeds
from nefele.experiments.fig4 import EPS, LAM, METHODS, compute
from nefele.experiments.figures import panels

RHO = 0.6
SIGMA = (0.01, 0.1, 0.5, 1.0)


def cells(quick: bool, inputs: Inputs) -> list[Cell]:
    """Settings: eps x sigma x seeds."""
    eps = (0.1, 0.5, 0.9) if quick else EPS
    sigmas = (0.01, 0.5) if quick else SIGMA
    seeds = range(2 if quick else 5)
    return [
        {"eps": e, "sigma": g, "rho": RHO, "seed": s} for e in eps for g in sigmas for s in seeds
    ]


def rows(done: list[Cell]) -> list[Row]:
    """Growth of the error with the noise, and all points."""
    table = []
    by = groups(done, "sigma", "eps")
    low, high = min(c["sigma"] for c in done), max(c["sigma"] for c in done)
    for name, _ in METHODS[:2]:
        mean = {g: _mean([cell[name]["mse"] for cell in by[g, 0.5]]) for g in (low, high)}
        table.append(
            Row(
                f"{name}, eps 0.5: sigma {high:g} over sigma {low:g}",
                "ratio of MSE (40)",
                mean[high] / mean[low],
                seeds=len(by[low, 0.5]),
                expected=(1.0, float("inf")),
                because="worse with more noise",
            )
        )
    for (sigma, eps), those in sorted(by.items()):
        for name, _ in METHODS:
            facts = [cell[name] for cell in those]
            what = f"{name}, sigma {sigma:g}, eps {eps:g}"
            table.append(over_seeds(what, "MSE (40)", facts, "mse", minor=True))
    return table


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def draw(figure: Any, done: list[Cell]) -> None:
    """One panel per penalty, one curve per noise."""
    titles = {name: f"{name}, lam = {LAM:g}" for name, _ in METHODS}
    panels(figure, done, titles, x="eps", by="sigma")


EXPERIMENT = Experiment(
    "fig5",
    "chain with noise: error against the weight of the middle edge",
    "NFL, Sec. VI-B, Fig. 5",
    cells,
    compute,
    rows,
    draw,
    notes=("The paper draws curves and prints no numbers; rho = 0.6, lam = 0.1 here.",),
)
