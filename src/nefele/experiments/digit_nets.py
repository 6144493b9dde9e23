"""The networks of NFL, Sec. VI-D, Eq. (41): alone, coupled by Algorithm 1, and one for all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nefele.experiments.base import Cell
from nefele.graph import Graph

HIDDEN, ROUNDS = 32, 50


def networks(own: Any, held: Any, graph: Graph, lam: float, seed: int) -> Cell:
    """Shares of right labels of all networks, by their names.

    `own` and `held` are lists of (images, digits). lam is the paper's; a hundred times as much is
    shown, too.
    """
    X, y = np.vstack([X for X, _ in own]), np.concatenate([y for _, y in own])
    ids = np.repeat(np.arange(len(own)), [len(y) for _, y in own])
    found: Cell = {}
    with _one_thread():
        for name, alpha in (
            ("networks, alone", 0.0),
            ("networks, Algorithm 1", lam),
            (f"networks, Algorithm 1, lam {100 * lam:g}", 100 * lam),
        ):
            found[name] = _coupled(X, y % 2, ids, graph, alpha, seed, (own, held))
        for name, hidden in (("one network for all", HIDDEN), ("one network, 1 hidden unit", 1)):
            found[name] = _one(X, y, hidden, seed, (own, held))
    return found


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for torch, which keeps its own count: sums in the same order on every machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _module(n_features: int, n_outputs: int, hidden: int = HIDDEN) -> Any:
    """Two layers without constants, as printed."""
    from torch import nn

    return nn.Sequential(
        nn.Linear(n_features, hidden, bias=False),
        nn.ReLU(),
        nn.Linear(hidden, n_outputs, bias=False),
    )


def _coupled(X: Any, y: Any, ids: Any, graph: Graph, alpha: float, seed: int, parts: Any) -> Cell:
    from nefele.networks import GTVNetClassifier

    model = GTVNetClassifier(
        _module, graph=graph, alpha=alpha, rounds=ROUNDS, prox_steps=10, random_state=seed
    ).fit(X, y, node_ids=ids)

    def share(rows: Any) -> float:
        each = [
            np.mean(model.predict(X, node_ids=[i] * len(y)) == y % 2)
            for i, (X, y) in enumerate(rows)
        ]
        return float(np.mean(each))

    return {"train": share(parts[0]), "test": share(parts[1])}


def _one(X: Any, y: Any, hidden: int, seed: int, parts: Any) -> Cell:
    from nefele.agnostic.torch_model import TorchClassifier

    def module(n_features: int, n_outputs: int) -> Any:
        return _module(n_features, n_outputs, hidden)

    model = TorchClassifier(module, epochs=100, batch_size=200, random_state=seed).fit(X, y)
    train, test = (
        float(np.mean([np.mean(model.predict(X) == y) for X, y in rows])) for rows in parts
    )
    return {"train": train, "test": test}
