"""Pictures of graphs and of their comparison, and where nodes are placed."""

import sys
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from nefele import Graph, GraphSelectorCV, GTVRegressorCV, LocalData, Problem, graphs, solve
from nefele._draw.drawing import BLUE, ORANGE, place
from nefele.estimators import MomentsKNN
from nefele.graph_learning import LossGraph, graph_diagnostics
from nefele.graph_learning.drawing import draw_comparison
from tests.graph_learning.data import planted

mpl.use("agg")


@pytest.fixture
def ax():
    """Axes of a figure that pyplot does not know; drawn at the end, so that errors show."""
    figure = Figure(layout="constrained")
    yield figure.add_subplot()
    figure.draw_without_rendering()


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


SEARCH = GTVRegressorCV(penalty="l2", alphas=[0.0, 0.3, 3.0], cv=4, tol=1e-3)


@pytest.fixture(scope="module")
def fitted():
    X, y, ids, _ = planted(0, n=12, m=16)
    graphs = {"loss": LossGraph(k=3), "moments": MomentsKNN(k=3)}
    return GraphSelectorCV(graphs, estimator=SEARCH).fit(X, y, node_ids=ids)


def parts():
    """Two communities in one component, a second component and two isolated nodes."""
    head = [0, 0, 1, 3, 3, 4, 2, 6, 7]
    tail = [1, 2, 2, 4, 5, 5, 3, 7, 8]
    return Graph(list(range(11)), head, tail)


