"""Every exported loss, penalty and solver, once at least. Add one line for a new one."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nefele import Graph, LocalData
from nefele.losses import (
    Absolute,
    BoundLoss,
    Box,
    Constrained,
    GraphicalLasso,
    Hinge,
    HuberLoss,
    Logistic,
    Multinomial,
    PointwiseLoss,
    Poisson,
    Quantile,
    Simplex,
    Squared,
    SquaredHinge,
    Zero,
    as_bound_loss,
)
from nefele.penalties import (
    ByEdge,
    HuberPenalty,
    L1Norm,
    L2Norm,
    LinfNorm,
    Lp,
    Partial,
    Penalty,
    Quadratic,
    SquaredL2,
)
from nefele.solvers import (
    ADMM,
    FedRelax,
    Local,
    Merging,
    Newton,
    PrimalDual,
    PrimalDualGradient,
    QuadraticCG,
    StochasticPrimalDual,
)
from tests.problems import random_data

# More rows than features, none, fewer, one, and again more: the empty node is not at an end.
COUNTS = (8, 0, 2, 1, 6)
EMPTY = 1
N_NODES = len(COUNTS)


class UserProx:
    """||w_i - a_i||_1 with its closed prox: no gradient."""

    d = 2

    def __init__(self):
        self.a = np.random.default_rng(5).standard_normal((N_NODES, self.d))

    def value(self, w):
        return np.abs(w - self.a).sum(axis=1)

    def prox(self, v, step):
        shift = v - self.a
        return self.a + np.sign(shift) * np.maximum(np.abs(shift) - step[:, None], 0.0)


class UserGrad:
    """sum_j log cosh(w_ij - a_ij): a gradient and nothing else."""

    d = 2

    def __init__(self):
        self.a = np.random.default_rng(6).standard_normal((N_NODES, self.d))

    def value(self, w):
        return np.logaddexp(w - self.a, self.a - w).sum(axis=1)

    def grad(self, w):
        return np.tanh(w - self.a)


@dataclass(frozen=True)
class LogCosh(PointwiseLoss):
    """A user's own generalised linear loss, f(z, y) = log cosh(z - y)."""

    def f(self, z, y):
        return np.logaddexp(z - y, y - z) - np.log(2)

    def slope(self, z, y):
        return np.tanh(z - y)

    def bend(self, z, y):
        return 1 / np.cosh(z - y) ** 2

    def conjugate(self, a, y):
        inside = np.abs(a) <= 1
        a = np.clip(a, -1, 1)
        plus, minus = (1 + a) / 2, (1 - a) / 2
        entropy = sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0) for p in (plus, minus))
        return np.where(inside, a * y + entropy + np.log(2), np.inf)

    def domain_ratio(self, a, y):
        return np.abs(a)


@dataclass(frozen=True)
class LossCase:
    """What a user passes as `loss`, the labels it takes, and how columns are regularised."""

    name: str
    loss: Any
    labels: str = "real"
    shrink: tuple[float, float] | None = None

    def data(self, seed: int = 0) -> LocalData:
        return random_data(np.random.default_rng(seed), COUNTS, 2, self.labels)

    def bind(self, data: LocalData | None = None) -> BoundLoss:
        data = self.data() if data is None else data
        if self.shrink is not None:
            weights = {"sample_weight": data.sample_weight, "node_weight": data.node_weight}
            data = LocalData(data.X, data.y, data.ptr, data.ids, **weights, shrink=self.shrink)
        graph = Graph.from_edges([(i, i + 1) for i in range(data.n_nodes - 1)])
        return as_bound_loss(self.loss, data, graph)

    @property
    def matrix(self) -> bool:
        """Parameters are a symmetric matrix, and infinite costs are near everywhere."""
        return isinstance(self.loss, GraphicalLasso)

    @property
    def own(self) -> bool:
        """A user's own object, which knows no data."""
        return isinstance(self.loss, UserProx | UserGrad)


LOSSES = [
    LossCase("squared", Squared()),
    LossCase("ridge", Squared(l2=0.3)),
    LossCase("lasso", Squared(l1=0.2)),
    LossCase("elastic net", Squared(l2=0.1, l1=0.2)),
    LossCase("logistic", Logistic(), "sign"),
    LossCase("logistic l2", Logistic(l2=0.1), "sign"),
    LossCase("logistic l1", Logistic(l1=0.05), "sign"),
    LossCase("poisson", Poisson(), "count"),
    LossCase("poisson l2 l1", Poisson(l2=0.1, l1=0.1), "count"),
    LossCase("huber", HuberLoss(delta=0.5)),
    LossCase("huber l2", HuberLoss(delta=0.5, l2=0.1)),
    LossCase("huber l1", HuberLoss(delta=0.5, l1=0.1)),
    LossCase("absolute", Absolute()),
    LossCase("absolute l2", Absolute(l2=0.1)),
    LossCase("quantile", Quantile(q=0.8)),
    LossCase("quantile l2", Quantile(q=0.3, l2=0.1)),
    LossCase("squared hinge", SquaredHinge(), "sign"),
    LossCase("squared hinge l2 l1", SquaredHinge(l2=0.1, l1=0.05), "sign"),
    LossCase("ridge by column", Squared(l2=(0.3, 0.0))),
    LossCase("elastic net by column", Squared(l2=(0.0, 0.2), l1=(0.3, 0.1))),
    LossCase("logistic by column", Logistic(l2=(0.2, 0.1), l1=(0.0, 0.1)), "sign"),
    LossCase("multinomial by column", Multinomial(n_classes=3, l2=(0.1, 0.3)), "class"),
    LossCase("hinge", Hinge(), "sign"),
    LossCase("hinge l2", Hinge(l2=0.1), "sign"),
    LossCase("multinomial", Multinomial(n_classes=3), "class"),
    LossCase("multinomial l2", Multinomial(n_classes=3, l2=0.1), "class"),
    LossCase("multinomial l1", Multinomial(n_classes=3, l1=0.05), "class"),
    LossCase("nonnegative", Constrained(Squared(), "nonnegative")),
    LossCase("box", Constrained(Squared(l2=0.1, l1=0.2), Box((-0.4, 0.1), (0.3, np.inf)))),
    LossCase("box without zero", Constrained(Poisson(), Box(0.1, 0.6)), "count"),
    LossCase("simplex", Constrained(Squared(), Simplex())),
    LossCase("logistic simplex", Constrained(Logistic(l2=0.1), Simplex(total=2.0)), "sign"),
    LossCase("multinomial box", Constrained(Multinomial(n_classes=3), Box(-0.5, 0.5)), "class"),
    LossCase("precision", GraphicalLasso()),
    LossCase("precision l1", GraphicalLasso(l1=0.1, centre=False)),
    LossCase("zero", Zero()),
    LossCase("log cosh", LogCosh()),
    LossCase("log cosh l2", LogCosh(l2=0.1)),
    LossCase(
        "mixed",
        {0: Squared(), 4: Logistic(l2=0.1), 2: "squared", 3: HuberLoss(0.5)},
        "sign",
    ),
    LossCase("mixed without gradient", {0: Absolute(), 4: Squared(l1=0.2), 2: "zero", 3: Zero()}),
    LossCase("user prox", UserProx()),
    LossCase("user grad", UserGrad()),
]


