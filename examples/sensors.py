"""Sensors in a field with two regimes, some without data.

Each sensor predicts a temperature from two readings. West of the middle the readings mean one
thing, east of it another; nobody tells the sensors which side they are on. Every sensor has
only a few noisy rows, and some have none. Compared: each sensor alone, one model for all, and
nefele over the graph of near neighbours.

Run it: python examples/sensors.py
"""

from typing import Any

import numpy as np

import nefele

N_SENSORS, N_EMPTY, N_ROWS, NOISE = 80, 16, 5, 1.0
WEST, EAST = np.array([2.0, 1.0, 5.0]), np.array([-1.0, 2.0, 8.0])


def make_network(seed: int = 0) -> tuple[nefele.Graph, nefele.LocalData, np.ndarray]:
    """Sensors at random places, their rows, and the parameters that made the rows."""
    rng = np.random.default_rng(seed)
    place = rng.random((N_SENSORS, 2))
    names = [f"sensor {i:02d}" for i in range(N_SENSORS)]
    graph = nefele.graphs.knn(place, k=4, nodes=names)
    true = np.where(place[:, :1] < 0.5, WEST, EAST)
    empty = rng.choice(N_SENSORS, N_EMPTY, replace=False)
    rows: list[tuple[np.ndarray, np.ndarray] | None] = []
    for i in range(N_SENSORS):
        X = np.column_stack([rng.normal(size=(N_ROWS, 2)), np.ones(N_ROWS)])
        y = X @ true[i] + NOISE * rng.normal(size=N_ROWS)
        rows.append(None if i in empty else (X, y))
    return graph, nefele.LocalData.from_list(rows, nodes=names), true


def main() -> None:
    graph, data, true = make_network()
    own = nefele.Problem(graph, data, lam=0.0).loss.minimise()
    pooled = np.linalg.lstsq(data.X, data.y, rcond=None)[0]
    result = nefele.solve(nefele.Problem(graph, data, penalty="l2", lam=0.3))

    def error(w: np.ndarray, nodes: np.ndarray) -> str:
        return f"{((w - true) ** 2).sum(axis=1)[nodes].mean():8.3f}"

    print(f"{graph}, {data.n_rows} rows, {(~data.labelled).sum()} sensors without data")
    print("mean squared error of the parameters   with data   without")
    print(f"own data only                          {error(own, data.labelled)}         -")
    for name, w in (("pooled", pooled), ("nefele", result.w)):
        print(f"{name:38} {error(w, data.labelled)}  {error(w, ~data.labelled)}")
    print(f"certified gap {result.gap:.1e} ({result.certificate}, {result.status})")


def picture() -> Any:
    """The field: the effect of the first reading at each sensor; hollow without data."""
    import matplotlib.pyplot as plt

    graph, data, _ = make_network()
    slope = nefele.solve(nefele.Problem(graph, data, penalty="l2", lam=0.3)).w[:, 0]
    place = np.random.default_rng(0).random((N_SENSORS, 2))
    figure, ax = plt.subplots(figsize=(6.8, 4.4), layout="constrained")
    ax.plot(*place[np.array([graph.head, graph.tail])].transpose(2, 0, 1), color="#cccccc", lw=0.8)
    shown = ax.scatter(*place.T, c=slope, s=55, vmin=-1, vmax=2, cmap="cividis", zorder=2)
    ax.scatter(*place[~data.labelled].T, color="white", s=12, zorder=3)
    ax.axvline(0.5, color="#222222", lw=1, ls=":")
    ax.set(title="The truth is 2 west of the dotted line, -1 east of it", xticks=[], yticks=[])
    figure.colorbar(shown, label="fitted effect; a white dot: no data")
    return figure


if __name__ == "__main__":
    main()
