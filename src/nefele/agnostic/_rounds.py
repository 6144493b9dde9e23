"""FedRelax on predictions (AGN, Algorithms 1 and 2) as programs: any model with fit and predict.

A node knows of its neighbours only the predictions that their messages brought.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import delayed

from nefele._checks import Array
from nefele._progress import Line
from nefele.agnostic._discrepancy import Discrepancy
from nefele.agnostic._private import Noisy, move_noisy
from nefele.agnostic._site import Moved, Site, move
from nefele.agnostic.updating import change
from nefele.graph import Graph
from nefele.program import Exchange, Heard, Program, Work
from nefele.runtime.drivers import InProcess
from nefele.runtime.faults import Faults
from nefele.runtime.messages import Ledger
from nefele.runtime.run import Round
from nefele.solvers.fedrelax import colours

Pool = Callable[[Any], list[Moved]]


class Relaxation:
    """The models of all nodes, and the driver of their programs."""

    def __init__(
        self,
        graph: Graph,
        sites: dict[int, Site],
        X_shared: Array,
        alpha: float,
        discrepancy: Discrepancy,
        spread: float,
        classes: NDArray[Any] | None,
        pool: Pool,
        faults: Faults | None,
        schedule: str,
        seed: int,
        init: str = "local",
        noise: float = 0.0,
    ) -> None:
        self.graph, self.sites, self.X_shared, self.alpha = graph, sites, X_shared, alpha
        self.discrepancy, self.spread, self.classes = discrepancy, spread, classes
        self.schedule, self.seed, self.init, self.noise = schedule, seed, init, noise
        self.draws = {i: np.random.default_rng([seed, 5, i]) for i in sites}
        self.noisy: Noisy | None = None  # set when it is paid for, before the first round
        self.updates = dict.fromkeys(sites, 0)
        self.ids = graph.ids.tolist()
        self.near: dict[int, dict[int, float]] = {i: {} for i in sites}  # weights by neighbour
        for i, j, weight in zip(
            graph.head.tolist(), graph.tail.tolist(), graph.weight, strict=True
        ):
            if i in sites and j in sites:
                self.near[i][j] = self.near[j][i] = weight
        self.state: dict[int, Moved] = {}
        self.changes: dict[int, float] = {}  # of the nodes that fit in this round
        self.history: list[Round] = []
        self.driver = InProcess(
            {self.ids[i]: [self.ids[j] for j in self.near[i]] for i in sites},
            {self.ids[i]: self.program(i) for i in sites},
            faults,
            wait=False,
            pool=lambda tasks: pool(delayed(task.call)(*task.arguments) for task in tasks),
        )

    @property
    def ledger(self) -> Ledger:
        """What was sent so far."""
        return self.driver.ledger

    # -- one node -----------------------------------------------------------------------------

    def program(self, i: int) -> Program[None]:
        """Fit, tell the neighbours the predictions on the shared rows, hear theirs, and again.

        It begins with a local fit, or with zero everywhere, which needs no telling.
        """
        if self.init == "local" and self.sites[i].total:
            self.state[i] = self.perturbed(i, (yield self.fit(i, None)))
        heard: Heard = yield self.said(i)
        while True:
            block = self.block(i, heard.rows)
            # Who has heard nothing keeps its model; an isolated node may not have one yet.
            if block is not None or (not self.near[i] and i not in self.state):
                before = self.state.get(i)
                self.state[i] = self.perturbed(i, (yield self.fit(i, block)))
                self.changes[i] = self.change(i, before)
            # Who has heard nothing says again what it said, since that may have been lost.
            heard = yield self.said(i)

    def fit(self, i: int, block: Any) -> Work:
        """The fit of a node's model to its rows and the block of pseudo-labelled ones."""
        if self.noisy is not None:
            source = self.noisy.source(i, self.updates[i])
            self.updates[i] += 1
            terms = (self.X_shared, self.alpha, self.classes, self.noisy, source)
            return Work(move_noisy, (self.sites[i], block, *terms))
        last = self.state[i].model if i in self.state else None
        return Work(move, (self.sites[i], last, block, self.X_shared, self.alpha, self.classes))

    def perturbed(self, i: int, moved: Moved) -> Moved:
        """An update with noise on its predictions; probabilities are made such again."""
        if not self.noise:
            return moved
        shared = moved.shared + self.noise * self.draws[i].standard_normal(moved.shared.shape)
        if self.classes is not None:
            shared = np.maximum(shared, 1e-6)
            shared /= shared.sum(axis=1, keepdims=True)
        return replace(moved, shared=shared)

    def said(self, i: int) -> Exchange:
        """A node's predictions for its neighbours; nothing before it has a model."""
        content = "predictions" if self.classes is None else "probabilities"
        there = self.near[i] if i in self.state else ()
        return Exchange(content, {self.ids[j]: self.state[i].shared for j in there})

    def block(self, i: int, heard: dict[Any, Array]) -> Any:
        """The pseudo-labelled rows of a node, from what it has heard; None if nothing."""
        if self.init == "zero":
            heard = {self.ids[j]: self.zero for j in self.near[i]} | heard
        near = [(self.ids[j], weight) for j, weight in self.near[i].items()]
        known = [(weight, heard[name]) for name, weight in near if name in heard]
        if not known:
            return None
        own = self.state[i].shared if i in self.state else None
        weights, news = zip(*known, strict=True)
        return self.discrepancy.block(np.array(weights), list(news), own)

    def possible(self) -> list[Any]:
        """What a node may have heard: nothing before the first round, then what all said alike."""
        told = self.discrepancy.block(np.ones(1), [self.zero], self.zero)
        return [None, told] if self.init == "local" else [told]

    @property
    def zero(self) -> Array:
        """What nodes without a model predict on the shared rows."""
        m = len(self.X_shared)
        if self.classes is None:
            return np.zeros(m)
        return np.full((m, len(self.classes)), 1 / len(self.classes))

    def change(self, i: int, before: Moved | None) -> float:
        return change(None if before is None else before.shared, self.state[i].shared, self.spread)

    # -- rounds -------------------------------------------------------------------------------

    def fit_local(self) -> None:
        """Every node by itself: no coupling, no messages."""
        tasks = [self.fit(i, None) for i in self.sites]
        self.state.update(zip(self.sites, self.driver.pool(tasks), strict=True))

    def run(self, rounds: int, tol: float | None, line: Line) -> bool:
        """Whether the change fell to tol; without tol, all rounds are done, each one shown."""
        until = "" if tol is None else f" (until {tol:.1e})"
        quiet: int | None = None
        self.driver.start()
        for k in range(1, rounds + 1):
            change = self.round(k)
            self.history.append(Round(k, self.objective(), change))
            line.show(f"round {k} of {rounds}: change {change:.1e}{until}")
            if tol is None:
                continue
            quiet = None if change > tol else (quiet or k)
            # With faults a round without change may only mean that nothing arrived.
            if quiet is not None and self.driver.heard_since(quiet):
                return True
        return tol is None and len(self.state) == len(self.sites)

    def round(self, k: int) -> float:
        """One update of every node; the largest change of predictions."""
        self.changes.clear()
        self.driver.round(k, self.groups(k))
        whole = len(self.state) == len(self.sites)
        return max(self.changes.values(), default=0.0) if whole else np.inf

    def groups(self, k: int) -> list[list[Any]] | None:
        """Nodes that move at the same time; None if all do."""
        if self.schedule == "jacobi":
            return None
        if self.schedule == "gauss-seidel":
            order = [
                [i for i in nodes.tolist() if i in self.sites] for nodes in colours(self.graph)
            ]
        else:
            draws = np.random.default_rng([self.seed, 2, k])
            order = [[i] for i in draws.permutation(list(self.sites)).tolist()]
        return [[self.ids[i] for i in group] for group in order]

    def objective(self) -> float:
        if len(self.state) < len(self.sites):
            return float("nan")
        total = sum(state.loss for state in self.state.values())
        head, tail = self.graph.head.tolist(), self.graph.tail.tolist()
        for i, j, weight in zip(head, tail, self.graph.weight.tolist(), strict=True):
            if i in self.state and j in self.state:
                apart = self.discrepancy.value(self.state[i].shared, self.state[j].shared)
                total += self.alpha * weight * apart
        return float(total)
