"""The command line with `reproduce` on it, in this process and in one of its own."""

import json
import os
import subprocess
import sys

import typer
from typer.testing import CliRunner

from nefele.cli.reproduce import reproduce

app = typer.Typer()
app.command("reproduce")(reproduce)
app.callback()(lambda: None)

SCRIPT = """
from nefele.cli import app, main
from nefele.cli.reproduce import reproduce
app.command("reproduce")(reproduce)
main()
"""


def call(*words):
    """The result of a command in this process."""
    return CliRunner().invoke(app, ["reproduce", *map(str, words)])


def found(*words):
    """What a command prints as JSON; it must not fail."""
    result = call(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def start(*words, cwd, first=""):
    """The same command as a process, in which some code may come first."""
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", first + SCRIPT, "reproduce", *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, env=env, stdout=pipe, stderr=pipe, text=True)


def rows_by(answer, name):
    """Rows of an experiment by setting and quantity."""
    one = next(e for e in answer["experiments"] if e["name"] == name)
    return {(row["what"], row["quantity"]): row for row in one["rows"]}