def _regularised(loss: Any) -> bool:
    parts = loss.values() if isinstance(loss, dict) else [loss]
    return any(np.any(getattr(part, name, 0.0)) for part in parts for name in ("l2", "l1"))


# These once more, with a column that is spared, and with columns that are seen unequally.
REGULARISED = [case for case in LOSSES if _regularised(case.loss)]
LOSSES += [replace(c, name=f"{c.name}, spared", shrink=(1.5, 0.0)) for c in REGULARISED]
LOSSES += [replace(c, name=f"{c.name}, uneven", shrink=(0.3, 2.0)) for c in REGULARISED]


class Weighted(Penalty):
    """A user's norm, by its prox: sum_j c_j |v_j|."""

    is_norm = True
    c = np.array([1.0, 2.0, 0.5])

    def value(self, v):
        return np.abs(v) @ self.c[: v.shape[1]]

    def dual_norm(self, u):
        return np.abs(u / self.c[: u.shape[1]]).max(axis=1)

    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - step[:, None] * self.c[: v.shape[1]], 0.0)


class Tripled(Penalty):
    """A user's smooth penalty, by its dual update: 3/2 ||v||^2."""

    def value(self, v):
        return 1.5 * (v**2).sum(axis=1)

    def conjugate(self, u, scale):
        return (u**2).sum(axis=1) / (6 * scale)

    def prox_conjugate(self, v, scale, step):
        return v / (1 + step / (3 * scale))[:, None]


def quadratic(d: int, rank: int) -> Quadratic:
    """A quadratic penalty of this size and rank."""
    A = np.random.default_rng(3).standard_normal((rank, d))
    return Quadratic(A.T @ A)


class EveryOther(ByEdge):
    """Penalties by edge for any number of edges, as these tests want: in turn."""

    edges = None

    def at(self, edges):
        return self

    def _gather(self, ask, v, shape=None):
        by_turns = ByEdge(self.penalties, np.arange(len(v)) % len(self.penalties))
        return by_turns._gather(ask, v, shape)


def mixed_edges(d: int) -> ByEdge:
    """A norm, a smooth penalty, one of some entries and a singular one."""
    kinds = [L1Norm(), SquaredL2(), Partial(L2Norm(), range(d - 1)), quadratic(d, d - 1)]
    return EveryOther(kinds, [0])


# By dimension: a matrix belongs to one.
PENALTIES: dict[str, Callable[[int], Penalty]] = {
    "l1": lambda d: L1Norm(),
    "l2": lambda d: L2Norm(),
    "linf": lambda d: LinfNorm(),
    "lp 1": lambda d: Lp(1),
    "lp 1.5": lambda d: Lp(1.5),
    "lp 2": lambda d: Lp(2),
    "lp 3": lambda d: Lp(3),
    "lp inf": lambda d: Lp(math.inf),
    "squared l2": lambda d: SquaredL2(),
    "quadratic": lambda d: quadratic(d, d),
    "singular quadratic": lambda d: quadratic(d, d - 1),
    "huber": lambda d: HuberPenalty(delta=0.5),
    "partial l2": lambda d: Partial(L2Norm(), range(d - 1)),
    "partial l1": lambda d: Partial(L1Norm(), [d - 1]),
    "partial huber": lambda d: Partial(HuberPenalty(delta=0.5), range(1, d)),
    "by edge": mixed_edges,
    "smooth by edge": lambda d: EveryOther([SquaredL2(), HuberPenalty(delta=0.5)], [0]),
    "user norm": lambda d: Weighted(),
    "user smooth": lambda d: Tripled(),
}

SOLVERS = {
    "primal dual": PrimalDual(),
    "algorithm 1": PrimalDual.as_printed(),
    "fixed gamma": PrimalDual(gamma=1.0, relax=1.5, polish=False),
    "admm": ADMM(),
    "primal dual gradient": PrimalDualGradient(),
    "stochastic primal dual": StochasticPrimalDual(),
    "fedrelax": FedRelax(),
    "fedrelax by colours": FedRelax("gauss-seidel"),
    "quadratic cg": QuadraticCG(),
    "local": Local(),
    "merging": Merging(),
    "newton": Newton(),
}
