"""The examples run, and the numbers of the README are those of the commands it names."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import nefele

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CORE = (ROOT / "docs" / "core.md").read_text(encoding="utf-8")


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_example_is_run_here():
    found = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert found == {"sensors", "flower_fedrelax", *ESTIMATOR_EXAMPLES}


def run(name):
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / f"{name}.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# What each prints: a line and the column of its number, the better one first.
ESTIMATOR_EXAMPLES = {
    "ask_next": ("after 8 days: suggested", "after 8 days: at random"),
    "cold_start": None,
    "different_models": ("coupled through maps  error", "each station alone    error"),
    "flavours": ("personalised    8 models, error", "centralised     1 models, error"),
    "graph_classification": None,
    "learn_the_graph": None,
    "precision_over_time": ("coupled over time  error", "each time alone    error"),
    "private_clinics": None,
    "personal_digits": ("coupling chosen", "own pictures only"),
    "mixed_models": ("coupled by predictions", "each building alone"),
    "rule_of_thumb": ("     3.0", "     0.0"),  # a strong signal is nearer to the rule
    "search_graph_and_alpha": ("learnt neighbours", "neighbours by name"),
    "trends_and_shares": ("linear pieces  error", "flat pieces    error"),
    "us_states": ("coupled ", "one pooled model"),
    "weather_stations": ("coupled over the map", "each station alone"),
}


def test_the_update_of_the_flower_example_is_that_of_nefele():
    """Flower itself is not installed here: its part of the example is not run."""
    from sklearn.linear_model import Ridge

    from nefele.agnostic import FedRelaxRegressor

    example = load(ROOT / "examples" / "flower_fedrelax.py")
    n, shared = len(example.WEIGHTS), example.shared_rows()
    rows, degrees = [example.local_rows(i) for i in range(n)], example.WEIGHTS.sum(axis=1)
    means = [None] * n
    for _ in range(example.ROUNDS + 1):
        args = zip(rows, means, degrees, strict=True)
        models = [example.update(*own, shared, m, d, example.ALPHA) for own, m, d in args]
        said = np.stack([model.predict(shared) for model in models])
        means = example.neighbours_mean(said, example.WEIGHTS)
    edges = [(i, j) for i in range(n) for j in range(i) if example.WEIGHTS[i, j]]
    graph = nefele.Graph.from_edges(edges, [example.WEIGHTS[e] for e in edges], nodes=range(n))
    whole = FedRelaxRegressor(
        Ridge(), graph=graph, alpha=example.ALPHA, X_shared=shared, rounds=example.ROUNDS, tol=None
    )
    X, y = (np.concatenate(part) for part in zip(*rows, strict=True))
    whole.fit(X, y, node_ids=np.repeat(np.arange(n), 10))
    for i in range(n):
        answer = whole.estimators_[i].predict(shared)
        np.testing.assert_allclose(said[i], answer, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ESTIMATOR_EXAMPLES)
def test_examples_of_estimators(name):
    printed = run(name)
    if ESTIMATOR_EXAMPLES[name]:
        better, worse = (
            float(re.search(re.escape(label) + r"\s+(\d+\.\d+)", printed)[1])
            for label in ESTIMATOR_EXAMPLES[name]
        )
        assert better < worse
    elif name == "learn_the_graph":
        assert re.search(r'"loss" helps: 0\.\d+ ± ', printed)
        assert "suspicious edges             'shop 00' - 'shop 01'" in printed
    elif name == "private_clinics":
        assert "on sharing is worth it" in printed and "spent: 3.00 of 3" in printed
        assert "The claimed epsilon 3 is not refuted" in printed
    elif name == "cold_start":
        slopes = [float(x) for x in re.findall(r"(-\d+\.\d+)$", printed, re.MULTILINE)]
        assert len(slopes) == 4 and slopes[0] > slopes[1] > slopes[2]
    else:
        alone, coupled, pooled = (float(x) for x in re.findall(r"(0\.\d+) of new", printed))
        assert coupled > alone and coupled > pooled


def test_sensors_example():
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / "sensors.py"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    own, pooled, fitted = (
        [float(x) for x in re.findall(r"\d+\.\d+", line)]
        for line in done.stdout.splitlines()
        if line.startswith(("own", "pooled", "nefele"))
    )
    assert fitted[0] < own[0] / 4 and fitted[0] < pooled[0] / 4
    assert fitted[1] < pooled[1]
    assert re.search(r"certified gap \S+ \(dual, optimal\)", done.stdout)


@pytest.fixture(scope="module")
def pictures():
    matplotlib.use("agg")
    return load(ROOT / "docs" / "make_pictures.py")


PICTURES = ["clusters", "theory", "maps", "ask_next"]
PICTURES += ["coupling_centre", "coupling_graph", "coupling_clusters", "pfl"]


def test_every_picture_is_drawn_here(pictures):
    committed = {path.stem for path in (ROOT / "docs" / "images").glob("*.svg")}
    assert committed == set(pictures.DRAWN) == set(PICTURES)


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_drawn_and_small(pictures, tmp_path, name):
    path = pictures.DRAWN[name](tmp_path)
    assert path.stem == name
    committed = ROOT / "docs" / "images" / path.name
    for file in (path, committed):
        assert file.stat().st_size < 150 * 1024
        assert "<svg" in file.read_text(encoding="utf-8")[:1000]


def test_caption_of_the_picture(pictures):
    fits = pictures.make_fits()
    assert (fits.graph.n_nodes, (~fits.data.labelled).sum()) == (48, 9)
    assert len(set(fits.result.clusters().tolist())) == 3
    assert f"{fits.own_error:.2f} when each node with data uses only its own" in README
    assert f"{fits.nefele_error:.3f} over all nodes with nefele" in README


@pytest.mark.parametrize(
    ("demo", "page", "names"),
    [
        ("states", CORE, {}),
        (
            "incomes",
            README,
            {
                "mixed model": "mixed model (random slopes, as MixedLM and lmer)",
                "nefele": "nefele: borders and centre",
                "shuffled borders": "nefele, shuffled borders",
            },
        ),
    ],
    ids=["states", "incomes"],
)
def test_demo_table(tmp_path, demo, page, names):
    command = (
        "import sys; from nefele.cli import main; sys.argv = ['nefele', *sys.argv[1:]]; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", command, "demo", demo, "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    for method in json.loads(done.stdout)["methods"]:
        name = re.escape(names.get(method["method"], method["method"]))
        rows = re.findall(rf"^\| {name} \| (\S+) \| (\S+) \|(?: (\S+) \|)?$", page, re.M)
        values = [[float(text) for text in row if text not in ("", "-")] for row in rows]
        printed = [method["mse"], method["ratio"]]
        if demo == "incomes" and method["mse_without_rows"] is not None:
            printed.append(method["mse_without_rows"])
        close = [row == pytest.approx(printed, abs=6e-3, rel=6e-3) for row in values]
        exact = [row[0] == pytest.approx(printed[0], abs=1e-5) for row in values]
        assert any(one and two for one, two in zip(close, exact, strict=True)), method["method"]


def test_every_solver_name_is_documented():
    from nefele.solvers.choose import _BY_NAME

    for name in ("auto", *_BY_NAME):
        assert f'| `"{name}"` |' in CORE, name
