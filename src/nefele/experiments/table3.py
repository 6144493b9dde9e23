"""NFL, Sec. VI-E, Table III: temperatures at Finnish stations."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele.experiments.base import (
    Cell,
    Experiment,
    Found,
    Inputs,
    Row,
    as_printed,
    exact,
    near,
    over_seeds,
)
from nefele.experiments.figures import COLOURS, MARKERS, log_ticks
from nefele.experiments.weather import LAM, Weather, load_weather, validation_error
from nefele.graph import Graph
from nefele.problem import Problem

LAMS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
QUICK = (0.5, 2.0)
ROUNDS = 1000
# "squared" is the unhalved ||v||^2: twice the lam of the core's 1/2 ||v||^2.
PENALTIES = {"l1": ("l1", 1.0), "l2": ("l2", 1.0), "squared": ("squared_l2", 2.0)}
GRAPHS = ("all rows", "training rows")
SEED0 = {"l1": (1027.79462, 5.64470), "l2": (1022.10322, 5.66780), "squared": (973.67144, 6.04276)}
MEANS = {
    ("l1", 0.5): 5.433,
    ("l2", 0.5): 5.446,
    ("squared", 0.5): 5.793,
    ("l1", 2.0): 5.366,
    ("l2", 2.0): 5.352,
}
LOCAL, POOLED = 6.584, 5.521
# As the paper words it: two features and no constant, here with the same split, and with its ratio
# of validation to training rows, 0.3.
PLAIN = {"18 + 9 rows": 0.33, "20 + 7 rows": 0.3 / 1.3}
PLAIN_MEANS = {"local": 6.893, "l1": 5.869}  # with 18 + 9 rows
STOPPED = f"Algorithm 1, {ROUNDS} iterations"
NOT_REACHED = (
    "5.16 is not reached by the exact solution of the paper's own formula, nor by its 1000 "
    "iterations; the authors' code, with an inexact inner optimiser and another graph, was not run "
    "here"
)


def cells(quick: bool, inputs: Inputs) -> list[Cell]:
    """Five splits; the grid of lam."""
    lams = QUICK if quick else LAMS
    return [{"seed": s, "lams": list(lams)} for s in range(5)]


def compute(setting: Cell, inputs: Inputs) -> Cell:
    """All methods on one split, on the paper's graph and on that of the training rows."""
    from nefele.baselines import local, pooled

    assert inputs.weather is not None
    weather = load_weather(inputs.weather)
    train, test = weather.split(setting["seed"])
    data = weather.local_data(train)
    graphs = {"all rows": weather.graph(), "training rows": weather.graph(rows=train)}
    found: Cell = {
        "local": {"error": validation_error(local(data).w, test)},
        "pooled": {"error": validation_error(pooled(data).w, test)},
    }
    for where, graph in graphs.items():
        found[f"edges, {where}"] = graph.n_edges
        for name, (penalty, factor) in PENALTIES.items():
            for lam in setting["lams"]:
                problem = Problem(graph, data, penalty=penalty, lam=factor * lam)
                found[key_of(name, lam, where)] = _facts(exact(problem), test)
    for name in ("l1", "l2"):
        problem = Problem(graphs["all rows"], data, penalty=name, lam=LAM)
        found[f"{STOPPED}, {name}"] = _facts(as_printed(problem, ROUNDS), test)
    for size, share in PLAIN.items():
        found |= _without_constant(weather, graphs["all rows"], setting["seed"], size, share)
    return found


def _without_constant(weather: Weather, graph: Graph, seed: int, size: str, share: float) -> Cell:
    """The two features of the paper alone."""
    from nefele.baselines import local, pooled

    train, test = ([(X[:, :2], y) for X, y in part] for part in weather.split(seed, share))
    data = weather.local_data(train)
    found: Cell = {
        plain_key("local", size): {"error": validation_error(local(data).w, test)},
        plain_key("pooled", size): {"error": validation_error(pooled(data).w, test)},
    }
    for name in ("l1", "l2"):
        solved = exact(Problem(graph, data, penalty=name, lam=LAM))
        found[plain_key(name, size)] = _facts(solved, test)
    return found


def plain_key(name: str, size: str) -> str:
    """Key of a fit without a constant.

    Examples
    --------
    >>> plain_key("l1", "18 + 9 rows")
    'l1, no constant, 18 + 9 rows'
    """
    return f"{name}, no constant, {size}"


def key_of(name: str, lam: float, where: str = GRAPHS[0]) -> str:
    """Key of a fit in a cell.

    Examples
    --------
    >>> key_of("l1", 0.5)
    'l1, lam 0.5, all rows'
    """
    return f"{name}, lam {lam:g}, {where}"


def _facts(found: Found, test: Any) -> Cell:
    return found.facts(error=validation_error(found.w, test))


