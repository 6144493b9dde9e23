"""Problems for solves by parts, small enough to be quick and large enough for compiled loops."""

import numpy as np
import polars as pl

from nefele import Graph, LocalData, Problem
from nefele.graphs import grid


def posed(loss="squared", penalty="l2", side=14, seed=0, weights=True, lam=0.15, shuffled=False):
    """A grid in four squares with different truths; a fifth of the nodes has no rows."""
    rng = np.random.default_rng(seed)
    graph = grid(side, side, neighbors=8)
    weight = rng.uniform(0.5, 1.5, graph.n_edges) if weights else np.ones(graph.n_edges)
    name = rng.permutation(graph.n_nodes) if shuffled else np.arange(graph.n_nodes)
    n = graph.n_nodes
    graph = Graph(np.arange(n), name[graph.head], name[graph.tail], weight)
    truth = 2 * rng.standard_normal((4, 3))
    place = np.empty(n, dtype=int)
    place[name] = 2 * (np.arange(n) // side >= side // 2) + (np.arange(n) % side >= side // 2)
    rows = []
    for i in range(n):
        X = rng.standard_normal((4, 3))
        y = X @ truth[place[i]] + 0.3 * rng.standard_normal(4)
        y = np.where(y > 0, 1.0, -1.0) if loss != "squared" else y
        rows.append(None if rng.random() < 0.2 else (X, y))
    return Problem(graph, LocalData.from_list(rows), loss, penalty, lam=lam)


def written(folder, problem, text=False, kind="parquet", **more):
    """The rows and edges of a problem as files, in no particular order of nodes."""
    data, graph = problem.data, problem.graph
    name = np.array([f"n{i:04d}" for i in range(graph.n_nodes)]) if text else graph.ids
    rng = np.random.default_rng(3)
    order = rng.permutation(graph.n_nodes)
    rows = np.concatenate([np.arange(data.ptr[i], data.ptr[i + 1]) for i in order])
    table = {"place": name[data.row_node[rows]]}
    table |= {f"f{j}": data.X[rows, j] for j in range(data.d)} | {"y": data.y[rows]}
    table |= {key: np.asarray(values)[data.row_node[rows]] for key, values in more.items()}
    pairs = {"source": name[graph.head], "target": name[graph.tail], "weight": graph.weight}
    paths = folder / f"rows.{kind}", folder / f"edges.{kind}"
    for path, columns in zip(paths, (table, pairs), strict=True):
        frame = pl.DataFrame(columns)
        frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    return paths
