"""The report as text: what it holds, how large it is, and that nothing in a view breaks it."""

import base64
import dataclasses
import json
import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from nefele.report import Step, View, render, write_report
from nefele.report.encode import EXACT, pack_table, safe_json
from nefele.report.layout import place
from nefele.report.payload import first_component, payload
from nefele.report.sample import MOST_NODES, pick, shown_edges, surroundings
from nefele.report.tracks import COLOURS, SINGLE, SMALL, follow
from nefele.runtime import Ledger

NASTY = ["</script><b>", "<!--<script>", "a\u2028b", "@@DATA@@", "&lt;\"'", "\\u003c", "x\ud800"]


def make_view(n=30, p=3, K=6, E=60, seed=0, **fields):
    """Two halves that share a model until the coupling is weak, on a random graph."""
    g = np.random.default_rng(seed)
    half = np.arange(n) * 2 // n
    clusters = np.array(
        [np.zeros(n) if k < 2 else half if k < 5 else np.arange(n) for k in range(K)]
    )
    coef = g.normal(size=(2, p))[half] * np.linspace(0, 1, K)[:, None, None]
    edges = np.sort(g.integers(0, n, (E, 2)), axis=1)
    edges = np.unique(edges[edges[:, 0] < edges[:, 1]], axis=0)
    base = {
        "title": "A run",
        "task": "regression",
        "target": "y",
        "metric": "mean squared error",
        "command": "nefele fit data.csv",
        "created": "2026-01-01T00:00:00",
        "version": "0.1.0",
        "facts": [("Data", "data.csv")],
        "verdict": "Coupling helps.",
        "notes": ["The graph was learnt from the data."],
        "scores": [("own data only", 2.0), ("one model", 1.5), ("nefele", 1.0)],
        "nodes": [f"node {i}" for i in range(n)],
        "parameters": [f"x{j}" for j in range(p)],
        "rows": g.integers(1, 9, n),
        "edges": edges,
        "weights": g.random(len(edges)) + 0.1,
        "alphas": np.geomspace(10, 0.01, K),
        "coef": coef,
        "clusters": clusters.astype(np.int64),
        "gaps": np.full(K, 1e-5),
        "cv_error": 1 + np.linspace(-1, 1, K) ** 2,
        "cv_se": np.full(K, 0.1),
        "chosen": min(2, K - 1),
        "best": min(2, K - 1),
        "clearest": min(3, K - 1),
        "own_error": g.random(n) + 1,
        "pooled_error": g.random(n) + 1,
        "node_error": g.random((K, n)) + 0.5,
        "tol": 1e-4,
        "history": [Step(10, 3.0, 1e-2, 0.1), Step(20, 2.5, 1e-5, 0.2)],
    }
    return View(**{**base, **fields})


def data_of(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))


def unpack(block):
    kind = {"f8": "<f8", "u2": "<u2", "u1": "<u1", "q2": "<u2"}[block["kind"]]
    values = np.frombuffer(base64.b64decode(block["data"]), dtype=kind)
    if "width" not in block:
        return values
    values = values.reshape(-1, block["width"])
    if block["kind"] == "f8":
        return values
    low, step = unpack(block["low"])[:, None], unpack(block["step"])[:, None]
    return np.where(values == 65535, np.nan, low + values * step)


