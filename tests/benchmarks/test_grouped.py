"""The harness of benchmarks/grouped.py on made data with fake methods."""

import json
import warnings
from dataclasses import replace

import grouped
import grouped_ours
import grouped_peers
import grouped_worker
import numpy as np
import pandas as pd
import pytest
from grouped_sources import CLASSES, COUNTS, REGRESSION
from grouped_splits import error, held_out, split
from sklearn.metrics import log_loss, mean_poisson_deviance, mean_squared_error

OURS = grouped_ours.NAME


def record(seed, error, seconds=1.0, failed="", warned=""):
    return {
        "seed": seed,
        "error": error,
        "seconds": seconds,
        "failed": failed,
        "warned": warned,
    }


def fake(answers):
    """A runner with given (error, seconds) of each dataset and method; None: it failed."""

    def run(data, method, seeds):
        answer = answers[data.name][method]
        if answer is None:
            return [record(seed, None, None, failed="ValueError: no") for seed in seeds]
        return [record(seed, *answer) for seed in seeds]

    return run


def measure(answers, methods=("one model", "MixedLM slope", OURS), seeds=(0, 1)):
    made = grouped_worker.made(REGRESSION, places=False)
    datasets = [replace(made, name=name) for name in answers]
    return grouped.measure(datasets, methods, seeds, fake(answers))


# -- splits and errors --------------------------------------------------------------------------


def test_three_tenths_of_each_group_are_held_out_and_a_row_stays():
    groups = np.repeat(["a", "b", "c", "d"], [1, 2, 10, 40])
    held = held_out(groups, seed=3)
    assert [int(held[groups == g].sum()) for g in "abcd"] == [0, 1, 3, 12]
    np.testing.assert_array_equal(held, held_out(groups, seed=3))
    assert (held != held_out(groups, seed=4)).any()


