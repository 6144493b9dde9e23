"""The mechanism `updates`: every step of every node is noisy, and the node goes on from it.

Steps of NFL, Algorithm 1, with the gradient or the prox of the local loss in its primal part. The
number of rounds is fixed beforehand. In each round a node says one noisy iterate, the same to all
neighbours, and keeps nothing better for itself: with the raw iterate fed back each round would
tell more than the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.data import LocalData
from nefele.graph import Graph
from nefele.losses import Absolute, Hinge, HuberLoss, Logistic, Loss, Multinomial, Squared
from nefele.privacy.noise import Source, noisy
from nefele.privacy.sensitivity import lipschitz, of_gradient, of_prox, share
from nefele.solvers.updates import ahead, dual

_RESIDUAL = 1e-6  # gradient that an inexact prox may leave, relative to the loss's slope
_BEND = {Logistic: 0.25, Multinomial: 0.5, HuberLoss: 1.0, Squared: 2.0}


@dataclass(frozen=True, eq=False)
class Updates:
    """The public part of a run: who is coupled to whom, how many rounds, how much noise.

    Attributes
    ----------
    graph : Graph
    loss : Loss
    penalty : Penalty
    lam : float
    rounds : int
    multiplier : float
        Noise in units of the sensitivity of one round.
    radius : float
        Bound of the norm of a row, the constant included.
    clip : float or None
        Row gradients are cut to this norm; default: the loss's own bound.
    unit : {"record", "node"}
    step : {"gradient", "prox"}
    """

    graph: Graph
    loss: Loss
    penalty: Any
    lam: float
    rounds: int
    multiplier: float
    radius: float = float(np.sqrt(2))
    clip: float | None = None
    unit: str = "record"
    step: str = "gradient"

    @property
    def bound(self) -> float:
        """The largest norm of a row's gradient."""
        found = lipschitz(self.loss, self.radius) if self.clip is None else float(self.clip)
        if found is None:
            raise ValueError(
                f"The loss must have bounded slopes; one record can change a fit with "
                f"{type(self.loss).__name__} by any amount. Pass clip= to Privacy, or use "
                'loss="huber", or mechanism="statistics" for squared errors.'
            )
        return found

    def release(self, data: LocalData, rng: Source) -> Array:
        """All that leaves the nodes: their noisy iterates, shape (rounds, n_nodes, width).

        Parameters
        ----------
        data : LocalData
            Rows of norm at most `radius`; a `node_weight` multiplies the node's mean loss.
        rng : Source
        """
        steps = Steps(self, data)
        n, e = self.graph.n_nodes, self.graph.n_edges
        w, u = np.zeros((n, steps.width)), np.zeros((e, steps.width))
        said = np.empty((self.rounds, n, steps.width))
        scale = self.lam * self.graph.weight
        for k in range(self.rounds):
            new = steps.noisy(steps.moved(w, self.graph.div(u)), rng)
            u = dual(self.penalty, u, self.graph.diff(ahead(w, new)), scale, steps.sigma)
            said[k] = w = new
        return said

    def check(self) -> None:
        """Raise ValueError for a loss or a step without a guarantee."""
        if self.bound and getattr(self.loss, "l1", 0.0):
            raise ValueError("l1 of the loss must be 0 with noisy updates. Use l2.")
        if self.step == "prox" and (
            self.clip is not None or isinstance(self.loss, Hinge | Absolute)
        ):
            raise ValueError(
                'step="prox" needs a smooth loss with bounded slopes, and no clip. Use '
                'step="gradient".'
            )

    @staticmethod
    def settled(said: Array) -> Array:
        """Parameters from what was said: the mean of the later half, which averages noise out."""
        return np.asarray(said[len(said) // 2 :].mean(axis=0))


class Steps:
    """Local steps of all nodes; only `moved` sees rows."""

    def __init__(self, run: Updates, data: LocalData) -> None:
        run.check()
        self.run, self.data, self.bound = run, data, run.bound
        loss = run.loss
        self.classes = loss.n_classes if isinstance(loss, Multinomial) else None
        self.width = data.d * (self.classes or 1)
        self.l2 = np.tile(_spared(data) * getattr(loss, "l2", 0.0), self.classes or 1)
        count = np.diff(data.ptr)
        self.there = count > 0
        factor = np.ones(len(count)) if data.node_weight is None else data.node_weight
        self.factor = np.where(self.there, factor, 0.0)
        self._lengths(share(count, run.unit))

    def _lengths(self, part: Array) -> None:
        """Steps (public), and the noise of each node's update."""
        run, degree = self.run, np.asarray(self.run.graph.degree, dtype=np.float64)
        bend = _BEND.get(type(run.loss))
        # Without curvature the length decides how near a subgradient method comes.
        curve = np.sqrt(run.rounds) / 2 if bend is None else bend * run.radius**2
        curves = self.factor * curve + 2 * self.l2.max(initial=0.0)
        typical = float(curves[self.there].mean()) if self.there.any() else 1.0
        one = typical / max(float(degree.mean()), 1.0)
        self.sigma = np.full(run.graph.n_edges, one / 2)
        self.tau = 1 / np.maximum(curves + one * degree, typical / 2)
        if run.step == "gradient":
            move = self.tau * self.factor * part * of_gradient(self.bound)
        else:
            rest = _RESIDUAL * self.bound
            move = self.factor * of_prox(self.bound, part, 0.0, 1 / self.tau, rest)
        self.deviation = run.multiplier * move

    def moved(self, w: Array, flow: Array) -> Array:
        """The primal step, without noise."""
        return self._gradient(w, flow) if self.run.step == "gradient" else self._prox(w, flow)

    def noisy(self, w: Array, rng: Source) -> Array:
        """One draw for each node that has rows; the others have nothing to hide."""
        out, on = w.copy(), self.there
        spread = np.broadcast_to(self.deviation[on, None], w[on].shape)
        out[on] = noisy(w[on], spread, rng)
        return out

    def slopes(self, w: Array) -> Array:
        """Mean of the rows' gradients, each cut to the bound, shape (n_nodes, width)."""
        data, node = self.data, self.data.row_node
        size = np.linalg.norm(data.X, axis=1)
        if self.classes is None:
            a = self.run.loss.slope(np.einsum("rj,rj->r", data.X, w[node]), data.y)  # type: ignore[attr-defined]
            outer = a[:, None] * data.X
            norm = np.abs(a) * size
        else:
            models = w.reshape(len(w), self.classes, data.d)[node]
            a = _softmax(np.einsum("rj,rkj->rk", data.X, models))
            a[np.arange(len(a)), data.y.astype(np.int64)] -= 1.0
            outer = (a[:, :, None] * data.X[:, None, :]).reshape(len(a), -1)
            norm = np.linalg.norm(a, axis=1) * size
        cut = np.minimum(1.0, self.bound / np.maximum(norm, np.finfo(float).tiny))
        total = data.node_sum(outer * cut[:, None])
        return np.asarray(total / np.maximum(np.diff(data.ptr), 1)[:, None])

    def _gradient(self, w: Array, flow: Array) -> Array:
        return w - self.tau[:, None] * (self._own(w) + flow)

    def _own(self, w: Array) -> Array:
        """The gradient of each node's loss: of its rows, cut, and of its ridge term."""
        ridge = np.where(self.there[:, None], 2 * self.l2 * w, 0.0)
        return np.asarray(self.factor[:, None] * self.slopes(w) + ridge)

    def _prox(self, w: Array, flow: Array) -> Array:
        """The exact minimiser; what an iteration leaves is checked against what noise covers."""
        v = w - self.tau[:, None] * flow
        loss = self.run.loss.bind(self.data)
        new = loss.prox(v, self.tau, start=v)
        left = self._own(new) + (new - v) / self.tau[:, None]
        rest = np.linalg.norm(left, axis=1) > _RESIDUAL * self.bound * np.maximum(self.factor, 1e-9)
        if (rest & self.there).any():
            raise ValueError(
                "A local minimum was not found as exactly as its noise covers, or row gradients "
                'exceed clip. Use step="gradient". Nothing of this round was released.'
            )
        return np.asarray(np.where(self.there[:, None], new, v))


def _spared(data: LocalData) -> Array:
    return np.ones(data.d) if data.shrink is None else np.asarray(data.shrink) ** 2


def _softmax(z: Array) -> Array:
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(z / z.sum(axis=1, keepdims=True))
