"""`Privacy`: what is promised, to whose benefit, within which bounds, by which mechanism."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from nefele._checks import check_count, check_flag, check_name, check_number, type_name
from nefele._words import Text
from nefele.losses import Loss, Squared
from nefele.privacy.accountant import calibrate, check_target
from nefele.privacy.bounds import Bounds
from nefele.privacy.budget import Budget
from nefele.privacy.noise import Source, SystemNoise, source_of
from nefele.privacy.sensitivity import UNITS, lipschitz

MECHANISMS = ("auto", "statistics", "updates", "predictions")
STEPS = ("gradient", "prox")


@dataclass(frozen=True)
class Privacy:
    """A guarantee of differential privacy for what leaves the nodes of a fit.

    Whoever sees everything that was sent learns hardly more about one record than if another had
    been in its place: (epsilon, delta)-differential privacy under replacement of one record, or
    of all records of one node. How many rows each node has, the graph, alpha and the number of
    rounds are public.

    Parameters
    ----------
    epsilon, delta : float
        Smaller is more private. delta should be well below 1 / the number of records.
    unit : {"record", "node"}
        What may be replaced: one row, or all rows of one node.
    bounds : Bounds
        Declared bounds of the rows, never read off the data.
    mechanism : {"auto", "statistics", "updates", "predictions"}
        "statistics": the second moments of each node, once; for squared errors. "updates": every
        step of every round is noisy; for losses with bounded slopes. "predictions": FedRelax with
        any model. "auto": the first that applies, in this order.
    rounds : int
        Rounds of "updates", fixed beforehand; FedRelax has its own.
    clip : float, optional
        "updates": the norm to which the gradient of each row is cut, in the units of the bounds;
        default: the bound that the loss has by itself.
    step : {"gradient", "prox"}
        "updates": the local step.
    refit : bool
        "statistics": each node fits its model again to its own raw rows, without noise. Such
        models stay at their nodes; the guarantee covers what was sent, not them.
    shards : int
        "predictions": the number of models that a node fits to disjoint rows.
    allow_outside : bool
        Whether choices may be made on raw rows, such as a graph learnt for "updates", or alpha by
        cross-validation. They are listed as spent outside the accountant. Default: an error.
    budget : Budget or path, optional
        An account of the same data, to which the fit is charged before anything is released.
    insecure_testing : bool
        Allows `seed`: for tests only, noise that can be drawn again protects nobody.
    seed : int, optional

    Examples
    --------
    >>> Privacy(1.0, 1e-6, bounds=Bounds(x=1.0, y=(0, 10))).unit
    'record'
    >>> Privacy(1.0, 1e-6)
    Traceback (most recent call last):
    ...
    ValueError: Privacy needs bounds, declared without looking at the data: Privacy(epsilon,
    delta, bounds=Bounds(x=..., y=...)).
    """

    epsilon: float
    delta: float
    unit: str = "record"
    bounds: Any = None
    mechanism: str = "auto"
    rounds: int = 100
    clip: float | None = None
    step: str = "gradient"
    refit: bool = False
    shards: int = 10
    allow_outside: bool = False
    budget: Any = None
    insecure_testing: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        check_target(self.epsilon, self.delta)
        check_name(self.unit, UNITS, "unit of privacy")
        if not isinstance(self.bounds, Bounds):
            got = "" if self.bounds is None else f" Got {type_name(self.bounds)}."
            raise ValueError(
                "Privacy needs bounds, declared without looking at the data: Privacy(epsilon, "
                f"delta, bounds=Bounds(x=..., y=...)).{got}"
            )
        check_name(self.mechanism, MECHANISMS, "mechanism")
        check_count(self.rounds, "rounds", low=1)
        check_count(self.shards, "shards", low=1)
        check_name(self.step, STEPS, "step")
        if self.clip is not None:
            check_number(self.clip, "clip", low=0.0, strict=True)
        check_flag(self.allow_outside, "allow_outside")
        check_flag(self.refit, "refit")
        source_of(check_flag(self.insecure_testing, "insecure_testing"), self.seed)
        if self.budget is not None and not isinstance(self.budget, Budget | str | os.PathLike):
            raise ValueError(f"budget must be a Budget or its file; got {type_name(self.budget)}.")

    def mechanism_for(self, loss: Loss) -> str:
        """The mechanism for a linear model; ValueError when this loss gets no guarantee.

        Parameters
        ----------
        loss : Loss
        """
        squared = isinstance(loss, Squared)
        name = self.mechanism
        if name == "auto":
            name = "statistics" if squared else "updates"
        if name == "predictions":
            raise ValueError(
                'mechanism="predictions" is for FedRelax, whose models share predictions. Use '
                '"auto".'
            )
        if self.refit and name != "statistics":
            raise ValueError('refit=True needs mechanism="statistics", for squared errors.')
        if name == "statistics":
            if not squared:
                raise ValueError(
                    'mechanism="statistics" needs squared errors, for which second moments are '
                    f'enough; got {type(loss).__name__}. Use mechanism="updates".'
                )
            self.need_target()
        elif self.clip is None and lipschitz(loss, 1.0) is None:
            raise ValueError(
                f"The loss must have bounded slopes; one record can change a fit with "
                f"{type(loss).__name__} by any amount. Pass clip= to Privacy, or use "
                'loss="huber", or mechanism="statistics" for squared errors.'
            )
        return name

    def need_target(self) -> None:
        """Raise ValueError unless the target has bounds."""
        if self.bounds.y is None:
            raise ValueError(
                "The target must have bounds too: Bounds(x=..., y=(low, high)), declared without "
                "looking at the data."
            )

    def source(self, *where: int) -> Source:
        """Where the noise comes from; `where` tells seeded draws of tests apart."""
        if self.seed is None:
            return SystemNoise()
        source_of(self.insecure_testing, self.seed)
        return np.random.default_rng([int(self.seed), *where])

    def multiplier(self, releases: int) -> float:
        """Noise in units of the sensitivity, for this many releases from each record.

        Parameters
        ----------
        releases : int
        """
        return calibrate(self.epsilon, self.delta, releases)

    def check_outside(self, outside: list[str]) -> None:
        """Raise ValueError when choices on raw rows are not allowed.

        Parameters
        ----------
        outside : list of str
            What was chosen on raw rows.
        """
        if outside and not self.allow_outside:
            raise ValueError(
                f"Every choice must be covered by the guarantee; not covered: "
                f"{'; '.join(outside)}. Avoid it, or pass allow_outside=True to Privacy, and it is "
                "listed as spent outside the accountant. Nothing was released."
            )

    def charge(
        self,
        mechanism: str,
        releases: int,
        outside: list[str],
        before: dict[str, Any] | None = None,
    ) -> Spent:
        """Pay for all releases of a fit, before the first of them is made.

        `before` is the account's head as an earlier fit left it.

        Parameters
        ----------
        mechanism : str
        releases : int
            From each record.
        outside : list of str
            What was chosen on raw rows.
        before : dict, optional
        """
        self.check_outside(outside)
        noise, head = self.multiplier(releases), None
        if self.budget is None and before is not None:
            raise ValueError(
                "This model was charged to a budget, and must be again; its privacy has none. Pass "
                "budget= to Privacy."
            )
        if self.budget is not None:
            budget = self.budget if isinstance(self.budget, Budget) else Budget.open(self.budget)
            if before is not None:
                budget.check_head(before)
            budget.spend(mechanism, noise, releases, unit=self.unit, outside=outside)
            head = budget.head
        facts = (float(self.epsilon), float(self.delta), self.unit, noise, releases)
        kept = (self.insecure_testing, head, self.refit and mechanism == "statistics")
        return Spent(mechanism, *facts, tuple(outside), *kept)


@dataclass(frozen=True)
class Spent:
    """What a fit cost, kept with the model.

    Attributes
    ----------
    mechanism : str
    epsilon, delta : float
    unit : str
    multiplier : float
        Noise in units of the sensitivity of one release.
    releases : int
    outside : tuple of str
        What was chosen on raw rows.
    insecure : bool
        Whether noise may have come from a seed.
    head : dict or None
        The account after the fit was charged.
    refit : bool
        Whether the models were fitted to raw rows at last, and must stay at their nodes.

    Examples
    --------
    >>> promise = Privacy(1.0, 1e-6, bounds=Bounds(x=1.0, y=(0, 10)))
    >>> spent = promise.charge("statistics", 1, [])
    >>> spent.releases, round(spent.multiplier, 2)
    (1, 4.22)
    """

    mechanism: str
    epsilon: float
    delta: float
    unit: str
    multiplier: float
    releases: int
    outside: tuple[str, ...] = ()
    insecure: bool = False
    head: dict[str, Any] | None = None
    refit: bool = False

    def text(self) -> Text:
        """In words.

        Examples
        --------
        >>> print(Spent("statistics", 1.0, 1e-6, "record", 4.2, 1).text())
        private by "statistics": epsilon 1, delta 1e-06 for one record replaced; 1 release
        """
        times = "1 release" if self.releases == 1 else f"{self.releases} releases"
        what = "one record" if self.unit == "record" else "all records of one node"
        lines = [
            f'private by "{self.mechanism}": epsilon {self.epsilon:g}, delta {self.delta:g} for '
            f"{what} replaced; {times}"
        ]
        if self.refit:
            lines.append(
                "the models saw raw rows in a last refit: they stay at their nodes, what was sent "
                "is private"
            )
        if self.insecure:
            lines.append("no guarantee: insecure_testing=True, the noise can be drawn again")
        lines += [f"outside the accountant: {text}" for text in self.outside]
        return Text("\n".join(lines))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Spent:
        """The way back from `to_dict`.

        Parameters
        ----------
        values : dict
        """
        return cls(**{**values, "outside": tuple(values["outside"])})

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return {**vars(self), "outside": list(self.outside)}
