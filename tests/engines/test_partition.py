"""Data written by parts, and solved by whoever reads them."""

import json

import numpy as np
import polars as pl
import pytest

from nefele import ConvergenceWarning, Graph, LocalData, Problem, solve
from nefele.engines import partition, solve_parts
from nefele.engines.files import read_index, read_part
from nefele.losses import Logistic
from nefele.solvers import PrimalDual
from tests.engines.problems import posed, written
from tests.engines.store import store

STEPS = PrimalDual(polish=False)


NAMES = {"node": "place", "target": "y"}


@pytest.fixture(scope="module")
def problem():
    return posed()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
def test_every_row_and_edge_is_in_its_part(tmp_path, problem, text, kind):
    data, graph = problem.data, problem.graph
    paths = written(tmp_path, problem, text, kind)
    index = partition(*paths, parts=3, out=tmp_path / "parts", **NAMES)
    assert index.features == ["f0", "f1", "f2"]
    assert index.total("nodes") == graph.n_nodes and index.total("edges") == graph.n_edges
    assert index.total("rows") == data.n_rows and index.components == 1
    for number in range(3):
        part = read_part(str(tmp_path / "parts"), number, index)
        own = part.position[part.part == number]
        at = own if not text else [int(i[1:]) for i in part.ids[part.part == number]]
        expected = data.subset(np.asarray(at))
        np.testing.assert_allclose(part.X, expected.X, rtol=1e-12)
        np.testing.assert_allclose(part.y, expected.y, rtol=1e-12)
        reach = np.isin(part.head, own) | np.isin(part.tail, own)
        assert reach.all() and (part.head < part.tail).all()
        near = {k for k in part.part.tolist() if k != number}
        assert near == set(index.parts[number].neighbours)


@pytest.mark.parametrize("loss", ["squared", Logistic(l2=0.05)], ids=["squared", "logistic"])
@pytest.mark.parametrize("parts", [1, 3])
def test_the_solve_has_the_bits_of_one_process(tmp_path, loss, parts):
    problem = posed(loss)
    index = partition(*written(tmp_path, problem), parts=parts, out=tmp_path / "parts", **NAMES)
    assert len(index.parts) == parts
    options = {"tol": None, "max_iter": 40, "engine": "in_process", "intercept": False}
    fit = solve_parts(tmp_path / "parts", tmp_path / "fit", lam=problem.lam, loss=loss, **options)
    alone = solve(problem, STEPS, tol=None, max_iter=40)
    found = fit.parameters().sort("place").collect()
    assert found["place"].to_list() == problem.graph.ids.tolist()
    assert np.array_equal(found.drop("place").to_numpy(), alone.w)
    assert fit.gap == pytest.approx(alone.gap, rel=0, abs=1e-9)


def test_an_intercept_is_a_column_of_ones(tmp_path, problem):
    partition(*written(tmp_path, problem), parts=2, out=tmp_path / "parts", **NAMES)
    fit = solve_parts(tmp_path / "parts", tmp_path / "fit", lam=0.2, engine="in_process")
    data = problem.data
    X = np.hstack([data.X, np.ones((data.n_rows, 1))])
    whole = Problem(problem.graph, LocalData(X, data.y, data.ptr, data.ids), lam=0.2)
    assert fit.converged and fit.gap <= 1e-4
    assert fit.objective == pytest.approx(solve(whole, tol=1e-6).objective, rel=2e-4)
    assert fit.parameters().collect_schema().names()[-1] == "intercept"


def test_a_feature_called_intercept_is_not_replaced_by_the_intercept(tmp_path, problem):
    slope = np.arange(problem.graph.n_nodes) % 5 - 2.0
    paths = written(tmp_path, problem, intercept=slope)
    partition(*paths, parts=2, out=tmp_path / "parts", **NAMES)
    options = {"lam": 0.2, "engine": "in_process"}
    with pytest.raises(ValueError, match="No column may be called 'intercept'"):
        solve_parts(tmp_path / "parts", tmp_path / "fit", **options)
    assert not (tmp_path / "fit").exists()
    fit = solve_parts(tmp_path / "parts", tmp_path / "fit", intercept=False, **options)
    assert fit.parameters().collect_schema().names() == ["place", "f0", "f1", "f2", "intercept"]


