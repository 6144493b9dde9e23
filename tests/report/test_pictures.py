"""Pictures that stand still: from matplotlib or files into the report."""

import base64
import dataclasses
import re

import numpy as np
import pytest
from matplotlib.figure import Figure

from nefele.report import Picture, render
from nefele.report.example import small_view
from nefele.report.pictures import pictures_in

SVG = b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'></svg>"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def figure(points=50):
    ax = Figure(figsize=(4, 3)).subplots()
    ax.scatter(np.arange(points), np.arange(points) % 7)
    ax.set_title("height <m> & more")
    return ax


def shown(*pictures):
    return render(dataclasses.replace(small_view(), pictures=pictures))


def test_a_figure_becomes_the_same_svg_each_time():
    first, second = (Picture.drawn(figure(), "Heights") for _ in range(2))
    assert first == second
    text = first.data.decode()
    assert "height &lt;m&gt; &amp; more" in text  # letters stay letters
    assert "<dc:date>" not in text


def test_an_axes_and_its_figure_are_the_same_picture():
    ax = figure()
    assert Picture.drawn(ax, "a").data == Picture.drawn(ax.figure, "a").data


def test_many_points_become_pixels():
    few, many = (Picture.drawn(figure(n), "Heights").data for n in (1_000, 30_000))
    assert b"data:image/png" in many and b"data:image/png" not in few
    assert len(many) < len(few)


def test_the_report_holds_the_picture_and_its_words():
    text = shown(Picture("Who <b>agrees</b>", SVG, "Two & two."), Picture("Other", PNG))
    assert "<h3>Who &lt;b&gt;agrees&lt;/b&gt;</h3>" in text and "Two &amp; two." in text
    addresses = re.findall(r'<img src="data:([^;]+);base64,([^"]+)"', text)
    assert [kind for kind, _ in addresses] == ["image/svg+xml", "image/png"]
    assert [base64.b64decode(data) for _, data in addresses] == [SVG, PNG]


def test_scripts_in_a_picture_stay_in_it():
    script = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    assert "alert(1)" not in shown(Picture("Sly", script))


def test_without_pictures_there_is_no_section():
    assert 'class="page still"' not in shown()


@pytest.mark.parametrize(
    "data", [b"", b"GIF89a", b"%PDF-1.4", b"plain words", b"<html><svg></svg></html>"]
)
def test_other_files_are_no_pictures(data):
    with pytest.raises(ValueError, match="'Mine' must be SVG or PNG"):
        Picture("Mine", data)


def test_half_a_picture_is_refused():
    with pytest.raises(ValueError, match="'Mine' must be whole; its SVG is not"):
        Picture("Mine", Picture.drawn(figure(), "All").data[:2_000])


def test_text_is_no_picture():
    with pytest.raises(ValueError, match="must be bytes; got str"):
        Picture("Mine", "<svg/>")


def test_files_are_named_after_what_they_hold(tmp_path):
    Picture("Mine", SVG).write(tmp_path / "mine.svg")
    assert Picture.read(tmp_path / "mine.svg").data == SVG
    with pytest.raises(ValueError, match=r"must end in \.svg; got"):
        Picture("Mine", SVG).write(tmp_path / "mine.png")


def test_a_picture_can_be_too_large():
    with pytest.raises(ValueError, match=r"at most 4,000,000 bytes; got 4,000,0\d\d"):
        Picture("Mine", SVG + bytes(4_000_000))


def test_only_figures_are_drawn():
    with pytest.raises(ValueError, match="must be a matplotlib Figure or Axes; got list"):
        Picture.drawn([1, 2], "Mine")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"must be a file that can be read; '.*none\.svg'"):
        Picture.read(tmp_path / "none.svg")


def test_a_folder_gives_known_pictures_first_and_complains_of_the_rest(tmp_path):
    (tmp_path / "b_two.svg").write_bytes(SVG)
    (tmp_path / "a-one.PNG").write_bytes(PNG)
    (tmp_path / "graph.svg").write_bytes(SVG)
    (tmp_path / "bad.svg").write_bytes(b"words")
    (tmp_path / "notes.txt").write_bytes(b"words")
    (tmp_path / ".half.svg").write_bytes(SVG)
    known = [("graph.svg", "The graph", "Words."), ("lost.svg", "Lost", "")]
    found, wrong = pictures_in(tmp_path, known)
    assert [p.title for p in found] == ["The graph", "a one", "b two"]
    assert found[0].says == "Words."
    assert len(wrong) == 1 and "bad.svg was left out" in wrong[0]


@pytest.mark.filterwarnings("ignore:Glyph 27")
def test_control_characters_of_a_figure_are_escapes():
    ax = Figure().subplots()
    ax.set_xlabel("a\x1b[2Jb")
    assert b"a\\x1b[2Jb" in Picture.drawn(ax, "Names").data