def rows(done: list[Cell]) -> list[Row]:
    """The table, seed 0, the chosen lam, and the graph that does not see the validation rows."""
    seed0 = next(cell for cell in done if cell["seed"] == 0)
    what, error = "local, lam 0", "validation error (44)"
    table = [
        over_seeds(
            what,
            error,
            [cell["local"] for cell in done],
            "error",
            printed=6.59,
            where="Table III",
            expected=_about(LOCAL),
        ),
        *_penalties(done),
        over_seeds(
            "pooled", error, [cell["pooled"] for cell in done], "error", expected=_about(POOLED)
        ),
        *_chosen(done),
    ]
    for name in ("l1", "l2"):
        facts = [cell[f"{STOPPED}, {name}"] for cell in done]
        text = "the printed iterations, with exact updates, are close to the optimum"
        what = f"{name}, lam 0.5, {STOPPED}"
        table.append(over_seeds(what, error, facts, "error", because=text, stops=True))
    for name, (objective, value) in SEED0.items():
        fact, what = [seed0[key_of(name, LAM)]], f"{name}, lam 0.5, seed 0"
        bound = near(objective, 1e-6)
        table.append(over_seeds(what, "objective", fact, "objective", expected=bound))
        table.append(over_seeds(what, error, fact, "error", expected=_about(value)))
    table += _plain(done)
    table.append(Row("graph, eta 5", "edges", seed0["edges, all rows"], expected=(3254, 3254)))
    return table


def _about(value: float) -> tuple[float, float]:
    return value - 2e-3, value + 2e-3


def _penalties(done: list[Cell]) -> list[Row]:
    table = []
    for name in PENALTIES:
        for lam in done[0]["lams"]:
            known = MEANS.get((name, lam))
            half = lam == LAM
            table.append(
                over_seeds(
                    f"{name}, lam {lam:g}",
                    "validation error (44)",
                    [cell[key_of(name, lam)] for cell in done],
                    "error",
                    printed=5.16 if half else None,
                    where="Table III" if half else "",
                    because=NOT_REACHED if half else "",
                    expected=_about(known) if known and len(done) == 5 else None,
                    minor=known is None,
                )
            )
    return table


def _plain(done: list[Cell]) -> list[Row]:
    """Two features and no constant, as the paper words it."""
    table = []
    for size in PLAIN:
        for name in ("local", "l1", "l2", "pooled"):
            known = PLAIN_MEANS.get(name) if size == next(iter(PLAIN)) and len(done) == 5 else None
            table.append(
                over_seeds(
                    plain_key(name if name in ("local", "pooled") else f"{name}, lam 0.5", size),
                    "validation error (44)",
                    [cell[plain_key(name, size)] for cell in done],
                    "error",
                    because="two features without a constant, as the paper words it",
                    expected=_about(known) if known else None,
                )
            )
    return table


def _chosen(done: list[Cell]) -> list[Row]:
    """The lam with the least validation error, as the paper tunes it, on both graphs."""
    table = []
    for where in GRAPHS:
        for name in PENALTIES:
            means = {
                lam: np.mean([cell[key_of(name, lam, where)]["error"] for cell in done])
                for lam in done[0]["lams"]
            }
            best = min(means, key=lambda lam: means[lam])
            text = f"lam = {best:g} by validation, where the paper found 1/2"
            if where != GRAPHS[0]:
                text += "; this graph has not seen the validation labels"
            facts = [cell[key_of(name, best, where)] for cell in done]
            what = f"{name}, lam chosen, graph of {where}"
            table.append(over_seeds(what, "validation error (44)", facts, "error", because=text))
    return table


def draw(figure: Any, done: list[Cell]) -> None:
    """Validation error against lam, with local and pooled models as lines."""
    axes = figure.subplots(1, 2, sharey=True)
    lams = done[0]["lams"]
    for ax, where in zip(axes, GRAPHS, strict=True):
        for k, name in enumerate(PENALTIES):
            errors = np.array(
                [[c[key_of(name, lam, where)]["error"] for lam in lams] for c in done]
            )
            mean, spread = errors.mean(axis=0), errors.std(axis=0)
            ax.errorbar(lams, mean, yerr=spread, label=name, color=COLOURS[k], marker=MARKERS[k])
        for name, style in (("local", ":"), ("pooled", "--")):
            value = np.mean([cell[name]["error"] for cell in done])
            ax.axhline(value, ls=style, color="black", lw=0.8, label=name)
        ax.axhline(5.16, color="#999999", lw=0.8, label="printed, lam = 1/2")
        ax.set(xlabel="lam", title=f"graph of {where}")
        log_ticks(ax, lams)
    axes[0].set_ylabel("validation error (44)")
    axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


EXPERIMENT = Experiment(
    "table3",
    "weather: validation error of local and coupled models",
    "NFL, Sec. VI-E, Table III",
    cells,
    compute,
    rows,
    draw,
    size=(8.5, 3.6),
    needs="weather",
    notes=(
        "All stations, five splits, graph (42)-(43) with eta = 5; the paper does not say which "
        "penalty. " + NOT_REACHED + ".",
        "The paper has two features and no constant, 28 rows per station and a ratio of 0.3 of "
        "validation to training rows. Here a constant is added, since it is what meets the printed "
        "6.59; the day before the first is not known, so 27 rows are left, 18 and 9 of them in a "
        "split. The rows without a constant are as the paper words it.",
        "The paper's graph is built from all rows and so sees the labels of the validation rows; "
        "the second graph is built from the training rows of each split only.",
    ),
)
