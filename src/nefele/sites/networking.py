"""The program of a site with networks: comparison and final fit by NFL, Algorithm 1.

Every site makes the agreed network from the agreed seed, so that all begin alike, and draws the
batches of its own nodes. Neighbours hear parameters in each round, nothing else; see
`nefele.networks.algorithm1`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._torch.base import Tensor, session, torch
from nefele._torch.losses import CLASSIFICATION, REGRESSION, logits_of, values_of
from nefele.estimators.design import Rows
from nefele.graph import Graph
from nefele.networks import GTVNetClassifier, GTVNetRegressor
from nefele.networks.algorithm1 import Algorithm1
from nefele.networks.coupling import Columns
from nefele.networks.features import ArrayFeatures
from nefele.networks.layers import Layers
from nefele.networks.parts import NetPart
from nefele.networks.rounds import Task, auto_gamma
from nefele.networks.rows import Source
from nefele.networks.stack import Stack
from nefele.penalties import as_penalty
from nefele.program import Program, Sum, largest
from nefele.runtime.programs import Fitted
from nefele.sites.learning import Learner
from nefele.sites.learnt import Scales, Scores
from nefele.sites.nets import NetTerms
from nefele.sites.noisy import judged
from nefele.sites.predicting import Networked

_REASON = "networks are not convex, nothing is proven"


class NetLearner:
    """The program of one member for the method "networks".

    Parameters
    ----------
    learner : Learner
        Of the same member, for its rows and what all agreed to.
    terms : NetTerms
    """

    def __init__(self, learner: Learner, terms: NetTerms) -> None:
        self.learner, self.terms = learner, terms
        federation = learner.federation
        self.classes = federation.target.classes
        self.n_outputs = len(self.classes or ()) or 1
        low, high = federation.target.low, federation.target.high
        self.unit = 1.0 if low is None or high is None else (high - low) / 2
        self.part = NetPart.of(learner.graph, learner.nodes, learner.owner, learner.names)

    def run(self) -> Program[Networked]:
        """From the rows to the networks."""
        learner = self.learner
        place = learner.graph.positions(learner.rows.node_ids)
        held = judged(place, learner.federation.seed, learner.federation.held_out)
        train, test = (learner.rows.take(np.flatnonzero(on)) for on in (~held, held))
        scales = yield from learner.scales(train)
        alpha = float(learner.federation.alpha)
        scores, everywhere = yield from self.compare(train, test, scales, alpha)
        scales = yield from learner.scales(learner.rows)
        rounds = self.begun(learner.rows, scales, alpha)
        fitted = yield from self.fit(rounds, "final fit")
        own = np.isin(learner.nodes, learner.own)
        w = rounds.w.numpy()[own].copy()
        ids = learner.graph.ids[learner.own]
        model = self.model(w, scales)
        none = np.zeros(0)
        rest = (learner.rows, scales, alpha, fitted, none, none, scores, everywhere)
        nothing = np.zeros((len(ids), 0))
        return Networked(ids.tolist(), {}, nothing, None, *rest, model, w)

    # -- rounds ---------------------------------------------------------------------------------

    def begun(self, rows: Rows, scales: Scales, alpha: float) -> Algorithm1:
        """The networks at their start."""
        federation, terms, part = self.learner.federation, self.terms, self.part
        labels = self.classes is not None
        n_features, seed = rows.X.shape[1], federation.seed
        with session(seed, 1):
            module = Layers(terms.hidden, terms.activation)(n_features, self.n_outputs)
        loss = CLASSIFICATION["cross_entropy"] if labels else REGRESSION[federation.loss]
        stack = Stack(module, self.outputs, loss, "loop")
        stack.seed, stack.keys = seed, part.nodes
        stack.module.train()
        task = Task(
            stack,
            self.source(rows, scales),
            part.graph,
            as_penalty(federation.penalty),
            alpha,
            auto_gamma("auto" if terms.gamma is None else terms.gamma, stack, alpha, False),
            Columns.of("all", stack),
            terms.optimizer,
            terms.lr,
            federation.rounds,
            terms.steps,
            terms.batch_size,
            terms.wire,
            part.own,
        )
        rounds = Algorithm1(task, part.says, part.hears)
        rounds.within = lambda: session(seed, 1)
        return rounds

    def outputs(self, out: Tensor) -> Tensor:
        """Predictions, or logits of all classes."""
        return values_of(out) if self.classes is None else logits_of(out, self.n_outputs)

    def source(self, rows: Rows, scales: Scales) -> Source:
        """The rows of the own nodes, scaled."""
        nodes = self.part.nodes
        place = np.searchsorted(nodes, self.learner.graph.positions(rows.node_ids))
        order = np.argsort(place, kind="stable")
        counts = np.bincount(place, minlength=len(nodes))
        return Source(
            ArrayFeatures((rows.X - scales.shift) / scales.scale, torch.float32),
            order,
            np.concatenate([[0], np.cumsum(counts)]),
            self.target(rows, scales)[order],
            rows.sample_weight[order],
            "float32",
            self.learner.federation.seed,
            nodes,
        )

    def target(self, rows: Rows, scales: Scales) -> NDArray[Any]:
        """Numbers about in [-1, 1], or the classes' places in the order of their names."""
        if self.classes is None:
            return (rows.y - scales.offset) / self.unit
        code = (rows.y > 0).astype(int) if len(self.classes) == 2 else rows.y.astype(int)
        return np.argsort(np.argsort(self.classes))[code].astype(np.int64)

    def fit(self, rounds: Algorithm1, stage: str) -> Program[Fitted]:
        """All rounds."""
        yield from self.check_start(rounds)
        total, change = rounds.task.rounds, 0.0
        for k in range(1, total + 1):
            before = rounds.w.clone() if k == total else None
            rounds.set_rate(k)
            yield from rounds.program(k)
            self.learner.report(stage, k, np.inf, np.nan)
            if before is not None:
                size = float(rounds.w.norm()) or 1.0
                change = float((rounds.w - before).norm()) / size
        if (yield from largest(not bool(torch.isfinite(rounds.w).all()))):
            raise ValueError("Training diverged: parameters are NaN or inf. Agree on a lower lr.")
        change = yield from largest(change)
        return Fitted(np.nan, None, total, [], change=change, reason=_REASON)

    def check_start(self, rounds: Algorithm1) -> Program[None]:
        """Networks that began differently cannot be compared."""
        mark = rounds.w[0].double()
        mine = np.array([float(mark.sum()), float((mark**2).sum())])
        most = yield Sum(np.concatenate([mine, -mine]), largest=True)
        if not np.array_equal(most[:2], -most[2:]):
            raise ValueError(
                "All members must begin with the same network; they do not. Use the same version "
                "of torch everywhere."
            )

    # -- errors and models ------------------------------------------------------------------------

    def compare(
        self, train: Rows, test: Rows, scales: Scales, alpha: float
    ) -> Program[tuple[Scores, Array]]:
        """Own data only and coupled networks at the held-out rows."""
        learner = self.learner
        found: list[tuple[Array, Array]] = []
        for strength, stage in ((0.0, "own data only"), (alpha, "comparison")):
            rounds = self.begun(train, scales, strength)
            yield from self.fit(rounds, stage)
            found.append(self.errors(rounds, test, scales))
        place = np.searchsorted(learner.own, learner.graph.positions(test.node_ids))
        n = len(learner.own)

        def by_node(k: int) -> Array:
            sums = [np.bincount(place, row[k], n) for row in found]
            return np.stack([sums[0], np.full(n, np.nan), sums[1]])

        count = np.bincount(place, minlength=n)
        scores = Scores(learner.graph.ids[learner.own], count, by_node(0), by_node(1))
        mine = [table[::2].sum(axis=1) for table in (scores.error, scores.wrong)]
        sums = yield Sum(np.concatenate([*mine, [len(place)]]))
        everywhere = np.full((2, 3), np.nan)
        if sums[-1]:
            everywhere[:, ::2] = sums[:-1].reshape(2, 2) / sums[-1]
        return scores, everywhere

    def errors(self, rounds: Algorithm1, rows: Rows, scales: Scales) -> tuple[Array, Array]:
        """Error of each row by the network of its node, and whether its class is wrong."""
        source, stack = self.source(rows, scales), rounds.stack
        stack.module.eval()
        error, wrong = np.zeros(len(rows.y)), np.zeros(len(rows.y))
        for batch in source.chunks():
            with session(source.seed, 1), torch.no_grad():
                ends = np.cumsum(batch.counts)
                for (i, X, y, _), end, count in zip(batch.each(), ends, batch.counts, strict=True):
                    at = source.places[batch.at[end - count : end]]
                    z = self.outputs(stack.at(i, rounds.w[i])(X))
                    if self.classes is None:
                        error[at] = ((z - y) ** 2).double().numpy() * self.unit**2
                        continue
                    error[at] = stack.loss(z, y).double().numpy()
                    wrong[at] = (z.argmax(dim=1) != y).numpy()
        stack.module.train()
        return error, wrong

    def model(self, w: Array, scales: Scales) -> Any:
        """The estimator with the networks of the own nodes, for rows in the units of the data."""
        federation, learner = self.learner.federation, self.learner
        whole, nodes = learner.graph, learner.own
        inside = np.isin(whole.head, nodes) & np.isin(whole.tail, nodes)
        head, tail = (np.searchsorted(nodes, end[inside]) for end in (whole.head, whole.tail))
        graph = Graph(whole.ids[nodes], head, tail, whole.weight[inside])
        kind = GTVNetRegressor if self.classes is None else GTVNetClassifier
        terms, layers = self.terms, Layers(self.terms.hidden, self.terms.activation)
        model: Any = kind(
            layers, graph=graph, alpha=float(federation.alpha), penalty=federation.penalty,
            rounds=federation.rounds, prox_steps=terms.steps, optimizer=terms.optimizer,
            lr=terms.lr, batch_size=terms.batch_size, wire=terms.wire,
            gamma="auto" if terms.gamma is None else terms.gamma, random_state=federation.seed,
        )  # fmt: skip
        n_features = len(federation.features)
        if self.classes is not None:
            model.classes_ = np.array(sorted(self.classes))
        model.graph_, model.nodes_ = graph, np.array(graph.ids)
        with session(federation.seed, 1):
            model.module_ = layers(n_features, self.n_outputs).eval()
        unit = (self.unit, scales.offset) if self.classes is None else (1.0, 0.0)
        model.parameters_ = in_units(w, n_features, layers, scales, *unit)
        model.statistics_, model.n_features_in_ = {}, n_features
        model.feature_names_in_ = np.array([f.name for f in federation.features], dtype=object)
        model._shape, model._tokens, model._node_at = (n_features,), False, None
        model.rounds_, model.status_ = federation.rounds, "uncertified"
        return model


def in_units(
    w: Array, n_features: int, layers: Layers, scales: Scales, unit: float, offset: float
) -> Array:
    """Parameters for rows and targets in the units of the data: the first and last layer change."""
    first = layers.hidden[0] if layers.hidden else None
    out = w.astype(np.float64)
    n_outputs = _n_outputs(w.shape[1], n_features, layers)
    wide = n_outputs if first is None else first
    for row in out:
        W, b = row[: wide * n_features].reshape(wide, n_features), row[wide * n_features :][:wide]
        b -= W @ (scales.shift / scales.scale)
        W /= scales.scale
        size = (layers.hidden[-1] if layers.hidden else n_features) * n_outputs + n_outputs
        row[-size:] *= unit
        row[-n_outputs:] += offset
    return out.astype(w.dtype)


def _n_outputs(P: int, n_features: int, layers: Layers) -> int:
    last = layers.hidden[-1] if layers.hidden else n_features
    before = layers.n_parameters(n_features, 0)
    return (P - before) // (last + 1)
