"""Options that builders share: target degree, one component, units, thresholds by validation."""

import numpy as np
import pytest

from nefele.graph_learning import (
    AlternatingGraph,
    BlockModelCleanup,
    DelaunayGraph,
    GlassoGraph,
    LinkPrediction,
    LossGraph,
    RadiusGraph,
    SmoothSignalGraph,
    TestGraph,
    WassersteinGraph,
)
from tests.graph_learning.data import as_rows, places, planted


@pytest.mark.parametrize(
    "builder",
    [
        RadiusGraph(0.5),
        DelaunayGraph(),
        LinkPrediction(LossGraph(k=3)),
        BlockModelCleanup(LossGraph(k=3)),
        GlassoGraph(0.05),
        SmoothSignalGraph(k=4),
        TestGraph(k=4),
        AlternatingGraph(k=4),
    ],
    ids=lambda b: type(b).__name__,
)
def test_options_of_all(builder):
    X, y, ids, _ = planted(0, n=15, m=12)
    rows = as_rows(X, y, ids, coords=places(ids))
    whole = builder.fit_graph(rows)
    thin = builder.set_params(degree=1.2).fit_graph(rows)
    assert (whole.n_edges > 9, thin.n_edges) == (True, 9)
    pairs = set(zip(whole.head.tolist(), whole.tail.tolist(), strict=True))
    assert set(zip(thin.head.tolist(), thin.tail.tolist(), strict=True)) <= pairs
    if not isinstance(builder, LinkPrediction | BlockModelCleanup):  # no lengths to connect by
        joined = builder.set_params(connect=True).fit_graph(rows)
        assert joined.components.max() == 0 and joined.n_edges == 9 + thin.components.max()
    assert builder.set_params(normalize="mean").fit_graph(rows).weight.mean() == pytest.approx(1)
    with pytest.raises(ValueError, match="degree must be"):
        builder.set_params(degree=-1.0).fit_graph(rows)


def test_short_edges_of_places_are_kept():
    where = {"a": (0.0, 0.0), "b": (1.0, 0.0), "c": (3.0, 0.0), "d": (3.5, 0.0)}
    rows = as_rows(np.ones((1, 1)), [1.0], ["a"], coords=where)
    graph = RadiusGraph(9.0, degree=1).fit_graph(rows)
    assert (graph.neighbors("a"), graph.neighbors("d")) == (["b"], ["c"])


@pytest.mark.parametrize("builder", [WassersteinGraph("auto"), LossGraph(threshold="auto")])
def test_a_threshold_by_validation(builder):
    X, y, ids, kind = planted(0, n=12, m=12)
    rows = as_rows(X, y, ids)
    graph = builder.fit_graph(rows)
    assert graph.degree.mean() in (2.0, 4.0)  # of these the choice is
    assert np.mean(kind[graph.head] == kind[graph.tail]) > 0.7
    with pytest.raises(ValueError, match=r'Only one of k and .* may be "auto"'):
        builder.set_params(k="auto").fit_graph(rows)


def test_a_threshold_is_a_number_or_auto():
    X, y, ids, _ = planted(0, n=5, m=6)
    with pytest.raises(ValueError, match='No choice of eta "best"'):
        WassersteinGraph("best").fit_graph(as_rows(X, y, ids))
