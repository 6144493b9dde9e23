"""What a computation costs: processor seconds, watt-hours by a stated assumption, bytes sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nefele._checks import check_number
from nefele._threads import processor_seconds

WATTS = 15.0  # of one busy core with its share of memory, supply and cooling; an assumption


@dataclass
class Cost:
    """Processor seconds and bytes of a computation.

    Attributes
    ----------
    cpu_seconds : float
        Of this process and of its children that have ended, all cores added up.
    bytes_sent : int or None
        Bytes that left for other sites; None where nobody counted.
    watts : float
        Power of one busy core that `watt_hours` assumes.

    Examples
    --------
    >>> Cost(cpu_seconds=240.0).watt_hours
    1.0
    """

    cpu_seconds: float = 0.0
    bytes_sent: int | None = None
    watts: float = WATTS

    @property
    def watt_hours(self) -> float:
        """cpu_seconds * watts / 3600: an assumption, no measurement of power."""
        return self.cpu_seconds * self.watts / 3600

    def text(self) -> str:
        """In words.

        Examples
        --------
        >>> Cost(cpu_seconds=240.0).text()
        '240 processor seconds; about 1 Wh, not measured: 15 W for a busy core is an assumption'
        """
        spent = f"{self.cpu_seconds:.4g} processor seconds; about {self.watt_hours:.2g} Wh"
        return f"{spent}, not measured: {self.watts:g} W for a busy core is an assumption"


@contextmanager
def measure_cost(watts: float = WATTS) -> Iterator[Cost]:
    """Measure the processor time of what happens inside.

    Parameters
    ----------
    watts : float
        Power of one busy core.

    Examples
    --------
    >>> with measure_cost(watts=20.0) as cost:
    ...     total = sum(range(1000))
    >>> cost.cpu_seconds >= 0, cost.watts
    (True, 20.0)
    """
    found = Cost(watts=check_number(watts, "watts", low=0.0))
    before = processor_seconds()
    try:
        yield found
    finally:
        found.cpu_seconds = processor_seconds() - before
