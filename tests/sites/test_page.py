"""The page of a site: whole, honest, and without secrets."""

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from nefele.sites._svg import bars, curves, network
from nefele.sites.example import coast
from nefele.sites.members import Edge, Feature, Member, Target
from nefele.sites.page import in_units, render, verdict, write_page
from tests.sites.learnt import books, facts, learn, rows_of

ALONE = {"meta", "rect", "circle", "path", "line", "polyline", "br"}  # tags that need no end
HOSTILE = '<script>alert("x")</script>&'


class Reader(HTMLParser):
    """Tags that are opened and closed in order, and the words between them."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.seen, self.words, self.attributes = [], [], [], []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def read(source):
    page = Reader(source)
    assert page.open == []
    assert "script" not in page.seen and "link" not in page.seen and "img" not in page.seen
    assert not [value for name, value in page.attributes if name.startswith("on") or name == "src"]
    assert "http://" not in source and "https://" not in source and "url(" not in source
    return " ".join(" ".join(page.words).split())


@pytest.fixture(scope="module")
def learnt():
    return learn()


def test_the_page_says_what_was_found(learnt, tmp_path):
    federation, values, driver = learnt
    mine = books(driver, "oulu", {("kemi", "repeated or late"): 4})
    found = facts(federation, "oulu", values["oulu"], mine)
    write_page(tmp_path, found, values["oulu"], mine)
    source = (tmp_path / "report.html").read_text(encoding="utf-8")
    words = read(source)
    assert "oulu in coast" in words and federation.hash in words
    assert f"{found['gap']:.1e}" in words and "Certified:" in words
    assert "Not converged" not in words
    for error in (*found["errors"].values(), *found["errors_everywhere"].values()):
        assert f"{error:.3g}" in words
    assert verdict(values["oulu"]) in words
    assert "wind" in words and "oulu-1" in words and "oulu-2" in words
    assert "kemi: repeated or late" in words
    assert "54.3 kB" in words
    for (_, receiver, content), sums in mine.ledger.by_way.items():
        assert receiver in words and content in words and f"{sums.messages:,}" in words
    assert source.count("<svg") == 2  # alpha was not chosen
    assert "prefers-color-scheme: dark" in source and "width=device-width" in source


def test_other_sites_nodes_rows_and_places_are_not_on_it(learnt, tmp_path):
    federation, values, driver = learnt
    mine = books(driver, "oulu")
    source = render(facts(federation, "oulu", values["oulu"], mine), values["oulu"], mine)
    assert "inari" not in source  # no neighbour of oulu
    assert "PRIVATE" not in source and str(tmp_path.parent) not in source
    rows = rows_of(federation, "oulu")
    numbers = {float(word) for word in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", source)}
    secret = np.concatenate([rows.X.ravel(), rows.y])
    exact = {float(f"{value:.{k}g}") for value in secret for k in (6, 8, 12, 17)}
    assert not numbers & exact


def test_parameters_are_in_the_units_of_the_data(learnt):
    federation, values, _ = learnt
    one, rows = values["oulu"], rows_of(federation, "oulu")
    w = in_units(one, 1)[:, 0]
    place = np.searchsorted(one.scores.nodes, rows.node_ids)
    found = (rows.X * w[place, :-1]).sum(axis=1) + w[place, -1]
    scaled = (rows.X - one.scales.shift) / one.scales.scale
    wanted = (scaled * one.part.w1[place, :-1]).sum(axis=1) + one.part.w1[place, -1]
    np.testing.assert_allclose(found, wanted + one.scales.offset, rtol=1e-10)


def test_what_did_not_converge_says_so_first(learnt):
    federation, values, driver = learnt
    mine, one = books(driver, "oulu"), values["oulu"]
    found = facts(federation, "oulu", one, mine)
    for gap, words in ((0.5, "the gap is 5.0e-01"), (None, "no gap is proven")):
        page = read(render({**found, "converged": False, "gap": gap}, one, mine))
        assert "Not converged:" in page and words in page and "Certified:" not in page


def test_a_gap_that_was_never_finite_is_no_picture(learnt):
    federation, values, driver = learnt
    mine, one = books(driver, "oulu"), values["oulu"]
    one = replace(one, fitted=replace(one.fitted, history=[(20, 1.0, math.inf)]))
    assert "No finite gap was proven." in read(
        render(facts(federation, "oulu", one, mine), one, mine)
    )


def test_coupling_that_does_not_help_is_told(learnt):
    _, values, _ = learnt
    scores = values["oulu"].scores
    error = np.array([[1.0, 1.0], [4.0, 4.0], [2.0, 2.0]]) * scores.count
    worse = replace(values["oulu"], scores=replace(scores, error=error))
    assert verdict(worse).startswith("Coupling does not help here: own data only does better")
    none = replace(scores, count=np.zeros_like(scores.count))
    assert "No rows were held out here" in verdict(replace(values["oulu"], scores=none))
    error[1] = np.nan  # one model is not known
    worse = replace(values["oulu"], scores=replace(scores, error=error))
    assert verdict(worse).startswith("Coupling does not help here")


def test_who_left_and_who_went_on_is_told(learnt):
    federation, values, driver = learnt
    mine, one = books(driver, "oulu"), values["oulu"]
    found = facts(federation, "oulu", one, mine, gone=["inari"])
    page = read(render({**found, "resumed": 77}, one, mine))
    assert "inari left on the way" in page
    assert "went on from its journal at request 77" in page


def test_hostile_names_are_only_text():
    federation = coast(
        alphas=(1.0, 0.1),
        folds=2,
        check_every=20,
        tol=1e-2,
        features=(Feature(f"{HOSTILE}wind", 0, 40, "m/s"),),
        members=(
            Member("oulu", (f"{HOSTILE}1", "oulu-2"), "oulu.example:7447"),
            Member("kemi", ("kemi",)),
        ),
        edges=(Edge(f"{HOSTILE}1", "oulu-2"), Edge("oulu-2", "kemi")),
    )
    _, values, driver = learn(federation)
    mine = books(driver, "oulu", {(HOSTILE, "malformed"): 1})
    found = facts(federation, "oulu", values["oulu"], mine, gone=[HOSTILE])
    source = render({**found, "federation": HOSTILE, "name": HOSTILE}, values["oulu"], mine)
    assert "<script" not in source and "&lt;script&gt;" in source
    assert source.count("<svg") == 3
    words = read(source)
    assert words.count(HOSTILE) >= 5 and "How alpha was chosen" in words


@pytest.mark.parametrize("classes", [("no", "yes"), ("a", "b", "c")])
def test_classes(classes):
    loss = "logistic" if len(classes) == 2 else "multinomial"
    federation = coast(
        task="classification", loss=loss, l2=0.1, target=Target("state", classes=classes),
        alpha=0.1, check_every=20, tol=1e-2,
    )  # fmt: skip
    labels = (-1, 1) if len(classes) == 2 else (0, 1, 2)
    _, values, driver = learn(federation, labels)
    mine = books(driver, "oulu")
    words = read(render(facts(federation, "oulu", values["oulu"], mine), values["oulu"], mine))
    assert "Log loss at held-out rows" in words
    assert ("towards yes" in words) if len(classes) == 2 else ("class wind" in words)


def test_pictures_take_odd_numbers():
    assert curves({"": []}, ("x", "y")) == ""
    assert curves({"": [(1, math.nan), (2, 0.0)]}, ("x", "y"), logs=(False, True)) == ""
    for values in ([(1.0, 1.0)], [(0.0, 0.0), (5.0, 0.0)], [(k, 10.0**-k) for k in range(40)]):
        picture = curves({"a": values}, ("x", "y"), limit=(0.5, "limit"), marks=[(1.0, "now")])
        assert "nan" not in picture and picture.count("<polyline") == 1
        Reader(picture)
    assert "unknown" in bars({"here": {"a": None}}, "a")
    assert network({}, {}).startswith("<svg")
