"""Parts that are written by hand: what cannot be a part, and parts that do not agree."""

import dataclasses

import numpy as np
import pytest

from nefele.engines import PartsIndex, PartTable, solve_parts, write_index, write_part
from nefele.engines.files import read_index

TWO, ONE = np.array([0, 1]), np.ones(1)
FIRST = PartTable(
    position=TWO,
    part=TWO,
    component=0 * TWO,
    ids=TWO,
    counts=np.array([1, 0]),
    X=np.ones((1, 1)),
    y=ONE,
    head=TWO[:1],
    tail=TWO[1:],
    weight=ONE,
)
SECOND = dataclasses.replace(FIRST, counts=np.array([0, 1]), y=3 * ONE)


def index_of(*entries):
    return PartsIndex(["x"], "y", "node", 1, list(entries))


def entries(folder, first=FIRST, second=SECOND):
    tables = enumerate((first, second))
    return [write_part(str(folder), number, table, ["x"]) for number, table in tables]


def test_parts_that_agree_are_solved(tmp_path):
    write_index(str(tmp_path), index_of(*entries(tmp_path)))
    fit = solve_parts(tmp_path, tmp_path / "fit", lam=0.1, intercept=False, engine="in_process")
    assert fit.converged


LONELY = dataclasses.replace(
    FIRST,
    position=TWO[:1],
    part=TWO[:1],
    component=TWO[:1],
    ids=TWO[:1],
    counts=np.array([1]),
    head=TWO[:0],
    tail=TWO[:0],
    weight=ONE[:0],
)


@pytest.mark.parametrize(
    "first",
    [
        LONELY,
        dataclasses.replace(FIRST, weight=5 * ONE),
        dataclasses.replace(FIRST, tail=np.array([2]), position=np.array([0, 2])),
    ],
    ids=["no edge", "another weight", "another node"],
)
def test_parts_that_differ_in_what_is_between_them_are_refused(tmp_path, first):
    both = entries(tmp_path, first)
    with pytest.raises(ValueError, match="must have the same edges between them; parts"):
        write_index(str(tmp_path), index_of(*both))


def test_an_index_of_parts_that_differ_is_refused_when_it_is_read(tmp_path, monkeypatch):
    both = entries(tmp_path, LONELY)
    monkeypatch.setattr("nefele.engines.files.check_index", lambda index: None)
    write_index(str(tmp_path), index_of(*both))
    monkeypatch.undo()
    with pytest.raises(ValueError, match="must have the same edges between them"):
        read_index(str(tmp_path))


def test_an_index_must_have_all_parts_and_their_components(tmp_path):
    both = entries(tmp_path)
    with pytest.raises(ValueError, match="An index must have all parts; part 0 has edges to"):
        write_index(str(tmp_path), index_of(both[0]))
    with pytest.raises(ValueError, match="must be a PartsIndex; got NoneType"):
        write_index(str(tmp_path), None)
    with pytest.raises(ValueError, match="must have parts"):
        write_index(str(tmp_path), index_of())
    far = dataclasses.replace(FIRST, component=np.array([5, 5]))
    with pytest.raises(ValueError, match="part 0 has a node of component 5"):
        write_index(str(tmp_path), index_of(*entries(tmp_path, far)))
    assert not (tmp_path / "index.parquet").exists()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"X": np.full((1, 1), np.nan)}, r"X\[0, 0\] of part 0"),
        ({"y": np.full(1, np.inf)}, r"y\[0\] of part 0"),
        ({"weight": -ONE}, "weight must be > 0; got -1"),
        ({"weight": np.ones(2)}, "an entry for each edge"),
        ({"counts": np.array([3, 0])}, "as many rows as counts say, 3"),
        ({"counts": np.array([0, 1])}, "counts must be 0 for nodes of others"),
        ({"counts": np.array([0.5, 0])}, "counts must be whole numbers"),
        ({"X": np.ones((1, 2))}, "features must name the 2 columns"),
        ({"head": np.array([7])}, "7 is not"),
        ({"head": np.array([1]), "tail": np.array([0])}, "head < tail"),
        ({"position": TWO[::-1]}, "position must be ascending"),
        ({"position": TWO - 1}, "position must be >= 0"),
        ({"ids": TWO[:1]}, "ids must have an entry for each of the 2 nodes"),
        ({"part": np.array([2, 1])}, "none of these nodes is in part 0"),
        ({"head": TWO[:0], "tail": TWO[:0], "weight": ONE[:0]}, "Nodes of others must be at"),
    ],
)
def test_a_table_that_cannot_be_a_part_is_not_written(tmp_path, changed, said):
    table = dataclasses.replace(FIRST, **changed)
    with pytest.raises(ValueError, match=said):
        write_part(str(tmp_path), 0, table, ["x"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("number", "features", "said"),
    [
        (-1, ["x"], "number must be"),
        ("a", ["x"], "number must be"),
        (5, ["x"], "none of these nodes is in part 5"),
        (0, ["x", "z"], "features must name the 1 columns"),
        (0, "x", "features must be a list"),
        (0, [], "features must be a list"),
    ],
)
def test_numbers_and_names_of_a_part(tmp_path, number, features, said):
    with pytest.raises(ValueError, match=said):
        write_part(str(tmp_path), number, FIRST, features)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "changed",
    [{"neighbours": 3}, {"neighbours": ["a"]}, {"shared": [1, 2, 3], "neighbours": []}],
    ids=str,
)
def test_an_index_with_other_values_is_damaged(tmp_path, monkeypatch, changed):
    first, second = entries(tmp_path)
    monkeypatch.setattr("nefele.engines.files.check_index", lambda index: None)
    write_index(str(tmp_path), index_of(dataclasses.replace(first, **changed), second))
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"is missing, damaged|the same edges between them"):
        read_index(str(tmp_path))
