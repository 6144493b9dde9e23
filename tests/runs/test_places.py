"""Coordinates from a file with a line for each node, and columns of edges that are not used."""

import numpy as np
import pytest

from nefele.runs.config import RunConfig
from nefele.runs.inputs import read_inputs

ROWS = "town,x,y\n" + "".join(f"{t},{k},{k * 2 + s}\n" for s, t in enumerate("abc") for k in (1, 2))
PLACES = "town,lat,lon\na,60,20\nb,61,21\nc,62,22\nd,63,23\n"
EDGES = "source,target\na,b\nb,c\nc,d\n"


def read(folder, places=PLACES, rows=ROWS, edges=EDGES, **options):
    given = {"data": rows, "places": places, "graph": edges}
    for name, text in given.items():
        (folder / f"{name}.csv").write_text(text)
    files = {name: str(folder / f"{name}.csv") for name in given if given[name]}
    names = {"node": "town", "target": "y", "coords": ("lat", "lon")}
    return read_inputs(RunConfig(**files | names | options))


def test_nodes_without_rows_have_a_place_too(tmp_path):
    found = read(tmp_path)
    assert found.geographic and found.features == ("x",)
    assert not any("no place" in note for note in found.notes)
    assert found.graph.ids.tolist() == list("abcd")
    expected = [[20, 60], [21, 61], [22, 62], [23, 63]]  # longitude first, to be drawn
    np.testing.assert_array_equal(found.positions(found.graph.ids), expected)


def test_without_edges_the_places_are_the_graph(tmp_path):
    found = read(tmp_path, edges="", k=1)
    ids = found.graph.ids
    ends = zip(ids[found.graph.head], ids[found.graph.tail], strict=True)
    pairs = {frozenset(map(str, pair)) for pair in ends}
    assert pairs == {frozenset("ab"), frozenset("bc"), frozenset("cd")}


def test_a_node_of_the_graph_without_a_place_is_told_of(tmp_path):
    found = read(tmp_path, places=PLACES.replace("d,63,23\n", ""))
    assert found.positions(found.graph.ids) is None
    assert any("1 of 4 nodes have no place, such as 'd'" in note for note in found.notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"places": "town,lat,lon\na,60,20\n"}, "must have the place of every node .* 2 of 3 are"),
        ({"places": PLACES.replace("lon", "long")}, 'No column "lon" in .*places.csv'),
        ({"places": PLACES.replace("60", "")}, "\"lat\" of node 'a' is missing, at line 2"),
        ({"places": PLACES + "a,1,2\n"}, "differs from that of an earlier row of the node"),
        ({"coords": None}, "places must go with coords"),
    ],
)
def test_bad_places_are_refused(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path, **change)


def test_a_penalty_by_edge_is_not_taken_in_silence(tmp_path):
    edges = "source,target,penalty\na,b,l1\nb,c,l2\nc,d,l2\n"
    found = read(tmp_path, edges=edges)
    assert any('The column "penalty" of graph.csv is not used' in note for note in found.notes)
