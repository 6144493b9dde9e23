"""`nefele reproduce` on the FMI weather network: Table III, Figs. 8 and 9, mixed models."""

import pytest

from nefele.experiments import Inputs, load
from nefele.experiments.weather import find_weather, load_weather
from tests.experiments.commands import found, rows_by
from tests.paper.instances import fmi_path

ERROR = "validation error (44)"


@pytest.fixture(scope="module")
def weather_file(tmp_path_factory):
    return fmi_path()


def quick(name, folder, file):
    answer = found(name, "--quick", "--jobs", 1, "--data", file, "--out", folder / name)
    return rows_by(answer, name)


@pytest.fixture(scope="module")
def table3(tmp_path_factory, weather_file):
    return quick("table3", tmp_path_factory.mktemp("out"), weather_file)


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("local, lam 0", 6.584),
        ("pooled", 5.521),
        ("l1, lam 0.5", 5.433),
        ("l2, lam 0.5", 5.446),
        ("squared, lam 0.5", 5.793),
        ("l1, lam 2", 5.366),
        ("l2, lam 2", 5.352),
        ("local, no constant, 18 + 9 rows", 6.893),
        ("l1, lam 0.5, no constant, 18 + 9 rows", 5.869),
        ("l1, lam 0.5, no constant, 20 + 7 rows", 5.805),
    ],
)
def test_means_over_five_splits(table3, what, error):
    row = table3[what, ERROR]
    assert row["ours"] == pytest.approx(error, abs=2e-3)
    assert row["seeds"] == 5 and row["converged"]


@pytest.mark.parametrize(
    ("name", "objective", "error"),
    [("l1", 1027.79462, 5.64470), ("l2", 1022.10322, 5.66780), ("squared", 973.67144, 6.04276)],
)
def test_seed_zero(table3, name, objective, error):
    what = f"{name}, lam 0.5, seed 0"
    assert table3[what, "objective"]["ours"] == pytest.approx(objective, rel=1e-6)
    assert table3[what, ERROR]["ours"] == pytest.approx(error, abs=2e-3)


def test_printed_numbers_and_verdicts(table3):
    assert table3["local, lam 0", ERROR]["verdict"] == "same"
    for name in ("l1", "l2"):
        row = table3[f"{name}, lam 0.5", ERROR]
        assert row["printed"] == 5.16 and not row["failed"]
        assert row["verdict"].startswith("differs, because 5.16 is not reached by the exact")
        stopped = table3[f"{name}, lam 0.5, Algorithm 1, 1000 iterations", ERROR]
        assert stopped["ours"] == pytest.approx(row["ours"], abs=5e-3)


def test_lam_is_chosen_by_validation_on_both_graphs(table3):
    for name in ("l1", "l2"):
        seen = table3[f"{name}, lam chosen, graph of all rows", ERROR]
        unseen = table3[f"{name}, lam chosen, graph of training rows", ERROR]
        assert "lam = 2 by validation" in seen["verdict"]
        # A graph that has seen the validation labels looks better than it is.
        assert seen["ours"] < unseen["ours"] < table3["local, lam 0", ERROR]["ours"]


def test_models_of_the_stations(tmp_path, weather_file):
    rows = quick("fig9", tmp_path, weather_file)
    models = {what: row["ours"] for (what, _), row in rows.items()}
    assert models["l2, lam 0"] == 203
    assert models["l1, lam 0.5"] < models["l2, lam 0.5"] < 203
    first = (tmp_path / "fig9" / "fig9.svg").read_bytes()
    quick("fig9", tmp_path / "again", weather_file)
    assert (tmp_path / "again" / "fig9" / "fig9.svg").read_bytes() == first


def test_linear_fedrelax_is_the_cores_problem(weather_file):
    agnostic1 = load("agnostic1")
    inputs = Inputs(weather=weather_file)
    check = [cell for cell in agnostic1.cells(True, inputs) if "Quadratic" in cell["kind"]]
    row = agnostic1.rows([{**cell, **agnostic1.compute(cell, inputs)} for cell in check])[0]
    assert row.ours < 1e-4 and not row.failed


@pytest.mark.slow
def test_edges_and_errors_against_the_threshold(tmp_path, weather_file):
    rows = quick("fig8", tmp_path, weather_file)
    for eta, edges in ((1, 364), (2, 1124), (5, 3254), (10, 5873), (20, 9535)):
        assert rows[f"eta {eta}", "edges"]["ours"] == edges
    first, best = (rows[f"l1, graph of all rows, eta {eta}", ERROR]["ours"] for eta in (1, 5))
    assert best < first


@pytest.mark.slow
def test_mixed_models_gain_from_each_other(tmp_path, weather_file):
    rows = quick("agnostic1", tmp_path, weather_file)
    alone = rows["mixed models, 51 stations, alone", ERROR]["ours"]
    coupled = rows["mixed models, 51 stations, FedRelax, alpha 0.3, 10 rounds", ERROR]["ours"]
    assert coupled < 0.9 * alone


def test_the_file_is_found_in_the_usual_places(tmp_path, monkeypatch, weather_file):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEFELE_FMI_DATA", raising=False)
    assert find_weather() is None
    monkeypatch.setenv("NEFELE_FMI_DATA", str(weather_file))
    assert find_weather() == weather_file
    assert len(load_weather(weather_file).stations) == 203
