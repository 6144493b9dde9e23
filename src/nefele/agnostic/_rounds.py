"""The rounds of the model-agnostic FedRelax (AGN, Algorithms 1 and 2): who moves when, who hears.

Every exchange is a message over a link of the graph; a node knows of its neighbours only what
such messages brought.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import delayed

from nefele._checks import Array
from nefele.agnostic._discrepancy import Discrepancy
from nefele.agnostic._site import Moved, Site, move
from nefele.graph import Graph
from nefele.runtime.faults import Faults, Post
from nefele.runtime.links import Links
from nefele.runtime.messages import Message
from nefele.solvers.fedrelax import colours

Pool = Callable[[Any], list[Moved]]


class Round(NamedTuple):
    """One round of FedRelax.

    Attributes
    ----------
    round : int
    change : float
        Largest change of a node's predictions on X_shared, root mean square, relative to the
        spread of the target; for classes the change of probabilities.
    objective : float
        sum_i L_i + alpha sum_e A_e d_e, with the squared error or the log loss as L_i whatever
        the models minimise themselves; NaN while a node has no model.
    """

    round: int
    change: float
    objective: float


class Relaxation:
    """The state of all nodes and what each has heard."""

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
    ) -> None:
        self.graph, self.sites, self.X_shared, self.alpha = graph, sites, X_shared, alpha
        self.discrepancy, self.spread, self.classes = discrepancy, spread, classes
        self.pool, self.schedule, self.seed = pool, schedule, seed
        self.links, self.weight = Links(graph), np.repeat(graph.weight, 2)
        self.colours = [nodes.tolist() for nodes in colours(graph)]
        self.post = Post(self.links.receivers, faults, graph.ids)
        self.state: dict[int, Moved] = {}
        self.news: dict[int, tuple[int, Array]] = {}  # by link: round it was made in, predictions
        self.moved = np.zeros(graph.n_nodes, dtype=np.int64)
        self.history: list[Round] = []
        self.ids = graph.ids.tolist()

    # -- start --------------------------------------------------------------------------------

    def start(self, init: str) -> None:
        """Local fits, told to the neighbours; or zero everywhere, which needs no telling."""
        if init == "local":
            self.post.begin(0)
            there = [i for i, site in self.sites.items() if site.total]
            self.refit(there, dict.fromkeys(there))
            self.tell(there, 0)
            return
        shape = (len(self.X_shared),)
        zero = np.zeros(shape)
        if self.classes is not None:
            zero = np.full((*shape, len(self.classes)), 1 / len(self.classes))
        self.news = {
            link: (0, zero) for link, j in enumerate(self.links.senders.tolist()) if j in self.sites
        }

    def fit_local(self) -> None:
        """Every node by itself: no coupling, no messages."""
        self.refit(list(self.sites), dict.fromkeys(self.sites))

    # -- rounds -------------------------------------------------------------------------------

    def run(self, rounds: int, tol: float | None) -> bool:
        """Whether the change fell to tol; without tol, all rounds are done."""
        quiet: int | None = None
        for k in range(1, rounds + 1):
            change = self.round(k)
            self.history.append(Round(k, change, self.objective()))
            if tol is None:
                continue
            quiet = None if change > tol else (quiet or k)
            if quiet is not None and self.all_heard(quiet):
                return True
        return tol is None and len(self.state) == len(self.sites)

    def round(self, k: int) -> float:
        """One update of every node; the largest change of predictions."""
        self.post.begin(k)
        largest = 0.0
        for group in self.groups(k):
            for link, message in self.post.deliver():
                if message.round >= self.news.get(link, (-1, None))[0]:
                    self.news[link] = (message.round, message.payload)
            moving = [i for i in group if i in self.sites and self.post.moving[i]]
            blocks = {i: self.block(i) for i in moving}
            # Who has heard nothing keeps its model; an isolated node may not have one yet.
            fits = [i for i in moving if blocks[i] is not None or self.alone(i)]
            before = {i: self.state.get(i) for i in fits}
            self.refit(fits, blocks)
            self.moved[fits] = k
            # who has heard nothing may be waited for, since what it said may have been lost
            self.tell([*fits, *(i for i in moving if i not in before and i in self.state)], k)
            largest = max([largest, *(self.change(i, before[i]) for i in fits)])
        return largest if len(self.state) == len(self.sites) else np.inf

    def groups(self, k: int) -> Iterator[list[int]]:
        """Nodes that move at the same time."""
        if self.schedule == "jacobi":
            yield list(self.sites)
        elif self.schedule == "gauss-seidel":
            yield from self.colours
        else:
            order = np.random.default_rng([self.seed, 2, k]).permutation(list(self.sites))
            yield from ([i] for i in order.tolist())

    def alone(self, i: int) -> bool:
        return not self.links.incoming[i].size and i not in self.state

    def block(self, i: int) -> tuple[Array, Array] | None:
        """The pseudo-labelled rows of a node, from what it has heard; None if nothing."""
        links = [link for link in self.links.incoming[i].tolist() if link in self.news]
        if not links:
            return None
        own = self.state[i].shared if i in self.state else None
        return self.discrepancy.block(
            self.weight[links], [self.news[link][1] for link in links], own
        )

    def refit(self, nodes: list[int], blocks: dict[int, Any]) -> None:
        """Fit the models of some nodes, in parallel if the pool is."""
        last = {i: self.state[i].model if i in self.state else None for i in nodes}
        found = self.pool(
            delayed(move)(
                self.sites[i], last[i], blocks[i], self.X_shared, self.alpha, self.classes
            )
            for i in nodes
        )
        self.state.update(zip(nodes, found, strict=True))

    def tell(self, nodes: list[int], k: int) -> None:
        """Send the predictions of some nodes to their neighbours."""
        content = "predictions" if self.classes is None else "probabilities"
        hop = 1 if self.schedule == "jacobi" else 0
        for i in nodes:
            for link in self.links.outgoing[i].tolist():
                to = self.ids[self.links.receivers[link]]
                message = Message(self.ids[i], to, k, content, self.state[i].shared)
                self.post.send(link, message, hop)

    def change(self, i: int, before: Moved | None) -> float:
        if before is None:
            return np.inf
        moved = (self.state[i].shared - before.shared).reshape(len(self.X_shared), -1)
        return float(np.sqrt((moved**2).sum(axis=1).mean())) / self.spread

    def all_heard(self, since: int) -> bool:
        """Whether all nodes have moved since, with news of all neighbours from then or just before.

        Without faults that is so after one round; with them a round without change may only
        mean that nothing arrived.
        """
        heard = all(
            link in self.news and self.news[link][0] >= since - 1
            for link, j in enumerate(self.links.senders.tolist())
            if j in self.sites
        )
        return heard and all(
            self.moved[i] >= since for i in self.sites if self.links.incoming[i].size
        )

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
