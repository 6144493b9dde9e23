import contextlib
import json
import math
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.waiting import LONG

HEAVY = ("numba", "sklearn", "pandas", "polars", "matplotlib")


@pytest.fixture(autouse=True, scope="module")
def elsewhere(tmp_path_factory):
    """The demo writes a folder beside whoever calls it."""
    with contextlib.chdir(tmp_path_factory.mktemp("demo")):
        yield


def nefele(*args, **env):
    return subprocess.run(
        [sys.executable, "-c", "from nefele.cli import main; main()", *args],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100", **env},
        timeout=LONG,
        check=False,
    )


@pytest.fixture(scope="module")
def demo():
    return nefele("demo", "states", "--seeds", "2")


@pytest.fixture(scope="module")
def report():
    run = nefele("demo", "states", "--json", "--seeds", "1")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_help():
    run = nefele("--help")
    assert run.returncode == 0
    assert "demo" in run.stdout and "--version" in run.stdout


def test_help_of_demo_names_the_options():
    run = nefele("demo", "--help")
    assert run.returncode == 0
    for option in ("--out", "--open", "--json", "--quiet", "--seeds", "--tol", "--lam"):
        assert option in run.stdout


def test_version():
    from importlib.metadata import version

    run = nefele("--version")
    assert (run.returncode, run.stdout.strip()) == (0, f"nefele {version('nefele')}")


@pytest.mark.parametrize(
    "args",
    [("--help",), ("demo", "--help"), ("fit", "--help"), ("graph", "--help"), ("--version",)],
)
def test_help_imports_nothing_heavy(args):
    script = (
        "import sys\n"
        "from nefele.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, *args], capture_output=True, text=True, check=True
    )
    assert run.stderr.strip() == "[]"


def test_demo_json(report):
    assert report["converged"] is True
    assert [m["method"] for m in report["methods"]] == [
        "own data only",
        "one pooled model",
        "mixed model",
        "nefele auto",
        "nefele l2",
        "nefele l1",
        "nefele squared",
        "l2, shuffled borders",
    ]
    for method in report["methods"]:
        assert math.isfinite(method["mse"]) and len(method["mse_per_seed"]) == 1
        if method["method"] in ("own data only", "one pooled model"):
            assert method["gap"] is None
        else:
            assert math.isfinite(method["gap"])
            assert method["gap"] <= report["tol"]


def test_demo_json_shares_follow_from_the_errors(report):
    mse = {m["method"]: m["mse"] for m in report["methods"]}
    own, borders, control = (
        mse[name] for name in ("own data only", "nefele l2", "l2, shuffled borders")
    )
    shares = report["gain_shares"]
    assert shares["shrinkage"] == pytest.approx((own - control) / (own - borders))
    assert shares["shrinkage"] + shares["geography"] == pytest.approx(1)


def test_demo_json_ignores_the_width_of_the_terminal(report):
    run = nefele("demo", "states", "--json", "--seeds", "1", COLUMNS="20")
    assert json.loads(run.stdout)["methods"] == report["methods"]


def test_demo_table(demo):
    assert demo.returncode == 0
    assert demo.stderr == ""
    for text in ("test MSE", "certified gap", "own data only", "nefele squared", "0.000"):
        assert text in demo.stdout


def test_demo_says_where_the_gain_comes_from(demo):
    text = " ".join(demo.stdout.split())
    assert "With shuffled borders the error is still" in text
    assert "of the gain is shrinkage" in text
    assert "The rest is geography" in text


def test_demo_writes_a_report_and_says_where(demo, report):
    assert "Report: " in demo.stdout
    assert Path(report["report"]).is_file()
    facts = json.loads((Path(report["folder"]) / "run.json").read_text())
    assert facts["converged"] and facts["summary"]["helps"] == "probably"


def test_demo_prints_no_control_codes_into_a_file(demo):
    assert "\x1b" not in demo.stdout and "\r" not in demo.stdout


