"""`nefele graph`: candidates for a data file, judged at held-out rows, the best one written."""

import contextlib
import json
import os
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import nefele
from nefele import GraphSelectorCV
from nefele.estimators.graph_trials import Trial
from nefele.runs.candidates import KINDS
from nefele.runs.config import RunConfig
from nefele.runs.edges import write_edges
from nefele.runs.graphs import compare_graphs
from nefele.selection import Verdict
from tests.e2e.commands import process, refused, run

GRAPH = ("graph", "shops.csv", "--node", "shop", "--target", "sales")
FEATURES = "price,rain,wind"
QUICK = ("--n-alphas", "5")
ROUGH = ("--n-alphas", "3", "--folds", "3")  # where it is not the verdict that counts


def shops(n_nodes=16, n_rows=10, seed=0, slope=1.0):
    """Two kinds of shops, told apart by how sales follow prices and weather, by nothing else."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_nodes), n_rows)
    X = rng.normal(size=(len(owner), 3))
    sales = np.where(owner % 2, slope, -slope) * X.sum(axis=1) + rng.normal(size=len(owner))
    return pl.DataFrame(
        {
            "shop": [f"{i:03d}" for i in owner],
            **{name: X[:, j] for j, name in enumerate(FEATURES.split(","))},
            "x": (owner % 4).astype(float),
            "y": (owner // 4).astype(float),
            "day": np.tile(np.arange(n_rows), n_nodes),
            "sales": sales,
        }
    )


def random_edges(n_nodes=16, seed=1):
    """A graph that says nothing: everyone has an edge, to whomever."""
    place = np.random.default_rng(seed).permutation(n_nodes)
    ids = np.array([f"{i:03d}" for i in place])
    return pl.DataFrame({"source": ids, "target": np.roll(ids, 1)})


def design(data):
    """Features and a constant."""
    return np.column_stack([*data.select(FEATURES.split(",")), np.ones(len(data))])


def read_edges(path):
    return pl.read_csv(path, schema_overrides={"source": pl.String, "target": pl.String})


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with planted groups, a graph that says nothing, and what was found and written."""
    folder = tmp_path_factory.mktemp("home")
    shops().write_csv(folder / "shops.csv")
    random_edges().write_csv(folder / "random.csv")
    args = (*GRAPH, "--features", FEATURES, "--graph", "random.csv", "--try", "losses")
    done = process(*args, *QUICK, "--out", "edges.csv", "--picture", "graphs.svg", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "text.txt").write_text(done.stdout, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def facts(home):
    args = (*GRAPH, "--features", FEATURES, "--graph", "random.csv", "--try", "losses")
    done = run(*args, *QUICK, "--out", "edges.csv", "--force", "--json", cwd=home)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def of(facts, name):
    return next(row for row in facts["graphs"] if row["graph"] == name)


# -- the comparison -------------------------------------------------------------------------------


def test_the_right_graph_wins_and_the_random_one_is_rejected(facts):
    assert facts["best"] == "losses" and facts["helps"]
    assert of(facts, "losses")["helps"] and not of(facts, "given")["helps"]
    assert [row["graph"] for row in facts["graphs"] if row["reference"]] == [
        facts["reference"],
        *({"no edges", "one clique"} - {facts["reference"]}),
    ]
    errors = [row["error"] for row in facts["graphs"]]
    assert errors == sorted(errors) and facts["metric"] == "mean squared error"
    for row in facts["graphs"]:
        assert row["error"] == pytest.approx(np.mean(row["fold_errors"]))
        gain = np.subtract(of(facts, facts["reference"])["fold_errors"], row["fold_errors"])
        assert row["gain"] == pytest.approx(gain.mean())
        assert row["gain_se"] >= gain.std(ddof=1) / np.sqrt(5) * (1 - 1e-9)


def test_without_edges_the_errors_are_those_of_least_squares(facts):
    from nefele.runs.split import folds_inside

    data = shops()
    ids = data["shop"].to_numpy().astype(str)
    A, y = design(data), data["sales"].to_numpy()
    expected = []
    for train, test in folds_inside(ids, None, 5, 0):
        errors = []
        for node in np.unique(ids):
            mine, held = (part[ids[part] == node] for part in (train, test))
            w = np.linalg.lstsq(A[mine], y[mine], rcond=None)[0]
            errors.append((A[held] @ w - y[held]) ** 2)
        expected.append(np.concatenate(errors).mean())
    assert of(facts, "no edges")["fold_errors"] == pytest.approx(expected, rel=1e-4)


def test_the_text_says_what_is_in_the_table_and_what_to_do_next(home):
    text = (home / "text.txt").read_text(encoding="utf-8")
    for words in ("one clique", "over shuffled", "mean squared error", " ± ", '"losses" helps:'):
        assert words in text
    assert 'of "losses", learnt from all rows, to edges.csv.' in text
    assert "its errors would look better than they are" in text
    command = "fit shops.csv --node shop --target sales --features price,rain,wind"
    assert f"Next: nefele {command} --graph learn:losses\n" in text
    assert "\x1b" not in text and "\r" not in text
    assert (home / "graphs.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_the_written_graph_is_learnt_from_all_rows(home, facts):
    from nefele.graph_learning import LossGraph
    from nefele.graph_learning.builders import TrainingRows

    data, found = shops(), read_edges(home / "edges.csv")
    rows = TrainingRows(
        design(data)[:, :3],
        data.select("sales").to_numpy(),
        data["shop"].to_numpy().astype(str),
        np.ones(len(data)),
    )
    graph = LossGraph(5).fit_graph(rows)
    assert found["source"].to_list() == graph.ids[graph.head].tolist()
    assert found["target"].to_list() == graph.ids[graph.tail].tolist()
    assert facts["written"]["edges"] == len(found) == of(facts, "losses")["edges"]
    same = found["source"].cast(int) % 2 == found["target"].cast(int) % 2
    assert same.mean() > 0.9


@pytest.mark.parametrize("source", ["learn:losses", "edges.csv"])
def test_the_graph_makes_the_fit_better_than_own_data(home, facts, source):
    words = facts["next"].split()[1:]
    assert words[-1] == "learn:losses"
    out = "fit-" + source.replace(":", "-")
    done = run(*words[:-1], source, *QUICK, "--out", out, "--json", cwd=home)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)["summary"]
    assert summary["helps"] in ("yes", "probably")
    assert summary["scores"]["nefele"] < summary["scores"]["own data only"]


def test_when_none_helps_none_is_written_unless_it_is_kept(tmp_path):
    shops(slope=0.0).write_csv(tmp_path / "shops.csv")
    args = (*GRAPH, "--features", FEATURES, "--try", "losses", "--out", "edges.csv", *ROUGH)
    done = run(*args, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "No graph helps" in done.stdout and "No edges were written" in done.stdout
    assert "--keep losses" in done.stdout and "Kept" not in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["shops.csv"]
    kept = run(*args, "--keep", "losses", cwd=tmp_path)
    assert kept.returncode == 0 and "No graph helps" in kept.stdout
    assert set(read_edges(tmp_path / "edges.csv")["source"]) <= set(shops()["shop"])
    before = (tmp_path / "edges.csv").read_bytes()
    assert "left as it was" in run(*args, "--force", cwd=tmp_path).stdout
    assert (tmp_path / "edges.csv").read_bytes() == before
    clique = run(*args, "--force", "--keep", "one clique", "--json", cwd=tmp_path)
    assert json.loads(clique.stdout)["written"]["edges"] == 16 * 15 / 2


def judged(errors, shuffled):
    """A selector that found these errors at three nodes, in as many folds."""
    found = GraphSelectorCV()

    def trial(values):
        values, flat = np.array(values), np.full(3, 9.0)
        return Trial(1.0, -values, Verdict(flat, flat, values, np.ones(3)), 5)

    references = {"no edges": [5.0, 5.0, 5.1], "one clique": [4.0, 4.0, 4.1]}
    found.trials_ = {
        name: trial(values) for name, values in {**references, "losses": errors}.items()
    }
    found._judge({"losses": [trial(shuffled)]})
    return found


def test_a_clear_gain_that_shuffled_copies_nearly_reach_is_explained():
    found = judged([3.0, 3.1, 3.0], shuffled=[3.0, 3.0, 4.0])
    assert not found.helps_ and found.gain_ > 5 * found.gain_se_
    assert found.summary().splitlines()[-1] == (
        'No graph helps: the best, "losses", gains 1 ± 0.058 over one clique, and 0.3 ± 0.35 '
        "over its shuffled copies; not both are clear. Kept: one clique."
    )


def test_a_gain_below_one_percent_is_not_worth_a_file():
    found = judged([3.97, 3.971, 4.07], shuffled=[4.2, 4.2, 4.3])
    assert not found.helps_ and found.gain_ > 5 * found.gain_se_
    assert "which is less than 1% of the error" in found.summary().splitlines()[-1]


def test_coordinates_give_the_graph_that_fit_makes_of_them(home):
    args = (*GRAPH, "--features", FEATURES, "--coords", "x,y", "--k", "2", *ROUGH)
    args += ("--try", "nearest,delaunay", "--keep", "nearest", "--out", "near.parquet", "--json")
    done = run(*args, cwd=home)
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert facts["written"]["learnt"] is False and "--coords x,y" in facts["next"]
    place = shops().unique("shop", keep="first").sort("shop")
    graph = nefele.graphs.knn(place.select("x", "y").to_numpy(), 2, nodes=place["shop"].to_list())
    found = pl.read_parquet(home / "near.parquet")
    pairs = zip(graph.ids[graph.head].tolist(), graph.ids[graph.tail].tolist(), strict=True)
    assert list(found.select("source", "target").iter_rows()) == list(pairs)


def test_classification(tmp_path):
    data = shops(n_rows=20)
    rng = np.random.default_rng(5)
    often = np.where(data["shop"].cast(int).to_numpy() % 2, 0.9, 0.1)
    kinds = np.where(rng.random(len(data)) < often, "many", "few")
    data.with_columns(pl.Series("sales", kinds)).write_csv(tmp_path / "shops.csv")
    args = (*GRAPH, "--features", FEATURES, "--task", "classification", "--try", "labels", *QUICK)
    done = run(*args, "--out", "edges.csv", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "log loss" in done.stdout and '"labels" helps' in done.stdout
    assert "--task classification --graph learn:labels" in done.stdout
    found = read_edges(tmp_path / "edges.csv")
    assert (found["source"].cast(int) % 2 == found["target"].cast(int) % 2).mean() > 0.9


def test_forward_in_time(home):
    args = (*GRAPH, "--features", FEATURES, "--time", "day", "--try", "losses", "--folds", "3")
    done = run(*args, *QUICK, "--keep", "losses", "--out", "late.csv", "--json", cwd=home)
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    data = shops()
    first, second = data.filter(pl.col("day") < 8), data.filter(pl.col("day") >= 8)
    errors = []
    for node in data["shop"].unique():
        a, b = (part.filter(pl.col("shop") == node) for part in (first, second))
        w = np.linalg.lstsq(design(a), a["sales"].to_numpy(), rcond=None)[0]
        errors.append((design(b) @ w - b["sales"].to_numpy()) ** 2)
    found = of(facts, "no edges")["fold_errors"]
    assert len(found) == 3 and found[2] == pytest.approx(np.concatenate(errors).mean(), rel=1e-4)
    assert "--time day" in facts["next"]


# -- candidates -----------------------------------------------------------------------------------


def test_what_cannot_be_made_is_left_out_with_a_line(tmp_path):
    shops(n_rows=2).write_csv(tmp_path / "shops.csv")
    args = (*GRAPH, "--features", FEATURES, "--folds", "2", *QUICK)
    done = run(*args, "--try", "pooling,moments", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Left out: pooling: " in done.stdout and "more rows than parameters" in done.stdout
    text = refused(*args, "--try", "pooling", "--out", "x.csv", cwd=tmp_path)
    assert "none is left" in text and "more rows than parameters" in text
    text = refused(*args, "--try", "moments,pooling", "--keep", "pooling", cwd=tmp_path)
    assert "--keep pooling is not possible" in text


def test_the_usual_candidates(home):
    from nefele.runs.graphs import choose_kinds

    plain = RunConfig("shops.csv", "shop", "sales")
    assert choose_kinds(plain, None, None)[0] == ["moments", "wasserstein", "losses"]
    assert list(choose_kinds(plain, None, None)[1]) == ["nearest", "delaunay"]
    full = RunConfig("a", "b", "c", graph="e", coords=("x", "y"), task="classification")
    names, left_out = choose_kinds(full, None, "pooling")
    assert names == [*list(KINDS)[:7], "pooling"] and left_out == {}


def test_help_names_all_candidates(home):
    text = " ".join(run("graph", "--help", cwd=home).stdout.replace("│", " ").split())
    for name in KINDS:
        assert name in text


def test_progress_comes_to_its_end(home):
    seen, totals = [], []

    @contextlib.contextmanager
    def progress(total):
        totals.append(total)
        yield lambda name, gap: seen.append(name)

    config = RunConfig(str(home / "shops.csv"), "shop", "sales", n_alphas=2, folds=2, tol=1e-2)
    compare_graphs(config, ("moments", "losses"), None, progress)
    assert totals == [len(seen)]
    assert {"no edges", "moments: edges", "losses", "losses, shuffled"} <= set(seen)


# -- files ----------------------------------------------------------------------------------------


def test_ids_come_back_as_they_were(tmp_path):
    from nefele.runs.edges import edge_graph

    ids = ["007", "7", "a,b", 'say "x"', "Jyväskylä", "1.0", "NA", "x;y|z"]
    graph = nefele.Graph(ids, range(7), range(1, 8), np.geomspace(1e-9, 1 / 3, 7))
    for name in ("edges.csv", "edges.parquet"):
        write_edges(graph, tmp_path / "new" / name)
        found, notes = edge_graph(tmp_path / "new" / name, np.array(ids), allow_isolates=False)
        assert notes == [] and sorted(found.ids.tolist()) == sorted(ids)
        for i in range(7):
            assert ids[i + 1] in found.neighbors(ids[i])
        assert sorted(found.weight) == graph.weight.tolist()


def test_files_are_replaced_only_by_force(home):
    before = (home / "edges.csv").read_bytes()
    for option, name in (("--out", "edges.csv"), ("--picture", "graphs.svg")):
        text = refused(*GRAPH, option, name, cwd=home)
        assert f"'{name}' is there already" in text and "--force" in text
    assert (home / "edges.csv").read_bytes() == before
    for name in ("shops.csv", "random.csv"):
        text = refused(*GRAPH, "--graph", "random.csv", "--out", name, "--force", cwd=home)
        assert "must be another file than the data" in text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--try", "loss"), 'No graph "loss". Did you mean "losses"?'),
        (("--try", "friends"), "Available: given, nearest, delaunay, moments, wasserstein"),
        (("--try", "moments,nearest"), 'The graph "nearest" needs --coords'),
        (("--try", "labels"), 'The graph "labels" needs --task classification'),
        (("--try", "moments", "--keep", "losses"), 'No graph to keep "losses"'),
        (("--keep", "given"), 'The graph "given" needs --graph'),
        (("--graph", "learn:losses"), "Name learnt graphs by --try losses"),
        (("--out", "edges.txt"), "--out must end in .csv or .parquet or .pq"),
        (("--picture", "graphs.pdf"), "--picture must end in .svg or .png"),
        (("--graph", "none.csv"), "No file 'none.csv'"),
        (("--features", "prise"), 'No column "prise" in shops.csv. Did you mean "price"?'),
        (("--penalty", "l3"), 'No penalty "l3"'),
        (("--folds", "1"), "folds must be"),
        (("--k", "0"), "k must be"),
    ],
)
def test_bad_input_is_refused(home, args, message):
    assert message in refused(*GRAPH, *args, cwd=home)
    assert not (home / "nefele-graph-shops.csv").exists()


def test_one_node_has_no_graph(tmp_path):
    shops(n_nodes=1).write_csv(tmp_path / "shops.csv")
    assert "2 nodes or more" in refused(*GRAPH, cwd=tmp_path)
    shops(n_rows=1).write_csv(tmp_path / "shops.csv")
    assert "at most 1 row" in refused(*GRAPH, cwd=tmp_path)


def test_edges_that_lack_a_node_need_permission(home):
    random_edges()[:5].write_csv(home / "short.csv")
    args = (*GRAPH, "--features", FEATURES, "--graph", "short.csv", "--try", "given", *ROUGH)
    assert "--allow-isolates" in refused(*args, cwd=home)
    args += ("--allow-isolates", "--keep", "given", "--out", "again.csv", "--json")
    facts = json.loads(run(*args, cwd=home).stdout)
    assert facts["written"]["edges"] == 5 and "--allow-isolates" in facts["next"]


# -- interrupted ----------------------------------------------------------------------------------

STOPPED = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from nefele.runs.folder import RunFolder
whole = RunFolder.write
def write(self, name, fill):
    def stopped(part):
        fill(part)
        os.kill(os.getpid(), signal.SIGINT)
    whole(self, name, stopped)
RunFolder.write = write
from nefele.cli import main
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_leaves_nothing_half_written(tmp_path):
    shops().write_csv(tmp_path / "shops.csv")
    args = [*GRAPH, "--features", FEATURES, "--try", "losses", "--keep", "losses", *ROUGH]
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, *args],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")
    assert [p.name for p in tmp_path.iterdir()] == ["shops.csv"]
