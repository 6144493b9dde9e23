"""A network under attack: which attacks, which defences, and what each pair ends with."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.data import LocalData
from nefele.graph import Graph
from nefele.losses import Absolute, HuberLoss
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, DataWarning
from nefele.robust import (
    Alie,
    Backdoor,
    CentredClip,
    CleanLabel,
    Clip,
    Constant,
    FlipLabels,
    FLTrust,
    GeometricMedian,
    Guarded,
    InnerProduct,
    Krum,
    Median,
    PoisonFeatures,
    Random,
    Rule,
    ShiftLabels,
    SignFlip,
    Sybil,
    TrimmedMean,
    influence_bound,
)
from nefele.runtime import pass_messages, relax_messages
from nefele.solvers import PrimalDual, solve

QUADRATIC = "squared_l2"
_FAR = 1e6  # what a node says that says something absurd
_SUSPECT = 0.25  # share of its neighbours that a node takes for bad, where a rule needs a number
_QUARTILE = 0.6745  # median size of a standard normal number
_EFFICIENT = 1.345  # deviations at which the Huber loss bends
WORSE = 2.0  # error over the attack-free one from which an attack counts as successful

Judge = Callable[[Array], float]


@dataclass(frozen=True, eq=False)
class Scene:
    """A network with captured nodes, and what is measured at the honest ones.

    Attributes
    ----------
    graph, data, loss : as for `Problem`
    lam : dict of penalty name to float
    captured : list of node ids
    judge : callable
        Error of the honest nodes from parameters of shape (n_nodes, d).
    door : Backdoor
    opened : callable
        Share of stamped rows that the honest nodes judge as the backdoor wants.
    target : array, optional
        What a clean-label attack is after; None where labels are no classes.
    rounds, relaxed : int
        Rounds of Algorithm 1 and of FedRelax.
    """

    graph: Graph
    data: LocalData
    loss: Any
    lam: dict[str, float]
    captured: list[Any]
    judge: Judge
    door: Backdoor
    opened: Judge
    target: Array | None = None
    rounds: int = 150
    relaxed: int = 50
    seed: int = 0

    def problem(
        self, penalty: str, graph: Graph | None = None, data: Any = None, robust: Any = None
    ) -> Problem:
        """With this penalty; over another graph, with other data or a robust loss.

        Another loss bends less: its lam is in the same ratio to that as lam is to the squared one.
        """
        loss, factor = (self.loss, 1.0) if robust is None else robust(self.noise, self.loss.l2)
        return Problem(
            self.graph if graph is None else graph,
            self.data if data is None else data,
            loss,
            penalty,
            lam=factor * self.lam.get(penalty, self.lam["l2"]),
        )

    @cached_property
    def honest(self) -> NDArray[np.int64]:
        """Positions of the honest nodes."""
        return np.setdiff1d(np.arange(self.graph.n_nodes), self.graph.positions(self.captured))

    @cached_property
    def spread(self) -> float:
        """How far apart the local fits of neighbours usually are: the radius of clipping."""
        local = self.problem("l2").loss.minimise()
        return float(np.median(np.linalg.norm(self.graph.diff(local), axis=1))) or 1.0

    @cached_property
    def noise(self) -> float:
        """Deviation of the residuals of the local fits, from their median size."""
        local = self.problem("l2").loss.minimise()[self.data.row_node]
        size = np.abs(np.einsum("ij,ij->i", self.data.X, local) - self.data.y)
        return float(np.median(size)) / _QUARTILE or 1.0


@dataclass(frozen=True, eq=False)
class Attack:
    """What an attack does to a scene: its data, its graph, its programs."""

    data: Callable[[LocalData], LocalData] | None = None
    graph: Sybil | None = None
    says: Callable[[Any], Any] | None = None  # from a node id to what wraps its program


@dataclass(frozen=True)
class Defence:
    """A penalty, and perhaps a rule from a node's number of neighbours, or another loss."""

    penalty: str
    rule: Callable[[int, float], Rule] | None = None
    loss: Callable[[float, float], tuple[Any, float]] | None = None  # of noise and ridge


@dataclass(frozen=True)
class Outcome:
    """How an attack against a defence ended.

    Attributes
    ----------
    error : float
        Of the honest nodes.
    moved, bound : float
        Distance of the honest parameters from the fit without the attackers' edges, and what it
        can be at most; inf without a bound.
    opened : float
        Share of stamped rows that the backdoor wins.
    seconds : float
    """

    error: float
    moved: float
    bound: float
    opened: float
    seconds: float
    w: Array = field(repr=False)

    @property
    def used(self) -> float:
        """Deviation over its bound; NaN without one."""
        return self.moved / self.bound if 0 < self.bound < np.inf else np.nan


def defences(classes: bool = False) -> dict[str, Defence]:
    """All defences by name; the first is none. Losses for bad labels need labels to be numbers."""

    def bad(k: int) -> int:
        return int(np.ceil(_SUSPECT * k))

    found = {
        "none (quadratic)": Defence(QUADRATIC),
        "l2": Defence("l2"),
        "huber": Defence("huber"),
        "clip": Defence(QUADRATIC, lambda k, unit: Clip(unit)),
        "trimmed mean": Defence(QUADRATIC, lambda k, unit: TrimmedMean(bad(k))),
        "median": Defence(QUADRATIC, lambda k, unit: Median()),
        "geometric median": Defence(QUADRATIC, lambda k, unit: GeometricMedian()),
        "krum": Defence(QUADRATIC, lambda k, unit: Krum(bad(k))),
        "centred clipping": Defence(QUADRATIC, lambda k, unit: CentredClip(unit)),
        "fltrust": Defence(QUADRATIC, lambda k, unit: FLTrust()),
    }
    if classes:
        return found
    return {
        **found,
        "huber loss": Defence(QUADRATIC, loss=_huber),
        "absolute loss": Defence(QUADRATIC, loss=_absolute),
    }