class Tags(HTMLParser):
    """Every element of a page, with its attributes, and its text outside scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.inside = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        self.inside.append("/" + tag)

    def handle_data(self, data):
        if not self.inside or self.inside[-1] not in ("script", "style"):
            self.words.append(data)


def test_the_text_says_what_was_found():
    words = " ".join(Tags(render(make_view())).words)
    for wanted in ("A run", "Coupling helps.", "learnt from the data", "own data only", "data.csv"):
        assert wanted in words


def test_text_of_users_stays_text():
    nasty = NASTY
    view = make_view(
        n=len(nasty),
        p=len(nasty),
        nodes=nasty,
        parameters=nasty,
        title=nasty[0],
        verdict=nasty[1],
        command=nasty[4],
        notes=nasty,
        facts=[(nasty[0], nasty[3])],
        scores=[(nasty[0], 1.0), (nasty[3], 2.0)],
    )
    text = render(view)
    clean = make_view(
        n=len(nasty),
        p=len(nasty),
        notes=["x"] * len(nasty),
        scores=[("a", 1.0), ("b", 2.0)],
    )
    names = [tag for tag, _ in Tags(text).tags]
    assert names == [tag for tag, _ in Tags(render(clean)).tags]
    assert data_of(text)["ids"] == nasty
    assert nasty[0] in Tags(text).words


def test_json_cannot_end_its_element():
    text = safe_json(NASTY)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == NASTY


def test_the_page_names_no_address():
    text = render(make_view())
    tags = Tags(text).tags
    links = [a.get("href") or a.get("src") for _, a in tags if a.get("href") or a.get("src")]
    assert links == ["data:,"]
    assert "url(" not in text and "@import" not in text
    policy = next(a["content"] for _, a in tags if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_the_same_view_gives_the_same_text():
    assert render(make_view()) == render(make_view())


def test_a_report_at_the_limit_stays_small():
    view = make_view(n=2000, p=11, K=30, E=6000)
    text = render(view)
    assert len(text.encode()) < 2_000_000
    assert len(data_of(text)["ids"]) == 2000
    assert "a sample of" not in text


def test_a_long_path_and_many_parameters_stay_small_too():
    assert len(render(make_view(n=1500, p=60, K=80, E=3000)).encode()) < 2_000_000


def test_large_runs_show_a_sample_and_say_so():
    view = make_view(n=5000, E=12_000, K=4, chosen=2)
    own = np.full(5000, 1.0)
    error = np.full((4, 5000), 0.5)
    error[2, 4321] = 9.0
    view = dataclasses.replace(view, own_error=own, node_error=error)
    text = render(view)
    data = data_of(text)
    assert len(data["ids"]) == MOST_NODES
    assert "a sample of 2,000 of 5,000 nodes" in text
    assert "node 4321" in data["ids"], "the node that loses most is always shown"
    assert data["outcome"][2] == [4999, 1, 0, 0]
    assert sorted(size for _, _, size in data["legend"][2]) == [2500, 2500]
    edges = unpack(data["edges"])
    assert edges.max() < MOST_NODES


def test_a_sample_holds_each_cluster_by_its_size():
    labels = np.repeat([0, 1, 2], [6000, 3000, 1000])
    kept = pick(labels, np.full(10_000, np.nan), 100)
    assert np.bincount(labels[kept]).tolist() == [60, 30, 10]


@pytest.mark.parametrize("seed", range(5))
def test_surroundings_are_the_nearest_shown_nodes(seed):
    g = np.random.default_rng(seed)
    n = 25
    edges = np.sort(g.integers(0, n, (30, 2)), axis=1)
    edges = edges[edges[:, 0] < edges[:, 1]]
    kept = np.sort(g.permutation(n)[:6])
    hops = np.where(np.eye(n, dtype=bool), 0.0, np.inf)
    hops[edges[:, 0], edges[:, 1]] = hops[edges[:, 1], edges[:, 0]] = 1.0
    for via in range(n):
        hops = np.minimum(hops, hops[:, [via]] + hops[[via]])
    home = surroundings(kept, edges, n)
    for i in range(n):
        nearest = hops[i, kept].min()
        assert (home[i] < 0) == np.isinf(nearest)
        if home[i] >= 0:
            assert hops[i, kept[home[i]]] == nearest


def test_all_edges_stay_when_all_nodes_do():
    edges = np.array([[0, 1], [1, 2]])
    assert shown_edges(np.arange(3), edges, np.ones(2), 3)[0] is edges


def test_what_is_not_finite_does_not_break_the_data():
    n, K = 30, 6
    bad = np.full((K, n), np.inf)
    view = make_view(
        cv_error=np.full(K, np.nan),
        cv_se=np.full(K, np.nan),
        gaps=np.full(K, np.inf),
        own_error=np.full(n, np.nan),
        node_error=bad,
        coef=np.full((K, n, 3), np.nan),
        scores=[("own data only", np.nan), ("nefele", np.inf)],
        history=[Step(0, np.inf, np.nan, 0.0)],
        tol=np.nan,
        positions=np.full((n, 2), np.nan),
    )
    text = render(view)
    data = data_of(text)
    assert data["gaps"] == [None] * K and data["history"] == [[0, None, None]]
    assert data["outcome"] == [[0, 0, 0, n]] * K
    assert "not available" in text


DEGENERATE = {
    "one node": {"n": 1, "E": 0},
    "one parameter": {"p": 1},
    "one alpha": {"K": 1, "chosen": 0, "best": -1, "clearest": -1},
    "no edges": {"E": 0},
    "no choice": {"chosen": -1, "best": -1, "clearest": -1},
    "nothing but a fit": {"scores": [], "history": [], "notes": [], "facts": [], "command": ""},
    "alpha zero": {"alphas": np.array([3.0, 2.0, 1.0, 0.5, 0.1, 0.0])},
    "one place": {"positions": np.zeros((30, 2))},
    "one place on a map": {"positions": np.zeros((30, 2)), "geographic": True},
    "huge numbers": {"coef": np.full((6, 30, 3), 1e150)},
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_views_render(name):
    data = data_of(render(make_view(**DEGENERATE[name])))
    xy = unpack(data["xy"])
    assert len(xy) == 2 * len(data["ids"])
    assert len(data["counts"]) == len(data["alphas"])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("rows", np.ones(3), r"view.rows must have shape \(30,\).*got \(3,\)"),
        ("coef", np.ones((6, 30, 2)), r"view.coef must have shape \(6, 30, 3\)"),
        ("edges", np.array([[0, 30]]), "view.weights must have shape"),
        ("chosen", 6, "view.chosen must be a place in alphas, 0 to 5, or -1; got 6"),
        ("nodes", [], "must have nodes and alphas; got 0 nodes"),
    ],
)
def test_views_that_do_not_fit_together_are_refused(field, value, message):
    with pytest.raises(ValueError, match=message):
        render(make_view(**{field: value}))


def test_an_edge_to_no_node_is_refused():
    with pytest.raises(ValueError, match="0 to 29; got 0 to 30"):
        render(make_view(edges=np.array([[0, 30]]), weights=np.ones(1)))


def test_writing_replaces_the_file_whole(tmp_path):
    target = tmp_path / "report.html"
    target.write_text("old", encoding="utf-8")
    write_report(make_view(nodes=[*NASTY, *(f"n{i}" for i in range(23))]), target)
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.write_text("old", encoding="utf-8")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(make_view(), target)
    assert target.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ValueError, match="folder of a report must exist"):
        write_report(make_view(), tmp_path / "none" / "report.html")


@pytest.mark.parametrize("width", [10, EXACT])
def test_packed_tables_come_back(width):
    g = np.random.default_rng(0)
    values = g.normal(size=(3, width)) * np.array([[1e-6], [1.0], [1e100]])
    values[1, 3] = np.nan
    values[2] = values[2, 0]
    back = unpack(pack_table(values))
    size = np.nanmax(np.abs(values), axis=1, keepdims=True)
    np.testing.assert_allclose(back / size, values / size, atol=2e-5)


def random_path(seed, K=8, n=40):
    """Partitions of a path: blocks of random boundaries that merge and split."""
    g = np.random.default_rng(seed)
    return np.array([g.permutation(n)[np.cumsum(g.random(n) < 0.3)] for _ in range(K)])


@pytest.mark.parametrize("seed", range(6))
def test_tracks_are_the_same_partitions_with_colours_of_their_own(seed):
    clusters = random_path(seed)
    tracks = follow(clusters, seed)
    for k, labels in enumerate(clusters):
        together = labels[:, None] == labels[None, :]
        alone = together.sum(axis=1) == 1
        number, mark = tracks.number[k], tracks.mark[k]
        np.testing.assert_array_equal(alone, number == 0)
        np.testing.assert_array_equal(alone, mark == SINGLE)
        same = (number[:, None] == number[None, :])[~alone][:, ~alone]
        np.testing.assert_array_equal(same, together[~alone][:, ~alone])
        coloured = {(c, m) for c, m in zip(number, mark, strict=True) if m < SMALL}
        assert len({m for _, m in coloured}) == len(coloured) <= COLOURS
        assert tracks.counts[k] == len(np.unique(labels))


def test_renamed_labels_keep_their_colours():
    half = np.repeat([0, 1], 5)
    tracks = follow(np.array([half, 1 - half, half + 7]), 1)
    assert (tracks.mark == tracks.mark[0]).all() and (tracks.number == tracks.number[0]).all()


def test_a_cluster_that_splits_passes_its_colour_to_the_larger_part():
    one = np.zeros(10, dtype=np.int64)
    parts = np.repeat([3, 1], [3, 7])
    tracks = follow(np.array([one, parts]), 0)
    assert (tracks.mark[1, 3:] == tracks.mark[0, 0]).all()
    assert (tracks.mark[1, :3] != tracks.mark[0, 0]).all()


def test_a_layout_draws_neighbours_near():
    n = 60
    ring = np.column_stack([np.arange(n), (np.arange(n) + 1) % n])
    xy = place(n, ring, None, False).xy
    length = np.linalg.norm(xy[ring[:, 0]] - xy[ring[:, 1]], axis=1)
    every = np.linalg.norm(xy[:, None] - xy[None, :], axis=2)
    assert length.max() < 0.3 * every.max()
    assert every[np.triu_indices(n, 1)].min() > 0.005
    assert xy.min() >= 0 and xy.max() <= 1


def test_components_are_drawn_apart():
    edges = np.array([[0, 1], [1, 2], [3, 4], [4, 5]])
    xy = place(6, edges, None, False).xy
    first, second = xy[:3], xy[3:]
    apart = (first.max(axis=0) < second.min(axis=0)) | (second.max(axis=0) < first.min(axis=0))
    assert apart.any()


def test_maps_shorten_longitudes():
    corners = np.array([[20.0, 59.0], [30.0, 59.0], [20.0, 61.0], [30.0, 61.0]])
    places = place(4, np.empty((0, 2), dtype=np.int64), corners, True)
    width, height = places.box
    assert width / height == pytest.approx(10 * np.cos(np.radians(60)) / 2)
    lon, lat, per_x, per_y = places.globe
    np.testing.assert_allclose(lon + places.xy[:, 0] * per_x, corners[:, 0])
    np.testing.assert_allclose(lat + places.xy[:, 1] * per_y, corners[:, 1])


def test_maps_cross_the_date_line():
    fiji = np.array([[179.0, -17.0], [-179.0, -18.0]])
    assert place(2, np.array([[0, 1]]), fiji, True).box[0] > 0.9


def test_the_first_component_is_that_of_the_standardised_parameters():
    coef = np.random.default_rng(0).normal(size=(3, 20, 4)) * [1, 10, 100, 0]
    values, share = first_component(coef)
    flat = coef.reshape(-1, 4)[:, :3]
    flat = (flat - flat.mean(axis=0)) / flat.std(axis=0)
    _, size, axes = np.linalg.svd(flat, full_matrices=False)
    np.testing.assert_allclose(np.abs(values.ravel()), np.abs(flat @ axes[0]), atol=1e-9)
    assert share == pytest.approx(size[0] ** 2 / (size**2).sum())


def test_the_slider_starts_at_the_alpha_used():
    assert payload(make_view(chosen=4))["start"] == 4
    assert payload(make_view(chosen=-1, best=1))["start"] == 1
    assert payload(make_view(chosen=-1, best=-1, clearest=-1))["start"] == 0


def test_what_was_sent_is_shown():
    ledger = Ledger(rounds=3)
    ledger.tally("predictions", messages=12, floats=50)
    ledger.lost = 2
    page = render(make_view(ledger=ledger))
    assert "sent: predictions" in page and "12 messages, 600 numbers, 4800 bytes" in page
    assert "3; missing: lost 2" in page


def test_lines_and_curve_come_from_the_same_rows():
    """Not from the scores at the top, which are of other rows."""
    found = payload(make_view(cv_own=1.25, cv_pooled=1.75))
    assert found["lines"] == [["own data only", 1.25], ["one model", 1.75]]
    assert payload(make_view())["lines"] == [["own data only", None], ["one model", None]]
    blank = np.full(len(make_view().alphas), np.nan)
    view = make_view(cv_error=blank, cv_own=1.25)
    own, pooled = (value for _, value in payload(view)["lines"])
    assert own == pytest.approx(view.own_error.mean())
    assert pooled == pytest.approx(view.pooled_error.mean())
    assert payload(view)["error"][0] == pytest.approx(view.node_error[0].mean())
    count = np.arange(len(view.nodes))  # held-out rows, none at the first node
    found = payload(dataclasses.replace(view, held_out=count))
    assert found["error"][0] == pytest.approx(np.average(view.node_error[0], weights=count))
    assert found["lines"][0][1] == pytest.approx(np.average(view.own_error, weights=count))