def test_nodes_without_rows_edges_and_components(tmp_path):
    graph = Graph.from_edges([(0, 1), (1, 2), (3, 4)], nodes=range(6))
    data = LocalData.from_list(
        [([[1.0]], [2.0]), None, ([[1.0]], [5.0]), None, ([[1.0]], [7.0]), ([[2.0]], [2.0])]
    )
    problem = Problem(graph, data, lam=0.1)
    index = partition(*written(tmp_path, problem), parts=2, out=tmp_path / "parts", **NAMES)
    assert index.components == 3
    fit = solve_parts(
        tmp_path / "parts",
        tmp_path / "fit",
        lam=0.1,
        engine="in_process",
        intercept=False,
        tol=1e-8,
    )
    found = fit.parameters().sort("place").collect()["f0"].to_numpy()
    labelled = problem.data.labelled
    np.testing.assert_allclose(found[labelled], solve(problem).w[labelled, 0], atol=1e-3)
    assert found[0] - 1e-9 <= found[1] <= found[2] + 1e-9 and found[3] == pytest.approx(found[4])


def test_a_column_keeps_nodes_together(tmp_path, problem):
    region = np.arange(problem.graph.n_nodes) % 4
    paths = written(tmp_path, problem, region=region)
    index = partition(*paths, parts=2, out=tmp_path / "parts", by="region", **NAMES)
    assert "region" not in index.features
    labelled = set(np.flatnonzero(problem.data.counts).tolist())
    for number in range(2):
        part = read_part(str(tmp_path / "parts"), number, index)
        own = [i for i in part.ids[part.part == number].tolist() if i in labelled]
        assert len({bool(region[i] >= 2) for i in own}) == 1
    with pytest.raises(ValueError, match="at most the number of different values of 'region', 4"):
        partition(*paths, parts=5, out=tmp_path / "more", by="region", **NAMES)


def test_checkpoints_of_one_cut_serve_another(tmp_path, problem):
    paths = written(tmp_path, problem)
    for parts in (2, 3):
        partition(*paths, parts=parts, out=tmp_path / f"parts{parts}", **NAMES)
    options = {"lam": 0.2, "tol": None, "engine": "in_process", "intercept": False}
    whole = solve_parts(tmp_path / "parts2", tmp_path / "whole", max_iter=40, **options)
    kept = {"checkpoint": tmp_path / "kept", "every": 10}
    solve_parts(tmp_path / "parts2", tmp_path / "first", max_iter=25, **kept, **options)
    again = {"resume": tmp_path / "kept", "max_iter": 40}
    fit = solve_parts(tmp_path / "parts3", tmp_path / "second", **again, **options)
    ends = [f.parameters().sort("place").collect() for f in (whole, fit)]
    assert ends[0].equals(ends[1])


def test_a_tolerance_that_is_not_reached_is_warned_of(tmp_path, problem):
    partition(*written(tmp_path, problem), parts=2, out=tmp_path / "parts", **NAMES)
    options = {"lam": 0.2, "engine": "in_process", "tol": 1e-12, "max_iter": 60}
    with pytest.warns(ConvergenceWarning, match=r"relative gap .* > tol 1\.0e-12 .*solve it there"):
        fit = solve_parts(tmp_path / "parts", tmp_path / "fit", **options)
    assert not fit.converged and "solve it there" in fit.advice


# -- what is refused --------------------------------------------------------------------------


@pytest.fixture
def parted(tmp_path, problem):
    partition(*written(tmp_path, problem), parts=2, out=tmp_path / "parts", **NAMES)
    return tmp_path


def test_a_changed_part_is_refused(parted):
    path = parted / "parts" / "part-00001.parquet"
    frame = pl.read_parquet(path)
    frame.with_columns(component=pl.col("component") + 1).write_parquet(path)
    with pytest.raises(ValueError, match="must be as it was written; it has changed"):
        solve_parts(str(parted / "parts"), parted / "fit", lam=0.2, engine="in_process")


def test_a_torn_part_is_refused(parted):
    path = parted / "parts" / "part-00001.parquet"
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match="Part 1 must be a file written by nefele partition"):
        solve_parts(str(parted / "parts"), parted / "fit", lam=0.2, engine="in_process")


