"""NFL, Sec. VI-E: the graph of 203 weather stations, Eqs. (42)-(43)."""

import numpy as np
import pytest

from nefele import GraphSelectorCV, GTVRegressorCV, WithinNodeKFold
from nefele.graph_learning import WassersteinGraph
from tests.graph_learning.data import as_rows
from tests.paper.instances import Weather, fmi_path


@pytest.fixture(scope="module")
def weather():
    return Weather(fmi_path())


@pytest.fixture(scope="module")
def rows(weather):
    ids = np.repeat(weather.stations, [len(y) for y in weather.y])
    return as_rows(np.vstack(weather.X)[:, :2], np.concatenate(weather.y), ids)


@pytest.mark.parametrize(
    ("eta", "edges"), [(1.0, 364), (2.0, 1124), (5.0, 3254), (10.0, 5873), (20.0, 9535)]
)
def test_edge_counts_of_the_paper(rows, eta, edges):
    assert WassersteinGraph(eta=eta).fit_graph(rows).n_edges == edges


def test_same_edges_and_weights_as_by_hand(weather, rows):
    want, got = weather.graph(eta=5.0), WassersteinGraph(eta=5.0).fit_graph(rows)
    assert set(got.ids) == set(want.ids)
    order = want.positions(got.ids)
    dense = want.adjacency.toarray()[np.ix_(order, order)]
    np.testing.assert_allclose(got.adjacency.toarray(), dense, rtol=1e-6)


def selected(rows, cv):
    search = GTVRegressorCV(penalty="l2", alphas=[8.0, 128.0], cv=cv, tol=1e-3)
    graphs = {"wasserstein": WassersteinGraph(eta=5.0)}
    found = GraphSelectorCV(graphs, estimator=search, n_shuffles=1)
    return found.fit(rows.X, rows.targets[:, 0], node_ids=rows.node_ids)


def test_the_graph_helps_with_shuffled_folds_but_most_of_the_gain_is_shrinkage(rows):
    found = selected(rows, WithinNodeKFold(5, shuffle=True, random_state=0))
    assert found.best_name_ == "wasserstein" and found.reference_ == "one clique"
    whole = found.trials_["wasserstein"].mean - found.trials_["no edges"].mean
    share = found.cv_results_["graph_part"][2] / whole
    assert whole > 0.9 and 0.05 < share < 0.3


def test_no_graph_helps_with_days_in_a_row_held_out(rows):
    found = selected(rows, 5)
    assert found.best_name_ == "one clique" and not found.helps_
    clique = found.trials_["one clique"].mean
    assert found.trials_["no edges"].mean < clique - 2 < found.trials_["wasserstein"].mean < clique
