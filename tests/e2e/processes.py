"""Runs that crash before one of their file operations, and runs that want the same folder.

`python -m tests.e2e.processes FOLDER crash fresh|force STRIDE` ends a run before its first file
operation, the one STRIDE later and so on, and looks at what is left; `... together plain|force N`
starts N runs at once. FOLDER holds weather.csv and edges.csv; what was found is printed as JSON.
Each run is a forked process, since imports take long.
"""

import json
import os
import shutil
import sys
import time
import warnings
from pathlib import Path

import matplotlib.pyplot  # noqa: F401
import numba  # noqa: F401

import nefele.cli
import nefele.runs.folder
import nefele.runs.opening
import nefele.runs.pipeline
import nefele.runs.results
import nefele.runs.run
from nefele.runs.run import execute  # noqa: F401

CRASHED = 77
FIT = ["fit", "weather.csv", "--node", "station", "--target", "tmax", "--graph", "edges.csv"]
FIT += ["--out", "run", "--penalty", "l2", "--n-alphas", "2", "--folds", "2", "--quiet"]
OLD = [*FIT, "--alpha", "1"]
NEW = [*FIT, "--l2", "0.5"]
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.truncate"}


class Counter:
    """Counts operations on files below a folder, and ends the process before one of them."""

    def __init__(self, folder, last):
        self.folder, self.last, self.count = str(folder), last, 0

    def __call__(self, event, args):
        if event == "open":
            change = isinstance(args[2], int) and bool(args[2] & WRITES)
        else:
            change = event in CHANGES
        if change and isinstance(args[0], str | os.PathLike):
            name = os.path.abspath(os.fspath(args[0]))
            if name == self.folder or name.startswith(f"{self.folder}{os.sep}"):
                self.count += 1
                if self.count == self.last:
                    os._exit(CRASHED)


def start(args, before=lambda: None, after=lambda: None):
    """A command in a process of its own; `before` and `after` run there too."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            before()
            sys.argv = ["nefele", *args]
            nefele.cli.main()
        except SystemExit as end:
            code = end.code or 0
        finally:
            after()
            os._exit(code)
    return child


def exit_code(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def forked(args, folder, last=0):
    """Exit code and count of file operations of a command in a process of its own."""
    read, write = os.pipe()
    counter = Counter(folder, last)
    child = start(
        args,
        lambda: sys.addaudithook(counter),
        lambda: os.write(write, str(counter.count).encode()),
    )
    code = exit_code(child)
    os.close(write)
    with os.fdopen(read) as pipe:
        return code, int(pipe.read() or 0)


def content(folder):
    """The files of a run, hidden ones too."""
    files = (p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


def crash(run, kind, stride):
    """For each point: what is there after a crash, and after the same command again."""
    old = None
    if kind == "force":
        assert forked(OLD, run)[0] == 0
        old = content(run)
        shutil.copytree(run, run.with_name("old"))
    args = NEW if kind == "fresh" else [*NEW, "--force"]
    code, points = forked(args, run)
    assert code == 0
    new, wrong = content(run), []
    for point in range(1, points + 1, stride):
        shutil.rmtree(run)
        if kind == "force":
            shutil.copytree(run.with_name("old"), run)
        elif point % 2:
            run.mkdir()  # an empty folder is as good as none
        code = forked(args, run, point)[0]
        if code != CRASHED:
            wrong.append([point, "no crash", code])
        if kind == "force" and forked(["path", "run"], run)[0] != 0:
            wrong.append([point, "no whole run", sorted(content(run))])
        here = content(run)
        whole = {name: here.get(name) for name in new}
        if kind == "force" and whole != new and {n: here.get(n) for n in old} != old:
            wrong.append([point, "a mixture", sorted(here)])
        code = forked(args, run)[0]
        if code != 0 or content(run) != new:
            found = content(run)
            unlike = [n for n in {*found, *new} if found.get(n) != new.get(n)]
            wrong.append([point, "not resumed", code, sorted(unlike)])
    return {"points": points, "files": len(new), "wrong": wrong}


def together(run, kind, count):
    """Runs that differ in one option, all at once into one folder: whose files are there?"""
    force = ["--force"] if kind == "force" else []
    wanted, alone = [[*OLD, "--l2", str(k), *force] for k in range(1, count + 1)], []
    for args in wanted:
        assert forked(args, run)[0] == 0
        alone.append(content(run))
        shutil.rmtree(run)
    if kind == "force":
        assert forked(OLD, run)[0] == 0
    read, write = os.pipe()

    def wait():
        os.close(write)
        os.read(read, 1)  # ends when the parent closes its end

    children = [start(args, wait) for args in wanted]
    os.close(write)
    codes = [exit_code(child) for child in children]
    os.close(read)
    return {"codes": codes, "whose": [k for k, one in enumerate(alone) if content(run) == one]}


def main():
    """Print the findings."""
    warnings.simplefilter("ignore")
    home, what, kind, number = Path(sys.argv[1]).resolve(), *sys.argv[2:5]
    os.chdir(home)
    time.perf_counter = lambda: 0.0  # times are the only thing that differs
    nefele.runs.run.processor_seconds = lambda: 0.0
    for module in (nefele.runs.folder, nefele.runs.opening, nefele.runs.results):
        module.now = lambda: "2000-01-01T00:00:00+00:00"
    sys.stdout, out = open(os.devnull, "w"), sys.stdout  # noqa: SIM115
    found = {"crash": crash, "together": together}[what](home / "run", kind, int(number))
    print(json.dumps(found), file=out)


if __name__ == "__main__":
    main()
