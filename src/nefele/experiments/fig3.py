"""NFL, Sec. VI-A1, Fig. 3: the block model with noisy labels, 60% of the nodes with data."""

from __future__ import annotations

from typing import Any

from nefele.experiments.base import Cell, Experiment, Inputs, Row, exact, groups, mse, over_seeds
from nefele.experiments.fig2 import METHODS, P_OUT, N
from nefele.experiments.figures import panels
from nefele.experiments.instances import sbm

RHO = 0.6
SIGMA = (0.01, 0.1, 0.5, 1.0)


def cells(quick: bool, inputs: Inputs) -> list[Cell]:
    """Settings: sigma x p_out x seeds."""
    p_outs = (0.01, 0.1, 0.2) if quick else P_OUT
    sigmas = (0.01, 0.5) if quick else SIGMA
    seeds = range(2 if quick else 5)
    return [{"sigma": g, "p_out": p, "seed": s} for g in sigmas for p in p_outs for s in seeds]


def compute(setting: Cell, inputs: Inputs) -> Cell:
    """All penalties on one graph."""
    found = {}
    for name, penalty, lam in METHODS:
        problem, true = sbm(
            penalty,
            lam=lam,
            p_out=setting["p_out"],
            n_labelled=round(RHO * N),
            seed=setting["seed"],
            sigma=setting["sigma"],
        )
        solved = exact(problem)
        found[name] = solved.facts(mse=mse(solved.w, true))
    return found


def rows(done: list[Cell]) -> list[Row]:
    """Growth of the error with p_out, and all points."""
    table = []
    for sigma in sorted({cell["sigma"] for cell in done}):
        for name in ("l1", "l2"):
            at = {
                p: [cell[name] for cell in those]
                for (g, p), those in groups(done, "sigma", "p_out").items()
                if g == sigma
            }
            few, many = (sum(f["mse"] for f in at[p]) / len(at[p]) for p in (0.01, max(at)))
            text = "worse with more edges across"
            table.append(
                Row(
                    f"{name}, sigma {sigma:g}: p_out {max(at):g} over p_out 0.01",
                    "ratio of MSE (40)",
                    many / few,
                    seeds=len(at[0.01]),
                    expected=(1.0, float("inf")),
                    because=text,
                )
            )
    for (sigma, p_out), those in sorted(groups(done, "sigma", "p_out").items()):
        for name, _, _ in METHODS:
            facts = [cell[name] for cell in those]
            what = f"{name}, sigma {sigma:g}, p_out {p_out:g}"
            table.append(over_seeds(what, "MSE (40)", facts, "mse", minor=True))
    return table


def draw(figure: Any, done: list[Cell]) -> None:
    """One panel per penalty, one curve per noise."""
    titles = {name: f"{name}, lam = {lam:g}" for name, _, lam in METHODS}
    panels(figure, done, titles, x="p_out", by="sigma")


EXPERIMENT = Experiment(
    "fig3",
    "block model with noise: error against p_out",
    "NFL, Sec. VI-A, Fig. 3",
    cells,
    compute,
    rows,
    draw,
    notes=("The paper draws curves and prints no numbers; rho = 0.6, lam = 0.01.",),
)
