"""The benchmarks are scripts beside each other: their folder has to be on the path."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
