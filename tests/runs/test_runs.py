"""Runs: configurations, tables, checks, splits, verdicts, folders."""

import re
import tomllib

import numpy as np
import polars as pl
import pytest

from nefele.runs.checks import examine
from nefele.runs.config import RunConfig, read_config, template
from nefele.runs.edges import edge_graph, read_edges
from nefele.runs.folder import RunFolder
from nefele.runs.inputs import read_inputs
from nefele.runs.split import folds_inside, hold_out
from nefele.runs.tables import Table

ROWS = "id,x,y\na,1,2\na,2,3\nb,1,1\nb,4,0\n"


def written(folder, text, name="data.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def config(path, **options):
    return RunConfig(**{"data": str(path), "node": "id", "target": "y", **options})


# -- configurations -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "l3"}, 'No penalty "l3"'),
        ({"task": "regresion"}, 'Did you mean "regression"?'),
        ({"alpha": -1.0}, "alpha must be finite and >= 0"),
        ({"alpha": "best"}, 'a number >= 0 or "auto"'),
        ({"target": "id"}, "target and node must be different columns"),
        ({"features": ("x", "y")}, "features must not name the target column"),
        ({"features": ("x", "x")}, "features must be distinct"),
        ({"coords": ("lat",)}, "coords must name two different columns"),
        ({"k": 0}, "k must be an integer >= 1"),
        ({"tol": 0.0}, "tol must be finite and > 0"),
        ({"standardize": "yes"}, "standardize must be True or False"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        config("a.csv", **options)


def test_unknown_and_missing_keys():
    with pytest.raises(ValueError, match=r'No key "penality".*Did you mean "penalty"'):
        RunConfig.from_dict({"data": "a", "node": "b", "target": "c", "penality": "l1"})
    with pytest.raises(ValueError, match='must have the key "target"'):
        RunConfig.from_dict({"data": "a", "node": "b"})
    with pytest.raises(ValueError, match="features must be a list"):
        RunConfig.from_dict({"data": "a", "node": "b", "target": "c", "features": "x"})
    with pytest.raises(ValueError, match='Write node = "7"'):
        RunConfig.from_dict({"data": "a", "node": 7, "target": "c"})


def test_toml_gives_the_same_options_back():
    odd = 'say "hi"\\ \t\u00e4\x07\u2028'
    full = config(
        odd, features=(odd, "x"), coords=("lat", "lon"), alpha=0.1 + 0.2, l2=1e-300, time="t"
    )
    assert RunConfig.from_dict(tomllib.loads(full.to_toml())) == full


def test_files_are_relative_to_the_configuration(tmp_path):
    text = 'data = "a.csv"\nnode = "id"\ntarget = "y"\ngraph = "learn"\nout = "run"\n'
    found = read_config(written(tmp_path, text, "nefele.toml"))
    assert found.data == str(tmp_path / "a.csv") and found.out == str(tmp_path / "run")
    assert found.graph == "learn" and found.learns
    with pytest.raises(ValueError, match="must be TOML"):
        read_config(written(tmp_path, "data = ", "broken.toml"))


def test_the_template_holds_the_defaults():
    values = tomllib.loads(template("x"))
    assert RunConfig.from_dict(values) == RunConfig(values["data"], "station", "tmax")
    commented = template("x").replace("\n# ", "\n").partition("\n")[2]
    names = {line.split(" = ")[0] for line in commented.splitlines() if " = " in line}
    assert names == set(RunConfig.__dataclass_fields__)


# -- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_separators_and_byte_order_marks(tmp_path, separator, encoding):
    path = written(tmp_path, ROWS.replace(",", separator), encoding=encoding)
    table = Table.read(path)
    assert table.columns == ["id", "x", "y"]
    assert table.numbers("x").tolist() == [1, 2, 1, 4]


def test_ids_stay_text(tmp_path):
    table = Table.read(written(tmp_path, "id,x\n007,1\n7,2\n7.0,3\nNA,4\n"))
    assert table.ids("id").tolist() == ["007", "7", "7.0", "NA"]
    pl.DataFrame({"id": [7.0, 8.0], "n": [7, 8]}).write_parquet(tmp_path / "a.parquet")
    table = Table.read(tmp_path / "a.parquet")
    assert table.ids("id").tolist() == table.ids("n").tolist() == ["7", "8"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("id,x\n", "at least one row"),
        ("id,x,x\na,1,2\n", '"x" is there twice'),
        ("id,x\na,1,5\n", "line 2 has 3"),
    ],
)
def test_files_that_are_no_tables(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        Table.read(written(tmp_path, text))


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="No file"):
        Table.read(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="it is a folder"):
        Table.read(tmp_path)
    with pytest.raises(ValueError, match="must be UTF-8"):
        Table.read(written(tmp_path, "id,x\n\u00e4,1\n", encoding="latin-1"))
    with pytest.raises(ValueError, match="must be a Parquet file"):
        Table.read(written(tmp_path, "id,x\n", "a.parquet"))


def test_numbers_that_are_none(tmp_path):
    table = Table.read(written(tmp_path, "id;x;z\na;1,5;1\nb;2;inf\nc;;3\n"))
    with pytest.raises(ValueError, match=r"'1,5' at line 2.*decimal comma"):
        table.numbers("x")
    with pytest.raises(ValueError, match="'inf' at line 3"):
        table.numbers("z")
    table = Table.read(written(tmp_path, 'x,y\n"1,250",-3\n"1.234,5",2\n'))
    with pytest.raises(ValueError, match=r"one between thousands: .* as 1\.250, or as 1250\."):
        table.numbers("x")
    with pytest.raises(ValueError, match=r"'1\.234,5'.* write the numbers as 1234\.5\."):
        table.take(np.array([False, True])).numbers("x")


def test_blank_lines_hold_no_rows(tmp_path):
    table = Table.read(written(tmp_path, "\r\nid,x\r\na,1\r\n\r\nb,calm\r\n\r\n"))
    assert table.ids("id").tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="'calm' at line 5"):
        table.numbers("x")


