"""Data of the demos as files: the US states, and small problems in the spirit of NFL, Sec. VI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nefele import graphs
from nefele._checks import Array
from nefele.datasets import load_incomes, load_states, split_incomes
from nefele.datasets.states import state_places
from nefele.graph import Graph
from nefele.runs.config import RunConfig
from nefele.runs.folder import RunFolder

FILES = ("data.csv", "edges.csv", "places.csv")
_CENTRES = np.array([[2.0, 2.0, 0.0], [-2.0, 2.0, 1.0]])
_ROWS = 8  # rows of each node of a generated network
_NOISE = 2.0


def is_written(name: str, out: Path) -> bool:
    """Whether the data of this demo are in the folder."""
    frame = _data(name)[0]
    try:
        return bool((out / "data.csv").read_bytes() == frame.write_csv().encode("utf-8"))
    except OSError:
        return False


def write_demo(name: str, out: Path) -> RunConfig:
    """Write the files of a demo into its folder; returns its configuration.

    That of the incomes has the places of the states in a file of their own: not all have rows.
    """
    import polars as pl

    frame, graph, node, target = _data(name)
    edges = pl.DataFrame(
        {
            "source": pl.Series(graph.ids[graph.head].tolist()).cast(pl.String),
            "target": pl.Series(graph.ids[graph.tail].tolist()).cast(pl.String),
            "weight": graph.weight,
        }
    )
    folder = RunFolder(out)
    tables = {"data.csv": frame, "edges.csv": edges}
    places = name == "incomes"
    if places:
        tables["places.csv"] = _places(graph)
    for file, table in tables.items():
        folder.write(file, table.write_csv)
    return RunConfig(
        data=str(out / "data.csv"),
        node=node,
        target=target,
        graph=str(out / "edges.csv"),
        penalty="auto" if name == "incomes" else "l2",  # the others show clusters and their path
        coords=("latitude", "longitude") if name in ("states", "incomes") else None,
        places=str(out / "places.csv") if places else None,
        n_alphas=20,
        out=str(out),
    )


def _data(name: str) -> tuple[Any, Graph, str, str]:
    """The rows of a demo, its graph, and the columns of the nodes and of the target."""
    if name == "incomes":
        return _incomes()
    return _states() if name == "states" else _generated(name)


def _incomes() -> tuple[Any, Graph, str, str]:
    """8 years of 36 states, 2 of which a run holds out; 12 states have no rows."""
    import polars as pl

    incomes = load_incomes()
    train = split_incomes(incomes, seed=0, n_train=8)
    columns = {name: incomes.X[train, j] for j, name in enumerate(incomes.feature_names)}
    states = incomes.node_ids[train].tolist()
    frame = pl.DataFrame({"state": states, **columns, "log_income": incomes.y[train]})
    return frame, incomes.graph, "state", "log_income"


def _places(graph: Graph) -> Any:
    import polars as pl

    place = state_places(graph)
    columns = {"latitude": place[:, 1], "longitude": place[:, 0]}
    return pl.DataFrame({"state": graph.ids.tolist(), **columns})


def _states() -> tuple[Any, Graph, str, str]:
    import polars as pl

    states = load_states()
    names = states.feature_names[:-1]  # every model has an intercept already
    columns = {name: states.X[:, j] for j, name in enumerate(names)}
    place = states.positions[states.graph.positions(states.node_ids)]
    columns |= {"latitude": place[:, 1], "longitude": place[:, 0]}
    frame = pl.DataFrame({"state": states.node_ids.tolist(), **columns, "log_product": states.y})
    return frame, states.graph, "state", "log_product"


def _generated(name: str) -> tuple[Any, Graph, str, str]:
    import polars as pl

    rng = np.random.default_rng(0)
    graph, true = _network(name, rng)
    count = graph.n_nodes
    owner = np.repeat(np.arange(count), _ROWS)
    X = rng.standard_normal((len(owner), 2))
    y = (X * true[owner, :2]).sum(axis=1) + true[owner, 2]
    y += _NOISE * rng.standard_normal(len(owner))
    ids = [f"{name}-{i:02d}" for i in range(count)]
    frame = pl.DataFrame({"node": [ids[i] for i in owner], "x1": X[:, 0], "x2": X[:, 1], "y": y})
    return frame, Graph(ids, graph.head, graph.tail, graph.weight), "node", "y"


def _network(name: str, rng: np.random.Generator) -> tuple[Graph, Array]:
    """The graph and the true parameters (two slopes, a constant) of each node."""
    half = np.repeat([0, 1], 30)
    if name == "sbm":  # two groups, many links inside, few between
        inside = half[:, None] == half[None, :]
        drawn = rng.random(inside.shape) < np.where(inside, 0.3, 0.01)
        pairs = np.argwhere(np.triu(drawn, 1))
        return Graph(np.arange(60), pairs[:, 0], pairs[:, 1]), _CENTRES[half]
    if name == "chain":  # two stretches, joined by a weak link
        graph = graphs.chain(60)
        weight = np.where(graph.head == 29, 0.1, 1.0)
        return Graph(graph.ids, graph.head, graph.tail, weight), _CENTRES[half]
    # star: the leaves are like the hub, each with a difference of its own
    return graphs.star(50), np.array([2.0, -1.0, 1.0]) + 0.7 * rng.standard_normal((50, 3))