def test_a_folder_without_an_index_is_none(parted):
    (parted / "parts" / "index.parquet").unlink()
    with pytest.raises(ValueError, match=r"index\.parquet is missing, damaged"):
        read_index(str(parted / "parts"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lam": 0.0}, "lam must be"),
        ({"engine": None}, "engine must be"),
        ({"intercept": 1}, "intercept"),
        ({"out": ""}, "out must be the path of a folder"),
        ({"out": "."}, "new or empty folder"),
        ({"tol": 0}, "tol must be"),
    ],
)
def test_bad_options_of_a_solve(parted, monkeypatch, options, said):
    monkeypatch.chdir(parted)
    given = {"folder": "parts", "out": "fit", "lam": 0.2, "engine": "in_process", **options}
    with pytest.raises(ValueError, match=said):
        solve_parts(**given)
    assert not (parted / "fit").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"parts": 0}, "parts must be"),
        ({"data": "nothing.parquet"}, "there is no file"),
        ({"data": "edges.parquet"}, "must have a column 'place'"),
        ({"node": "nobody"}, "must have a column 'nobody'"),
        ({"features": ["place2"]}, "must have a column 'place2'"),
        ({"features": []}, "must have a column with a feature"),
        ({"features": ["word"]}, "Column 'word' must hold numbers"),
        ({"features": ["f0", "f0"]}, "'f0' is named twice"),
        ({"features": ["f0", "y"]}, "'y' is named twice"),
        ({"features": ["f0", "place"]}, "'place' is named twice"),
        ({"target": "place"}, "'place' is named twice"),
        ({"data": "notes.txt"}, "must be a Parquet or CSV file"),
        ({"out": "full"}, "new or empty folder"),
        ({"target": "gap"}, "Column 'gap' must hold finite numbers; row"),
    ],
)
def test_bad_input_of_a_partition(tmp_path, problem, monkeypatch, options, said):
    n = problem.graph.n_nodes
    data, edges = written(tmp_path, problem, word=np.full(n, "a"), gap=np.full(n, np.nan))
    (tmp_path / "notes.txt").write_text("not a table", encoding="utf-8")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    monkeypatch.chdir(tmp_path)
    given = {"data": data, "edges": edges, "parts": 2, "out": "parts", **NAMES}
    given |= {"features": ["f0"]} | options
    with pytest.raises(ValueError, match=said):
        partition(given.pop("data"), given.pop("edges"), **given)
    assert not (tmp_path / "parts" / "index.parquet").exists()


def test_what_cannot_be_written_as_a_whole_is_not_written(tmp_path, problem):
    last = np.where(np.arange(problem.graph.n_nodes) % 7 == 3, np.nan, 0.0)
    data, edges = written(tmp_path, problem, gap=last, region=np.isnan(last))
    options = {"parts": 2, "out": tmp_path / "parts", "by": "region", **NAMES}
    with pytest.raises(ValueError, match="Column 'gap' must hold finite numbers"):
        partition(data, edges, features=["f0", "gap"], **options)
    assert not (tmp_path / "parts").exists()
    assert len(partition(data, edges, features=["f0"], **options).parts) == 2


def test_a_table_without_rows_is_refused(tmp_path, problem):
    data, edges = written(tmp_path, problem)
    pl.read_parquet(data).head(0).write_parquet(data)
    with pytest.raises(ValueError, match="data must have rows"):
        partition(data, edges, parts=2, out=tmp_path / "parts", **NAMES)


@pytest.mark.filterwarnings("error")
def test_a_table_without_edges_costs_no_warning(tmp_path, problem):
    data, edges = written(tmp_path, problem)
    pl.read_parquet(edges).head(0).write_parquet(edges)
    index = partition(data, edges, parts=2, out=tmp_path / "parts", **NAMES)
    assert index.total("edges") == 0 and len(index.parts) == 2


def test_paths_of_an_object_store_are_those_that_polars_understands(tmp_path, problem):
    data, edges = written(tmp_path, problem)
    stored = f"file://{tmp_path}"  # in the form of s3://bucket, and without a network
    partition(f"file://{data}", f"file://{edges}", parts=2, out=f"{stored}/parts", **NAMES)
    (tmp_path / "fit").mkdir()
    options = {"lam": problem.lam, "intercept": False, "engine": "in_process", "tol": 1e-3}
    fit = solve_parts(f"{stored}/parts", f"{stored}/fit", **options)
    assert fit.converged and fit.parameters().collect().height == problem.graph.n_nodes
    names = sorted(path.name for path in (tmp_path / "fit").iterdir())
    assert names == ["part-00000.parquet", "part-00001.parquet", "result.parquet"]
    with pytest.raises(ValueError, match=r"has a file result\.parquet"):
        solve_parts(f"{stored}/parts", f"{stored}/fit", **options)
    with pytest.raises(ValueError, match=r"has a file index\.parquet"):
        partition(data, edges, parts=2, out=f"{stored}/parts", **NAMES)


