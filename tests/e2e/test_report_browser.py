"""The report in a real browser: the slider, the table, no request, no error, any width."""

import dataclasses
import functools
import itertools
import re
import shutil

import numpy as np
import pytest
from matplotlib.figure import Figure
from playwright.sync_api import sync_playwright

import nefele
from nefele.datasets import load_states, split_states
from nefele.graph_learning import graph_diagnostics
from nefele.report import Picture, Step, View, write_report
from nefele.report.trust import Entry, Requirement
from tests.waiting import LONG

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = [375, 1280]


def least_squares(data):
    return np.linalg.lstsq(data.X, data.y, rcond=None)[0]


def errors(data, w):
    """Mean squared error of each node, shape (n_nodes,)."""
    parts = [slice(a, b) for a, b in zip(data.ptr[:-1], data.ptr[1:], strict=True)]
    return np.array(
        [np.mean((data.y[s] - data.X[s] @ v) ** 2) for s, v in zip(parts, w, strict=True)]
    )


@functools.cache
def states_view():
    """48 states along a path, judged on the years that were held out."""
    states = load_states()
    train, test = split_states(states, seed=0)
    problem = nefele.Problem(states.graph, train, lam=1.0)
    found = nefele.path(problem, nefele.lam_max(problem) * np.geomspace(1, 1e-5, 16))
    w = found.w
    local = nefele.solve(nefele.Problem(states.graph, train, lam=0.0)).w
    node_error = np.array([errors(test, one) for one in w])
    own = errors(test, local)
    pooled = errors(test, np.tile(least_squares(train), (48, 1)))
    mean = node_error.mean(axis=1)
    best = int(mean.argmin())
    record = nefele.solve(nefele.Problem(states.graph, train, lam=found.lams[best]), tol=1e-8)
    clearest = int(np.argmin(np.abs(found.n_clusters - 6)))
    return View(
        title="Production of 48 states <b>& more</b>",
        task="regression",
        target="log gross state product",
        metric="mean squared error",
        command="nefele fit states.csv --graph borders.csv --node state --target gsp --seed 0",
        created="2026-11-16T04:00:00",
        version="0.1.0",
        facts=[("Data", "states.csv, 288 rows"), ("Penalty", "l2"), ("Seed", "0")],
        verdict=f"Coupling helps: the error falls from {own.mean():.3g} with own data only to "
        f"{mean[best]:.3g}.",
        notes=["The split is random, not by time."],
        scores=[
            ("own data only", own.mean()),
            ("one model", pooled.mean()),
            ("nefele", mean[best]),
        ],
        nodes=[str(i) for i in states.graph.ids[:-1]] + ["</script><b>Wyoming"],
        parameters=list(states.feature_names),
        rows=train.counts,
        edges=np.column_stack([states.graph.head, states.graph.tail]),
        weights=states.graph.weight,
        alphas=found.lams,
        coef=w,
        clusters=found.clusters,
        gaps=found.gaps,
        cv_error=mean,
        cv_se=node_error.std(axis=1) / np.sqrt(48),
        cv_own=own.mean(),
        cv_pooled=pooled.mean(),
        chosen=best,
        best=best,
        clearest=clearest,
        own_error=own,
        pooled_error=pooled,
        node_error=node_error,
        tol=1e-8,
        history=[Step(r.iteration, r.objective, r.gap, r.seconds) for r in record.history],
    )


def number(text):
    """Value of a number as the page writes it, such as 8.2 x 10^-5 with raised digits."""
    head, _, power = text.translate(
        str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹\N{MINUS SIGN}", "-0123456789-")
    ).partition("\N{MULTIPLICATION SIGN}10")
    return float(head) * 10.0 ** int(power or 0)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(states_view(), path)
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=next(found), args=ARGS, timeout=1000 * LONG
        )
        yield chromium
        chromium.close()


