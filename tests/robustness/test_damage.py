"""Damaged files: the right content or a clear error, never a wrong one."""

from dataclasses import fields

import numpy as np
import pytest

from nefele import Graph, GTVRegressor, load, solve
from nefele.experiments import Store
from nefele.runs.folder import RunFolder
from nefele.solvers.loop import checkpoint
from tests.problems import chain_problem

PROBLEM = chain_problem(n=4)


class Case:
    """A kind of file: how to write one, and how to read it, as something that can be compared."""

    def __init__(self, write, read):
        self.write, self.read = write, read


def write_checkpoint(folder):
    solve(PROBLEM, "primal_dual", tol=1e-8, checkpoint=folder / "a.npz")
    return folder / "a.npz"


def read_checkpoint(file):
    found = checkpoint.load(file, PROBLEM, checkpoint.solver_name(checkpoint_solver()))
    return {f.name: getattr(found, f.name) for f in fields(found) if f.name != "path"}


def checkpoint_solver():
    from nefele.solvers import as_solver

    return as_solver("primal_dual", PROBLEM)


def write_model(folder):
    rng = np.random.default_rng(0)
    ids = np.repeat(["a", "b", "c"], 4)
    model = GTVRegressor(Graph.from_edges([("a", "b"), ("b", "c")]), alpha=0.1, unseen="pooled")
    model.fit(rng.standard_normal((12, 2)), rng.standard_normal(12), node_ids=ids)
    model.save(folder / "model.nefele", rows=True)
    return folder / "model.nefele"


def read_model(file):
    found = vars(load(file)).copy()
    graph, rows = found.pop("graph_"), found.pop("_rows")
    found.pop("graph")
    return {**found, **{k: getattr(graph, k) for k in ("ids", "head", "weight")}, **vars(rows)}


def write_stage(folder):
    RunFolder(folder, "key").save_stage("grid", {"alphas": np.arange(3.0), "name": np.array("x")})
    return folder / ".stages" / "grid.npz"


def read_stage(file):
    found = RunFolder(file.parents[1], "key").load_stage("grid")
    if found is None:
        raise ValueError("done again")
    return found


def write_path(folder):
    RunFolder(folder, "key").save_path({"alphas": np.arange(3.0), "nodes": np.array(["a", "bc"])})
    return folder / "path.npz"


def read_path(file):
    return RunFolder(file.parent, "key").load_path()


def write_cell(folder):
    Store(folder / "out").keep("fig2-0.json", {"mse": 0.25, "w": [1.5, 2.5], "converged": True})
    return folder / "out/results/fig2-0.json"


def read_cell(file):
    found = Store(file.parents[1]).kept(file.name)
    if found is None:
        raise ValueError("done again")
    return found


CASES = {
    "checkpoint": Case(write_checkpoint, read_checkpoint),
    "model": Case(write_model, read_model),
    "stage": Case(write_stage, read_stage),
    "path": Case(write_path, read_path),
    "setting": Case(write_cell, read_cell),
}


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and repr(a) == repr(b)


def flips(whole):
    """Every bit of the file, one at a time."""
    for at in range(len(whole)):
        for bit in range(8):
            yield whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :]


def damages(whole, count, seed=0):
    """Random damage of many kinds."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        a, b = sorted(rng.integers(0, len(whole) + 1, 2).tolist())
        noise = rng.bytes(int(rng.integers(1, 9)))
        b = min(b, a + int(rng.integers(1, 200)))
        yield (
            whole[:a],  # cut off
            whole[:a] + whole[b:],  # a hole
            whole[:b] + whole[a:],  # a part twice
            whole[:a] + noise + whole[a:],  # more than there was
            whole[:a] + noise + whole[a + len(noise) :],  # other bytes
            whole[:a] + bytes(b - a) + whole[b:],  # zeros
            whole[:a] + whole[a:b][::-1] + whole[b:],  # the wrong way round
        )[int(rng.integers(7))]


def check(case, folder, spoil):
    file = case.write(folder)
    whole, good = file.read_bytes(), case.read(file)
    refused = 0
    for content in spoil(whole):
        file.write_bytes(content)
        try:
            found = case.read(file)
        except ValueError:
            refused += 1
            continue
        assert same(found, good)
    assert refused


@pytest.mark.parametrize("name", CASES)
def test_some_damage(name, tmp_path):
    check(CASES[name], tmp_path, lambda whole: damages(whole, 300))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_flipped_bit(name, tmp_path):
    check(CASES[name], tmp_path, flips)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_much_damage(name, tmp_path):
    check(CASES[name], tmp_path, lambda whole: damages(whole, 20_000, seed=1))
