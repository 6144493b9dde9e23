"""The experiments of NFL, Sec. VI, as the package draws them for `nefele reproduce`."""

import os
from pathlib import Path

from nefele.experiments import weather
from nefele.experiments.base import mse
from nefele.experiments.instances import chain, sbm, star, table1
from nefele.experiments.weather import validation_error

__all__ = ["Weather", "chain", "fmi_path", "mse", "sbm", "star", "table1", "validation_error"]


def fmi_path():
    """FMIData.csv: from NEFELE_FMI_DATA, or beside the checkout; None when it is not there."""
    places = [
        os.environ.get("NEFELE_FMI_DATA"),
        Path(__file__).parents[3] / "shared/data/FMIData.csv",
    ]
    return next((Path(p) for p in places if p and Path(p).is_file()), None)


class Weather(weather.Weather):
    """The FMI network, its training rows as LocalData."""

    def split(self, seed, test_size=0.33):
        train, test = super().split(seed, test_size)
        return self.local_data(train), test