class Opened:
    """A page that keeps what it complained of and whatever it asked for besides its own file."""

    def __init__(self, browser, address, width, **options):
        self.context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        self.context.set_default_timeout(1000 * LONG)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda m: self.complaints.append(m.text))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.route("**/*", lambda route: self.watch(route, address))
        self.page.goto(address)
        self.page.wait_for_selector("#pictures:not([hidden])")

    def watch(self, route, address):
        if route.request.url == address:
            route.continue_()
        elif not route.request.url.startswith("data:"):
            self.requests.append(route.request.url)
            route.abort()

    def settle(self):
        """Wait until what changed is drawn."""
        self.page.evaluate("new Promise((f) => requestAnimationFrame(() => setTimeout(f, 0)))")

    def text(self, selector):
        return self.page.inner_text(selector)

    def numbers(self):
        self.settle()
        return {k: self.text(f"#now-{k}") for k in ("alpha", "clusters", "error", "gap")}

    def picture(self, figure):
        """What the canvas of a figure shows."""
        self.settle()
        return self.page.evaluate(f"document.querySelector('#{figure} canvas').toDataURL()")

    def overlay(self, figure):
        """What is highlighted in a figure."""
        self.settle()
        return self.page.evaluate(f"document.querySelectorAll('#{figure} canvas')[1].toDataURL()")

    def column(self, place):
        return self.page.locator(f"#nodes tbody td:nth-child({place})").all_inner_texts()


@pytest.fixture(params=WIDTHS)
def opened(request, browser, report):
    page = Opened(browser, report, request.param)
    yield page
    page.context.close()
    assert page.complaints == []
    assert page.requests == []


def test_the_slider_moves_everything_together(opened):
    figures = ("graph", "gain", "scatter", "path")
    before, pictures = opened.numbers(), {f: opened.picture(f) for f in figures}
    mark = opened.page.get_attribute("#curve .now-dot", "cx")
    opened.page.focus("#alpha")
    for _ in range(5):
        opened.page.keyboard.press("ArrowRight")
    after = opened.numbers()
    assert int(after["clusters"]) < int(before["clusters"]) == 48
    assert after["alpha"] != before["alpha"] and after["error"] != before["error"]
    assert all(opened.picture(f) != pictures[f] for f in figures)
    assert float(opened.page.get_attribute("#curve .now-dot", "cx")) > float(mark)
    said = opened.page.get_attribute("#alpha", "aria-valuetext")
    assert f"{after['clusters']} clusters" in said and after["alpha"] in said
    opened.page.keyboard.press("End")
    assert opened.numbers()["clusters"] == "1"
    assert "48 nodes" in opened.text("#graph .legend")


def test_the_slider_follows_the_mouse_and_stays_in_reach(opened):
    opened.page.evaluate("window.scrollTo(0, 1200)")
    opened.settle()
    box = opened.page.locator("#alpha").bounding_box()
    assert 0 <= box["y"] < 120
    opened.page.mouse.click(box["x"] + box["width"] - 9, box["y"] + box["height"] / 2)
    assert opened.numbers()["clusters"] == "1"


def test_the_buttons_jump(opened):
    start = opened.numbers()
    opened.page.click("text=clearest clusters")
    there = opened.numbers()
    assert there["clusters"] != start["clusters"]
    assert opened.page.get_attribute("text=clearest clusters", "aria-pressed") == "true"
    opened.page.click("#jumps >> text=used")
    assert opened.numbers() == start


def test_colours_last_along_the_path(opened):
    opened.page.focus("#alpha")
    opened.page.keyboard.press("End")
    held = {}
    for _ in range(8):
        opened.page.keyboard.press("ArrowLeft")
        opened.settle()
        for item in opened.page.locator("#graph .legend li:has(b)").all():
            number = item.locator("b").inner_text()
            look = item.locator("svg > *").get_attribute("fill")
            assert held.setdefault(number, look) == look
    assert len(set(held.values())) > 3


