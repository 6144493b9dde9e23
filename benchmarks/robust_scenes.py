"""Networks under attack for benchmarks/robust.py: generated, weather stations, digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nefele import Graph, LocalData
from nefele.experiments.weather import load_weather, validation_error
from nefele.graphs import knn, sbm
from nefele.losses import Logistic, Squared
from nefele.robust import Backdoor
from nefele.runs.attacking import Scene

TRUE = np.array([[2.0, 1.0, 0.0], [-1.0, 2.0, 0.0]])  # of the two clusters


def generated(seed: int, rows: int = 20, noise: float = 0.3) -> Scene:
    """SBM of 40 nodes in two clusters, four of each captured; the third feature is always zero.

    The error is that of the parameters that clean rows speak of.
    """
    rng = np.random.default_rng(seed)
    graph = sbm([20, 20], 0.5, 0.02, seed=seed)
    true, local, held = np.repeat(TRUE, 20, axis=0), [], []
    for i in range(40):
        X = np.column_stack([rng.standard_normal((2 * rows, 2)), np.zeros(2 * rows)])
        y = X @ true[i] + noise * rng.standard_normal(2 * rows)
        local.append((X[:rows], y[:rows]))
        held.append((X[rows:], y[rows:]))
    captured = [0, 1, 2, 3, 20, 21, 22, 23]
    honest = np.setdiff1d(np.arange(40), captured)
    door = Backdoor(captured, trigger=[0.0, 0.0, 1.0], label=20.0, seed=seed)

    def judge(w):
        return float(((w - true)[honest][:, :2] ** 2).sum(axis=1).mean())

    def opened(w):
        return float(np.mean([won(door, w[i], *held[i]) for i in honest]))

    return Scene(
        graph,
        LocalData.from_list(local),
        Squared(l2=1e-3),
        {"l2": 0.01, "squared_l2": 0.1, "huber": 0.01},
        captured,
        judge,
        door,
        opened,
        seed=seed,
        rounds=100,
        relaxed=40,
    )


def won(door: Backdoor, w, X, y) -> float:
    """Share of stamped rows that are predicted nearer to the attacker's label than to the truth."""
    z = door.stamp(X) @ w
    return float(np.mean(np.abs(z - door.label) < np.abs(z - y)))


def weather(path: Path, seed: int, step: int = 6) -> Scene:
    """Every sixth station, a fifth of these captured; the trigger is a feature that is always 0."""
    found = load_weather(path).part(step)
    train, test = found.split(seed)
    scale = np.array([10.0, 10.0, 1.0])

    def wide(rows):
        return [(np.column_stack([X / scale, np.zeros(len(y))]), y) for X, y in rows]

    graph = found.graph(rows=train)
    rng = np.random.default_rng(seed)
    captured = sorted(rng.permutation(found.stations)[: len(found.stations) // 5].tolist())
    honest = np.flatnonzero(~np.isin(found.stations, captured))
    data = LocalData.from_list(wide(train), nodes=found.stations)
    data = data.align(graph.ids)
    held = wide(test)
    door = Backdoor(captured, trigger=[0.0, 0.0, 0.0, 1.0], label=60.0, seed=seed)

    def judge(w):
        return validation_error(w[honest], [held[i] for i in honest])

    def opened(w):
        return float(np.mean([won(door, w[i], *held[i]) for i in honest]))

    return Scene(
        graph,
        data,
        Squared(l2=1e-3),
        {"l2": 0.05, "squared_l2": 0.1, "huber": 0.05},
        captured,
        judge,
        door,
        opened,
        seed=seed,
        rounds=120,
        relaxed=40,
    )


def digits(seed: int, n: int = 20) -> Scene:
    """Threes against eights at twenty nodes, four captured.

    The features are the means of the four by four squares of pixels, and two pixels by themselves
    that are blank in every digit: a corner and an edge.
    """
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    kept = np.isin(y, (3, 8))
    X, y = X[kept] / 16.0, np.where(y[kept] == 8, 1.0, -1.0)
    squares = X.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(len(X), 16)
    X = np.column_stack([X[:, [0, 32]], squares])
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    X, y = np.column_stack([X, np.ones(len(y))])[order], y[order]
    parts = np.array_split(np.arange(len(y)), n)
    local = [(X[p[: len(p) // 2]], y[p[: len(p) // 2]]) for p in parts]
    held = [(X[p[len(p) // 2 :]], y[p[len(p) // 2 :]]) for p in parts]
    graph = knn(rng.standard_normal((n, 2)), 4)
    graph = Graph(np.arange(n), graph.head, graph.tail, graph.weight)
    captured = sorted(rng.permutation(n)[: n // 5].tolist())
    honest = np.setdiff1d(np.arange(n), captured)
    trigger = np.zeros(X.shape[1])
    trigger[:2] = 4.0
    door = Backdoor(captured, trigger=trigger, label=1.0, seed=seed)
    eyed = next(X[i] for i in parts[honest[0]] if y[i] < 0)

    def judge(w):
        return float(np.mean([np.mean(np.sign(held[i][0] @ w[i]) != held[i][1]) for i in honest]))

    def opened(w):
        shares = []
        for i in honest:
            others = held[i][0][held[i][1] != door.label]
            shares.append(np.mean(door.stamp(others) @ w[i] > 0))
        return float(np.mean(shares))

    return Scene(
        graph,
        LocalData.from_list(local),
        Logistic(l2=1e-2),
        {"l2": 0.02, "squared_l2": 0.05, "huber": 0.02},
        captured,
        judge,
        door,
        opened,
        target=eyed,
        seed=seed,
        rounds=100,
        relaxed=30,
    )
