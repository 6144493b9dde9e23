"""The weather test needs FMIData.csv, which is not part of this repository."""

from tests.paper.instances import fmi_path

collect_ignore = [] if fmi_path() else ["test_weather_graph.py"]


def pytest_report_header():
    if collect_ignore:
        return (
            "tests/graph_learning/test_weather_graph.py left out: FMIData.csv not found; set "
            "NEFELE_FMI_DATA to its path."
        )
    return None
