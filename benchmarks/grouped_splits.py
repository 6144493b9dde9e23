"""What a method of benchmarks/grouped.py gets: rows of a dataset, to learn from or held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from grouped_sources import CLASSES, COUNTS, Dataset

HELD_OUT = 0.3  # of the rows of each group


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of a dataset, as they came (`table`) and as numbers (`X`)."""

    data: Dataset
    table: pd.DataFrame  # the columns that a user would bring, text as text
    X: np.ndarray  # text in 0 and 1 without the first level, scaled by the training rows
    slope: np.ndarray  # which columns of X belong to the slope
    y: np.ndarray
    groups: np.ndarray
    codes: np.ndarray  # the groups as numbers from 0
    n_groups: int
    coords: np.ndarray | None  # latitude and longitude of each row

    @property
    def task(self) -> str:
        return self.data.task


def split(data: Dataset, seed: int) -> tuple[Part, Part]:
    """Training rows and held-out rows: of each group 30%, rounded; every group keeps one row."""
    held = held_out(data.table[data.group].to_numpy(), seed)
    X, slope = _numbers(data)
    middle, spread = X[~held].mean(axis=0), X[~held].std(axis=0)
    X = (X - middle) / np.where(spread > 0, spread, 1.0)
    codes, names = pd.factorize(data.table[data.group], sort=True)

    def part(rows: np.ndarray) -> Part:
        table = data.table[rows].reset_index(drop=True)
        return Part(
            data,
            table[list(data.columns)],
            X[rows],
            slope,
            table[data.target].to_numpy(dtype=float),
            table[data.group].to_numpy(),
            codes[rows],
            len(names),
            None if data.coords is None else table[list(data.coords)].to_numpy(dtype=float),
        )

    return part(~held), part(held)


def held_out(groups: np.ndarray, seed: int) -> np.ndarray:
    """Which rows are held out."""
    draw = np.random.default_rng(seed)
    held = np.zeros(len(groups), dtype=bool)
    for rows in pd.Series(range(len(groups))).groupby(groups, sort=True):
        index = rows[1].to_numpy()
        held[draw.permutation(index)[: round(HELD_OUT * len(index))]] = True
    return held


def error(task: str, y: np.ndarray, predicted: np.ndarray) -> float:
    """Mean squared error; log loss of probabilities; mean Poisson deviance of rates."""
    if task == CLASSES:
        p = np.clip(predicted, 1e-15, 1 - 1e-15)
        return float(-np.mean(np.where(y > 0, np.log(p), np.log1p(-p))))
    if task == COUNTS:
        rate = np.maximum(predicted, 1e-15)
        ratio = np.where(y > 0, y, 1.0) / rate
        return float(2 * np.mean(np.where(y > 0, y * np.log(ratio), 0.0) - y + rate))
    return float(np.mean((y - predicted) ** 2))


def _numbers(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The columns as numbers, and which of them are the slope's."""
    blocks, slope = [], []
    for column in data.columns:
        values = data.table[column]
        if not pd.api.types.is_numeric_dtype(values):
            values = pd.get_dummies(values, drop_first=True)
        block = values.to_numpy(dtype=float).reshape(len(data.table), -1)
        blocks.append(block)
        slope += [column == data.slope] * block.shape[1]
    return np.hstack(blocks), np.array(slope)
