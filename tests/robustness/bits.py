"""Prints a hash of every result of a set of solves: `python -m tests.robustness.bits 1 2 5`."""

import hashlib
import json
import sys
import warnings

import numpy as np

from nefele import Graph, LocalData, Problem, solve
from nefele._kernels import threads
from nefele.graphs import chain, grid, sbm
from nefele.losses import Absolute, Hinge, HuberLoss, Logistic, Multinomial, Poisson, Squared
from nefele.penalties import (
    HuberPenalty,
    L1Norm,
    L2Norm,
    LinfNorm,
    Lp,
    Partial,
    Quadratic,
    SquaredL2,
)
from nefele.solvers.primal_dual import fused
from tests.problems import kind_of, labels

LOSSES = [
    Squared(l1=0.05),
    Logistic(l2=0.01),
    Poisson(l2=0.01),
    HuberLoss(delta=0.5),
    Absolute(),
    Hinge(l2=0.01),
    Multinomial(n_classes=3, l2=0.01),
]


def penalties(d):
    """Every penalty, for d parameters."""
    Q = np.diag(np.arange(1.0, d + 1)) + 0.1
    plain = [L2Norm(), L1Norm(), LinfNorm(), SquaredL2(), HuberPenalty(0.3), Lp(3.0), Quadratic(Q)]
    return [*plain, Partial(L2Norm(), range(d - 1))] if d > 1 else plain


def problem(graph: Graph, d, penalty, loss=None):
    """Two kinds of nodes, two in five without rows."""
    rng = np.random.default_rng(d)
    n, loss = graph.n_nodes, Squared() if loss is None else loss
    counts = np.where(rng.random(n) < 0.6, 5, 0)
    X = rng.standard_normal((counts.sum(), d))
    true = rng.standard_normal((2, d))[np.repeat(np.arange(n) % 2, counts)]
    y = labels(kind_of(loss), (X * true).sum(axis=1) / np.sqrt(d), rng)
    data = LocalData(X, y, np.concatenate([[0], np.cumsum(counts)]))
    return Problem(graph, data, loss=loss, penalty=penalty, lam=0.05)


def results(dims):
    """Name of each solve, and its result."""
    wide, small, line = grid(50, 30), sbm([15, 15], 0.3, 0.05, seed=1), chain(40)
    for d in dims:
        for penalty in penalties(d):
            name = f"{d} {type(penalty).__name__}"
            for way in ("one", "three"):
                threads.usable = {"one": lambda: 1, "three": lambda: 3}[way]
                first = problem(wide, d, penalty)
                yield f"{name} {way}", solve(first, "primal_dual", tol=None, max_iter=40)
            yield f"{name} graph", solve(problem(small, d, penalty), max_iter=60)
            yield f"{name} line", solve(problem(line, d, penalty), max_iter=60)
        for loss in LOSSES:
            name = f"{d} {type(loss).__name__}"
            yield name, solve(problem(small, d, L2Norm(), loss), max_iter=60)


def main():
    """The hashes as JSON."""
    warnings.simplefilter("ignore")
    fused._LEAST_PARALLEL = 0
    fused.Turns.run = lambda self, serial, parallel: parallel()
    found = {}
    for name, result in results([int(d) for d in sys.argv[1:]]):
        bits = result.w.tobytes() + result.u.tobytes() + np.float64(result.gap_abs).tobytes()
        found[name] = hashlib.sha256(bits).hexdigest()[:16]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
