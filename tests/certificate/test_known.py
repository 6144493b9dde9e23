"""Bounds from the duals that a solver knows, without any correction."""

import numpy as np

from nefele.certificate import certify_known
from nefele.losses import Hinge, Logistic, Multinomial
from nefele.penalties import L2Norm, LinfNorm
from nefele.solvers import Newton
from nefele.solvers.interior_point.terms import Terms
from tests.solvers.problems import quiet, wooded


def test_the_last_steps_duals_prove_the_gap():
    for loss, penalty in (
        (Hinge(l2=0.01), LinfNorm()),
        (Logistic(), L2Norm()),
        (Multinomial(n_classes=3), L2Norm()),
    ):
        problem, solver = wooded(loss, penalty, lam=1e-3), Newton()
        zero = np.zeros((problem.graph.n_nodes, problem.d))
        state = solver.init(problem, zero, np.zeros((problem.graph.n_edges, problem.d)))
        assert isinstance(state.terms, Terms) and state.terms.inner
        with np.errstate(all="ignore"):
            for _ in range(14):
                solver.step(problem, state)
        found = certify_known(problem, state.w, state.u, state.terms.duals())
        least = quiet(problem, tol=1e-9)
        if least.held is None:
            assert found.lower <= least.objective + 1e-9 * least.objective
        assert found.gap_abs <= 1e-4 * found.objective


def test_duals_that_do_not_fit_the_flow_prove_nothing_wrong():
    problem = wooded(Logistic(l2=0.1), L2Norm(), lam=0.1)
    rng = np.random.default_rng(0)
    best = quiet(problem, tol=1e-9)
    rows = -problem.data.y * rng.random(problem.data.n_rows)
    found = certify_known(problem, best.w, best.u, [(rows, None)])
    assert found.lower <= best.objective
