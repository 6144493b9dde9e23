"""Income per head in 48 US states, 1929-2009, and the borders between the states.

Figures of the Bureau of Economic Analysis; `data/PROVENANCE.md` says more. Neighbouring states had
similar histories: the South was poor and caught up, the Northeast was rich and fell back. Here the
borders matter, other than for `load_states`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count
from nefele._html import facts, shown
from nefele.datasets.states import read_file, state_borders, state_places
from nefele.graph import Graph

_MIDDLE, _SPAN = 1969, 40.0  # year of the middle, and years from there to the ends


@dataclass(frozen=True, eq=False)
class IncomesData:
    """Income per head against the mean of all states: one row per state and year.

    Attributes
    ----------
    graph : Graph
        48 states joined by 107 borders, unit weights.
    X : array of shape (3888, 2)
        Time from -1 (1929) to 1 (2009), and its square: each state has its own curve.
    y : array of shape (3888,)
        Log of income per head less its mean over the states in that year.
    node_ids : array of shape (3888,)
        State of each row.
    years : int array of shape (3888,)
        Year of each row.
    positions : array of shape (48, 2)
        Longitude and latitude of the middle of each state, in the order of `graph.ids`.
    feature_names : tuple of str
        Names of the columns of X.

    Examples
    --------
    >>> load_incomes().X.shape
    (3888, 2)
    """

    graph: Graph
    X: Array
    y: Array
    node_ids: NDArray[Any]
    years: NDArray[np.int64]
    positions: Array
    feature_names: tuple[str, ...] = ("time", "time_squared")

    def _repr_html_(self) -> str:
        return facts(
            "IncomesData: incomes of US states",
            {
                "rows": f"{len(self.y):,} of {self.graph.n_nodes} states",
                "years": f"{self.years.min()} to {self.years.max()}",
                "features": shown(self.feature_names),
                "borders": self.graph.n_edges,
            },
        )


def load_incomes() -> IncomesData:
    """Load income per head of 48 US states, 1929-2009, and the graph of their borders.

    Returns
    -------
    IncomesData
        Rows state by state, in the order of `graph.ids`, and by year inside a state.

    Examples
    --------
    >>> incomes = load_incomes()
    >>> first = incomes.node_ids == "Mississippi"
    >>> incomes.years[first][0], round(float(np.exp(incomes.y[first][0])), 2)
    (np.int64(1929), 0.5)
    """
    rows = read_file("incomes.csv")
    years = np.array([int(name) for name in rows[0] if name != "state"], dtype=np.int64)
    logs = np.log([[float(row[str(year)]) for year in years] for row in rows])
    names = [row["state"] for row in rows]
    time = np.tile((years - _MIDDLE) / _SPAN, len(names))
    graph = state_borders(names)
    return IncomesData(
        graph,
        np.column_stack([time, time**2]),
        (logs - logs.mean(axis=0)).ravel(),
        np.repeat(names, len(years)),
        np.tile(years, len(names)),
        state_places(graph),
    )


def split_incomes(
    incomes: IncomesData, seed: int, n_train: int = 6, n_bare: int = 12
) -> NDArray[np.bool_]:
    """Draw training years for each state at random; some states have none.

    Parameters
    ----------
    incomes : IncomesData
    seed : int
    n_train : int
        Training years of a state that has some, 1 to 80.
    n_bare : int
        States without any, 0 to 47.

    Returns
    -------
    train : boolean array of shape (3888,)
        The other rows are for testing.

    Examples
    --------
    >>> train = split_incomes(load_incomes(), seed=0)
    >>> int(train.sum()), len(set(load_incomes().node_ids[train].tolist()))
    (216, 36)
    """
    states = incomes.graph.ids
    n_years = len(incomes.y) // len(states)
    n_train = check_count(n_train, "n_train", low=1)
    n_bare = check_count(n_bare, "n_bare", low=0)
    if n_train >= n_years or n_bare >= len(states):
        raise ValueError(
            f"There must be a year to test and a state to learn from: n_train at most "
            f"{n_years - 1}, n_bare at most {len(states) - 1}; got {n_train} and {n_bare}."
        )
    rng = np.random.RandomState(check_count(seed, "seed"))
    train = np.zeros((len(states), n_years), dtype=bool)
    for state in rng.permutation(len(states))[n_bare:]:
        train[state, rng.permutation(n_years)[:n_train]] = True
    return train.ravel()
