"""What a run records about captured nodes: a bound for classes, or why there is none."""

import numpy as np
import pytest

from nefele import GTVRegressor, LocalData, Problem
from nefele.graphs import chain
from nefele.losses import Logistic
from nefele.robust import worst_nodes
from nefele.runs import robustness as module
from nefele.runs.proofs import FinalFit, examine
from nefele.runs.robustness import robustness


def classes(lam):
    """A logistic problem whose ridge spares the intercept: no loss is strongly convex."""
    rng = np.random.default_rng(0)
    first = np.arange(5) * 30  # of the rows of each node
    X = np.column_stack([rng.normal(size=120), np.ones(120)])
    y = np.where(X[:, 0] + rng.normal(size=120) > 0, 1.0, -1.0)
    data = LocalData(X, y, first, np.arange(4), shrink=np.array([1.0, 0.0]))
    return Problem(chain(4), data, Logistic(l2=0.01), "l2", lam=lam)


def test_classes_have_a_bound_by_the_curvature_of_their_losses():
    problem = classes(0.01)
    found, worst = robustness(problem, "units")["captured"], worst_nodes(problem, 1)
    assert found["number"] == pytest.approx(worst.bound.total) and found["number"] > 0
    assert found["node"] == str(worst.nodes[0]) and found["covered"] == found["honest"] == 3
    assert found["which"] == "the one that pulls hardest" and not found["worst"]


def test_a_pull_that_losses_cannot_resist_has_no_bound():
    found = robustness(classes(10.0), "units")["captured"]
    assert found["number"] is None
    assert "pushes back with a bounded force" in found["why"] and "node" in found["why"]
    assert "None" not in found["why"]


def test_too_large_a_fit_is_not_solved_again(monkeypatch):
    monkeypatch.setattr(module, "_MOST_SOLVED", 7)
    found = robustness(classes(0.01), "units")["captured"]
    assert found["number"] is None and "too large" in found["why"]


@pytest.mark.parametrize(("spread", "useless"), [(1.0, False), (1e-4, True)])
def test_the_bound_of_one_label_says_when_it_is_of_no_use(spread, useless):
    # Two features that are nearly one leave the models nearly free: one label moves them far.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) @ [[1.0, 1.0], [0.0, spread]]
    y = 5.0 + rng.normal(size=40)
    model = GTVRegressor(chain(2), penalty="squared_l2", alpha=1e-3, tol=1e-10)
    model.fit(X, y, node_ids=np.repeat([0, 1], 20))
    problem, w, u = model.solution()
    found = dict(examine(FinalFit.of(model, problem, (w, u), None, False)).theory)
    assert found["one label"].startswith("all models together move by at most ")
    assert ("of no use here" in found["one label"]) == useless