def test_the_table_sorts_and_searches(opened):
    assert opened.column(1)[:2] == ["</script><b>Wyoming", "Alabama"]
    opened.page.click("#nodes th:nth-child(1) button")
    assert opened.column(1)[:2] == ["Wisconsin", "West Virginia"]
    opened.page.click("#nodes th:nth-child(4) button")
    values = [number(v) for v in opened.column(4)]
    assert values == sorted(values)
    opened.page.click("#nodes th:nth-child(4) button")
    values = [number(v) for v in opened.column(4)]
    assert values == sorted(values, reverse=True)
    assert opened.page.get_attribute("#nodes th:nth-child(4)", "aria-sort") == "descending"
    opened.page.fill("#find", "dakota")
    assert sorted(opened.column(1)) == ["North Dakota", "South Dakota"]
    opened.page.fill("#find", "no such state")
    assert opened.column(1) == [] and "0 nodes found" in opened.text("#nodes-says")


def test_losers_are_marked_without_colour(opened):
    opened.page.click("#nodes th:nth-child(6) button")
    gains = opened.column(6)
    assert gains[0].startswith("▼")
    assert "lose" in opened.page.get_attribute("#gain .stage", "aria-label")


def test_a_selected_node_is_seen_in_every_picture(opened):
    figures = ("graph", "gain", "scatter", "path")
    plain = {f: opened.overlay(f) for f in figures}
    opened.page.fill("#find", "maine")
    opened.page.focus("#nodes tbody tr")
    opened.page.keyboard.press("Enter")
    opened.page.evaluate("document.activeElement.blur()")
    assert all(opened.overlay(f) != plain[f] for f in figures)
    assert "1 neighbour: New Hampshire" in opened.text("#chosen")
    opened.page.click("#chosen >> text=New Hampshire")
    opened.settle()
    assert opened.text("#chosen h3") == "New Hampshire"
    opened.page.keyboard.press("Escape")
    opened.settle()
    assert not opened.page.is_visible("#chosen")


def test_nodes_have_tooltips(opened):
    opened.page.focus("#graph .stage")
    opened.page.keyboard.press("ArrowRight")
    assert "Alabama" in opened.text("#tip")
    box = opened.page.locator("#gain .stage").bounding_box()
    opened.page.locator("#gain .stage").hover(position={"x": 60, "y": box["height"] / 2})
    assert "gains" in opened.text("#tip")


def test_the_error_is_called_cross_validated_at_every_width(opened):
    assert opened.text("#now-kind") == "CV error"
    said = opened.page.get_attribute("#alpha", "aria-valuetext")
    assert "cross-validated error" in said and "held-out" not in said


def test_numbers_of_the_strip_keep_apart(opened):
    for k in range(0, 16, 3):
        opened.page.evaluate(
            "(v) => { const s = document.querySelector('#alpha'); s.value = v;"
            " s.dispatchEvent(new Event('input')); }",
            k,
        )
        opened.settle()
        spans = opened.page.evaluate(
            "[...document.querySelectorAll('.numbers dd')].map((cell) => { const range ="
            " document.createRange(); range.selectNodeContents(cell);"
            " const box = range.getBoundingClientRect(); return [box.left, box.right]; })"
        )
        assert all(b[0] - a[1] >= 6 for a, b in itertools.pairwise(spans))


def test_names_of_lines_lie_off_the_curve(opened):
    """No point of the curve is inside the box of a name."""
    inside = opened.page.evaluate(
        """() => {
          const names = document.querySelectorAll('#curve text.halo:not(.strong)');
          const boxes = [...names].map((text) => text.getBBox());
          const curve = document.querySelector('#curve .curve');
          const long = curve.getTotalLength();
          let hits = 0;
          for (let s = 0; s <= long; s += 1) {
            const p = curve.getPointAtLength(s);
            for (const b of boxes) {
              const across = p.x > b.x && p.x < b.x + b.width;
              hits += across && p.y > b.y && p.y < b.y + b.height;
            }
          }
          return [boxes.length, hits];
        }"""
    )
    assert inside == [2, 0]