def test_parts_share_no_row_and_are_scaled_by_the_training_rows():
    data = grouped_worker.made(REGRESSION, places=True)
    train, test = split(data, 0)
    assert len(train.y) + len(test.y) == len(data.table)
    assert not set(train.table["x"]) & set(test.table["x"])
    assert set(test.codes) <= set(train.codes)
    np.testing.assert_allclose(train.X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(train.X.std(axis=0), 1)
    assert test.coords.shape == (len(test.y), 2)


def test_text_becomes_a_column_for_each_level_but_the_first():
    data = grouped_worker.made(REGRESSION, places=False)
    text = np.resize(["red", "green", "blue"], len(data.table))
    data = replace(data, table=data.table.assign(z=text), slope="z")
    train, _ = split(data, 0)
    assert train.X.shape[1] == 3
    assert train.slope.tolist() == [False, True, True]
    assert set(train.table["z"]) == {"red", "green", "blue"}


def test_errors_are_those_of_scikit_learn():
    draw = np.random.default_rng(0)
    y, p = draw.integers(0, 2, 50).astype(float), draw.uniform(0.05, 0.95, 50)
    assert error(CLASSES, y, p) == pytest.approx(log_loss(y, p))
    y, rate = draw.poisson(2, 50).astype(float), draw.uniform(0.5, 3, 50)
    assert error(COUNTS, y, rate) == pytest.approx(mean_poisson_deviance(y, rate))
    assert error(REGRESSION, y, rate) == pytest.approx(mean_squared_error(y, rate))


# -- one run ------------------------------------------------------------------------------------


def test_a_run_gives_the_error_of_the_held_out_rows():
    data = grouped_worker.made(REGRESSION, places=False)
    _, test = split(data, 1)
    found = grouped_worker.run(data, lambda train: lambda new: np.zeros(len(new.y)), 1)
    assert found["error"] == pytest.approx(np.mean(test.y**2))
    assert found["failed"] == "" == found["warned"]
    assert found["seconds"] >= 0


def test_what_goes_wrong_is_recorded():
    data = grouped_worker.made(REGRESSION, places=False)

    def raises(train):
        raise ValueError("only one class\nin group 2")

    def warns(train):
        warnings.warn("the optimiser failed to converge", stacklevel=1)
        return lambda new: np.full(len(new.y), np.nan)

    found = grouped_worker.run(data, raises, 0)
    assert found["failed"] == "ValueError: only one class" and found["error"] is None
    found = grouped_worker.run(data, warns, 0)
    assert "not finite" in found["failed"] and "converge" in found["warned"]


def test_a_worker_that_ends_early_is_a_failure_of_the_splits_it_left_out(tmp_path, monkeypatch):
    lines = (
        "import sys",
        f"print({json.dumps(json.dumps(record(0, 0.5)))})",
        "sys.exit('MemoryError')",
    )
    (tmp_path / "grouped_worker.py").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(grouped, "HERE", tmp_path)
    made = grouped_worker.made(REGRESSION, places=False)
    first, second = grouped.in_a_process(made, "one model", (0, 1))
    assert first == record(0, 0.5)
    assert second == record(1, None, None, failed="MemoryError")


def constant(train):
    return lambda new: np.full(len(new.y), train.y.mean())


# -- methods ------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [REGRESSION, CLASSES, COUNTS])
def test_methods_without_other_packages_predict(task):
    data = grouped_worker.made(task, places=True)
    runs = {
        fit: grouped_worker.run(data, fit, 0)
        for fit in (grouped_peers.one, grouped_peers.dummies, grouped_peers.boosting)
    }
    assert [found["failed"] for found in runs.values()] == ["", "", ""]
    assert runs[grouped_peers.dummies]["error"] < runs[grouped_peers.one]["error"]


@pytest.mark.parametrize("task", [REGRESSION, CLASSES, COUNTS])
def test_our_default_predicts(task):
    data = grouped_worker.made(task, places=task == REGRESSION)
    found = grouped_worker.run(data, grouped_ours.default, 0)
    assert found["failed"] == ""
    assert found["error"] < grouped_worker.run(data, constant, 0)["error"]


def test_methods_run_where_they_suit():
    here = grouped_worker.made(REGRESSION, places=True)
    assert grouped_peers.suits("mgwr", here)
    assert not grouped_peers.suits("mgwr", grouped_worker.made(REGRESSION, places=False))
    assert not grouped_peers.suits("MixedLM slope", grouped_worker.made(CLASSES, places=False))
    assert grouped_peers.suits("MixedLM slopes", here)
    fixed = here.table.assign(z=here.table["group"])
    assert not grouped_peers.suits("MixedLM slopes", replace(here, table=fixed))


def test_a_short_run_leaves_out_what_takes_minutes():
    here = grouped_worker.made(REGRESSION, places=True)
    large = replace(here, name="large", table=pd.concat([here.table] * 400, ignore_index=True))
    answers = {method: (1.0, 1.0) for method in ("one model", "MixedLM slopes", "mgwr", OURS)}
    run = fake({"made": answers, "large": answers})
    table = grouped.measure([here, large], list(answers), (0,), run, short=True)
    assert list(table.records["made"]) == list(answers)
    assert list(table.records["large"]) == ["one model", OURS]


def test_places_of_rows_are_columns_and_places_of_groups_are_not():
    here = grouped_worker.made(REGRESSION, places=True)
    assert list(grouped_ours.features(split(here, 0)[0])) == ["x", "z"]
    own = here.table.assign(latitude=np.linspace(40, 50, 60))
    train, test = split(replace(here, table=own), 0)
    assert list(grouped_ours.features(train)) == ["x", "z", "latitude", "longitude"]
    np.testing.assert_array_equal(
        grouped_ours.features(test)[["latitude", "longitude"]], test.coords
    )


# -- the table ----------------------------------------------------------------------------------


def test_ratios_are_over_the_best_other_and_over_the_mixed_model():
    table = measure(
        {
            "a": {"one model": (2.0, 0.1), "MixedLM slope": (1.0, 2.0), OURS: (1.005, 1.0)},
            "b": {"one model": (4.0, 0.1), "MixedLM slope": None, OURS: (2.0, 9.0)},
        }
    )
    assert table.best_other("a") == "MixedLM slope" and table.best_other("b") == "one model"
    assert table.error_ratio("a") == pytest.approx(1.005)
    assert table.error_ratio("b") == pytest.approx(0.5)
    assert table.time_ratio("a") == pytest.approx(0.5)
    assert table.time_ratio("b") is None
    assert [met for _, _, met in table.verdicts()] == [True, True, True, True]
    assert table.verdicts()[-1][1] == "1 of 1; nothing to compare with on b"


def test_claims_that_do_not_hold_name_the_data():
    table = measure(
        {
            "a": {"one model": (1.0, 0.1), "MixedLM slope": (1.0, 1.0), OURS: (1.02, 3.5)},
            "b": {"one model": (1.0, 0.1), "MixedLM slope": (1.0, 1.0), OURS: None},
        }
    )
    (_, near, is_near), (_, _, is_better), (_, _, is_fast), (_, longest, all_fast) = (
        table.verdicts()
    )
    assert "a 1.020" in near and "b failed" in near
    assert "a 3.5" in longest
    assert not (is_near or is_better or is_fast or all_fast)


def test_the_table_is_written_with_claims_failures_and_sources(tmp_path):
    answers = {"a": {"one model": None, "MixedLM slope": (1.0, 2.0), OURS: (0.5, 1.0)}}
    measure(answers).write(tmp_path / "out", "Measured today.")
    text = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert text.startswith("Measured today.")
    assert "| a | one model | 0, 1 | failed | ValueError: no |" in text
    assert "| a | 60, 6 | failed | **1** | 0.5 |" in text
    facts = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert facts["datasets"]["a"]["error_ratio"] == 0.5
    assert all(claim["holds"] for claim in facts["claims"])


def test_peers_are_measured_once_and_ours_each_time(tmp_path):
    asked = []

    def run(data, method, seeds):
        asked.append((data.name, method, seeds))
        return [record(seed, 1.0) for seed in seeds]

    data = grouped_worker.made(REGRESSION, places=False)
    kept = grouped.cached(run, tmp_path)
    for seeds in ((0,), (0, 1)):
        for method in ("one model", OURS):
            assert [found["seed"] for found in kept(data, method, seeds)] == list(seeds)
    assert asked == [
        ("made", "one model", (0,)),
        ("made", OURS, (0,)),
        ("made", "one model", (1,)),
        ("made", OURS, (0, 1)),
    ]
    kept(replace(data, columns=("x",)), "one model", (0,))
    grouped.cached(run, tmp_path, fresh=True)(data, "one model", (0,))
    assert len(asked) == 6
