"""nefele's default in benchmarks/grouped.py, called as a plain user would."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from grouped_sources import CLASSES, COUNTS, Dataset
from grouped_splits import Part

NAME = "nefele"


def default(part: Part) -> Callable[[Part], np.ndarray]:
    """The estimator that chooses by itself, with the group as node and places where there are."""
    from nefele.estimators import GTVClassifierCV, GTVRegressorCV, SpatialKNN

    make = GTVClassifierCV if part.task == CLASSES else GTVRegressorCV
    options = {"loss": "poisson"} if part.task == COUNTS else {}
    if part.coords is not None:
        options |= {"graph": SpatialKNN(), "coords": middles(part)}
    model = make(**options).fit(features(part), part.y, node_ids=part.groups)

    def predict(new: Part) -> np.ndarray:
        if part.task == CLASSES:
            return model.predict_proba(features(new), node_ids=new.groups)[:, 1]
        return model.predict(features(new), node_ids=new.groups)

    return predict


def features(part: Part) -> pd.DataFrame:
    """What is handed over as X: the table as it came, text as text.

    Where each row has a place of its own, so that the middle of its group does not tell it, the
    place is in two more columns, as boosting has it.
    """
    if part.coords is None or not own_places(part.data):
        return part.table
    table = part.table.copy()
    table[["latitude", "longitude"]] = part.coords
    return table


def own_places(data: Dataset) -> bool:
    """Whether rows of a group differ in their coordinates."""
    return bool(data.table.groupby(data.group)[list(data.coords)].nunique().gt(1).any(axis=None))


def middles(part: Part) -> pd.DataFrame:
    """Middle of the rows of each group."""
    table = pd.DataFrame(part.coords, columns=["latitude", "longitude"])
    return table.groupby(part.groups).mean()
