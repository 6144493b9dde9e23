"""The weather experiments need FMIData.csv, which is not part of this repository."""

from tests.paper.instances import fmi_path

collect_ignore = [] if fmi_path() else ["test_reproduce_weather.py"]