@pytest.fixture(scope="module")
def incomes():
    run = nefele("demo", "--json", "--seeds", "2")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_the_first_demo_is_where_the_graph_matters(incomes):
    """Borders beat a mixed model, most at states without data; shuffled ones do not."""
    found = {method["method"]: method for method in incomes["methods"]}
    ours, mixed, shuffled = (found[name] for name in ("nefele", "mixed model", "shuffled borders"))
    assert ours["mse"] < 0.95 * mixed["mse"]
    assert ours["mse_without_rows"] < 0.75 * mixed["mse_without_rows"]
    assert shuffled["mse"] > 0.97 * mixed["mse"]
    assert found["own data only"]["mse_without_rows"] is None
    assert all("graph" in words for words in ours["couplings"])
    facts = json.loads((Path(incomes["folder"]) / "run.json").read_text())
    assert facts["converged"] and facts["summary"]["helps"] in ("yes", "probably", "unclear")


def test_the_first_demo_in_words():
    run = nefele("demo", "--seeds", "1", COLUMNS="80")
    assert run.returncode == 0 and run.stderr == ""
    assert "…" not in run.stdout  # the table fits a narrow terminal
    text = " ".join(run.stdout.split())
    assert "Borders are worth" in text and "With shuffled borders this is gone" in text
    assert "--lam is an option of nefele demo states only" in nefele("demo", "--lam", "1").stderr


def test_demo_quiet_prints_the_table_only():
    run = nefele("demo", "states", "--quiet", "--seeds", "1", "--penalty", "squared")
    assert run.returncode == 0
    assert "nefele squared" in run.stdout and "nefele l2" not in run.stdout
    assert "shrinkage" not in run.stdout


def test_demo_survives_an_ascii_terminal():
    run = nefele("demo", "states", "--seeds", "1", "--penalty", "squared", PYTHONIOENCODING="ascii")
    assert run.returncode == 0
    assert "###" in run.stdout and run.stdout.isascii()


def test_out_of_reach_tolerance_is_exit_code_1():
    run = nefele("demo", "states", "--seeds", "1", "--penalty", "l2", "--tol", "1e-300")
    assert run.returncode == 1
    assert "Not trustworthy" in " ".join(run.stdout.split())
    assert "Warning: nefele l2, seed 0" in run.stderr


@pytest.mark.parametrize(
    "args", [("--unknown",), ("demo", "--unknown"), ("unknown",), ("demo", "--seeds", "many")]
)
def test_usage_errors_are_exit_code_2(args):
    run = nefele(*args)
    assert run.returncode == 2
    assert run.stdout == "" and run.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--penalty", "sqared"), 'Did you mean "squared"?'),
        (("--penalty", "l3"), 'No penalty "l3"'),
        (("--seeds", "0"), "--seeds must be an integer >= 1"),
        (("--lam", "0"), "--lam must be finite and > 0"),
        (("--tol", "nan"), "--tol must be finite and > 0"),
    ],
)
def test_bad_values_are_exit_code_2(args, message):
    run = nefele("demo", "states", *args)
    assert run.returncode == 2
    assert run.stdout == ""
    assert message in run.stderr


def test_internal_errors_are_exit_code_3():
    script = (
        "import nefele.cli.demo as demo\n"
        "def broken(*args, **kwargs): raise RuntimeError('no such luck')\n"
        "demo.run_command = broken\n"
        "from nefele.cli import main; main()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, "demo", "states"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 3
    assert "Internal error: no such luck" in run.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_interrupt_ends_the_demo():
    script = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import nefele\n"
        "import nefele.cli.demo\n"
        "solve = nefele.solve\n"
        "def interrupted(*args, **kwargs):\n"
        "    try: os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt: pass\n"
        "    return solve(*args, **kwargs)\n"
        "nefele.solve = interrupted\n"
        "from nefele.cli import main; main()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, "demo", "states"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "Interrupted.\n")


def test_the_commands_of_the_readme_run_as_printed(tmp_path):
    shell = [text for language, text, _ in blocks(ROOT / "README.md") if language == "sh"]
    lines = [line for line in "".join(shell).splitlines() if line.startswith("nefele ")]
    commands = [shlex.split(line, comments=True)[1:] for line in lines]
    assert [words[0] for words in commands] == ["demo", "fit"]
    with contextlib.chdir(tmp_path):
        for words in commands:
            done = nefele(*words)
            assert done.returncode == 0, done.stderr
    assert (tmp_path / "first" / "report.html").is_file()
