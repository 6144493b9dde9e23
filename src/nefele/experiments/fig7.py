"""NFL, Sec. VI-C, Fig. 7: a star whose models become one at the critical lam."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele.experiments.base import TIGHT, Cell, Experiment, Inputs, Row, exact, near
from nefele.experiments.figures import COLOURS
from nefele.experiments.instances import star

SHARES = (0.02, 0.1, 0.4, 0.8, 0.999, 1.001)  # of the critical lam
SQUARED = (1.0, 10.0, 100.0, 1000.0)
CRITICAL = {"l2": 16.04144, "l1": 15.78956}


def cells(quick: bool, inputs: Inputs) -> list[Cell]:
    """Settings: penalties, seed 0."""
    return [{"penalty": name, "seed": 0} for name in ("l2", "l1", "squared_l2")]


def compute(setting: Cell, inputs: Inputs) -> Cell:
    """The critical lam, and the models at growing lam."""
    from nefele.theory import critical_lambda

    penalty, seed = setting["penalty"], setting["seed"]
    critical = None
    if penalty in CRITICAL:
        critical = float(critical_lambda(star(1.0, penalty, seed=seed)).value)
    lams = SQUARED if critical is None else [share * critical for share in SHARES]
    steps = []
    for lam in lams:
        solved = exact(star(lam, penalty, seed=seed), TIGHT)
        spread = float(np.ptp(solved.w, axis=0).max())
        steps.append({**solved.facts(lam=lam, spread=spread), "w": solved.w})
    return {"critical": critical, "steps": steps}


def rows(done: list[Cell]) -> list[Row]:
    """The critical lam, and the spread of the models just below and above it."""
    table = []
    inf = float("inf")
    for cell in done:
        name, steps = cell["penalty"], cell["steps"]
        if cell["critical"] is None:
            last = steps[-1]
            text = "never exactly equal: a smooth penalty has no critical lam"
            table.append(_spread(name, last, (1e-3, inf), text))
            continue
        expected = near(CRITICAL[name], 1e-6)
        table.append(Row(name, "critical lam", cell["critical"], expected=expected))
        table.append(_spread(f"{name}, 0.999 of it", steps[-2], (1e-3, inf), "still apart"))
        table.append(_spread(f"{name}, 1.001 of it", steps[-1], (0.0, 1e-6), "one model"))
    return table


def _spread(what: str, step: Cell, expected: tuple[float, float], because: str) -> Row:
    return Row(
        f"{what}, lam {step['lam']:.4g}",
        "spread of the models",
        step["spread"],
        gap=step["gap"],
        converged=step["converged"],
        expected=expected,
        because=because,
    )


def draw(figure: Any, done: list[Cell]) -> None:
    """The 50 models of each lam, the critical lam named; each dot is a node."""
    norms = [cell for cell in done if cell["critical"] is not None]
    axes = figure.subplots(len(norms), len(SHARES), sharex=True, sharey=True, squeeze=False)
    for line, cell in zip(axes, norms, strict=True):
        for ax, step in zip(line, cell["steps"], strict=True):
            w = np.array(step["w"])
            ax.scatter(*w.T, s=9, color=COLOURS[0], alpha=0.6, linewidths=0)
            above = ">" if step["lam"] > cell["critical"] else "<"
            ax.set_title(f"{cell['penalty']}, lam {step['lam']:.4g} {above} {cell['critical']:.4g}")
        line[0].set_ylabel("w_2")
    for ax in axes[-1]:
        ax.set_xlabel("w_1")


EXPERIMENT = Experiment(
    "fig7",
    "star: the models become one at the critical lam",
    "NFL, Sec. VI-C, Fig. 7",
    cells,
    compute,
    rows,
    draw,
    size=(12.0, 4.4),
    notes=(
        "The critical lam is the largest dual norm of a leaf's gradient at the pooled model. The "
        "paper prints no number for it.",
    ),
)
