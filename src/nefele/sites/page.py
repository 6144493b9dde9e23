"""A page of the site's own view."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nefele.sites.driver import Driver
from nefele.sites.learning import Learnt
from nefele.sites.predicting import Predicted


def write_page(
    folder: Path, facts: dict[str, Any], learnt: Learnt | Predicted, driver: Driver
) -> None:
    """Write report.html."""
