"""What the columns of tables by parts must hold, and into how many parts a column cuts."""

import datetime

import numpy as np
import polars as pl
import pytest

from nefele.engines import partition
from nefele.engines.files import read_part

NAMES = {"node": "place", "target": "y"}


def whole_or_text(folder, rows, edges, parts=2, **options):
    for name, frame in (("rows", rows), ("edges", edges)):
        if isinstance(frame, str):
            (folder / f"{name}.csv").write_text(frame, encoding="utf-8")
        else:
            frame.write_parquet(folder / f"{name}.parquet")
    paths = [
        folder / f"{name}.{'csv' if isinstance(frame, str) else 'parquet'}"
        for name, frame in (("rows", rows), ("edges", edges))
    ]
    given = {"parts": parts, "out": folder / "parts", **NAMES, **options}
    return partition(*paths, **given)


def rows_of(kind):
    place = [kind(k) for k in (0, 0, 1, 2, 3)]
    return pl.DataFrame({"place": place, "x": [1.0, 2, 3, 4, 5], "y": [1.0, 2, 3, 4, 5]})


def edges_of(kind):
    ends = [[kind(k) for k in some] for some in ([0, 1, 2], [1, 2, 3])]
    return pl.DataFrame({"source": ends[0], "target": ends[1]})


@pytest.mark.parametrize("wrong", [float, int], ids=["both floats", "one of them"])
def test_whole_floats_are_whole_numbers(tmp_path, wrong):
    index = whole_or_text(tmp_path, rows_of(float), edges_of(wrong))
    ids = read_part(str(tmp_path / "parts"), 0, index).ids
    assert index.total("rows") == 5 and ids.dtype == np.int64


def test_categories_are_text(tmp_path):
    kind = pl.col("place").cast(pl.Categorical)
    rows = rows_of(lambda k: f"n{k}").with_columns(kind)
    assert whole_or_text(tmp_path, rows, edges_of(lambda k: f"n{k}")).total("rows") == 5


DAY = datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("rows", "edges", "said"),
    [
        (rows_of(lambda k: k + 0.5), edges_of(int), "must hold whole numbers below"),
        (rows_of(lambda k: None if k == 2 else k), edges_of(int), "'place' of data must have an"),
        (rows_of(lambda k: np.nan if k == 2 else float(k)), edges_of(int), "row 3 of .* has none"),
        (rows_of(int), edges_of(lambda k: None if k == 2 else k), "'source' of edges must have"),
        (rows_of(lambda k: k % 2 == 0), edges_of(int), "it holds Boolean"),
        (rows_of(lambda k: DAY + datetime.timedelta(k)), edges_of(int), "it holds Date"),
        (
            rows_of(int).with_columns(pl.col("place").cast(pl.UInt64) + 2**63),
            edges_of(int),
            "must hold whole numbers below",
        ),
        (rows_of(int), "source,target\n0,1\n1,2,3,4\n", "edges must be a table"),
        (
            rows_of(int),
            "source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(200)) + "x,y\n",
            "edges must be a table",
        ),
        (
            "place,x,y\n" + "".join(f"{i % 4},{i},1\n" for i in range(200)) + "3,zz,1\n",
            edges_of(int),
            "data must be a table",
        ),
        (rows_of(int), edges_of(int).with_columns(weight=pl.lit("1")), "'weight' of edges"),
    ],
)
def test_columns_that_are_no_ids_or_not_what_they_begin_with(tmp_path, rows, edges, said):
    with pytest.raises(ValueError, match=said):
        whole_or_text(tmp_path, rows, edges)
    assert not (tmp_path / "parts").exists()


def test_a_table_of_edges_with_names_alone_has_no_edges(tmp_path):
    index = whole_or_text(tmp_path, rows_of(int), "source,target,weight\n")
    assert index.total("edges") == 0 and index.total("nodes") == 4


def test_features_are_a_list(tmp_path):
    with pytest.raises(ValueError, match="features must be a list of columns; got 'x'"):
        whole_or_text(tmp_path, rows_of(int), edges_of(int), features="x")


def test_a_column_makes_as_many_parts_as_asked_for(tmp_path):
    pairs = pl.DataFrame({"source": range(7), "target": range(1, 8)})
    table = {"place": range(8), "by": ["a"] * 6 + ["b", "c"], "x": [1.0] * 8, "y": [1.0] * 8}
    index = whole_or_text(tmp_path, pl.DataFrame(table), pairs, parts=3, by="by")
    assert [part.nodes for part in index.parts] == [6, 1, 1]


def test_out_must_be_a_folder_that_can_be_made(tmp_path, monkeypatch):
    def refused(*arguments, **options):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("nefele.engines.places.Path.mkdir", refused)
    with pytest.raises(ValueError, match=r"out must be a folder that can be made; .*No such file"):
        whole_or_text(tmp_path, rows_of(int), edges_of(int))
