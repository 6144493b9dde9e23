"""Random problems of every kind that can be stated: losses, penalties and what makes them hard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nefele import Graph, LocalData, Problem
from nefele.graphs import chain, grid
from nefele.losses import Absolute, Hinge, HuberLoss, Logistic, Multinomial, Poisson, Squared
from nefele.penalties import (
    ByEdge,
    HuberPenalty,
    L1Norm,
    L2Norm,
    LinfNorm,
    Lp,
    Partial,
    Quadratic,
    SquaredL2,
)

CLASSES = 3
LOSSES = {
    "squared": Squared(),
    "ridge": Squared(l2=0.1),
    "lasso": Squared(l1=0.1),
    "logistic": Logistic(),
    "logistic l2": Logistic(l2=0.01),
    "logistic l1": Logistic(l1=0.05),
    "multinomial": Multinomial(n_classes=CLASSES),
    "multinomial l2": Multinomial(n_classes=CLASSES, l2=0.01),
    "poisson": Poisson(),
    "poisson l2": Poisson(l2=0.05),
    "huber": HuberLoss(delta=0.5),
    "huber l2": HuberLoss(delta=0.3, l2=0.05),
    "absolute": Absolute(),
    "absolute l2": Absolute(l2=0.1),
    "hinge": Hinge(),
    "hinge l2": Hinge(l2=0.05),
}
# Of these every node draws its own: some kinds have gradients, some do not.
SMOOTH = ("squared", "logistic", "poisson", "huber")
ANY = ("squared", "lasso", "logistic", "poisson l2", "huber", "absolute", "hinge")
MIXED = {"mixed smooth": SMOOTH, "mixed": ANY}
SIMPLE = ("l1", "l2", "linf", "huber", "squared l2", "quadratic")
INNER = (*SIMPLE, "singular", "lp")
# Shares as among the first thousand problems that were tried: a sixth, a quarter, a twelfth.
KINDS, SHARES = ("simple", "lp", "partial", "singular"), (0.5, 1 / 6, 0.25, 1 / 12)
BY_EDGE = "by edge"  # by name only: the other problems of all seeds stay what they are
HARD = ("", "no data", "few rows", "one class", "scales", "weights", "tiny lam", "huge lam", "all")
GRAPHS = ("chain", "tree", "grid", "random", "star")


@dataclass(frozen=True)
class Case:
    """A problem and the words that say what it is like."""

    seed: int
    graph: Graph
    data: LocalData
    loss: Any
    penalty: Any
    lam: float
    words: dict[str, str]

    def problem(self) -> Problem:
        """A fresh problem."""
        return Problem(self.graph, self.data, self.loss, self.penalty, lam=self.lam)

    def loss_of(self, node: int) -> Any:
        """The loss of a node, by position."""
        return self.loss[node] if isinstance(self.loss, dict) else self.loss


def case(seed: int, size: str = "", kind: str = "") -> Case:
    """The problem of this seed; `size` ("small", "middle") and `kind` of penalty are drawn."""
    rng = np.random.default_rng([23, seed])
    drawn = str(rng.choice(["small", "middle"], p=[0.8, 0.2]))
    size = size or drawn
    shape, hard = str(rng.choice(GRAPHS)), str(rng.choice(HARD))
    usual = str(rng.choice(KINDS, p=np.array(SHARES) / np.sum(SHARES)))
    kind = kind or usual
    name = str(rng.choice([*LOSSES, *MIXED]))
    n = int(rng.integers(3, 31) if size == "small" else rng.integers(60, 301))
    d = int(rng.integers(1 if kind == "simple" else 2, 5))
    graph = _graph(shape, n, rng, wide=hard in ("weights", "all"))
    n = graph.n_nodes
    loss: Any = LOSSES.get(name)
    if name in MIXED:
        loss = {i: LOSSES[str(rng.choice(MIXED[name]))] for i in range(n)}
    data = _data(rng, n, d, loss, hard)
    length = d * CLASSES if isinstance(loss, Multinomial) else d
    penalty, inner = _penalty(rng, kind, length, graph.n_edges)
    lam = _strength(rng, graph, data, loss, penalty, hard)
    words = {"loss": name, "penalty": kind if kind != "simple" else inner, "inner": inner}
    words |= {"hard": hard, "graph": shape, "size": size}
    return Case(seed, graph, data, loss, penalty, lam, words)


def _graph(shape: str, n: int, rng: np.random.Generator, *, wide: bool) -> Graph:
    if shape == "chain":
        base = chain(n)
    elif shape == "grid":
        side = max(2, int(np.sqrt(n)))
        base = grid(side, side)
    elif shape in ("tree", "star"):
        parents = [0 if shape == "star" else int(rng.integers(i)) for i in range(1, n)]
        base = Graph.from_edges([(p, i) for i, p in enumerate(parents, 1)], nodes=np.arange(n))
    else:
        chosen = rng.random((n, n)) < min(1.0, 3.0 / n)
        i, j = np.nonzero(np.triu(chosen, 1))
        if not len(i):
            i, j = np.array([0]), np.array([1])
        base = Graph.from_edges(np.column_stack([i, j]), nodes=np.arange(n))
    low, high = (-3, 3) if wide else (-0.3, 0.3)
    weight = 10 ** rng.uniform(low, high, base.n_edges)
    edges = np.column_stack([base.head, base.tail])
    return Graph.from_edges(edges, weight, nodes=np.arange(base.n_nodes))


def _data(rng: np.random.Generator, n: int, d: int, loss: Any, hard: str) -> LocalData:
    """Rows of all nodes around two true parameter vectors; the last column may be constant."""
    true = rng.standard_normal((2, d))
    scale = np.ones(d)
    if hard in ("scales", "all"):
        scale = 10.0 ** rng.uniform(-3, 3, d) if rng.random() < 0.5 else 10.0 ** rng.integers(-6, 7)
    constant, parts = rng.random() < 0.5, []
    for i in range(n):
        few = hard in ("few rows", "all") or rng.random() < 0.1
        m = int(rng.integers(1, max(d, 2))) if few else int(rng.integers(d + 1, 3 * d + 4))
        if rng.random() < (0.5 if hard in ("no data", "all") else 0.05) and i:
            parts.append(None)
            continue
        X = rng.standard_normal((m, d))
        if constant:
            X[:, -1] = 1.0
        z = X @ (true[i % 2] + 0.3 * rng.standard_normal(d))
        one = hard in ("one class", "all") and rng.random() < 0.5
        kind = loss[i] if isinstance(loss, dict) else loss
        parts.append((X * scale, _labels(rng, kind, z, one, scale)))
    return LocalData.from_list(parts)


def _labels(rng: np.random.Generator, loss: Any, z: Any, one: bool, scale: Any) -> Any:
    noisy = z + rng.standard_normal(len(z))
    if isinstance(loss, Logistic | Hinge):
        return np.ones(len(z)) if one else np.where(noisy > 0, 1.0, -1.0)
    if isinstance(loss, Poisson):
        return np.zeros(len(z)) if one else rng.poisson(np.exp(np.clip(z, -3, 2))).astype(float)
    if isinstance(loss, Multinomial):
        found = np.clip(np.floor(noisy + CLASSES / 2), 0, CLASSES - 1)
        return np.minimum(found, 1) if one else found
    return noisy if np.ndim(scale) else noisy * float(scale)


def _penalty(rng: np.random.Generator, kind: str, d: int, n_edges: int) -> tuple[Any, str]:
    if kind == BY_EDGE:
        kinds = rng.choice(KINDS, int(rng.integers(2, 5))).tolist()
        found = [_penalty(rng, k, d, n_edges)[0] for k in kinds]
        share = rng.dirichlet(np.ones(len(found)))  # perhaps all edges but one are alike
        return ByEdge(found, rng.choice(len(found), n_edges, p=share)), f"{len(found)} kinds"
    if kind == "simple":
        inner = str(rng.choice(SIMPLE))
        return _named(rng, inner, d), inner
    if kind == "partial":
        inner = str(rng.choice(INNER))
        size = int(rng.integers(1, d))
        on = rng.choice(d, size, replace=False).tolist()
        return Partial(_named(rng, inner, size), on), inner
    return _named(rng, kind, d), kind


def _named(rng: np.random.Generator, name: str, d: int) -> Any:
    plain = {"l1": L1Norm, "l2": L2Norm, "linf": LinfNorm, "squared l2": SquaredL2}
    if name in plain:
        return plain[name]()
    if name == "huber":
        return HuberPenalty(delta=float(10 ** rng.uniform(-2, 0)))
    if name == "lp":
        return Lp(float(rng.choice([1.2, 1.5, 3.0, 4.0, rng.uniform(1.05, 8.0)])))
    A = rng.standard_normal((d if name == "quadratic" else max(1, d - 1), d))
    return Quadratic(A.T @ A)


def _strength(
    rng: np.random.Generator, graph: Graph, data: LocalData, loss: Any, penalty: Any, hard: str
) -> float:
    """Lam in units of what the losses pull at zero: between nearly nothing and nearly equal."""
    bound = Problem(graph, data, loss, penalty, lam=1.0).loss
    pull = np.linalg.norm(bound.grad(np.zeros((graph.n_nodes, bound.d))), axis=1)
    power = {"tiny lam": -7.0, "huge lam": 5.0}.get(hard, float(rng.uniform(-2, 1)))
    return float(10**power * (np.median(pull[pull > 0]) if (pull > 0).any() else 1.0))
