"""Plots of graphs, results, paths and choices, and what notebooks show of objects."""

import numpy as np
import pytest

import nefele
from nefele import Graph, LocalData, Problem

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    cluster = np.repeat([0, 1], 6)
    truth = np.array([[2.0, 2.0], [-2.0, 2.0]])[cluster]
    rows = [(X := rng.normal(size=(5, 2)), X @ w + 0.1 * rng.normal(size=5)) for w in truth]
    graph = nefele.graphs.sbm([6, 6], p_in=1.0, p_out=0.05, seed=0)
    return Problem(graph, LocalData.from_list(rows), lam=0.1)


def test_a_graph_is_drawn_where_its_nodes_are_said_to_be():
    graph = Graph.from_edges([("a", "b"), ("b", "c")])
    where = {"a": (0.0, 0.0), "b": (1.0, 0.0), "c": (1.0, 1.0)}
    ax = graph.plot(where, names=True)
    assert {text.get_text() for text in ax.texts} == {"a", "b", "c"}
    assert len(ax.collections[0].get_segments()) == 2
    np.testing.assert_array_equal(ax.collections[0].get_segments()[1], [[1, 0], [1, 1]])
    assert not graph.plot(where, names=False).texts


def test_groups_of_a_graph_have_colours_and_single_nodes_none():
    ax = nefele.graphs.chain(5).plot(groups=[0, 0, 1, 2, 2])
    white = [c for c in ax.collections[1:] if c.get_facecolor()[0].tolist() == [1, 1, 1, 1]]
    assert len(white) == 1 and len(white[0].get_offsets()) == 1


def test_a_result_shows_its_clusters_and_its_parameters(problem):
    result = nefele.solve(problem)
    network, models = result.plot()
    assert network.get_title() == f"{result.clusters().max() + 1} clusters"
    assert models.get_title().startswith("optimal, gap")
    assert (models.get_xlabel(), models.get_ylabel()) == ("x0", "x1")
    drawn = np.vstack([found.get_offsets() for found in models.collections])
    np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(result.w, axis=0))


def test_a_single_parameter_is_drawn_over_the_nodes():
    data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    result = nefele.solve(Problem(Graph.from_edges([(0, 1)]), data, lam=1.0))
    drawn = np.vstack([found.get_offsets() for found in result.plot()[1].collections])
    np.testing.assert_allclose(drawn[:, 1], [0.5, 3.5], atol=1e-5)


def test_a_path_is_drawn_with_and_without_parameters(problem):
    kept = nefele.path(problem, n_lams=5)
    counts, models = kept.plot()
    np.testing.assert_array_equal(counts.lines[0].get_ydata(), kept.n_clusters)
    assert len(models.lines) == 2 * problem.graph.n_nodes
    bare = nefele.path(problem, n_lams=5, keep="clusters")
    assert "not kept" in bare.plot()[1].texts[0].get_text()


def test_pictures_go_into_given_axes(problem):
    figure, pair = plt.subplots(1, 2)
    assert nefele.solve(problem).plot(axes=pair) is pair
    assert problem.graph.plot(ax=pair[0]) is pair[0]
    assert len(figure.axes) == 2


@pytest.mark.parametrize("penalty", ["l2", "auto"])
def test_a_choice_is_drawn_with_what_it_was_chosen_from(penalty):
    states = nefele.datasets.load_states()
    model = nefele.GTVRegressorCV(states.graph, penalty=penalty, n_alphas=4, cv=3)
    ax = model.fit(states.X[:, :2], states.y, node_ids=states.node_ids).plot()
    if penalty == "auto":
        assert len(ax.patches) == len(model.candidates_)
        widths = [bar.get_width() for bar in ax.patches]
        np.testing.assert_allclose(widths, [one["error"] for one in model.candidates_])
    else:
        np.testing.assert_allclose(ax.lines[0].get_xdata(), model.alphas_)
        np.testing.assert_allclose(ax.lines[0].get_ydata(), model.cv_results_["mean_test_score"])


def test_a_choice_that_was_not_fitted_is_not_drawn():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        nefele.GTVRegressorCV().plot()


def test_notebooks_show_short_tables(problem):
    result = nefele.solve(problem)
    for thing, words in (
        (problem.graph, "12 nodes"),
        (problem.data, "60 rows"),
        (problem, "2 parameters each"),
        (result, "optimal"),
        (nefele.path(problem, n_lams=3), "3 lams"),
        (nefele.datasets.load_states(), "816 of 48 states"),
        (nefele.datasets.load_incomes(), "3,888 of 48 states"),
    ):
        shown = thing._repr_html_()
        assert words in shown and len(shown) < 2000 and shown.count("<div") == shown.count("</div>")


def test_names_of_users_cannot_add_markup():
    data = LocalData([[1.0]], [2.0], [0, 1], feature_names=["<script>"])
    assert "<script>" not in data._repr_html_() and "&lt;script&gt;" in data._repr_html_()
