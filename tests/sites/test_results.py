"""The model that a site keeps: its own nodes, in the units of its rows."""

import numpy as np
import pytest

from nefele import load
from nefele.estimators.design import Rows
from nefele.sites.example import coast, some_rows
from nefele.sites.learning import Learner, Scales
from nefele.sites.results import site_model
from nefele.sites.together import learn_together
from tests.sites.learnt import rows_of


def without(rows, *nodes):
    keep = np.flatnonzero(~np.isin(rows.node_ids, nodes))
    return rows.take(keep)


@pytest.mark.parametrize(("member", "empty"), [("kemi", ["kemi"]), ("oulu", ["oulu-1"])])
def test_nodes_without_rows_keep_the_model_that_their_neighbours_gave_them(tmp_path, member, empty):
    federation = coast(alpha=2000.0, tol=1e-8)  # so strong that all models are one
    rows = some_rows(federation)
    rows[member] = without(rows[member], *empty)
    found = learn_together(federation, rows)
    learners = {name: Learner(federation, name, rows[name]) for name in rows}
    models = {name: site_model(one, found[name]) for name, one in learners.items()}
    models[member].save(tmp_path / "model.nefele")
    kept, other = load(tmp_path / "model.nefele"), models["inari"]
    place = kept.nodes_.tolist().index(empty[0])
    assert np.allclose(kept.coef_[place], other.coef_[0], rtol=1e-3, atol=1e-6)
    assert np.allclose(kept.intercept_[place], other.intercept_[0], rtol=1e-3)


def test_a_model_answers_in_the_units_of_the_rows():
    federation = coast(alpha=0.01, tol=1e-8)
    rows = some_rows(federation, per_node=40)
    found = learn_together(federation, rows)
    model = site_model(Learner(federation, "kemi", rows["kemi"]), found["kemi"])
    mine: Rows = rows["kemi"]
    X = np.column_stack([mine.X, np.ones(len(mine.y))])
    best = np.linalg.lstsq(X, mine.y, rcond=None)[0]
    assert np.allclose(np.append(model.coef_[0], model.intercept_[0]), best, rtol=0.05, atol=0.5)


def test_a_ridge_spares_intercepts_but_where_rounds_do_not_wait():
    """Old messages need losses that are strongly convex in every direction."""
    options = {"method": "fedrelax", "penalty": "squared_l2", "l2": 0.1, "alpha": 0.1}
    for wait, spared in ((True, True), (False, False)):
        federation = coast(wait=wait, **options)
        name = federation.members[0].name
        rows = rows_of(federation, name)
        scales = Scales(np.zeros(rows.X.shape[1]), np.ones(rows.X.shape[1]), 0.0, 12.0)
        problem = Learner(federation, name, rows).problem(rows, scales, 0.1)
        assert (problem.data.shrink is not None) == spared
        own = problem.loss.ridge[problem.loss.labelled]
        assert (own[:, -1] == (0.0 if spared else 0.1)).all() and (own[:, :-1] == 0.1).all()
