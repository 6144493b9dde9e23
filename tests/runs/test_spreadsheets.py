"""Text that a spreadsheet would run: guarded in CSV, and the same text again when read."""

import io

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nefele.runs.spreadsheets import guarded, unguarded, write_csv
from nefele.runs.tables import Table

FORMULAS = ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(A1)", "\tx", "\rx", "\n=x", " =1+1", "-"]
FORMULAS += ["\uff1d1", "'=1+1", "''@x", "+358 40 1", "--", "-a", "=", "- 5 =x"]
PLAIN = ["", "oulu", "007", "-5", "+5", "-5.5e-3", "-1,5", "'quoted'", "'-5", "a=b", " -3 ", "-inf"]
PLAIN += ["'", "''", "'''plain", "-.5", "+INF", "-NaN"]


def one(function, text):
    return function(pl.DataFrame({"id": [text]}))["id"][0]


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_are_guarded(text):
    assert one(guarded, text) == f"'{text}"
    assert one(unguarded, f"'{text}") == text


@pytest.mark.parametrize("text", PLAIN)
def test_all_else_and_numbers_stay(text):
    assert one(guarded, text) == text and one(unguarded, text) == text


@given(st.text() | st.text(alphabet="'=+-@\t\r\n 5e.a"))
@example("'=")
def test_what_is_guarded_comes_back(text):
    assert one(unguarded, one(guarded, text)) == text


@given(st.lists(st.text(alphabet="'=+-@\t 5a"), min_size=2, max_size=2, unique=True))
def test_different_ids_stay_different(texts):
    frame = guarded(pl.DataFrame({"id": texts}))
    assert frame["id"].n_unique() == 2


def test_headers_are_guarded_and_numbers_are_not():
    frame = guarded(pl.DataFrame({"=x": [-1.0], "id": ["-1"], "-5": [True]}))
    assert frame.columns == ["'=x", "id", "-5"] and frame.row(0) == (-1.0, "-1", True)
    assert unguarded(frame).columns == ["=x", "id", "-5"]


def test_guarded_headers_stay_distinct():
    names = ["=x", "'=x", "''=x"]
    frame = guarded(pl.DataFrame({name: ["a"] for name in names}))
    assert unguarded(frame).columns == names


@pytest.mark.parametrize("cell", ["a\rb", "\rb", 'say "x"', "a,b", "a\nb", "a\r\nb"])
def test_cells_with_ends_of_lines_stay_cells(cell, tmp_path):
    file = tmp_path / "a.csv"
    write_csv(pl.DataFrame({"id": [cell, "z"], "x": [1.5, None]}), file)
    found = pl.read_csv(io.BytesIO(file.read_bytes()), infer_schema=False)
    assert unguarded(found).rows() == [(cell, "1.5"), ("z", None)]
    if "\r" in cell:
        assert f'{cell}"'.encode() in file.read_bytes()


def test_a_file_with_both_forms_of_an_id_is_refused(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("id,x\n=a,1\n'=a,2\n")
    with pytest.raises(ValueError, match="apostrophe"):
        Table.read(file).ids("id")
    file.write_text("=a,'=a\n1,2\n")
    with pytest.raises(ValueError, match="distinct columns"):
        Table.read(file)


def test_ids_of_parquet_are_taken_as_they_are(tmp_path):
    frame = pl.DataFrame({"id": ["=a", "'=a"], "x": [1.0, 2.0]})
    frame.write_parquet(tmp_path / "a.parquet")
    assert Table.read(tmp_path / "a.parquet").ids("id").tolist() == ["=a", "'=a"]
    write_csv(frame, tmp_path / "a.csv")
    assert Table.read(tmp_path / "a.csv").ids("id").tolist() == ["=a", "'=a"]