def _huber(noise: float, l2: float) -> tuple[Any, float]:
    """The Huber loss that is 95% as good as squares for normal errors, and its bend over theirs."""
    return HuberLoss(l2=l2, delta=_EFFICIENT * noise), 0.5


def _absolute(noise: float, l2: float) -> tuple[Any, float]:
    """The mean of |r| bends by twice the density of the errors at zero; that of r^2 by 2."""
    return Absolute(l2=l2), 1 / (np.sqrt(2 * np.pi) * noise)


def attacks(scene: Scene) -> dict[str, Attack]:
    """All attacks by name; the first is none."""
    nodes, seed = scene.captured, scene.seed
    by = 10 * float(scene.data.y.std())

    def own_seed(node: Any) -> int:
        return 1000 * seed + scene.graph.position(node)

    found = {
        "nobody": Attack(),
        "labels flipped": Attack(FlipLabels(nodes)),
        "labels shifted": Attack(ShiftLabels(nodes, by)),
        "features": Attack(PoisonFeatures(nodes, 5.0, seed=seed)),
        "clean label": Attack(CleanLabel(nodes, scene.target, scene.door.label)
                              if scene.target is not None else None),
        "backdoor": Attack(scene.door),
        "constant": Attack(says=lambda node: Constant(_FAR)),
        "random": Attack(says=lambda node: Random(10 * scene.spread, own_seed(node))),
        "sign flipped": Attack(says=lambda node: SignFlip(3.0)),
        "alie": Attack(says=lambda node: Alie()),
        "inner product": Attack(says=lambda node: InnerProduct(3.0)),
        "sybil": Attack(graph=Sybil(nodes, seed=seed), says=lambda node: Constant(_FAR)),
    }  # fmt: skip
    if scene.target is None:
        del found["clean label"]
        return found
    del found["labels shifted"]  # classes do not shift
    return found


def play(scene: Scene, attack: Attack, defence: Defence) -> Outcome:
    """Learn under attack, and see what became of the honest nodes."""
    graph = scene.graph if attack.graph is None else attack.graph(scene.graph)
    data = scene.data if attack.data is None else attack.data(scene.data)
    problem = scene.problem(defence.penalty, graph, data, defence.loss)
    bad = [*scene.captured, *graph.ids[scene.graph.n_nodes :].tolist()]
    wrap = {} if attack.says is None else {node: attack.says(node) for node in bad}
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        w = _learn(scene, problem, bad, wrap, defence)
    seconds = time.perf_counter() - start
    w = w[: scene.graph.n_nodes]
    certified = influence_bound(problem, bad)
    covered = np.flatnonzero(certified.covered[: len(w)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        base = solve(_left(scene, defence, data), tol=1e-6).w
    moved = float(np.linalg.norm((w - base)[covered]))
    return Outcome(scene.judge(w), moved, certified.total, scene.opened(w), seconds, w)


def _learn(
    scene: Scene, problem: Problem, bad: list[Any], wrap: dict[Any, Any], defence: Defence
) -> Array:
    if not wrap and defence.rule is None:
        return solve(problem, tol=1e-6).w
    if defence.penalty != QUADRATIC:
        return pass_messages(problem, scene.rounds, PrimalDual(), wrap=wrap).w
    if defence.rule is not None:
        graph = problem.graph
        for i in np.flatnonzero(~np.isin(graph.ids, bad)).tolist():
            rule = defence.rule(int(graph.degree[i]), scene.spread)
            wrap[graph.ids.tolist()[i]] = Guarded(rule)
    return relax_messages(problem, scene.relaxed, wrap=wrap).w


def _left(scene: Scene, defence: Defence, data: LocalData) -> Problem:
    """The problem without the edges of the captured nodes."""
    graph, bad = scene.graph, scene.graph.positions(scene.captured)
    kept = ~(np.isin(graph.head, bad) | np.isin(graph.tail, bad))
    smaller = Graph(graph.ids, graph.head[kept], graph.tail[kept], graph.weight[kept])
    return scene.problem(defence.penalty, smaller, data, defence.loss)


def succeeded(attack: str, outcome: Outcome, clean: Outcome) -> float:
    """How far an attack succeeded: the share of rows won by a backdoor; otherwise 1 or 0.

    An attack without a backdoor succeeds when the honest error is more than twice what it was.
    """
    if attack == "backdoor":
        return outcome.opened
    return float(outcome.error > WORSE * clean.error)


def table(
    scene: Scene, names: list[str] | None = None, against: list[str] | None = None
) -> Iterator[tuple[str, str, Outcome, float]]:
    """(attack, defence, outcome, success) of all pairs, the attack-free ones first."""
    found, shields = attacks(scene), defences(scene.target is not None)
    for shield in shields if against is None else against:
        clean = play(scene, found["nobody"], shields[shield])
        yield "nobody", shield, clean, 0.0
        for name in list(found)[1:] if names is None else names:
            outcome = play(scene, found[name], shields[shield])
            yield name, shield, outcome, succeeded(name, outcome, clean)


def with_rounds(scene: Scene, rounds: int, relaxed: int) -> Scene:
    """The same scene with other numbers of rounds."""
    return replace(scene, rounds=rounds, relaxed=relaxed)