def test_times_sort(tmp_path):
    text = "id,n,d,bad\na,10,2024-02-01,1.2.2024\nb,9,2024-01-31 10:00,x\n"
    table = Table.read(written(tmp_path, text))
    assert np.argsort(table.times("n")).tolist() == [1, 0]
    assert np.argsort(table.times("d")).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"'1.2.2024' at line 2.*year first"):
        table.times("bad")


@pytest.mark.parametrize(
    "times",
    [
        ["2023", "2023-02", "2023-02-03", "2024"],
        ["2023/02/03", "2023-02-03 03:00", "2023-02-03T11:30:00.5", "2023-02-04"],
        ["2024-01-01T03:00+02:00", "2024-01-01T01:30Z", "2024-01-01 00:00-05:00"],
        ["-3", "9", "10", "1e3"],
    ],
)
def test_times_are_read_not_compared_as_text(tmp_path, times):
    """Each list is in the order of time."""
    table = Table.read(written(tmp_path, "t\n" + "\n".join(times[::-1]) + "\n"))
    assert (np.diff(table.times("t")) < 0).all()


@pytest.mark.parametrize(
    "odd",
    ["2024-01-01 3:00", "2024-01-01 03:00 PM", "2023-13-45", "2023-02-30", "24-01-01", "inf"],
)
def test_other_times_are_refused_with_their_row(tmp_path, odd):
    table = Table.read(written(tmp_path, f"id,t\na,2024-01-01\nb,{odd}\n"))
    with pytest.raises(ValueError, match=rf"ISO 8601.*{re.escape(repr(odd))} at line 3"):
        table.times("t")


def test_times_with_and_without_an_offset_do_not_mix(tmp_path):
    table = Table.read(written(tmp_path, "t\n2024-01-01T00:00\n2024-01-01T01:00+02:00\n"))
    with pytest.raises(ValueError, match=r"all have a UTC offset.*line 3 and .* line 2"):
        table.times("t")


def test_lines_are_those_of_the_file_after_rows_were_left_out_twice(tmp_path):
    table = Table.read(written(tmp_path, "id,x\na,1\n,\nb,2\nc,calm\n"))
    with pytest.raises(ValueError, match="'calm' at line 5"):
        table.take(np.array([False, True, True])).numbers("x")


# -- inputs ---------------------------------------------------------------------------------------


def test_features_are_the_other_columns_that_say_something(tmp_path):
    text = "id,x,y,when,kind,empty\na,1,2,1,u,\na,2,3,2,v,\nb,1,1,1,w,\n"
    found = read_inputs(config(written(tmp_path, text), time="when", penalty="l2"))
    assert found.features == ("x", "kind") and found.uses.frame["x"].to_list() == [1, 2, 1]
    assert found.parameters == ["x", "kind=v", "kind=w"]
    assert any("no features: empty (it is empty)" in note for note in found.notes)
    assert any("single row" in note and "'b'" in note for note in found.notes)
    assert any("learnt from the data" in note for note in found.notes)


