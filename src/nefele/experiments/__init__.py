"""Every table and figure of the papers, computed again, next to the printed numbers."""

from nefele.experiments.base import Experiment, Inputs, Row
from nefele.experiments.runner import NAMES, Reproduced, load, run
from nefele.experiments.store import Store

__all__ = ["NAMES", "Experiment", "Inputs", "Reproduced", "Row", "Store", "load", "run"]