def test_a_gap_below_what_numbers_resolve_is_no_zero(browser, tmp_path):
    view = dataclasses.replace(states_view(), gaps=np.zeros(16), history=())
    write_report(view, tmp_path / "report.html")
    page = Opened(browser, (tmp_path / "report.html").as_uri(), 375)
    assert page.numbers()["gap"] == "< 10⁻¹⁶"
    assert "Certified relative gap at the alpha used: < 10⁻¹⁶" in page.text("#convergence .says")
    page.context.close()
    assert page.complaints == []


def test_captions_say_which_rows(opened):
    assert "fitted to the other rows" in opened.text("#gain .says")
    assert "judged on the same rows" in opened.text("#curve .says")
    for figure in ("scatter", "path"):
        assert "fitted to all rows" in opened.text(f"#{figure} .says")
    said = opened.text("#nodes-says")
    assert "coefficients are fitted to all rows" in said and "held-out rows" in said


def test_names_of_those_who_gain_are_whole(opened):
    cut = opened.page.evaluate(
        "[...document.querySelectorAll('.extremes button')]"
        ".filter((b) => b.scrollWidth > b.clientWidth).map((b) => b.textContent)"
    )
    assert cut == []


def test_no_page_is_wider_than_its_window(opened):
    opened.page.click("text=clearest clusters")
    opened.page.click("#nodes tbody tr")
    opened.settle()
    wide, window = opened.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window


def test_text_of_users_is_shown_as_text(opened):
    assert opened.text("h1") == "Production of 48 states <b>& more</b>"
    assert opened.page.locator("h1 b").count() == 0


def test_every_picture_has_words(opened):
    for stage in opened.page.locator("figure:visible").all():
        assert len(stage.locator(".stage").get_attribute("aria-label")) > 20
        assert stage.locator("figcaption .says").inner_text()


def test_the_parameters_of_the_scatter_can_be_chosen(opened):
    before = opened.picture("scatter")
    opened.page.select_option("#scatter select >> nth=0", label="unemployment")
    assert opened.picture("scatter") != before
    graph = opened.picture("graph")
    assert "first principal component" in opened.text("#graph .legend"), "no clusters to colour"
    opened.page.select_option("#graph select", label="log_employment")
    assert opened.picture("graph") != graph
    assert "log_employment" in opened.text("#graph .legend")


@pytest.mark.parametrize("width", WIDTHS)
def test_dark_and_printed_pages(browser, report, width):
    background = "getComputedStyle(document.body).backgroundColor"
    shown = {}
    for scheme in ("light", "dark"):
        opened = Opened(browser, report, width, color_scheme=scheme, reduced_motion="reduce")
        shown[scheme] = opened.page.evaluate(background), opened.picture("graph")
        opened.page.emulate_media(media="print")
        assert opened.page.evaluate(background) == "rgb(255, 255, 255)"
        assert not opened.page.is_visible("#alpha")
        opened.context.close()
        assert opened.complaints == []
    assert shown["light"][0] != shown["dark"][0] and shown["light"][1] != shown["dark"][1]


def nothing_held_out(view):
    blank = {"own_error", "pooled_error", "node_error", "cv_error", "cv_se"}
    blanks = {name: np.full_like(getattr(view, name), np.nan) for name in blank}
    return {**blanks, "scores": [], "history": [], "best": -1, "clearest": -1}


def one_alpha(view):
    along = ("alphas", "coef", "clusters", "gaps", "cv_error", "cv_se", "node_error")
    first = {name: getattr(view, name)[:1] for name in along}
    return {**first, "chosen": 0, "best": 0, "clearest": -1}


def one_parameter(view):
    return {"coef": view.coef[:, :, :1], "parameters": ["slope"]}


def no_edges(view):
    return {"edges": np.empty((0, 2), dtype=np.int64), "weights": np.empty(0)}


def on_a_map(view):
    places = np.random.default_rng(0).uniform([20, 60], [30, 70], (48, 2))
    return {"positions": places, "geographic": True}


def alpha_zero(view):
    return {
        "alphas": np.append(view.alphas[:-1], 0.0),
        "gaps": np.full(len(view.alphas), np.inf),
    }


