"""FedRelax between sites with any local models: neighbours agree on predictions at shared rows.

AGN, Algorithm 2, in step: in each round every node fits its model anew, to its own rows and to the
shared rows with the weighted mean of its neighbours' predictions. Only predictions travel. No
certificate exists for models of any kind; the rounds end when predictions no longer change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.agnostic.updating import (
    Discrepancy,
    Moved,
    Site,
    change,
    constant,
    fresh,
    move,
    predictions,
)
from nefele.estimators.design import Rows
from nefele.graph import Graph
from nefele.program import Exchange, Heard, Program, Sum, Work, largest
from nefele.runtime.part import sight
from nefele.runtime.programs import Fitted
from nefele.sites.federation import Federation
from nefele.sites.guarding import Ears
from nefele.sites.learning import Learner
from nefele.sites.learnt import Scales

REASON = "no certificate: any model"


class Relaxing:
    """The models of the own nodes for some training rows, and the rounds that couple them.

    Parameters
    ----------
    learner : Learner
    rows : Rows
    scales : Scales
    make : callable
        Makes an unfitted model.
    shared : array of shape (m', d)
        Shared rows in the units of the data.
    """

    def __init__(
        self, learner: Learner, rows: Rows, scales: Scales, make: Callable[[], Any], shared: Array
    ) -> None:
        self.learner, self.scales, federation = learner, scales, learner.federation
        graph, names = learner.graph, federation.target.classes
        self.X_shared = _scaled(shared, scales)
        self.classes = None if names is None else np.array(sorted(names))
        self.content = "predictions" if self.classes is None else "probabilities"
        self.discrepancy = Discrepancy("squared" if self.classes is None else "cross-entropy")
        place, X = graph.positions(rows.node_ids), _scaled(rows.X, scales)
        y = _labels(federation, rows.y)
        self.sites: dict[int, Site] = {}
        for i, name in zip(learner.nodes.tolist(), graph.ids[learner.nodes].tolist(), strict=True):
            own, seed = np.flatnonzero(place == i), federation.seed + i
            model = fresh(make(), name, self.classes is not None, seed)
            self.sites[i] = Site(name, X[own], y[own], None, model, seed)
        self.near: dict[int, dict[int, float]] = {i: {} for i in self.sites}
        ends = graph.head.tolist(), graph.tail.tolist(), graph.weight.tolist()
        for i, j, weight in zip(*ends, strict=True):
            for one, other in ((i, j), (j, i)):
                if one in self.near:
                    self.near[one][other] = weight
        mine = np.isin(np.arange(graph.n_nodes), learner.nodes)
        self.says, self.hears = sight(
            graph, mine, np.arange(graph.n_nodes), learner.nodes, learner.owner, learner.names
        )
        self.ears = None if learner.rule is None else Ears(learner.rule)
        self.state: dict[int, Moved] = {}
        self.first = np.zeros(graph.n_nodes)  # round in which each node has its first model
        self.spread, self.age = 1.0, 0  # unit of changes; rounds of earlier runs

    # -- before the rounds ----------------------------------------------------------------------

    def begin(self) -> Program[None]:
        """Fit every own node by itself; hear which nodes have rows, and the target's spread."""
        federation, graph = self.learner.federation, self.learner.graph
        mine = np.zeros(graph.n_nodes)
        for i, site in self.sites.items():
            mine[i] = len(site.y)
        with_rows = (yield Sum(np.minimum(mine, 1.0))) > 0
        self.first = _first(graph, with_rows)
        if federation.task == "regression":
            y = np.concatenate([site.y for site in self.sites.values()]).astype(float)
            count, total = yield Sum(np.array([len(y), y.sum()]))
            squares = yield Sum(np.array([((y - total / count) ** 2).sum()]))
            self.spread = float(np.sqrt(squares[0] / count)) or 1.0
        for i, site in self.sites.items():
            if site.total:
                self.state[i] = yield self.fit(i, None, 0.0)

    def fit(self, i: int, block: Any, alpha: float) -> Work:
        """The update of one node (AGN, Eq. (11))."""
        site = self.sites[i]
        if self.learner.federation.weighting == "rows" and site.total:
            alpha = alpha * self.scales.rows_per_node / site.total
        last = self.state[i].model if i in self.state else None
        return Work(move, (site, last, block, self.X_shared, alpha, self.classes))

    # -- rounds ---------------------------------------------------------------------------------

    def run(self, alpha: float, tol: float, stage: str) -> Program[Fitted]:
        """Hear, refit, tell, until no prediction changes by more than tol; from where it stands."""
        rounds, moved, k = self.learner.federation.rounds, 0.0, 0
        if alpha > 0 and self.learner.graph.n_edges:
            known = yield from self.heard()
            for k in range(1, rounds + 1):
                moved = yield from self.round(k, known, alpha)
                moved = yield from largest(moved)
                self.learner.report(stage, k, np.inf, moved)
                if moved <= tol:
                    break
                known = yield from self.heard()
            self.age += k
        return Fitted(np.nan, None, k, [], change=moved, reason=REASON)

    def heard(self) -> Program[dict[int, Array]]:
        """Tell the neighbours, and what is known of all nodes at the border then."""
        told = self.shared()
        heard: Heard = yield Exchange(self.content, {q: told[i] for q, i in self.says.items()})
        known = {i: moved.shared for i, moved in self.state.items()}
        for q, nodes in self.hears.items():
            known |= dict(zip(nodes.tolist(), heard.rows[q], strict=True))
        return known

    def guarded(self, ears: Ears, i: int, news: tuple[Array, ...]) -> list[Array]:
        """What node i hears by the agreed rule; of classes, shares that add up to one."""
        own = self.shared_of(i)
        said = list(ears.heard(i, dict(enumerate(news)), own).values())
        if self.classes is None:
            return said
        floor = np.finfo(float).tiny
        said = [np.maximum(p, floor) for p in said]
        return [p / p.sum(axis=-1, keepdims=True) for p in said]

    def round(self, k: int, known: dict[int, Array], alpha: float) -> Program[float]:
        """Move all own nodes at once; the largest change."""
        moved = [0.0]
        for i in self.sites:
            # Who has no model yet has said nothing that counts.
            near = [(a, known[j]) for j, a in self.near[i].items() if self.first[j] < k + self.age]
            if near:
                weights, news = zip(*near, strict=True)
                own = self.state[i].shared if i in self.state else None
                said = list(news) if self.ears is None else self.guarded(self.ears, i, news)
                block = self.discrepancy.block(np.array(weights), said, own)
                self.state[i] = yield self.fit(i, block, alpha)
                moved.append(change(own, self.state[i].shared, self.spread))
            elif np.isfinite(self.first[i]) and i not in self.state:
                moved.append(np.inf)
        return max(moved)

    # -- what is known --------------------------------------------------------------------------

    def model(self, i: int) -> Any:
        """The model of an own node; a constant where no data reach it."""
        if i in self.state:
            return self.state[i].model
        return constant(self.classes, self.X_shared)

    def shared(self) -> Array:
        """Predictions of all own nodes at the shared rows; of those without a model a constant."""
        return np.stack([self.shared_of(i) for i in self.sites])

    def shared_of(self, i: int) -> Array:
        """Predictions of one own node at the shared rows."""
        if i in self.state:
            return self.state[i].shared
        return predictions(self.model(i), self.X_shared, self.classes)

    def errors(self, rows: Rows) -> tuple[Array, Array]:
        """Error of each row by the model of its node, and whether its class is wrong."""
        place, X = self.learner.graph.positions(rows.node_ids), _scaled(rows.X, self.scales)
        y = _labels(self.learner.federation, rows.y)
        error, wrong = np.zeros(len(y)), np.zeros(len(y))
        for i in np.unique(place).tolist():
            at = np.flatnonzero(place == i)
            found = predictions(self.model(i), X[at], self.classes)
            if self.classes is None:
                error[at] = (found - y[at]) ** 2
                continue
            code = np.searchsorted(self.classes, y[at])
            right = found[np.arange(len(at)), code]
            error[at] = -np.log(np.maximum(right, np.finfo(float).eps))
            wrong[at] = found.argmax(axis=1) != code
        return error, wrong


def _scaled(X: Array, scales: Scales) -> Array:
    """Features as the models see them."""
    return np.asarray((X - scales.shift) / scales.scale)


def _labels(federation: Federation, y: Array) -> NDArray[Any]:
    """The target as the models see it: numbers, or the names of classes."""
    names = federation.target.classes
    if names is None:
        return y
    return np.array(names)[(y > 0).astype(int) if len(names) == 2 else y.astype(int)]


def _first(graph: Graph, with_rows: NDArray[np.bool_]) -> Array:
    """Edges to the nearest node with rows, inf where none is reached, shape (n_nodes,)."""
    far, reached, k = np.where(with_rows, 0.0, np.inf), with_rows, 0
    while True:
        new = (graph.adjacency @ reached.astype(float) > 0) & ~np.isfinite(far)
        if not new.any():
            return far
        k += 1
        far[new] = k
        reached = reached | new