SHAPES = {
    "one node": Graph(["a"], [], []),
    "no edges": Graph(list("abcd"), [], []),
    "a pair": Graph(list("ab"), [0], [1]),
    "a triangle": Graph(list("abc"), [0, 0, 1], [1, 2, 2]),
    "parts": parts(),
    "star": graphs.star(40),
    "chain": graphs.chain(30),
    "complete": Graph(list(range(9)), *np.triu_indices(9, 1)),
    "weights far apart": Graph(
        list(range(6)), [0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [1, 1e-9, 1, 1e6, 1]
    ),
    "pairs": Graph(list(range(200)), np.arange(0, 200, 2), np.arange(1, 200, 2)),
    "long chain": graphs.chain(900),
    "large grid": graphs.grid(30, 30),
}


@pytest.mark.parametrize("graph", SHAPES.values(), ids=SHAPES)
def test_every_node_has_a_place_of_its_own(graph):
    found = place(graph)
    assert found.shape == (graph.n_nodes, 2) and np.isfinite(found).all()
    assert len(np.unique(found.round(9), axis=0)) == graph.n_nodes
    assert np.array_equal(found, place(graph))


def test_components_do_not_overlap():
    graph = SHAPES["parts"]
    found = place(graph)
    boxes = [found[graph.components == k] for k in range(graph.components.max() + 1)]
    for k, one in enumerate(boxes):
        for other in boxes[:k]:
            beside = (one.max(axis=0) < other.min(axis=0)) | (other.max(axis=0) < one.min(axis=0))
            assert beside.any()


def test_neighbours_are_near():
    """The layout says something: edges are much shorter than pairs are apart."""
    for graph in (graphs.grid(12, 12), graphs.grid(30, 30), graphs.chain(900)):
        found = place(graph)
        across = np.linalg.norm(graph.diff(found), axis=1).mean()
        rng = np.random.default_rng(0)
        i, j = rng.integers(graph.n_nodes, size=(2, 1000))
        assert across < 0.2 * np.linalg.norm(found[i] - found[j], axis=1).mean()


def test_a_long_chain_is_not_a_tangle():
    """Its eigenvalues lie close together: eigenvectors that have not converged cross each other."""
    found = place(graphs.chain(1200))
    i, j = np.random.default_rng(0).integers(1200, size=(2, 1000))
    apart = np.linalg.norm(found[i] - found[j], axis=1)
    assert np.corrcoef(apart, np.abs(i - j))[0, 1] > 0.8


def test_weak_edges_are_long():
    """Two groups joined by many weak edges are drawn as two groups."""
    group = np.repeat([0, 1], 8)
    head, tail = np.triu_indices(16, 1)
    graph = Graph(np.arange(16), head, tail, np.where(group[head] == group[tail], 1.0, 0.02))
    found = place(graph)
    length = np.linalg.norm(graph.diff(found), axis=1)
    inside = group[head] == group[tail]
    assert length[inside].max() < length[~inside].mean()


def two_groups():
    head, tail = np.triu_indices(5, 1)
    edges = [*zip(head, tail, strict=True), *zip(head + 5, tail + 5, strict=True), (0, 9)]
    graph = Graph.from_edges(np.array(edges))
    rows = [([[1.0]] * 3, [(-2.0 if i < 5 else 2.0)] * 3) for i in range(10)]
    return graph, LocalData.from_list(rows)


def test_diagnostics_mark_suspicious_edges(ax):
    graph, data = two_groups()
    found = graph_diagnostics(graph, solve(Problem(graph, data, lam=0.5)))
    where = np.random.default_rng(0).random((10, 2))
    assert found.plot(where, ax) is ax
    plain, odd = ax.collections[:2]
    assert len(plain.get_segments()) == graph.n_edges - 1
    assert np.allclose(odd.get_segments()[0], where[[0, 9]])
    assert to_hex(odd.get_color()[0]) == ORANGE.lower()
    assert odd.get_linestyle()[0][1] is not None  # dashes, for those who see no orange
    assert legend(ax) == ["suspicious: 1"]
    colors = {to_hex(c) for c in ax.collections[2].get_facecolor()}
    assert len(colors) == len(np.unique(found.communities)) == 2


@pytest.mark.parametrize("graph", SHAPES.values(), ids=SHAPES)
def test_diagnostics_of_any_shape(graph, ax):
    found = graph_diagnostics(graph)
    found.plot(ax=ax)
    assert len(ax.collections[0].get_segments()) == graph.n_edges
    assert sum(len(points.get_offsets()) for points in ax.collections[2:]) == graph.n_nodes
    assert ax.get_legend() is None
    assert ax.get_title() == f"{graph.n_nodes} nodes, {graph.n_edges} edges"


def test_pictures_in_axes_that_share_their_limits():
    figure = Figure()
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax in (left, right):
        graph_diagnostics(parts()).plot(ax=ax)
    figure.draw_without_rendering()
    assert left.get_xlim() == right.get_xlim() and left.get_aspect() == right.get_aspect() == 1.0


def test_comparison_shows_gains_and_errors(fitted, ax):
    assert fitted.plot(ax) is ax
    table = fitted.cv_results_
    rows = [2, 3] if table["mean_test_score"][2] < table["mean_test_score"][3] else [3, 2]
    over, shuffled = ax.containers
    for shown, column in ((over, "gain"), (shuffled, "graph_part")):
        line, _, (bars,) = shown
        assert np.allclose(line.get_xdata(), table[column][rows])
        width = [np.ptp(ends[:, 0]) / 2 for ends in bars.get_segments()]
        assert np.allclose(width, table[f"{column}_se"][rows])
    assert legend(ax) == [f"over {fitted.reference_}", "over shuffled copies"]
    assert to_hex(over[0].get_color()) == BLUE.lower()
    assert over[0].get_marker() != shuffled[0].get_marker()
    names = [f"{table['name'][k]}{' (helps)' if table['helps'][k] else ''}" for k in rows]
    assert [text.get_text() for text in ax.texts] == names
    assert any("(helps)" in name for name in names)
    bold = [text.get_fontweight() == "bold" for text in ax.texts]
    assert bold == [bool(table["helps"][k]) for k in rows]
    assert ax.get_title() == fitted.summary().splitlines()[-1].split(". ")[0]


def made_up(names, gain, error, part=np.nan, helps=False, verdict="No graph helps: x. Kept: y."):
    count = len(names)
    table = {
        "name": np.array(["no edges", "one clique", *names], dtype=object),
        "mean_test_score": np.arange(count + 2.0),
        "gain": np.append([0.0, -1.0], np.full(count, gain)),
        "gain_se": np.append([0.0, 0.1], np.full(count, error)),
        "graph_part": np.append([np.nan] * 2, np.full(count, part)),
        "graph_part_se": np.append([np.nan] * 2, np.full(count, error)),
        "helps": np.append([False] * 2, np.full(count, helps)),
    }
    return SimpleNamespace(cv_results_=table, reference_="no edges", summary=lambda: verdict)


def test_comparison_without_shuffles_and_with_one_fold(ax):
    """With one fold standard errors are NaN: points without whiskers."""
    draw_comparison(made_up([r"a $\frac $"], 0.5, np.nan), ax)
    (only,) = ax.containers
    assert only[0].get_xdata().tolist() == [0.5]
    assert np.ptp(only[2][0].get_segments()[0][:, 0]) == 0.0
    assert legend(ax) == ["over no edges"] and ax.get_title() == "No graph helps: x"


def test_comparison_leaves_out_a_long_verdict(ax):
    draw_comparison(made_up(["n" * 90, "b"], 0.1, 0.2, 0.1, verdict="word " * 60 + "."), ax)
    assert ax.get_title() == "" and len(ax.containers) == 2
    assert max(len(text.get_text()) for text in ax.texts) <= 50


def test_comparison_needs_a_fit():
    with pytest.raises(ValueError, match="not fitted"):
        GraphSelectorCV().plot()


def test_missing_matplotlib_says_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for draw in (fitted.plot, graph_diagnostics(parts()).plot):
        with pytest.raises(ImportError, match=r'^Pictures need matplotlib: pip install "nefele\['):
            draw()
