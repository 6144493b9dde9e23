"""The weather tests need FMIData.csv, which is not part of this repository."""

from tests.paper.instances import fmi_path

collect_ignore = [] if fmi_path() else ["test_weather.py"]


def pytest_report_header():
    if collect_ignore:
        return (
            "tests/paper/test_weather.py left out: FMIData.csv (Finnish Meteorological Institute, "
            "data of NFL, Sec. VI-E) not found; set NEFELE_FMI_DATA to its path."
        )
    return f"weather data: {fmi_path().name} found"
