"""A run whose best alpha is the last of its candidates tries more."""

import json

import numpy as np
import polars as pl

from nefele.runs.config import RunConfig
from nefele.runs.run import execute


def run(tmp_path, slopes, penalty="l2", **options):
    rng = np.random.default_rng(0)
    ids, x = np.repeat(np.arange(len(slopes)), 40), rng.normal(size=40 * len(slopes))
    y = x * np.array(slopes)[ids] + rng.normal(size=len(ids))
    data = tmp_path / "data.csv"
    pl.DataFrame({"id": [f"n{i}" for i in ids], "x": x, "y": y}).write_csv(data)
    graph = tmp_path / "edges.csv"
    names = [f"n{i}" for i in range(len(slopes))]
    pl.DataFrame({"source": names[:-1], "target": names[1:]}).write_csv(graph)
    config = RunConfig(
        str(data), "id", "y", graph=str(graph), penalty=penalty, n_alphas=4, folds=2,
        out=str(tmp_path / "run"), **options,
    )  # fmt: skip
    return execute(config, "nefele fit")


def test_hardly_any_coupling(tmp_path):
    folder, facts = run(tmp_path, [-900.0, 1500.0, 20.0, -300.0])
    found = folder.load_path()
    alphas = found["alphas"]
    assert len(alphas) > 4 and (np.diff(alphas) < 0).all()
    assert len(found["cv_error"]) == len(found["coef"]) == len(alphas)
    assert alphas[3] >= facts["summary"]["alpha"] > alphas[-1]
    assert not any("least tried" in note for note in facts["notes"])
    json.dumps(facts, allow_nan=False)


def test_a_given_alpha_is_what_is_used(tmp_path):
    _, facts = run(tmp_path, [-900.0, 1500.0, 20.0, -300.0], alpha=2.0)
    assert facts["summary"]["alpha"] == 2.0
