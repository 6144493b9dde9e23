"""`nefele fit` on a large file: reading, writing and the report against the solves themselves.

python benchmarks/cli.py [rows] [nodes] [features] [alphas] [folds]
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import nefele

SOLVES = ("alphas", "cross-validation", "held-out rows", "path and fit")


def write_files(folder, rows, nodes, features):
    """A random geometric network with smoothly varying models, as data.csv and edges.csv."""
    rng = np.random.default_rng(0)
    points = rng.random((nodes, 2))
    graph = nefele.graphs.knn(points, 5)
    true = np.sin(4 * points @ rng.standard_normal((2, features + 1)))
    owner = rng.integers(0, nodes, rows)
    X = rng.standard_normal((rows, features))
    y = (X * true[owner, 1:]).sum(axis=1) + true[owner, 0] + rng.standard_normal(rows)
    names = np.array([f"n{i:05d}" for i in range(nodes)])
    columns = {f"x{j}": X[:, j] for j in range(features)}
    pl.DataFrame({"node": names[owner], **columns, "y": y}).write_csv(folder / "data.csv")
    ends = {"source": names[graph.head], "target": names[graph.tail]}
    pl.DataFrame(ends).write_csv(folder / "edges.csv")


def measure(rows=200_000, nodes=2_000, features=10, alphas=30, folds=5):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, rows, nodes, features)
        size = (folder / "data.csv").stat().st_size / 1e6
        command = [sys.executable, "-c", "from nefele.cli import main; main()", "fit"]
        command += [str(folder / "data.csv"), "--node", "node", "--target", "y"]
        command += ["--graph", str(folder / "edges.csv"), "--out", str(folder / "run"), "--json"]
        command += ["--n-alphas", str(alphas), "--folds", str(folds)]
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wall = time.perf_counter() - start
        if done.returncode not in (0, 1):
            sys.exit(done.stderr)
        return json.loads(done.stdout), wall, size


def main():
    facts, wall, size = measure(*map(int, sys.argv[1:6]))
    timings = facts["timings"]
    print(f"{facts['rows']} rows, {facts['graph']['n_nodes']} nodes, {size:.0f} MB of CSV")
    for phase, seconds in timings.items():
        print(f"  {phase:<18} {seconds:8.2f} s")
    solves = sum(timings[name] for name in SOLVES)
    files = sum(seconds for name, seconds in timings.items() if name not in SOLVES)
    print(f"  {'in all':<18} {wall:8.2f} s, start-up included")
    print(f"solves {solves:.2f} s; reading, writing and report {files:.2f} s")
    print(f"files / solves = {files / solves:.3f} (target: below 1)")
    print(f"converged: {facts['converged']}, gap {facts['gap']:.1e}")


if __name__ == "__main__":
    main()
