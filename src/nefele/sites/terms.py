"""What the members of a federation agree to compute, and which choices go together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nefele._checks import check_count, check_flag, check_name, check_number
from nefele._words import short
from nefele.robust.naming import rule_of
from nefele.runs.config import PENALTIES, TASKS, WEIGHTINGS

LOSSES = {
    "regression": ("squared", "huber", "absolute"),
    "classification": ("logistic", "multinomial"),
}
METHODS = ("algorithm1", "fedrelax", "networks", "predictions")
SCALINGS = ("bounds", "sums", "none")
ABSENT = ("wait", "freeze", "drop")
_COUNTS = {"rounds": 1, "check_every": 1, "folds": 2, "n_alphas": 2, "seed": 0}


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The computation that all members agree to.

    Attributes
    ----------
    task : {"regression", "classification"}
    loss : {"squared", "huber", "absolute", "logistic", "multinomial"}
        The first three for regression; logistic for two classes, multinomial for more.
    l2 : float
        Ridge term of each node's loss.
    penalty : {"l2", "l1", "linf", "squared_l2", "huber"}
    method : {"algorithm1", "fedrelax", "networks", "predictions"}
        Algorithm 1 with a certificate; FedRelax on parameters; Algorithm 1 on the parameters of
        networks; FedRelax on the predictions of any local models at shared rows.
    wait : bool
        Whether each round waits for all neighbours.
    alpha : float or "auto"
        Strength of the coupling, or chosen by cross-validation inside the nodes.
    alphas : tuple of float, optional
        Candidates for "auto"; default: `n_alphas` of them, found from the data.
    n_alphas, folds : int
    tol : float
        Certified relative gap to reach; with the method "predictions", and with masks, the largest
        relative change of a round, since there no certificate exists.
    rounds, check_every : int
        Most rounds of one fit, and rounds between two certificates.
    held_out : float
        Share of each node's rows that judge the models.
    standardize : {"bounds", "sums", "none"}
        Features are scaled by the agreed bounds, by means and deviations over all rows (sums that
        all members learn), or not.
    weighting : {"rows", "nodes"}
    seed : int
    absent : {"wait", "freeze", "drop"}
        What is done about a member that is silent for longer than `absent_after` seconds.
    absent_after : float
    masked : bool
        Whether members see the sum over their neighbours only, never one neighbour's model.
    shared : str, optional
        SHA-256 of the file with the shared rows, for the method "predictions".
    guard : str, optional
        By which rule of `nefele.robust` every node hears its neighbours, such as "median" or
        "clip:0.5"; for "fedrelax" and "predictions".

    Examples
    --------
    >>> Terms(penalty="squared_l2", method="fedrelax", l2=0.1, wait=False).wait
    False
    >>> Terms(wait=False)
    Traceback (most recent call last):
    ValueError: wait = false needs method "fedrelax"; got "algorithm1". Both ends of an edge keep...
    """

    task: str = "regression"
    loss: str = "squared"
    l2: float = 0.0
    penalty: str = "l2"
    method: str = "algorithm1"
    wait: bool = True
    alpha: float | str = "auto"
    alphas: tuple[float, ...] | None = None
    n_alphas: int = 10
    folds: int = 5
    tol: float = 1e-4
    rounds: int = 10_000
    check_every: int = 100
    held_out: float = 0.2
    standardize: str = "bounds"
    weighting: str = "rows"
    seed: int = 0
    absent: str = "wait"
    absent_after: float = 600.0
    masked: bool = False
    shared: str | None = None
    guard: str | None = None

    def __post_init__(self) -> None:
        check_name(self.task, TASKS, "task")
        check_name(self.loss, LOSSES[self.task], f"loss for {self.task}")
        check_name(self.penalty, PENALTIES, "penalty")
        check_name(self.method, METHODS, "method")
        check_name(self.standardize, SCALINGS, "way to standardize")
        check_name(self.weighting, WEIGHTINGS, "weighting")
        check_name(self.absent, ABSENT, "policy for absent members")
        for name, low in _COUNTS.items():
            object.__setattr__(self, name, check_count(getattr(self, name), name, low=low))
        if self.check_every > self.rounds and self.method != "predictions":
            raise ValueError(
                f"check_every must be <= rounds; got {self.check_every} and {self.rounds}. No fit "
                "would ever be certified."
            )
        check_flag(self.wait, "wait")
        check_flag(self.masked, "masked")
        self._set_numbers()
        self._check_alpha()
        self._check_method()
        self._check_shared()
        if self.guard is not None:
            self._check_guard(self.guard)

    def _set_numbers(self) -> None:
        for name, strict in {
            "l2": False,
            "tol": True,
            "held_out": True,
            "absent_after": True,
        }.items():
            value = check_number(getattr(self, name), name, low=0.0, strict=strict)
            object.__setattr__(self, name, value)
        if self.held_out >= 1:
            raise ValueError(f"held_out must be a share < 1; got {self.held_out:g}.")

    def _check_alpha(self) -> None:
        if self.alpha != "auto":
            if isinstance(self.alpha, str):
                raise ValueError(f'alpha must be a number >= 0 or "auto"; got {self.alpha!r}.')
            advice = 'Use 0 for local fits, or "auto".'
            alpha = check_number(self.alpha, "alpha", low=0.0, advice=advice)
            object.__setattr__(self, "alpha", alpha)
        if self.alphas is None:
            return
        if self.alpha != "auto":
            raise ValueError(
                f'alphas needs alpha = "auto"; got alpha = {self.alpha:g}. Leave one of them out.'
            )
        if not isinstance(self.alphas, list | tuple) or len(self.alphas) < 2:
            raise ValueError(f"alphas must be a list of 2 or more; got {short(self.alphas)}.")
        found = tuple(check_number(a, "alphas", low=0.0) for a in self.alphas)
        if len(set(found)) < len(found):
            raise ValueError(f"alphas must be distinct; got {short(self.alphas)}.")
        object.__setattr__(self, "alphas", found)

    def _check_method(self) -> None:
        if self.method == "networks":
            self._check_networks()
        elif self.method != "algorithm1" and self.penalty != "squared_l2":
            raise ValueError(
                f'method "{self.method}" needs penalty "squared_l2"; got "{self.penalty}". Its '
                'update is exact for squared differences only. Use it, or method "algorithm1".'
            )
        if self.absent == "freeze" and (self.standardize == "sums" or self.method == "predictions"):
            raise ValueError(
                'absent = "freeze" needs parameters that mean the same with and without a member: '
                f'standardize = "bounds" or "none", and a method on parameters; got '
                f'"{self.standardize}" and "{self.method}".'
            )
        if not self.wait:
            self._check_no_wait()
        if self.masked:
            self._check_masks()

    def _check_networks(self) -> None:
        """Networks go through all agreed rounds, with all members, at one agreed alpha."""
        wanted = {
            "alpha": (not isinstance(self.alpha, str), "a number: nothing is chosen on the way"),
            "absent": (self.absent != "freeze", '"wait" or "drop"'),
            "guard": (self.guard is None, "left out: both ends of an edge keep its flow"),
            "loss": (self.loss != "huber", '"squared", "absolute", "logistic" or "multinomial"'),
            "weighting": (self.weighting == "nodes", '"nodes"'),
            "l2": (self.l2 == 0, "0"),
        }
        for name, (holds, what) in wanted.items():
            if not holds:
                raise ValueError(
                    f'method "networks" needs {name} to be {what}; got {getattr(self, name)!r}.'
                )

    def _check_no_wait(self) -> None:
        if self.method != "fedrelax":
            raise ValueError(
                f'wait = false needs method "fedrelax"; got "{self.method}". Both ends of an edge '
                "keep its flow in Algorithm 1, and answers of models are fitted anew: with old "
                "messages neither is known to converge. Use wait = true."
            )
        if self.l2 <= 0:
            raise ValueError(
                "wait = false needs l2 > 0; got 0. Only with strongly convex losses do rounds on "
                "old messages converge. Add l2 = 0.001, or use wait = true."
            )

    def _check_masks(self) -> None:
        if self.method != "fedrelax":
            raise ValueError(
                f'masked = true needs method "fedrelax" with penalty "squared_l2"; got '
                f'"{self.method}". Only its update needs no more than the sum over neighbours.'
            )
        if not self.wait or self.absent != "wait":
            raise ValueError(
                'masked = true needs wait = true and absent = "wait"; got wait = '
                f'{str(self.wait).lower()} and absent = "{self.absent}". Masks cancel only when '
                "all neighbours answer the same round."
            )

    def _check_guard(self, guard: str) -> None:
        rule_of(guard)  # says what is wrong with it
        if self.method == "algorithm1":
            raise ValueError(
                f'guard = {short(guard)} needs method "fedrelax" or "predictions"; got '
                '"algorithm1". There both ends of an edge keep its flow and must treat it alike, '
                'and the penalty guards: use penalty "l2" or "huber" without a guard.'
            )
        if self.masked:
            raise ValueError(
                f"guard = {short(guard)} needs masked = false: a guard looks at what each "
                "neighbour says, and masks hide it. Leave out one of them."
            )

    def _check_shared(self) -> None:
        if self.shared is not None and not is_sha256(self.shared):
            raise ValueError(
                "shared must be the SHA-256 of a file, 64 of 0-9 and a-f; got "
                f"{short(self.shared)}. Use sha256sum."
            )
        if (self.method == "predictions") != (self.shared is not None):
            have = "none" if self.shared is None else f'a file with method "{self.method}"'
            raise ValueError(
                f'shared must be there with method "predictions", and only then; got {have}. '
                "Models answer at the shared rows: every member needs the same file."
            )


def is_sha256(value: Any) -> bool:
    """Whether a value is a hash in the usual writing.

    Examples
    --------
    >>> is_sha256("0" * 64), is_sha256("0" * 63), is_sha256(7)
    (True, False, False)
    """
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def usual(values: Mapping[str, Any]) -> dict[str, Any]:
    """Loss, ridge and penalty that go with a task and a method.

    Examples
    --------
    >>> usual({"task": "classification", "target": {"classes": ["a", "b", "c"]}})
    {'loss': 'multinomial', 'l2': 0.001, 'penalty': 'l2'}
    """
    method = values.get("method", "algorithm1")
    penalty = "l2" if method == "algorithm1" else "squared_l2"
    nets: dict[str, Any] = {}
    if method == "networks":
        nets = {"rounds": 200, "weighting": "nodes", "l2": 0.0}
    if values.get("task", "regression") != "classification":
        return {"loss": "squared", "l2": 0.0, "penalty": penalty} | nets
    target = values.get("target", {})
    classes = target.get("classes", ()) if isinstance(target, Mapping) else ()
    several = isinstance(classes, list | tuple) and len(classes) > 2
    loss = "multinomial" if several else "logistic"
    return {"loss": loss, "l2": 1e-3, "penalty": penalty} | nets