def long_words(view):
    return {
        "title": "t" * 200,
        "verdict": "v" * 300,
        "notes": ["n" * 300],
        "facts": [("f" * 80, "g" * 300)],
        "command": "c" * 300,
        "scores": [("s" * 80, 1.0)],
        "nodes": ["i" * 200 + str(i) for i in range(48)],
        "parameters": ["p" * 120 + str(j) for j in range(5)],
    }


def broken_numbers(view):
    return {"coef": np.where(np.arange(48)[:, None] == 3, np.nan, view.coef)}


LESS = (
    nothing_held_out,
    one_alpha,
    one_parameter,
    no_edges,
    on_a_map,
    alpha_zero,
    long_words,
    broken_numbers,
)


@pytest.mark.parametrize("less", LESS)
def test_views_with_less_look_whole(browser, tmp_path, less):
    view = states_view()
    path = tmp_path / "report.html"
    write_report(dataclasses.replace(view, **less(view)), path)
    opened = Opened(browser, path.as_uri(), 375)
    opened.page.click("#nodes tbody tr")
    opened.settle()
    wide = opened.page.evaluate("document.documentElement.scrollWidth")
    words = opened.text("body")
    opened.context.close()
    assert opened.complaints == [] and opened.requests == []
    assert wide <= 375
    assert not {"NaN", "undefined", "null", "Infinity"} & set(re.findall(r"\w+", words))


@pytest.mark.parametrize("width", WIDTHS)
def test_requirements_and_facts_fit_the_page(browser, tmp_path, width):
    """On a narrow page a row of these tables is a list: nothing is cut, no word is broken."""
    rows = [Requirement("Transparency", (Entry("measured", "words " * 20, 4),), "Read. " * 20)]
    facts = [("intraclass correlation", "0.9"), ("standardized", "yes")]
    path = tmp_path / "report.html"
    write_report(dataclasses.replace(states_view(), trust=rows, facts=facts), path)
    opened = Opened(browser, path.as_uri(), width)
    inside = "(e) => [e.scrollWidth, e.clientWidth]"
    wide, room = opened.page.locator(".trust .scroll").evaluate(inside)
    heads = opened.page.locator(".trust td").evaluate_all(
        "(all) => all.map((e) => getComputedStyle(e, '::before').content)"
    )
    tall = opened.page.locator(".facts th").evaluate_all("(all) => all.map((e) => e.offsetHeight)")
    opened.context.close()
    narrow = width == 375
    assert wide <= room
    assert heads[0] == ('"Measured"' if narrow else "none")
    assert max(tall) < 40  # one line each


SLY = b"""<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 width="900" height="300"><rect width="900" height="300" fill="teal"/>
 <image xlink:href="http://example.org/seen.png" width="9" height="9"/>
 <script>document.title = "caught"; fetch("http://example.org/seen")</script></svg>"""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_are_seen_and_can_do_nothing(browser, tmp_path, width, scheme):
    states = load_states()
    drawn = graph_diagnostics(states.graph).plot(ax=Figure().subplots())
    pictures = [Picture.drawn(drawn, "The graph", "Words. " * 30), Picture("w" * 90, SLY)]
    path = tmp_path / "report.html"
    write_report(dataclasses.replace(states_view(), pictures=pictures), path)
    opened = Opened(browser, path.as_uri(), width, color_scheme=scheme)
    images = opened.page.locator(".still img")
    for k in range(2):
        images.nth(k).scroll_into_view_if_needed()
        images.nth(k).evaluate("(image) => image.decode()")
        assert images.nth(k).evaluate("(image) => image.naturalWidth") > 100
        assert images.nth(k).bounding_box()["width"] > 300
    assert images.nth(0).get_attribute("alt").startswith("The graph. Words.")
    wide = opened.page.evaluate("document.documentElement.scrollWidth")
    title = opened.page.title()
    opened.context.close()
    assert opened.complaints == [] and opened.requests == []
    assert wide <= width and title != "caught"