def test_rows_with_missing_values(tmp_path):
    path = written(tmp_path, "id,x,y\na,1,2\na,,3\n,1,1\nb,4,na\nb,5,6\n")
    with pytest.raises(ValueError, match=r"y \(1\), id \(1\), in 2 of 5 rows, .* line 4"):
        read_inputs(config(path))
    found = read_inputs(config(path, drop_missing=True))
    assert found.ids.tolist() == ["a", "b"] and found.y.tolist() == [2, 6]


def test_a_text_target_needs_classes(tmp_path):
    path = written(tmp_path, "id,x,y\na,1,u\na,2,v\n")
    with pytest.raises(ValueError, match=r"got 'u' at line 2\. Use --task classification"):
        read_inputs(config(path))
    assert read_inputs(config(path, task="classification")).y.tolist() == ["u", "v"]


def test_coordinates_are_constant_at_a_node(tmp_path):
    text = "id,x,y,lat,lon\na,1,2,60,25\na,2,3,60,25\nb,1,1,61,{}\nb,3,1,61,26\n"
    found = read_inputs(config(written(tmp_path, text.format(26)), coords=("lat", "lon"), k=1))
    assert found.places == {"a": (60.0, 25.0), "b": (61.0, 26.0)} and found.geographic
    assert found.graph.n_edges == 1 and found.features == ("x",)
    with pytest.raises(ValueError, match=r"of node 'b' differs.*line 5"):
        read_inputs(config(written(tmp_path, text.format(27)), coords=("lat", "lon")))
    with pytest.raises(ValueError, match="in this order"):
        read_inputs(config(tmp_path / "data.csv", coords=("lon", "lat")))


# -- edges ----------------------------------------------------------------------------------------


