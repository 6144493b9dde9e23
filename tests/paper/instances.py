"""The experiments of NFL, Sec. VI, drawn exactly as their reference values were."""

import csv
import os
from pathlib import Path

import numpy as np

from nefele import Graph, LocalData, Problem

_CENTRES = np.array([[2.0, 2.0], [-2.0, 2.0]])


def _block_graph(rng, labels, p_out):
    inside = labels[:, None] == labels[None, :]
    draws = rng.random(inside.shape) < np.where(inside, 0.5, p_out)
    return Graph.from_edges(np.argwhere(np.triu(draws, 1)), nodes=np.arange(len(labels)))


def _labels(X, true):
    return np.einsum("nmd,nd->nm", X, true)


def _some(X, y, chosen):
    chosen = set(chosen.tolist())
    return LocalData.from_list([(X[i], y[i]) if i in chosen else None for i in range(len(X))])


def star(lam, penalty, n=50, seed=0):
    rng = np.random.default_rng(seed)
    true, X = rng.standard_normal((n, 2)), rng.standard_normal((n, 5, 2))
    data = LocalData.from_list(list(zip(X, _labels(X, true), strict=True)))
    graph = Graph.from_edges([(0, i) for i in range(1, n)])
    return Problem(graph, data, penalty=penalty, lam=lam)


def sbm(penalty, lam=0.01, p_out=0.01, n_labelled=120, seed=0, n=200):
    rng = np.random.default_rng(seed)
    cluster = np.repeat([0, 1], n // 2)
    graph = _block_graph(rng, cluster, p_out)
    true, X = _CENTRES[cluster], rng.standard_normal((n, 5, 2))
    y = _labels(X, true) + 0 * rng.standard_normal((n, 5))
    data = _some(X, y, rng.permutation(n)[:n_labelled])
    return Problem(graph, data, penalty=penalty, lam=lam), true


def table1(penalty, lam, seed=0, n=100):
    rng = np.random.default_rng(seed)
    cluster = np.repeat([0, 1], n // 2)
    graph = _block_graph(rng, cluster, 0.01)
    true = rng.integers(0, 2, (2, 100))[cluster].astype(float)
    X = rng.standard_normal((n, 10, 100))
    y = _labels(X, true) + 1e-3 * rng.standard_normal((n, 10))
    data = LocalData.from_list(list(zip(X, y, strict=True)))
    return Problem(graph, data, penalty=penalty, lam=lam), true


def chain(eps, seed, n=200):
    rng = np.random.default_rng(seed)
    true, X = _CENTRES[np.repeat([0, 1], n // 2)], rng.standard_normal((n, 5, 2))
    data = _some(X, _labels(X, true), rng.permutation(n)[:120])
    weight = np.ones(n - 1)
    weight[n // 2 - 1] = eps
    graph = Graph.from_edges(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), weight=weight)
    return Problem(graph, data, penalty="l2", lam=0.1), true


def mse(w, true):
    """Estimation error of NFL, Eq. (40)."""
    return float(((w - true) ** 2).sum(axis=1).mean())


def fmi_path():
    """FMIData.csv: from NEFELE_FMI_DATA, or beside the checkout; None when it is not there."""
    places = [
        os.environ.get("NEFELE_FMI_DATA"),
        Path(__file__).parents[3] / "shared/data/FMIData.csv",
    ]
    return next((Path(p) for p in places if p and Path(p).is_file()), None)


class Weather:
    """The FMI network of NFL, Sec. VI-E: 203 stations, graph (42)-(43) with eta = 5."""

    def __init__(self, path):
        rows = {}
        with open(path, newline="", encoding="utf-8") as handle:
            for row in csv.DictReader(handle):
                if row["min_temp"] and row["max_temp"]:
                    pair = (float(row["min_temp"]), float(row["max_temp"]))
                    rows.setdefault(row["station"], []).append(pair)
        self.stations = list(rows)
        table = [np.array(rows[name]) for name in self.stations]
        self.X = [np.column_stack([t[:-1, 1], t[1:, 0], np.ones(len(t) - 1)]) for t in table]
        self.y = [t[1:, 1] for t in table]

    def graph(self, eta=5.0):
        moments = [np.column_stack([X[:, :2], y]) for X, y in zip(self.X, self.y, strict=True)]
        mean = np.array([m.mean(axis=0) for m in moments])
        cov = np.array([np.cov(m.T, ddof=1) for m in moments])
        values, vectors = np.linalg.eigh(cov)
        root = (vectors * np.sqrt(np.maximum(values, 0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
        i, j = np.triu_indices(len(mean), 1)
        cross = np.linalg.eigvalsh(root[i] @ cov[j] @ root[i])
        trace = np.trace(cov, axis1=1, axis2=2)
        distance = ((mean[i] - mean[j]) ** 2).sum(axis=1) + trace[i] + trace[j]
        distance -= 2 * np.sqrt(np.maximum(cross, 0)).sum(axis=1)
        near = distance <= eta
        names = np.array(self.stations)
        pairs = np.stack([names[i[near]], names[j[near]]], axis=1)
        return Graph.from_edges(pairs, weight=1 / distance[near], nodes=names)

    def split(self, seed):
        from sklearn.model_selection import train_test_split

        state = np.random.RandomState(seed)
        train, test = [], []
        for X, y in zip(self.X, self.y, strict=True):
            a, b = train_test_split(np.arange(len(y)), test_size=0.33, random_state=state)
            train.append((X[a], y[a]))
            test.append((X[b], y[b]))
        return LocalData.from_list(train, nodes=self.stations), test


def validation_error(w, test):
    """NFL, Eq. (44): mean over stations of the mean squared error on held-out rows."""
    return float(np.mean([np.mean((X @ w[i] - y) ** 2) for i, (X, y) in enumerate(test)]))
