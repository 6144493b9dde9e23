"""The seven requirements of a run: no mark without a number, privacy as the run says it."""

import numpy as np
import pytest

from nefele._words import at_most
from nefele.report.trust import MARKS, MEASURED, OPEN, PROVEN, Entry, Requirement, chapter
from nefele.runs.model_card import card_text
from nefele.runs.trust import requirements

NAMES = [
    "Human agency and oversight",
    "Technical robustness and safety",
    "Privacy and data governance",
    "Transparency",
    "Diversity, non-discrimination and fairness",
    "Societal and environmental well-being",
    "Accountability",
]
SPENT = {"epsilon": 1.0, "delta": 1e-6, "unit": "record", "outside": ["alpha by raw rows"]}


def run_facts(**changes):
    summary = {
        "nodes_judged": 2, "metric": "mean squared error", "scores": {"nefele": 0.5},
        "clusters": 2, "nodes_worse": 0,
    }  # fmt: skip
    facts = {
        "summary": summary, "notes": [], "gap": 1e-7, "converged": True,
        "certificate": "dual", "cpu_seconds": 240.0,
        "files": {"data": {}}, "versions": {"nefele": "0"}, "theory": [],
    }  # fmt: skip
    return facts | changes


def arrays(n=2, held=1):
    return {
        "nodes": np.arange(n).astype(str),
        "parameters": np.array(["x", "intercept"]),
        "held_out": np.full(n, held),
        "chosen": np.array(0),
        "node_error": np.arange(1.0, n + 1)[None],
    }


def row(name, rows):
    return next(one for one in rows if one.name == name)


def marks(name, rows):
    return {entry.text: entry.mark for entry in row(name, rows).entries}


def test_one_row_for_each_requirement_and_a_number_behind_each_mark():
    rows = requirements(run_facts(), arrays())
    assert [one.name for one in rows] == NAMES
    for one in rows:
        assert one.to_do and one.of(OPEN)
        for entry in one.entries:
            assert entry.mark in MARKS and (entry.mark == OPEN or np.isfinite(entry.number))


@pytest.mark.parametrize("mark", ["measured", "proven"])
@pytest.mark.parametrize("number", [None, np.nan, np.inf])
def test_nothing_is_green_without_a_number(mark, number):
    with pytest.raises(ValueError, match="must have a finite number"):
        Entry(mark, "claim", number)


def test_unknown_marks_are_refused():
    with pytest.raises(ValueError, match="mark must be one of"):
        Entry("green", "claim", 1.0)


@pytest.mark.parametrize("changes", [{"gap": None}, {"converged": False}])
def test_a_fit_without_its_proof_is_not_covered(changes):
    rows = requirements(run_facts(**changes), arrays())
    assert not row(NAMES[1], rows).of("proven")


@pytest.mark.parametrize("form", ["estimated radius", None])
def test_an_estimated_gap_is_no_proof(form):
    found = row(NAMES[1], requirements(run_facts(certificate=form), arrays()))
    assert not found.of("proven")
    assert any(words.startswith("relative distance of the fit") for words in found.of(OPEN))


def robust(**changes):
    captured = {
        "number": 0.4, "node": "a", "covered": 1, "honest": 1, "worst": True, "why": "flows",
    }  # fmt: skip
    found = {"units": "standardized units", "one_label": {"number": 0.624}, "captured": captured}
    return found | changes


def test_bounds_are_proven_with_their_numbers():
    rows = requirements(run_facts(robustness=robust()), arrays())
    found = [(e.mark, e.number) for e in row(NAMES[1], rows).entries if "move of" in e.text]
    assert found == [("proven", 0.624), ("proven", 0.4)]
    assert any("the worst one, a" in e.text for e in row(NAMES[1], rows).entries)


def test_a_bound_that_is_larger_than_the_models_says_nothing():
    """As of two nodes with four rows each: 490,374 per unit of a label."""
    huge = robust(one_label={"number": 490_374.0}, size=3.0, spread=1.5)
    found = row(NAMES[1], requirements(run_facts(robustness=huge), arrays()))
    assert not any("training label" in words for words in found.of(PROVEN))
    (words,) = [words for words in found.of(OPEN) if "training label" in words]
    assert "says nothing here" in words and "7.36e+05" in words and "3 in size" in words
    small = robust(size=3.0, spread=1.5)
    found = row(NAMES[1], requirements(run_facts(robustness=small), arrays()))
    assert any("training label, at most" in words for words in found.of(PROVEN))


def test_no_bound_is_said_with_its_reason():
    none = {"number": None, "why": "the quadratic penalty pulls"}
    found = row(NAMES[1], requirements(run_facts(robustness=robust(captured=none)), arrays()))
    words = "how far a captured node can move others: none, because the quadratic penalty pulls"
    assert words in found.of(OPEN)
    for changes in ({"converged": False}, {"robustness": None}):
        found = row(NAMES[1], requirements(run_facts(robustness=robust()) | changes, arrays()))
        assert not any("move of" in entry.text for entry in found.entries)
        assert sum("how far" in words for words in found.of(OPEN)) == 2


def test_nodes_that_a_bound_leaves_out_are_said():
    left = robust()["captured"] | {"honest": 5}
    rows = requirements(run_facts(robustness=robust(captured=left)), arrays())
    assert "4 honest nodes that this bound leaves out" in row(NAMES[1], rows).of(OPEN)


