"""Losses whose domain lacks zero, and a penalty per edge, by parts as in one process."""

import numpy as np
import pytest

from nefele import LocalData, Problem, solve
from nefele.graphs import grid
from nefele.losses import Constrained, GraphicalLasso, Squared
from nefele.penalties import ByEdge, L1Norm, SquaredL2


@pytest.mark.parametrize(
    "loss", [Constrained(Squared(), "simplex"), GraphicalLasso(l1=0.1), Squared()], ids=repr
)
def test_parts_agree_with_one_process(loss):
    rng = np.random.default_rng(0)
    graph = grid(3, 3)
    rows = [(X := rng.normal(size=(6, 2)), X @ [0.2, 0.8]) for _ in range(9)]
    penalty = ByEdge([L1Norm(), SquaredL2()], np.arange(graph.n_edges) % 2)
    problem = Problem(graph, LocalData.from_list(rows), loss=loss, penalty=penalty, lam=0.1)
    whole = solve(problem, tol=1e-6)
    parts = solve(problem, engine="in_process", parts=2, tol=1e-5)
    assert whole.converged and parts.converged
    assert abs(parts.objective - whole.objective) <= parts.gap_abs + whole.gap_abs