def test_parts_in_a_store_that_speaks_the_protocol_of_s3(tmp_path, problem, monkeypatch):
    data, edges = written(tmp_path, problem)
    with store() as (address, files):
        for name, value in {
            "ENDPOINT_URL": address,
            "ALLOW_HTTP": "true",
            "REGION": "here",
            "ACCESS_KEY_ID": "someone",
            "SECRET_ACCESS_KEY": "something",
        }.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        for path in (data, edges):
            files[f"/houses/{path.name}"] = path.read_bytes()
        given = [f"s3://houses/{path.name}" for path in (data, edges)]
        partition(*given, parts=2, out="s3://houses/parts", **NAMES)
        options = {"lam": problem.lam, "intercept": False, "engine": "in_process", "tol": 1e-6}
        fit = solve_parts("s3://houses/parts", "s3://houses/fit", **options)
        found = fit.parameters().sort("place").collect()
    assert {"/houses/parts/index.parquet", "/houses/fit/result.parquet"} <= files.keys()
    assert fit.converged
    w = found.drop("place").to_numpy()
    assert problem.objective(w) <= (1 + 1e-6) * solve(problem, tol=1e-9).objective


def test_the_result_is_strict_json(tmp_path, problem):
    partition(*written(tmp_path, problem), parts=2, out=tmp_path / "parts", **NAMES)
    solve_parts(tmp_path / "parts", tmp_path / "fit", lam=0.1, engine="in_process", tol=1e-6)

    def refuse(name):
        raise AssertionError(name)

    text = (tmp_path / "fit" / "result.json").read_text()
    assert json.loads(text, parse_constant=refuse)["status"] == "optimal"


def test_ends_of_different_types_are_refused(tmp_path, problem):
    data, edges = written(tmp_path, problem)
    pl.read_parquet(edges).with_columns(pl.col("target").cast(pl.String)).write_parquet(edges)
    with pytest.raises(ValueError, match=r"must be of the same type; got source \(Int64\), target"):
        partition(data, edges, parts=2, out=tmp_path / "parts", **NAMES)


def test_a_checkpoint_of_other_values_is_no_start(tmp_path, problem):
    options = {"lam": 0.2, "engine": "in_process", "tol": None, "every": 10}
    rows, edges = written(tmp_path, problem)
    partition(rows, edges, parts=3, out=tmp_path / "parts", **NAMES)
    kept = tmp_path / "kept"
    solve_parts(tmp_path / "parts", tmp_path / "fit", max_iter=20, checkpoint=kept, **options)
    again = {"resume": kept, "checkpoint": kept, "max_iter": 30}
    other_cut = partition(rows, edges, parts=2, out=tmp_path / "cut", **NAMES)
    fit = solve_parts(tmp_path / "cut", tmp_path / "fit2", **again, **options)
    assert len(other_cut.parts) == 2 and fit.n_iter == 30
    table = pl.read_parquet(rows)
    table.with_columns(pl.col("y") + pl.Series(np.eye(len(table))[0])).write_parquet(rows)
    partition(rows, edges, parts=3, out=tmp_path / "changed", **NAMES)
    with pytest.raises(ValueError, match="the problem differs"):
        solve_parts(tmp_path / "changed", tmp_path / "fit3", **again, **options)


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_the_sum_over_the_content_of_parts_does_not_know_the_cut(tmp_path, problem, parts):
    paths = written(tmp_path, problem)
    cuts = [partition(*paths, parts=k, out=tmp_path / f"p{k}", **NAMES) for k in (3, parts)]
    assert len({cut.total("content") % 2**64 for cut in cuts}) == 1


def test_short_and_long_numbers_are_the_same_ids(tmp_path, problem):
    rows, edges = written(tmp_path, problem)
    pl.read_parquet(rows).with_columns(pl.col("place").cast(pl.Int32)).write_parquet(rows)
    index = partition(rows, edges, parts=2, out=tmp_path / "parts", **NAMES)
    assert index.total("rows") == problem.data.n_rows
    assert index.total("nodes") == problem.graph.n_nodes


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (pl.col("place") * 0 + pl.int_range(pl.len()), "one value for each node; node .* has sev"),
        (pl.when(pl.col("place") > 3).then(1), "must have a value; node 0 has none"),
    ],
)
def test_what_keeps_nodes_together_is_one_value_of_each(tmp_path, problem, change, text):
    rows, edges = written(tmp_path, problem)
    pl.read_parquet(rows).with_columns(change.alias("region")).write_parquet(rows)
    with pytest.raises(ValueError, match=text):
        partition(rows, edges, parts=2, out=tmp_path / "parts", by="region", **NAMES)
    assert not (tmp_path / "parts").exists()


def test_nodes_without_rows_are_counted(tmp_path, problem):
    rows, edges = written(tmp_path, problem)
    pl.read_parquet(rows).filter(pl.col("place") != 1).write_parquet(rows)
    said = []
    partition(rows, edges, parts=2, out=tmp_path / "parts", say=said.append, **NAMES)
    bare = problem.graph.n_nodes - (np.delete(problem.data.counts, 1) > 0).sum()
    assert said[-1].startswith(f"{bare} nodes have edges and no rows")