def test_names_of_nodes_do_not_steer_the_terminal():
    odd = robust()["captured"] | {"node": "a\x1b[2J"}
    rows = requirements(run_facts(robustness=robust(captured=odd)), arrays())
    assert "\x1b" not in " ".join(row(NAMES[1], rows).of("proven"))


def test_privacy_is_proven_only_as_far_as_the_run_says():
    name = NAMES[2]
    assert not row(name, requirements(run_facts(), arrays())).of("proven")
    rows = requirements(run_facts(privacy=SPENT), arrays())
    assert len(row(name, rows).of("proven")) == 2
    assert any("alpha by raw rows" in text for text in row(name, rows).of(OPEN))
    assert not any("worst tenth" in text for text in marks(NAMES[4], rows))
    insecure = requirements(run_facts(privacy=SPENT | {"insecure": True}), arrays())
    assert not row(name, insecure).of("proven")
    label = row(NAMES[1], requirements(run_facts(privacy=SPENT, robustness=robust()), arrays()))
    assert not any("one training label" in entry.text for entry in label.entries)
    priced = requirements(run_facts(privacy=SPENT, pictures=["price.svg"]), arrays())
    assert any("drawn from raw rows" in text for text in row(name, priced).of(OPEN))
    refit = requirements(run_facts(privacy=SPENT | {"refit": True}), arrays())
    assert any("last refit" in text for text in row(name, refit).of(OPEN))


def test_what_privacy_made_noisy_is_estimated_and_not_measured():
    rows = requirements(run_facts(privacy=SPENT, robustness=robust()), arrays())
    for name in NAMES[:2]:
        assert not any("judged" in text or "error" in text for text in row(name, rows).of(MEASURED))
    noisy = ", estimated from the noisy release: 0.5"
    assert f"error over all held-out rows (mean squared error){noisy}" in row(NAMES[1], rows).of(
        OPEN
    )
    proven = row(NAMES[1], rows).of("proven")
    assert any("of its noisy objective (not of that of the rows)" in words for words in proven)
    assert any("of the fit to noisy moments" in words for words in proven)


def test_tables_that_nobody_checked_or_that_changed_are_not_covered():
    text = "linear models that can be read in coef.csv"
    for files, words in (
        (None, "it is not checked"),
        ({"coef.csv": "lost"}, "it is lost"),
        ({"coef.csv": "not what the run wrote"}, "it is not what the run wrote"),
    ):
        rows = requirements(run_facts(), arrays(), files=files)
        assert f"{text}: {words}" in row(NAMES[3], rows).of(OPEN)
    rows = requirements(run_facts(), arrays(), files={"coef.csv": "", "report.html": "lost"})
    assert f"{text}: 2" in row(NAMES[3], rows).of(MEASURED)
    assert "report.html: it is lost" in row(NAMES[6], rows).of(OPEN)
    assert any(words.endswith("wrote them): 1") for words in row(NAMES[6], rows).of(MEASURED))


def test_what_is_called_a_bound_is_rounded_up():
    number = 0.12345600001
    for mark, shown in (("proven", "at most: 0.123457"), ("measured", "at most: 0.123456")):
        found = Requirement("a", (Entry(mark, "at most", number),), "b")
        assert found.of(mark) == [shown]
    assert at_most(2.001, 3) == "2.01" and at_most(0.3) == "0.3" and at_most(1e-300, 1) == "1e-300"
    rng = np.random.default_rng(0)
    for value in np.exp(rng.normal(size=200, scale=20)):
        assert value <= float(at_most(value, 3)) <= 1.011 * value


def test_nodes_without_held_out_rows_are_said():
    rows = requirements(run_facts(), arrays(held=0))
    assert marks(NAMES[4], rows)["errors by node: no rows were held out"] == OPEN
    assert marks(NAMES[4], rows)["2 nodes without held-out rows"] == OPEN


def test_energy_is_an_assumption_and_not_measured():
    rows = requirements(run_facts(), arrays())
    energy = [e for e in row(NAMES[5], rows).entries if e.text.startswith("watt-hours")]
    assert [(e.mark, e.number, "15 W" in e.text) for e in energy] == [(OPEN, 1.0, True)]
    assert row(NAMES[5], rows).of("measured") == ["processor seconds: 240"]
    older = run_facts()
    del older["cpu_seconds"]
    assert not row(NAMES[5], requirements(older, arrays())).of("measured")


def test_the_chapter_escapes_what_users_named():
    text = chapter([Requirement("<b>", (Entry("measured", "<script>", 1.0),), "a & b")])
    assert "<script>" not in text and "&lt;b&gt;" in text and "a &amp; b" in text
    assert chapter([]) == ""


def test_cards_escape_what_would_steer_a_page():
    card = {
        "name": "a|b `c` <i>", "task": "regression", "made_by": "nefele", "created": "now",
        "data": {"file": "x\x1b[2J.csv", "rows": 1, "held_out_rows": 0, "sha256": "-",
                 "features": []},
        "model": {"kind": "k", "nodes": 1, "edges": 0, "graph": "g", "penalty": "l2", "alpha": 1.0,
                  "certified_gap": None},
        "errors": {"metric": "error", "nefele": None}, "verdict": "v", "worst_nodes": [],
        "limits": ["[link](javascript:x)"], "trustworthy": False, "requirements": [],
    }  # fmt: skip
    text = card_text(card, "md")
    assert "# a\\|b \\`c\\` \\<i\\>" in text and "\x1b" not in text
    assert "\\[link\\]" in text and "Not trustworthy" in text