def test_edges_given_twice_count_once(tmp_path):
    path = written(tmp_path, "source,target,weight\na,b,2\nb,a,2\nb,c,1\n", "edges.csv")
    edges, notes = read_edges(path)
    assert edges.rows() == [("a", "b", 2.0), ("b", "c", 1.0)]
    assert "1 edges of edges.csv are given twice" in notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source,target,weight\na,b,2\nb,a,3\n", "one weight; 'b' - 'a' .* line 3"),
        ("source,target\na,a\n", "'a' is joined to itself at line 2"),
        ("source,target,weight\na,b,-1\n", "must be >= 0; got -1 at line 2"),
        ("source,target,weight\na,b,\n", "weight must not be missing; it is at line 2"),
        ("source,target\na,\n", 'column "target" is empty'),
        ("sorce,target\na,b\n", "Rename 'sorce' to 'source'"),
    ],
)
def test_bad_edges(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_edges(written(tmp_path, text, "edges.csv"))


def test_ids_must_match_on_both_sides(tmp_path):
    path = written(tmp_path, "source,target\na,b\nb,c\n", "edges.csv")
    ids = np.array(["a", "a", "b", "z"])
    with pytest.raises(ValueError, match=r"1 of 3 are not: 'z'.* 1 of 3 ids .* no rows: 'c'"):
        edge_graph(path, ids, allow_isolates=False)
    graph, notes = edge_graph(path, ids, allow_isolates=True)
    assert graph.ids.tolist() == ["a", "b", "c", "z"] and graph.degree.tolist() == [1, 2, 1, 0]
    assert len(notes) == 2


# -- checks ---------------------------------------------------------------------------------------


def test_check_finds_what_is_odd(tmp_path):
    text = "id,x,one,kind,y\n"
    text += "a,1,5,u,1\na,1,5,u,1\na,2,5,v,1\na,3,5,v,2\nA,1,5,u,3\nb,7,5,u,\n"
    edges = written(tmp_path, "source,target\na,A\nc,d\n", "edges.csv")
    found = examine(written(tmp_path, text), "id", "y", edges)
    assert found.facts["few_rows"] == {"A": 1, "b": 1}
    assert found.facts["duplicate_rows"] == 1 and found.facts["constant"] == ["one"]
    assert found.facts["missing"] == {"y": 1} and found.facts["not_numeric"] == ["kind"]
    assert found.facts["graph"]["only_in_data"] == ["b"]
    assert found.facts["graph"]["only_in_graph"] == ["c", "d"]
    assert found.facts["graph"]["components"] == 2 and found.facts["graph"]["isolates"] == ["b"]
    said = " ".join(found.warnings)
    assert "'A' and 'a'" in said and "exact copies" in said and "2 separate parts" in said
    assert len(found.errors) == 2


def test_check_notices_coordinates(tmp_path):
    text = "id,x,lat,y\na,1,60,1\na,2,60,4\nb,3,61,5\nb,inf,61,6\n"
    found = examine(written(tmp_path, text), "id", "y", None)
    assert found.facts["constant_at_each_node"] == ["lat"] and found.facts["missing"] == {}
    assert "fit --coords" in " ".join(found.warnings)
    assert "got 'inf' at line 5" in found.errors[0]


def test_check_of_good_files_is_silent(tmp_path):
    text = "id,x,y\n" + "".join(f"{n},{i}.5,{i * i}\n" for n in "ab" for i in range(6))
    edges = written(tmp_path, "source,target\na,b\n", "edges.csv")
    found = examine(written(tmp_path, text), "id", "y", edges)
    assert found.warnings == [] and found.errors == []


# -- splits ---------------------------------------------------------------------------------------


def test_a_quarter_of_each_node_is_held_out():
    ids = np.repeat(["a", "b", "c", "d", "e"], [1, 2, 3, 8, 41])
    train, test = hold_out(ids, None, seed=4)
    assert sorted([*train, *test]) == list(range(len(ids)))
    found = dict(zip(*np.unique(ids[test], return_counts=True), strict=True))
    assert found == {"b": 1, "c": 1, "d": 2, "e": 10}
    assert hold_out(ids, None, seed=4)[1].tolist() == test.tolist()
    assert hold_out(ids, None, seed=5)[1].tolist() != test.tolist()


def test_rows_of_one_time_stay_together():
    ids = np.array(["a"] * 6)
    train, test = hold_out(ids, np.array([3, 1, 2, 3, 1, 3]), seed=0)
    assert test.tolist() == [0, 3, 5] and train.tolist() == [1, 2, 4]
    with pytest.raises(ValueError, match="in every node all rows have the same time"):
        hold_out(ids, np.zeros(6), seed=0)
    with pytest.raises(ValueError, match="at most half of its rows"):
        hold_out(ids, np.array([1, 2, 2, 2, 2, 2]), seed=0)


@pytest.mark.parametrize("seed", range(20))
def test_the_latest_times_nearest_to_a_quarter_are_held_out(seed):
    """Against all choices of a first time to hold out, node by node."""
    rng = np.random.default_rng(seed)
    ids = rng.choice(list("abcd"), 60, p=[0.5, 0.3, 0.15, 0.05])
    times = rng.choice(12, 60, p=np.arange(1, 13) / 78)
    _, test = hold_out(ids, times, seed=0)
    for node in np.unique(ids):
        mine = np.flatnonzero(ids == node)
        wanted = max(len(mine) // 4, 1)
        parts = [mine[times[mine] >= first] for first in range(12)]
        legal = [part for part in parts if 0 < 2 * len(part) <= len(mine)]
        best = min(legal, key=lambda part: (abs(len(part) - wanted), len(part)), default=[])
        assert [row for row in test if ids[row] == node] == list(best)


def test_folds_go_forward_in_time():
    ids = np.repeat(["a", "b"], 4)
    times = np.array([1, 2, 3, 4, 4, 3, 2, 1])
    for train, test in folds_inside(ids, times, folds=5, seed=0):
        for node in "ab":
            before, after = (times[part[ids[part] == node]] for part in (train, test))
            assert before.max() < after.min()
    with pytest.raises(ValueError, match="at least 3 training times"):
        folds_inside(ids, times > 2, folds=5, seed=0)


# -- folders --------------------------------------------------------------------------------------


def test_a_failed_write_keeps_the_old_file(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_text("a.txt", "good")

    def broken(part):
        part.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        folder.write("a.txt", broken)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "good"


def test_damaged_stages_are_done_again(tmp_path):
    folder = RunFolder(tmp_path)
    folder.save_stage("grid", {"alphas": np.array([2.0, 1.0])})
    assert folder.load_stage("grid")["alphas"].tolist() == [2.0, 1.0]
    file = folder.stage_file("grid")
    file.write_bytes(file.read_bytes()[:-30])
    assert folder.load_stage("grid") is None and folder.load_stage("none") is None
    with pytest.raises(ValueError, match="missing or damaged"):
        folder.load_path()


def test_stages_of_another_run_do_not_count(tmp_path):
    RunFolder(tmp_path, "one").save_stage("grid", {"alphas": np.array([2.0, 1.0])})
    assert RunFolder(tmp_path, "two").load_stage("grid") is None
    assert RunFolder(tmp_path, "one").load_stage("grid") is not None


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(ValueError, match="No run folder"):
        RunFolder(tmp_path / "none").read_facts()
    with pytest.raises(ValueError, match=r"no readable run\.json"):
        RunFolder(tmp_path).read_facts()
    (tmp_path / "run.json").write_text('{"format": "nefele run", "format_version": 99}')
    with pytest.raises(ValueError, match="must be a run of format 2"):
        RunFolder(tmp_path).read_facts()
