"""Production in 48 US states, 1970-1986, and the borders between the states.

The panel of Munnell (1990): the log of gross state product from the logs of public capital,
private capital and employment, with unemployment and a constant. `data/PROVENANCE.md` says
where the figures come from.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count
from nefele._html import facts, shown
from nefele.data import LocalData
from nefele.graph import Graph

_LOGS = ("public_capital", "private_capital", "employment")
_FEATURES = (*(f"log_{name}" for name in _LOGS), "unemployment", "constant")


@dataclass(frozen=True, eq=False)
class StatesData:
    """The states panel: one row per state and year.

    Attributes
    ----------
    graph : Graph
        48 states joined by 107 borders, unit weights.
    X : array of shape (816, 5)
        Standardised logs of public capital, private capital and employment, unemployment
        rate / 10, and a constant.
    y : array of shape (816,)
        Standardised log of gross state product.
    node_ids : array of shape (816,)
        State of each row.
    years : int array of shape (816,)
        Year of each row.
    feature_names : tuple of str
        Names of the columns of X.
    positions : array of shape (48, 2)
        Longitude and latitude of the middle of each state, in the order of `graph.ids`, to draw
        maps.

    Examples
    --------
    >>> load_states().X.shape
    (816, 5)
    """

    graph: Graph
    X: Array
    y: Array
    node_ids: NDArray[Any]
    years: NDArray[np.int64]
    feature_names: tuple[str, ...]
    positions: Array

    def _repr_html_(self) -> str:
        return facts(
            "StatesData: product of US states",
            {
                "rows": f"{len(self.y):,} of {self.graph.n_nodes} states",
                "years": f"{self.years.min()} to {self.years.max()}",
                "features": shown(self.feature_names),
                "borders": self.graph.n_edges,
            },
        )


def load_states() -> StatesData:
    """Load the panel of 48 US states and the graph of their borders.

    Logs of output, capital and employment are standardised over all 816 rows (mean 0, standard
    deviation 1), so a mean squared error of 1 is that of always predicting the mean.

    Returns
    -------
    StatesData
        Rows state by state, in the order of `graph.ids`, and by year inside a state.

    Examples
    --------
    >>> states = load_states()
    >>> states.graph, states.X.shape, states.graph.neighbors("Maine")
    (Graph(n_nodes=48, n_edges=107), (816, 5), ['New Hampshire'])
    """
    rows = read_file("states.csv")
    node_ids = np.array([row["state"] for row in rows])
    years = np.array([int(row["year"]) for row in rows], dtype=np.int64)
    X = np.column_stack(
        [_standardised_log(rows, name) for name in _LOGS]
        + [_column(rows, "unemployment") / 10.0, np.ones(len(rows))]
    )
    y = _standardised_log(rows, "gsp")
    graph = state_borders(list(dict.fromkeys(node_ids.tolist())))
    return StatesData(graph, X, y, node_ids, years, _FEATURES, state_places(graph))


def split_states(states: StatesData, seed: int, n_train: int = 6) -> tuple[LocalData, LocalData]:
    """Draw training years for each state at random; the other years are for testing.

    One `RandomState(seed)` serves all states: state after state, in graph order, it permutes
    the 17 years, and the first `n_train` of them are for training.

    Parameters
    ----------
    states : StatesData
    seed : int
    n_train : int
        Training years per state, 1 to 16.

    Returns
    -------
    train, test : LocalData
        With the 48 states as nodes, in graph order.

    Examples
    --------
    >>> train, test = split_states(load_states(), seed=0)
    >>> train.n_rows, test.n_rows, set(train.counts.tolist())
    (288, 528, {6})
    """
    random = np.random.RandomState(check_count(seed, "seed"))
    n_train = check_count(n_train, "n_train", low=1)
    train: list[NDArray[np.int64]] = []
    test: list[NDArray[np.int64]] = []
    for state in states.graph.ids:
        own = np.flatnonzero(states.node_ids == state)
        if n_train >= len(own):
            raise ValueError(
                f"n_train must leave a year for testing: at most {len(own) - 1}; got {n_train}."
            )
        shuffled = own[random.permutation(len(own))]
        train.append(shuffled[:n_train])
        test.append(shuffled[n_train:])
    return _rows(states, np.concatenate(train)), _rows(states, np.concatenate(test))


def _rows(states: StatesData, rows: NDArray[np.int64]) -> LocalData:
    return LocalData.from_long(
        states.X[rows],
        states.y[rows],
        states.node_ids[rows],
        states.graph.ids,
        feature_names=states.feature_names,
    )


def state_borders(names: list[str]) -> Graph:
    """The graph of the borders between the states, its nodes in this order."""
    borders = [(row["state"], row["neighbour"]) for row in read_file("borders.csv")]
    return Graph.from_edges(borders, nodes=names)


def state_places(graph: Graph) -> Array:
    """Longitude and latitude of the middle of each state, in the order of the graph."""
    rows = read_file("places.csv")
    place = {row["state"]: (float(row["longitude"]), float(row["latitude"])) for row in rows}
    return np.array([place[name] for name in graph.ids.tolist()])


def read_file(name: str) -> list[dict[str, str]]:
    """The rows of a CSV file that comes with the package."""
    source = resources.files("nefele.datasets") / "data" / name
    return list(csv.DictReader(source.read_text(encoding="utf-8").splitlines()))


def _column(rows: list[dict[str, str]], name: str) -> Array:
    return np.array([float(row[name]) for row in rows])


def _standardised_log(rows: list[dict[str, str]], name: str) -> Array:
    values = np.log(_column(rows, name))
    return (values - values.mean()) / values.std()
