"""The FMI weather network of NFL, Sec. VI-E: stations, splits, and the graph (42)-(43)."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from pathlib import Path

import numpy as np

from nefele._checks import Array
from nefele.data import LocalData
from nefele.graph import Graph

WHERE = "https://github.com/YuTian8328/FederatedLearning (FMIData.csv)"
ETA, LAM = 5.0, 0.5  # threshold and strength of the paper
STATIONS = 203  # in the file of the paper
_DAYS = 5  # four rows: two on each side of a split, enough for a covariance
COLUMNS = ("min_temp", "max_temp", "station")
Rows = list[tuple[Array, Array]]


def find_weather() -> Path | None:
    """FMIData.csv: from NEFELE_FMI_DATA, here, or in ../shared/data; None when it is not there.

    Examples
    --------
    >>> found = find_weather()
    >>> found is None or found.is_file()
    True
    """
    named = os.environ.get("NEFELE_FMI_DATA")
    if named:
        if not Path(named).is_file():
            raise ValueError(
                f"NEFELE_FMI_DATA must be the path of FMIData.csv; there is no file {named!r}. "
                f"Correct or unset it. FMIData.csv is at {WHERE}."
            )
        return Path(named)
    places = (Path("FMIData.csv"), Path("../shared/data/FMIData.csv"))
    return next((place for place in places if place.is_file()), None)


class Weather:
    """Daily temperatures: features [max of the day before, min, 1], label max, per station.

    Parameters
    ----------
    path : str or Path
        A CSV file with the columns min_temp, max_temp and station, in the order of the days;
        rows with missing values are dropped.

    Attributes
    ----------
    stations : list of str
        In the order of the file.
    X, y : lists of arrays of shape (m_i, 3) and (m_i,)

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "t.csv")
    ...     lines = ["min_temp,max_temp,station", "1,5,a", "2,6,a", *3 * ["3,4,a"]]
    ...     _ = file.write_text(chr(10).join(lines))
    ...     Weather(file).X[0][:2].tolist()
    [[5.0, 2.0, 1.0], [6.0, 3.0, 1.0]]
    """

    def __init__(self, path: str | Path) -> None:
        table = _read(Path(path))
        self.stations = list(table)
        self.X = [
            np.column_stack([t[:-1, 1], t[1:, 0], np.ones(len(t) - 1)]) for t in table.values()
        ]
        self.y = [t[1:, 1] for t in table.values()]

    def part(self, step: int) -> Weather:
        """Every so many stations, as a smaller network."""
        small = copy(self)
        small.stations = self.stations[::step]
        small.X, small.y = self.X[::step], self.y[::step]
        return small

    def graph(self, eta: float = ETA, rows: Rows | None = None) -> Graph:
        """A = 1/W for pairs with Wasserstein distance W <= eta between Gaussian fits (42)-(43).

        The fits are made from `rows`, by default all, as in the paper, which lets the graph see the
        validation labels.
        """
        rows = list(zip(self.X, self.y, strict=True)) if rows is None else rows
        i, j = np.triu_indices(len(self.stations), 1)
        distance = wasserstein([np.column_stack([X[:, :2], y]) for X, y in rows])
        near = distance <= eta
        names = np.array(self.stations)
        pairs = np.stack([names[i[near]], names[j[near]]], axis=1)
        return Graph.from_edges(pairs, weight=1 / distance[near], nodes=names)

    def split(self, seed: int, test_size: float = 0.33) -> tuple[Rows, Rows]:
        """Training and validation rows of each station, drawn in the order of the stations."""
        from sklearn.model_selection import train_test_split

        state = np.random.RandomState(seed)
        train, test = [], []
        for X, y in zip(self.X, self.y, strict=True):
            a, b = train_test_split(np.arange(len(y)), test_size=test_size, random_state=state)
            train.append((X[a], y[a]))
            test.append((X[b], y[b]))
        return train, test

    def local_data(self, rows: Rows) -> LocalData:
        """The rows as the data of the stations."""
        return LocalData.from_list(rows, nodes=self.stations)


@lru_cache(maxsize=2)
def load_weather(path: Path) -> Weather:
    """The file, read once per process.

    Examples
    --------
    >>> load_weather(Path("nowhere.csv"))
    Traceback (most recent call last):
    ValueError: No file 'nowhere.csv'. FMIData.csv is at https://github.com/...
    """
    return Weather(path)


def other_file(path: Path) -> str:
    """What to say when the file is not that of the paper; empty when it has as many stations.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "t.csv")
    ...     _ = file.write_text("min_temp,max_temp,station" + 5 * (chr(10) + "1,5,a"))
    ...     other_file(file).split("; ")[1]
    "the paper's has 203"
    """
    n = len(load_weather(path).stations)
    if n == STATIONS:
        return ""
    return (
        f"{str(path)!r} is not the file of the paper: {n} stations; the paper's has {STATIONS}; so "
        "neither the printed numbers nor our reference values are to be expected."
    )


def validation_error(w: Array, test: Sequence[tuple[Array, Array]]) -> float:
    """Mean over stations of the mean squared error at held-out rows (NFL, Eq. (44)).

    Examples
    --------
    >>> validation_error(np.array([[1.0]]), [(np.array([[2.0]]), np.array([5.0]))])
    9.0
    """
    return float(np.mean([np.mean((X @ w[i] - y) ** 2) for i, (X, y) in enumerate(test)]))


def _read(path: Path) -> dict[str, Array]:
    """Minimum and maximum of each day by station, shape (days, 2)."""
    if not path.is_file():
        raise ValueError(f"No file {str(path)!r}. FMIData.csv is at {WHERE}.")
    rows: dict[str, list[tuple[float, float]]] = {}
    try:
        with open(path, newline="", encoding="utf-8") as handle:
            reader = csv.DictReader(handle)
            _check_columns(path, reader.fieldnames or ())
            for row in reader:
                if (pair := _pair(path, reader.line_num, row)) is not None:
                    rows.setdefault(row["station"], []).append(pair)
    except (UnicodeDecodeError, csv.Error):
        raise _bad(path, "must be a CSV text file in UTF-8; it is not text") from None
    if not rows:
        raise _bad(path, "must have rows with temperatures; it has none below its header")
    for name, days in rows.items():
        if len(days) < _DAYS:
            text = f"must have {_DAYS} days or more of each station; {name!r} has {len(days)}"
            raise _bad(path, f"{text}, so perhaps the file is cut off")
    return {name: np.array(pairs) for name, pairs in rows.items()}


def _check_columns(path: Path, columns: Sequence[str]) -> None:
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        names = ", ".join(COLUMNS)
        raise _bad(path, f"must have the columns {names}; {missing[0]!r} is missing")


def _pair(path: Path, line: int, row: dict[str, str]) -> tuple[float, float] | None:
    """The two temperatures of a line; None where one was not measured."""
    if any(row[name] is None for name in COLUMNS) or not row["station"]:
        raise _bad(path, f"line {line} must have {', '.join(COLUMNS)}; it is cut off")
    if not (row["min_temp"] and row["max_temp"]):
        return None
    try:
        pair = (float(row["min_temp"]), float(row["max_temp"]))
    except ValueError:
        pair = (np.nan, np.nan)
    if not np.isfinite(pair).all():
        got = f"{row['min_temp']!r}, {row['max_temp']!r}"
        raise _bad(path, f"line {line}: min_temp and max_temp must be numbers; got {got}")
    return pair


def _bad(path: Path, text: str) -> ValueError:
    return ValueError(f"{str(path)!r}: {text}. FMIData.csv is at {WHERE}.")


def wasserstein(samples: list[Array]) -> Array:
    """W of all pairs i < j of Gaussian fits, covariances with ddof = 1 (NFL, Eq. (42)).

    Examples
    --------
    >>> wasserstein([np.eye(2), np.eye(2) + 3.0]).tolist()
    [18.0]
    """
    mean = np.array([rows.mean(axis=0) for rows in samples])
    cov = np.array([np.cov(rows.T, ddof=1) for rows in samples])
    values, vectors = np.linalg.eigh(cov)
    root = (vectors * np.sqrt(np.maximum(values, 0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    i, j = np.triu_indices(len(mean), 1)
    cross = np.linalg.eigvalsh(root[i] @ cov[j] @ root[i])
    trace = np.trace(cov, axis1=1, axis2=2)
    distance = ((mean[i] - mean[j]) ** 2).sum(axis=1) + trace[i] + trace[j]
    return np.asarray(distance - 2 * np.sqrt(np.maximum(cross, 0)).sum(axis=1))
