"""The flavours of federated learning as GTV minimisation, on one small network."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.data import LocalData
from nefele.experiments.base import Cell, Experiment, Inputs, Row, exact, mse, over_seeds
from nefele.experiments.figures import COLOURS
from nefele.experiments.instances import CENTRES, block_graph, labels_of
from nefele.graph import Graph

N, M, SIGMA = 40, 6, 0.5
CLUSTER = np.repeat([0, 1], N // 2)
LAM = {"clustered": 0.5, "personalised": 0.02}
METHODS = ("local", "pooled", "oracle", "centralised", "decentralised", "clustered", "personalised")


def cells(quick: bool, inputs: Inputs) -> list[Cell]:
    """Seeds."""
    return [{"seed": s} for s in range(2 if quick else 5)]


def compute(setting: Cell, inputs: Inputs) -> Cell:
    """All flavours on one draw."""
    from nefele import flavours
    from nefele.baselines import local, oracle, pooled

    graph, true, X, y = _drawn(setting["seed"])
    data = LocalData.from_list(list(zip(X, y, strict=True)))
    fits = {"local": local(data), "pooled": pooled(data), "oracle": oracle(data, CLUSTER)}
    found: Cell = {name: {"mse": mse(fit.w, true)} for name, fit in fits.items()}
    problems = {
        "centralised": flavours.centralised(data),
        "decentralised": flavours.decentralised(data, graph),
        "clustered": flavours.clustered(data, graph, LAM["clustered"]),
        "personalised": flavours.personalised(data, graph, LAM["personalised"]),
    }
    for name, problem in problems.items():
        solved = exact(problem)
        w = np.array([solved.result[i] for i in range(N)])  # the server is no node of the data
        apart = np.abs(w - fits["pooled"].w).max()
        models = len(np.unique(solved.result.clusters()))
        found[name] = solved.facts(mse=mse(w, true), apart=apart, models=models)
    found["horizontal"] = _horizontal(X, y)
    found["vertical"] = _vertical(setting["seed"])
    return found


def _drawn(seed: int) -> tuple[Graph, Array, Array, Array]:
    rng = np.random.default_rng(seed)
    graph = block_graph(rng, CLUSTER, 0.02)
    true, X = CENTRES[CLUSTER], rng.standard_normal((N, M, 2))
    return graph, true, X, labels_of(X, true) + SIGMA * rng.standard_normal((N, M))


def _horizontal(X: Array, y: Array) -> Cell:
    """One table cut by rows: distance from least squares on the whole table."""
    from nefele.flavours import horizontal

    rows, labels = X.reshape(-1, 2), y.ravel()
    solved = exact(horizontal(rows, labels, np.repeat(np.arange(N), M)))
    whole = np.linalg.lstsq(rows, labels)[0]
    return solved.facts(apart=np.abs(solved.w - whole).max())


def _vertical(seed: int) -> Cell:
    """One table cut by columns: error of a site that has no labels of its own."""
    from nefele.flavours import vertical

    rng = np.random.default_rng(seed)
    common = rng.standard_normal(300)
    X = np.column_stack([common + 0.3 * rng.standard_normal(300) for _ in range(3)])
    y = common + 0.1 * rng.standard_normal(300)
    columns = {"bank": [0], "shop": [1], "clinic": [2]}
    fit = vertical(X, y, columns, labelled=["bank", "shop"], alpha=1.0, random_state=0)
    found = np.asarray(fit.predict(X, node_ids=["clinic"] * len(y)))
    return {"error": float(np.mean((found - y) ** 2) / np.var(y))}


def rows(done: list[Cell]) -> list[Row]:
    """Errors of the flavours, and what each of them must equal."""
    table = [over_seeds(name, "MSE (40)", [cell[name] for cell in done], "mse") for name in METHODS]
    for name in ("centralised", "decentralised", "horizontal"):
        text = "the pooled fit, exactly"
        facts = [cell[name] for cell in done]
        what = "distance from the pooled model"
        table.append(over_seeds(name, what, facts, "apart", expected=(0.0, 1e-5), because=text))
    facts = [cell["clustered"] for cell in done]
    table.append(
        over_seeds(
            "clustered",
            "distinct models",
            facts,
            "models",
            expected=(2, 2),
            because="the two true clusters",
        )
    )
    facts = [cell["personalised"] for cell in done]
    text = "a model of its own for each node"
    table.append(
        over_seeds(
            "personalised", "distinct models", facts, "models", expected=(N, N), because=text
        )
    )
    facts = [cell["vertical"] for cell in done]
    text = "a site without labels learns from the predictions of the others"
    name = "error of a site without labels, share of the variance"
    table.append(over_seeds("vertical", name, facts, "error", expected=(0.0, 0.5), because=text))
    return table


def draw(figure: Any, done: list[Cell]) -> None:
    """Mean error of each flavour."""
    ax = figure.subplots()
    values = [np.mean([cell[name]["mse"] for cell in done]) for name in METHODS]
    ax.barh(METHODS[::-1], values[::-1], color=COLOURS[0])
    ax.set(xscale="log", xlabel="MSE (40), mean over seeds")


EXPERIMENT = Experiment(
    "flavours",
    "the flavours of federated learning on one network",
    "lecture notes, Sec. 8 (no printed numbers)",
    cells,
    compute,
    rows,
    draw,
    size=(5.5, 2.6),
    notes=("Two clusters of 20 nodes, 6 noisy rows each.",),
)
