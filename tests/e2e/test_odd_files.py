"""Files that are not what they should be: one clear line, before any work, and no traceback."""

import io
import os
import sys

import numpy as np
import polars as pl
import pytest

from tests.e2e.commands import FIT, edges, process, refused, run, weather

FAST = ("--alpha", "1", "--n-alphas", "2")
NODE = ("--node", "station", "--target", "tmax")


@pytest.fixture
def home(tmp_path):
    weather().write_csv(tmp_path / "weather.csv")
    edges().write_csv(tmp_path / "edges.csv")
    return tmp_path


def short(text):
    """One line that fits on a screen."""
    assert text.count("\n") == 1 and len(text) < 600, text[:2000]
    return text


def long_rows(n_rows=6000):
    """A file of more than 128 KB, line by line, with a column of text at the end."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n_rows, 2))
    head = "station,wind,tmax,note"
    return [head, *(f"s{i % 10},{a:.6f},{b:.6f},fair" for i, (a, b) in enumerate(values))]


@pytest.mark.parametrize(
    ("old", "new"),
    [("fair", '"fair'), ("fair", 'fa"ir'), ("fair", '"fa"ir'), ("s9,", '"s9,'), ("s9,", 's9,"')],
)
@pytest.mark.parametrize("n_rows", [50, 6000])
def test_a_stray_quotation_mark_is_found(home, old, new, n_rows):
    lines = long_rows(n_rows)
    lines[20] = lines[20].replace(old, new)
    assert new in lines[20]
    (home / "stray.csv").write_text("\n".join(lines) + "\n")
    for command in ("check", "fit"):
        text = short(refused(command, "stray.csv", *NODE, cwd=home))
        assert "quotation mark" in text and "line 21" in text


def test_two_stray_marks_do_not_swallow_the_rows_between_them(home):
    lines = long_rows()
    lines[20] = lines[20].replace("fair", '"fair')
    lines[5000] = lines[5000].replace("fair", 'fair"')
    (home / "stray.csv").write_text("\n".join(lines) + "\n")
    text = short(refused("check", "stray.csv", *NODE, cwd=home))
    assert "quotation mark" in text and "line 21" in text


def test_long_texts_in_quotation_marks_are_read(home):
    story = "once, upon\na time, there was\n" * 50
    frame = weather().with_columns(pl.lit(story).alias("note"))
    frame.write_csv(home / "notes.csv")
    assert run("check", "notes.csv", *NODE, cwd=home).returncode == 0


def test_a_long_value_is_shown_in_short(home):
    frame = weather().with_columns(pl.col("wind").cast(pl.String))
    frame[7, "wind"] = "calm " * 10_000
    frame.write_csv(home / "long.csv")
    assert "at line 9" in short(refused("fit", "long.csv", *NODE, cwd=home))
    short(refused("fit", "weather.csv", "--node", "no " * 10_000, *NODE[2:], cwd=home))


def test_ends_of_lines_of_old_macs(home):
    (home / "mac.csv").write_bytes((home / "weather.csv").read_bytes().replace(b"\n", b"\r"))
    text = short(refused("fit", "mac.csv", *NODE, cwd=home))
    assert "LF or CRLF" in text and "CR alone" in text


@pytest.mark.parametrize("name", ['"wi\nnd"', '"wi\r\nnd"', '"wind'])
def test_a_header_is_one_line(home, name):
    text = (home / "weather.csv").read_text().replace("wind", name, 1)
    (home / "odd.csv").write_bytes(text.encode())
    assert "header in one line" in short(refused("check", "odd.csv", *NODE, cwd=home))


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_other_odd_characters_in_a_header_are_letters(home, character):
    name = f"wi{character}nd"
    weather().rename({"wind": name}).write_csv(home / "odd.csv")
    args = ("fit", "odd.csv", *NODE, "--features", name, *FAST, "--out", "odd")
    assert run(*args, cwd=home).returncode == 0
    assert pl.read_csv(home / "odd/coef.csv").columns == ["node", name, "intercept"]


def test_a_long_header_is_read(home):
    names = [f"a column with a long name, number {i}" for i in range(5000)]
    more = pl.DataFrame({name: np.zeros(120) for name in names})
    pl.concat([weather(), more], how="horizontal").write_csv(home / "wide.csv")
    found = run("check", "wide.csv", *NODE, cwd=home)
    assert found.returncode == 0 and "120 rows, 5007 columns" in found.stdout


@pytest.mark.parametrize("write", ["write_ipc", "write_ipc_stream"])
@pytest.mark.parametrize("name", ["weather.feather", "weather.csv", "weather.parquet"])
def test_arrow_files_are_named(home, write, name):
    getattr(weather(), write)(home / name)
    for command in ("check", "fit"):
        text = short(refused(command, name, *NODE, cwd=home))
        assert "Arrow" in text and "Parquet or CSV" in text


NESTED = {
    "list": pl.Series([[1.0, 2.0]] * 120),
    "struct": pl.Series([{"a": 1.0, "b": "x"}] * 120),
    "array": pl.Series([[1.0, 2.0]] * 120, dtype=pl.Array(pl.Float64, 2)),
    "binary": pl.Series([b"\xff\xfe"] * 120),
}


@pytest.mark.parametrize("kind", NESTED)
def test_nested_columns_of_parquet(home, kind):
    weather().with_columns(NESTED[kind].alias("box")).write_parquet(home / "box.parquet")
    fit = ("fit", "box.parquet")
    for args in (
        (*fit, "--node", "box", "--target", "tmax"),
        (*fit, "--node", "station", "--target", "box"),
        (*fit, "--node", "station", "--target", "box", "--task", "classification"),
        (*fit, *NODE, "--features", "box,wind"),
        (*fit, *NODE, "--time", "box"),
        (*fit, *NODE, "--coords", "box,lon"),
        ("check", "box.parquet", "--node", "box", "--target", "tmax"),
        ("graph", "box.parquet", "--node", "box", "--target", "tmax"),
    ):
        text = short(refused(*args, cwd=home))
        assert '"box"' in text and kind.lower() in text.lower()
    done = run("check", "box.parquet", *NODE, cwd=home)
    assert done.returncode == 0 and "no features: box (it holds neither" in done.stdout
    done = run(*fit, *NODE, *FAST, "--out", "first", cwd=home)
    assert done.returncode == 0 and "no features: box (it holds neither" in done.stdout
    text = refused("predict", "first", "box.parquet", "--out", "new.csv", cwd=home)
    assert '"box"' in text and ".parquet" in text
    assert run("predict", "first", "box.parquet", "--out", "new.parquet", cwd=home).returncode == 0


@pytest.mark.parametrize("value", [1e300, -1e300, 2.0**53, np.inf, -np.inf])
def test_float_ids_that_are_no_ids(home, value):
    ids = pl.col("station").cast(pl.Float64)
    frame = weather().with_columns(ids)
    frame.with_columns(pl.when(ids == 3).then(value).otherwise(ids).alias("station")).write_parquet(
        home / "floats.parquet"
    )
    for command in ("fit", "check", "graph"):
        text = short(refused(command, "floats.parquet", *NODE, cwd=home))
        assert '"station"' in text and "row 37" in text
    classes = ("--node", "date", "--target", "station", "--task", "classification")
    assert '"station"' in refused("fit", "floats.parquet", *classes, cwd=home)


def test_missing_float_ids(home):
    ids = pl.col("station").cast(pl.Float64)
    frame = weather().with_columns(pl.when(ids == 3).then(np.nan).otherwise(ids).alias("station"))
    frame.write_parquet(home / "floats.parquet")
    text = short(refused("fit", "floats.parquet", *NODE, cwd=home))
    assert "station (12)" in text and "row 37" in text
    args = ("fit", "floats.parquet", *NODE, *FAST, "--drop-missing")
    assert run(*args, cwd=home).returncode == 0


@pytest.mark.parametrize("column", ["wind", "tmax", "lat"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_numbers_whose_squares_overflow(home, column, kind):
    frame = weather()
    frame[5, column] = 1e308
    file = f"huge.{kind}"
    frame.write_csv(home / file) if kind == "csv" else frame.write_parquet(home / file)
    place = "line 7" if kind == "csv" else "row 6"
    for command in ("fit", "graph", "check"):
        text = short(refused(command, file, *NODE, cwd=home, anything=command == "check"))
        assert f'"{column}"' in text and "1e+308" in text and place in text


def test_names_of_files_that_are_no_text(home):
    if sys.platform == "darwin" or os.name == "nt":
        pytest.skip("this file system has text for names")
    name, odd = os.fsdecode(b"we\xff\x1bather.csv"), os.fsdecode(b"out\xff")
    os.link(home / "weather.csv", home / name)
    assert run(*FIT, *FAST, "--out", "first", cwd=home).returncode == 0
    for args in (
        ("check", name, *NODE),
        ("fit", name, *NODE),
        ("graph", name, *NODE),
        ("predict", "first", name),
        ("check", "weather.csv", *NODE, "--graph", name),
        (*FIT, "--graph", name),
        (*FIT, "--out", odd),
        ("predict", "first", "weather.csv", "--out", odd + ".csv"),
        ("path", "first", "--out", odd + ".csv"),
        ("graph", "weather.csv", *NODE, "--out", odd + ".csv"),
        ("demo", "chain", "--out", odd),
    ):
        text = short(refused(*args, cwd=home))
        assert "UTF-8" in text and r"\xff" in text and "\udcff" not in text
    assert not [p for p in home.iterdir() if p.name.startswith("nefele-run")]
    text = short(refused("check", os.fsdecode(b"none\xff.csv"), *NODE, cwd=home))
    assert "No file" in text
    done = process(*FIT, "--graph", name, cwd=home)
    assert done.returncode == 2 and "Traceback" not in done.stderr


def test_a_configuration_and_a_run_with_names_that_are_no_text(home):
    if sys.platform == "darwin" or os.name == "nt":
        pytest.skip("this file system has text for names")
    config, moved = os.fsdecode(b"con\xff.toml"), os.fsdecode(b"run\xff")
    (home / config).write_text(
        'data = "weather.csv"\nnode = "station"\ntarget = "tmax"\nalpha = 1.0\nn_alphas = 2\n'
    )
    done = run("run", config, "--out", "first", cwd=home)
    assert done.returncode == 0, done.stderr
    os.rename(home / "first", home / moved)
    for args in (("report", moved), ("path", moved), ("predict", moved, "weather.csv")):
        done = process(*args, cwd=home)
        assert done.returncode == 0, done.stderr
    assert run("init", os.fsdecode(b"new\xff.toml"), cwd=home).returncode == 0


def test_output_is_one_table_whatever_was_read(home):
    done = run(*FIT, *FAST, "--out", "first", cwd=home)
    assert done.returncode == 0
    rows = run("predict", "first", "weather.csv", cwd=home).stdout
    assert pl.read_csv(io.BytesIO(rows.encode())).height == 120
