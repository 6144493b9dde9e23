"""Names and ids that would steer a terminal or be taken for markup: shown, never obeyed."""

import io
import re

import polars as pl
import pytest

from tests.e2e.commands import QUICK, edges, process, run, weather

STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
EVIL = {"wind": "[bold]\x1b[31mwind", "pressure": "[/x]\x9b2J\u202e", "date": "\x1b]0;pwned\x07"}
NODE = "st\x1b[2Jation[/red]"
TARGET = "tmax\x7f[blink]"
FAST = ("--alpha", "1", "--n-alphas", "2")


def clean(done):
    """The command said what it said without steering anything."""
    assert not STEERING.search(done.stdout), done.stdout
    assert not STEERING.search(done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    return done


def hostile(frame, column):
    return frame.with_columns(("[/b]\x1b[1m\u202e" + pl.col(column)).alias(column))


@pytest.fixture
def home(tmp_path):
    data = hostile(weather(), "station").rename({**EVIL, "station": NODE, "tmax": TARGET})
    data.write_csv(tmp_path / "we\x1b[2Jather.csv")
    data.with_columns(pl.lit(1.0).alias(EVIL["wind"])).write_csv(tmp_path / "constant.csv")
    hostile(hostile(edges(), "source"), "target").write_csv(tmp_path / "ed\x1b[1mges.csv")
    return tmp_path


DATA = ("we\x1b[2Jather.csv", "--node", NODE, "--target", TARGET)
GRAPH = ("--graph", "ed\x1b[1mges.csv")


def test_check_and_fit_and_what_follows(home):
    assert clean(run("check", *DATA, *GRAPH, cwd=home)).returncode == 0
    assert clean(run("check", "constant.csv", *DATA[1:], cwd=home)).returncode == 0
    out = ("--out", "a\x1b[2Jrun[/red]")
    done = clean(run("fit", *DATA, *GRAPH, *FAST, *out, cwd=home))
    assert done.returncode == 0, done.stderr
    assert r"a\x1b[2Jrun[/red]" in done.stdout
    for command in ("report", "path", "run"):
        assert clean(run(command, out[1], cwd=home)).returncode == 0
    for options in ((), ("--out", "a\x1b[1mb.csv")):
        done = run("predict", out[1], DATA[0], *options, cwd=home)
        assert done.returncode == 0, done.stderr
    clean(done)


def test_errors_name_the_culprit_literally(home):
    done = clean(run("fit", *DATA[:3], "--target", "tmax[/red]", cwd=home))
    assert done.returncode == 2 and '"tmax[/red]"' in done.stderr
    assert r"[bold]\x1b[31mwind" in done.stderr
    edges().write_csv(home / "others.csv")
    done = clean(run("fit", *DATA, "--graph", "others.csv", cwd=home))
    assert done.returncode == 2 and "[/b]" in done.stderr
    done = clean(run("check", "no\x1b[1m\nfile.csv", *DATA[1:], cwd=home))
    assert done.returncode == 2


def test_the_graph_command(home):
    done = clean(
        run("graph", *DATA, *QUICK, "--try", "losses", "--keep", "losses", "--out", "learnt.csv",
            cwd=home)
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_wrong_options_are_shown_not_obeyed(home):
    for args in (
        ("fit", *DATA, "extra\x1b[2J[/red]"),
        ("fit", *DATA, "--k", "[/red]\x1b[2J"),
        ("fit", *DATA, "--no-such\x1b[2J[/x]"),
        ("no-such\x1b[2J[/x]",),
    ):
        done = clean(process(*args, cwd=home))
        assert done.returncode == 2, done.stderr


def test_predictions_on_a_terminal_are_shown_in_a_pipe_they_are_exact(home):
    assert run("fit", *DATA, *GRAPH, *FAST, "--out", "first", cwd=home).returncode == 0
    exact = run("predict", "first", DATA[0], cwd=home).stdout
    found = pl.read_csv(io.BytesIO(exact.encode()), infer_schema=False)
    assert found[NODE][0] == "[/b]\x1b[1m\u202e000"
    shown = run("predict", "first", DATA[0], cwd=home, terminal=True).stdout
    assert not STEERING.search(shown)
    assert shown.count("\n") == exact.count("\n")
