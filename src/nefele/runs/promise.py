"""The guarantee that a run is asked for: its bounds, and the account that it is charged to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from nefele.privacy import Bounds, Budget, Privacy


class Asked(Protocol):
    """What of a configuration matters here; see `RunConfig`."""

    @property
    def data(self) -> str: ...
    @property
    def features(self) -> tuple[str, ...] | None: ...
    @property
    def penalty(self) -> str: ...
    @property
    def time(self) -> str | None: ...
    @property
    def task(self) -> str: ...
    @property
    def compare(self) -> str | None: ...
    @property
    def drop_missing(self) -> bool: ...
    @property
    def epsilon(self) -> float | None: ...
    @property
    def delta(self) -> float: ...
    @property
    def unit(self) -> str: ...
    @property
    def bounds(self) -> dict[str, Any] | None: ...
    @property
    def budget(self) -> str | None: ...
    @property
    def total_epsilon(self) -> float | None: ...


def check_private(config: Asked) -> None:
    """Raise ValueError for options that would bring raw rows into a private run."""
    if config.task != "regression" or config.penalty == "auto":
        raise ValueError(
            "epsilon must go with --task regression and a penalty by name: a run releases second "
            "moments, which serve squared errors. From Python GTVClassifier(privacy=...) has "
            "noisy updates."
        )
    if config.features is None:
        raise ValueError(
            "--features must name the columns with --epsilon: which columns say something is not "
            "to be read off the rows."
        )
    if config.time is not None:
        raise ValueError(
            "--time must be left out with --epsilon: which rows are held out must not depend on "
            "what they hold."
        )
    if config.drop_missing:
        raise ValueError(
            "--drop-missing must be left out with --epsilon: a row that is dropped changes which "
            "rows are held out at all nodes. Fill or drop missing values beforehand, by a rule for "
            "each row by itself."
        )
    if config.compare is not None:
        raise ValueError(
            "--compare must be left out with --epsilon: other methods would see the raw rows."
        )
    promise_of(config)
    total = config.total_epsilon
    if total is not None and config.epsilon is not None and total < config.epsilon:
        raise ValueError(
            f"--total-epsilon must be at least --epsilon, {config.epsilon:g}: it is what all runs "
            f"together may spend; got {total:g}."
        )


def promise_of(config: Asked, budget: Budget | None = None) -> Privacy:
    """The guarantee that a configuration asks for."""
    if not isinstance(config.bounds, Mapping):
        raise ValueError(
            "bounds must be declared with epsilon, such as x = 3.5 and y = [0, 10], in the file of "
            "--bounds or in a table [bounds]."
        )
    strange = set(config.bounds) - {"x", "y", "outside"}
    if strange:
        raise ValueError(f"bounds must have x and y only; got also {', '.join(sorted(strange))}.")
    bounds = Bounds(**config.bounds)
    assert config.epsilon is not None
    found = Privacy(config.epsilon, config.delta, config.unit, bounds, budget=budget)
    found.need_target()
    return found


def budget_of(config: Asked) -> Budget:
    """The account of the data: the file that is named, or one beside the data."""
    path = Path(config.budget or f"{config.data}.budget")
    if path.exists() or Path(f"{path}.head").exists():
        found = Budget.open(path)
        if config.total_epsilon not in (None, found.epsilon):
            raise ValueError(
                f"total_epsilon must be that of the budget {str(path)!r}, {found.epsilon:g}; got "
                f"{config.total_epsilon:g}. Leave it out, or name another budget."
            )
        return found
    total = config.epsilon if config.total_epsilon is None else config.total_epsilon
    return Budget(total, config.delta, unit=config.unit, path=path)
