"""The numbers of docs/comparison.md are those of benchmarks/results."""

import re

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/comparison.md").read_text(encoding="utf-8")


def table(text, first):
    """Rows of the table whose heading begins with this, as lists of cells."""
    lines = text[text.index(f"| {first} |") :].splitlines()
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip(" *\\") for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


def results(name):
    return (ROOT / "benchmarks/results" / name).read_text(encoding="utf-8")


def test_grouped_data():
    text = results("grouped.md")
    claims = {row[0]: row[1] for row in table(text, "claim")}
    mean = claims["better on average"].split()[-1]
    most, worst = re.match(
        r"(\d+ of \d+); not (.*)", claims[next(c for c in claims if "1%" in c)]
    ).groups()
    time = claims["time at most that of the mixed model with a slope"].split()[-1]
    assert f"| error, geometric mean of the ratios | {mean} |" in PAGE
    name, ratio = worst.split()
    assert f"{most} (not on `{name}`: {ratio})" in PAGE
    assert f"over that of MixedLM with a slope, median | {time} |" in PAGE
    ratios = {row[0]: float(row[2]) for row in table(text, "data")[1:]}
    for place, said in {
        "US states": "production",
        "North Carolina": "crime",
        "weather": "weather",
    }.items():
        assert f"{place} {ratios[said]:.2f}" in PAGE
    warned = {row[0] for row in table(text, "data | method")[1:] if row[1].startswith("MixedLM")}
    assert f"on {len(warned)} of the 14 datasets" in PAGE


@pytest.mark.parametrize("data", ["production", "crime", "weather", "houses"])
def test_maps(data):
    text = results("grouped.md")
    heading, *rows = table(text[text.index("## Error") :], "data")
    row = next(row for row in rows if row[0] == data)
    said = next(row for row in table(PAGE, "data")[1:] if row[0].split(",")[0] == data)
    assert said[1:] == [row[heading.index("mgwr")], row[heading.index("nefele")]]


def test_cone_solvers():
    measured = {row[0]: row[1:] for row in table(results("bench.md"), "nodes | nefele")[1:]}
    for nodes, *said in table(PAGE, "nodes")[1:]:
        for mine, theirs in zip(said, measured[nodes], strict=False):
            if mine.startswith(">"):
                assert mine == theirs
            elif mine != "-":
                assert float(mine) == pytest.approx(float(theirs), rel=0.05)


def test_rounds_between_sites():
    text = results("sites.md")
    ours = {row[2]: float(row[3]) for row in table(text, "sites")[1:] if row[0] == "5"}
    theirs = [float(row[3]) for row in table(text, "peer")[1:]]
    said = [float(row[1]) for row in table(PAGE, "5 sites")[1:]]
    assert said == pytest.approx([ours["direct"], ours["relayed"], *theirs], rel=0.02)
