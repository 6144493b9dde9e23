"""NFL, Sec. VI-B, Fig. 4: a chain of two halves, some nodes without data, no noise."""

from __future__ import annotations

from typing import Any

from nefele.experiments.base import (
    TIGHT,
    TOL,
    Cell,
    Experiment,
    Inputs,
    Row,
    as_printed,
    exact,
    groups,
    mse,
    near,
    over_seeds,
)
from nefele.experiments.figures import panels
from nefele.experiments.instances import chain

N, LAM, ROUNDS = 200, 0.1, 2000
EPS = tuple(round(0.1 * k, 1) for k in range(1, 10))
RHO = (0.2, 0.4, 0.6)
METHODS = (("l1", "l1"), ("l2", "l2"), ("squared", "squared_l2"))
REFERENCE = {0.1: 7.13e-09, 0.5: 1.78e-07, 0.9: 5.78e-07}  # l2, rho 0.6, seeds 0-2


def cells(quick: bool, inputs: Inputs) -> list[Cell]:
    """Settings: eps x rho x seeds."""
    eps = (0.1, 0.5, 0.9) if quick else EPS
    rhos = (0.2, 0.6) if quick else RHO
    seeds = range(3 if quick else 5)
    return [{"eps": e, "rho": r, "seed": s} for e in eps for r in rhos for s in seeds]


def compute(setting: Cell, inputs: Inputs) -> Cell:
    """All penalties on one chain; for l2 also Algorithm 1 with the printed iterations."""
    draw = {"n_labelled": round(setting["rho"] * N), "sigma": setting.get("sigma", 0.0)}
    found = {}
    for name, penalty in METHODS:
        problem, true = chain(setting["eps"], setting["seed"], penalty=penalty, lam=LAM, **draw)
        solved = exact(problem, TIGHT if not draw["sigma"] else TOL)
        found[name] = solved.facts(mse=mse(solved.w, true))
        if name == "l2":
            stopped = as_printed(problem, ROUNDS)
            found["algorithm 1"] = stopped.facts(mse=mse(stopped.w, true))
    return found


def rows(done: list[Cell]) -> list[Row]:
    """Reference values, what stopping does, and all points."""
    table = []
    by = groups(done, "eps", "rho")
    for eps, value in REFERENCE.items():
        those = [cell for cell in by.get((eps, 0.6), []) if cell["seed"] < 3]
        if not those:
            continue
        what = f"l2, rho 0.6, eps {eps:g}, seeds 0-2"
        facts = [cell["l2"] for cell in those]
        table.append(over_seeds(what, "MSE (40)", facts, "mse", expected=near(value, 1e-2)))
        stopped = [cell["algorithm 1"] for cell in those]
        text = "not converged: the gap says how far it is from the optimum"
        what += f", Algorithm 1, {ROUNDS} iterations"
        table.append(over_seeds(what, "MSE (40)", stopped, "mse", because=text, stops=True))
    for (eps, rho), those in sorted(by.items()):
        for name, _ in METHODS:
            facts = [cell[name] for cell in those]
            what = f"{name}, rho {rho:g}, eps {eps:g}"
            table.append(over_seeds(what, "MSE (40)", facts, "mse", minor=True))
    return table


def draw(figure: Any, done: list[Cell]) -> None:
    """One panel per penalty, one curve per rho."""
    titles = {name: f"{name}, lam = {LAM:g}" for name, _ in METHODS}
    panels(figure, done, titles, x="eps", by="rho")


EXPERIMENT = Experiment(
    "fig4",
    "chain without noise: error against the weight of the middle edge",
    "NFL, Sec. VI-B, Fig. 4",
    cells,
    compute,
    rows,
    draw,
    notes=("The paper draws curves and prints no numbers; lam = 0.1 here.",),
)
