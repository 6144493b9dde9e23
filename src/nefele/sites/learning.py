"""What a site computes together with the others: one program, from its rows to its models.

Scales, the choice of alpha, the comparison and the final fit need of others only sums and what
neighbours exchange in each round. Every site runs the same steps in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nefele import losses
from nefele._checks import Array
from nefele.data import LocalData
from nefele.estimators.design import Rows, local_data
from nefele.estimators.released import Released
from nefele.graph import Graph
from nefele.losses import Loss
from nefele.problem import Problem
from nefele.program import Program, Sum, largest, total
from nefele.robust.naming import rule_of
from nefele.robust.rules import Rule
from nefele.runtime.part import Part
from nefele.runtime.programs import Fitted, fit, one_model
from nefele.sites.crowds import Crowd
from nefele.sites.federation import Federation
from nefele.sites.frozen import hold, present
from nefele.sites.guarding import fit_guarded
from nefele.sites.introducing import Card, introduced
from nefele.sites.learnt import Learnt, Scales, Scores
from nefele.sites.masked import Masks, fit_masked
from nefele.sites.masking import RESOLUTION
from nefele.sites.noisy import folded, parted
from nefele.sites.relaxing import fit_relaxed

Report = Callable[..., object]  # stage, round, last certified gap, or the change without one

_ROUGH = 1e-3  # gap that is small enough to compare candidates for alpha
_DEPTH = 1e-5  # smallest candidate, relative to the largest
_SMOOTH = ("squared_l2", "huber")
_STRONG = 100.0  # largest candidate of a smooth penalty, in units of the losses' curvature


@dataclass(eq=False)
class Learner:
    """The program of one member.

    Parameters
    ----------
    federation : Federation
    name : str
        The member.
    rows : Rows
        Its rows, classes as numbers.
    gone : list of str, optional
        Members that have left.
    held : dict of name to array, optional
        Parameters of nodes of these that are held here, see `nefele.sites.frozen`.
    report : callable, optional
        Is told of every round.
    card : Card, optional
        The member's signed key, needed for masks.
    noisy : Released, optional
        Its noisy moments, in place of its rows; needed where the federation agreed to privacy.
    """

    federation: Federation
    name: str
    rows: Rows
    gone: Sequence[str] = ()
    held: Mapping[str, Array] = field(default_factory=dict)
    report: Report = lambda *seen: None
    card: Card | None = None
    noisy: Released | None = None
    masks: Masks | None = field(default=None, init=False)
    graph: Graph = field(init=False)

    def __post_init__(self) -> None:
        freeze = self.federation.absent == "freeze"
        self.graph, owner = present(self.federation, self.gone, freeze)
        self.names = [m.name for m in self.federation.members if m.name not in self.gone]
        number = {name: k for k, name in enumerate(self.names)}
        self.owner = np.array([number[owner[node]] for node in self.graph.ids.tolist()])
        self.nodes = np.flatnonzero(self.owner == number[self.name])
        real = np.isin(self.graph.ids[self.nodes], self.federation.member(self.name).nodes)
        self.own = self.nodes[real]  # without those that are held for others

    # -- rows and parts -------------------------------------------------------------------------

    @property
    def loss(self) -> Loss:
        """The loss of each node."""
        federation = self.federation
        kinds = {"squared": losses.Squared, "huber": losses.HuberLoss, "absolute": losses.Absolute}
        if federation.task == "regression":
            return kinds[federation.loss](l2=federation.l2)
        if self.n_outputs > 1:
            return losses.Multinomial(n_classes=self.n_outputs, l2=federation.l2)
        return losses.Logistic(l2=federation.l2)

    @property
    def rule(self) -> Rule | None:
        """By which nodes hear their neighbours; None: they hear what is said."""
        return None if self.federation.guard is None else rule_of(self.federation.guard)

    @property
    def n_outputs(self) -> int:
        """Parameter vectors per node."""
        classes = self.federation.target.classes or ()
        return len(classes) if len(classes) > 2 else 1

    def problem(self, rows: Rows, scales: Scales, lam: float) -> Problem:
        """The problem of all nodes as this site sees it: with its own rows only."""
        args = (self.graph.ids, scales.shift, scales.scale, True, "nodes", scales.offset)
        data = local_data(rows, *args)
        # Rounds on old messages converge for losses that are strongly convex in every direction:
        # without waiting the ridge holds the intercepts as well, about the middle of the bounds.
        shrink = data.shrink if self.federation.wait else None
        factor = None
        if self.federation.weighting == "rows":
            place = self.graph.positions(rows.node_ids)
            total = np.bincount(place, rows.sample_weight, minlength=data.n_nodes)
            factor = total / scales.rows_per_node
        data = LocalData(data.X, data.y, data.ptr, data.ids, node_weight=factor, shrink=shrink)
        penalty = self.federation.penalty
        return Problem(self.graph, data, loss=self.loss, penalty=penalty, lam=lam)

    def part(self, rows: Rows, scales: Scales, lam: float, held: bool = True) -> Part:
        """The part of it that this site owns, with what it holds for those who have left."""
        problem = self.problem(rows, scales, lam)
        part = Part(self.name, problem, self.nodes, self.owner, self.names)
        if held:
            hold(part, self.graph.ids[self.nodes].tolist(), self.held)
        return part

    def scales(self, rows: Rows) -> Program[Scales]:
        """Scales as agreed: from bounds, or from sums over all rows."""
        federation, d = self.federation, rows.X.shape[1]
        nodes = len(np.unique(self.graph.positions(rows.node_ids)))
        weight = rows.sample_weight
        count, with_rows = yield Sum(np.array([weight.sum(), nodes], dtype=float))
        if not count:
            raise ValueError("Some member must have rows; none has any.")
        low = np.array([feature.low for feature in federation.features])
        high = np.array([feature.high for feature in federation.features])
        shift, scale = (low + high) / 2, (high - low) / 2
        if federation.standardize == "none":
            shift, scale = np.zeros(d), np.ones(d)
        elif federation.standardize == "sums":
            shift = (yield Sum((weight[:, None] * rows.X).sum(axis=0))) / count
            away = weight[:, None] * (rows.X - shift) ** 2
            spread = np.sqrt((yield Sum(away.sum(axis=0))) / count)
            most = yield Sum(np.abs(rows.X).max(axis=0, initial=0.0), largest=True)
            scale = np.where(spread <= 1e-12 * most, np.inf, spread)
        target, offset = federation.target, 0.0
        if federation.task == "regression":
            offset = (float(target.low or 0.0) + float(target.high or 0.0)) / 2
        return Scales(shift, scale, offset, count / with_rows)

    # -- programs -------------------------------------------------------------------------------

    def run(self) -> Program[Learnt]:
        """From the rows to the models."""
        if self.federation.masked:
            self.masks = yield from self.covered()
        rows, train, test = parted(self)
        scales = yield from self.scales(train)
        alphas, errors = np.zeros(0), np.zeros(0)
        alpha = self.federation.alpha
        if isinstance(alpha, str):
            alphas, errors = yield from self.choose(train, scales)
            alpha = float(alphas[int(np.argmin(errors))])
        scores, everywhere, one = yield from self.compare(train, test, scales, alpha)
        scales = yield from self.scales(rows)
        part = self.part(rows, scales, alpha)
        fitted = yield from self.fit(part, self.federation.tol, "final fit")
        found = (part, rows, scales, alpha, fitted, alphas, errors, scores, everywhere)
        return Learnt(*found, one)

    def covered(self) -> Program[Masks]:
        """Secrets with all members in whose sums this one stands, and what they cover."""
        terms = self.federation
        if self.card is None:
            raise ValueError("masked = true needs the signed key of each member; got none.")
        crowd = Crowd(self.graph, self.owner, self.names, self.name)
        secrets = yield from introduced(terms, self.name, self.card, crowd.partners)
        low, high = terms.target.low, terms.target.high
        bound = 1.0 if low is None or high is None else (high - low) / 2
        return Masks(crowd, secrets, RESOLUTION * bound)

    def fit(self, part: Part, tol: float, stage: str) -> Program[Fitted]:
        """Fit by the agreed method, from where the part stands."""
        terms = self.federation

        def watch(part: Part, k: int, gap: float) -> None:
            self.report(stage, k, gap)

        def settle(k: int, change: float) -> None:
            self.report(stage, k, np.inf, change)

        if self.masks is not None:
            often = (terms.rounds, terms.check_every)
            return (yield from fit_masked(part, self.masks, tol, *often, settle))
        if self.rule is not None:
            how = (terms.rounds, terms.check_every, terms.wait)
            return (yield from fit_guarded(part, self.rule, tol, *how, settle))
        if terms.method == "fedrelax":
            how = (terms.rounds, terms.check_every, terms.wait)
            return (yield from fit_relaxed(part, tol, *how, watch))
        return (yield from fit(part, tol, terms.rounds, terms.check_every, watch))

    def choose(self, rows: Rows, scales: Scales) -> Program[tuple[Array, Array]]:
        """Candidates for alpha, descending, and their mean errors at rows left out in turn."""
        alphas = yield from self.grid(rows, scales)
        errors = np.zeros(len(alphas))
        for number in range(self.federation.folds):
            inside, test = folded(self, rows, number)
            part = self.part(inside, scales, float(alphas[0]))
            for k, alpha in enumerate(alphas.tolist()):
                part = part.with_lam(alpha)
                stage = f"fold {number + 1}/{self.federation.folds}, alpha {k + 1}/{len(alphas)}"
                yield from self.fit(part, max(_ROUGH, self.federation.tol), stage)
                errors[k] += (test.sample_weight * self.errors(test, scales, part.w1)[0]).sum()
        count = yield from total(float(rows.sample_weight.sum()))
        return alphas, (yield Sum(errors)) / count

    def grid(self, rows: Rows, scales: Scales) -> Program[Array]:
        """The agreed candidates, or some from about one model for all down."""
        if self.federation.alphas is not None:
            found = sorted({a for a in self.federation.alphas if a > 0}, reverse=True)
            return np.array(found)
        part = self.part(rows, scales, 1.0, held=False)
        weight = float(self.graph.weight.mean()) if self.graph.n_edges else 1.0
        bend = yield from largest(part.loss.curvature().max(initial=0.0))
        if self.federation.penalty in _SMOOTH:
            top = _STRONG * bend
        else:
            one = yield from one_model(part)
            at = np.zeros(part.d) if one is None else one
            pull = part.loss.grad(np.broadcast_to(at, part.w.shape).copy())
            top = (yield from total(np.sqrt((pull**2).sum(axis=1)).sum())) / 2
        top = top / weight if top > 0 else 1.0
        return np.geomspace(top, _DEPTH * top, self.federation.n_alphas)

    def compare(
        self, train: Rows, test: Rows, scales: Scales, alpha: float
    ) -> Program[tuple[Scores, Array, Array | None]]:
        """Own data only, one model and coupled models at the held-out rows."""
        part = self.part(train, scales, alpha)
        # The sums of one model would tell who adds them up what masks hide.
        one = None
        if self.masks is None:
            one = yield from one_model(self.part(train, scales, alpha, held=False))
        own = part.loss.minimise()
        yield from self.fit(part, self.federation.tol, "comparison")
        same = np.full(part.d, np.nan) if one is None else one
        with_rows = np.isin(self.nodes, self.graph.positions(train.node_ids))
        pooled = np.broadcast_to(same, part.w1.shape)
        models = (np.where(with_rows[:, None], own, pooled), pooled, part.w1)
        found = [self.errors(test, scales, w) for w in models]
        place = np.searchsorted(self.own, self.graph.positions(test.node_ids))

        def by_node(k: int) -> Array:
            weight = test.sample_weight
            return np.stack([np.bincount(place, weight * row[k], len(self.own)) for row in found])

        weights = np.bincount(place, test.sample_weight, len(self.own))
        count = np.rint(weights).astype(np.int64)
        scores = Scores(self.graph.ids[self.own], count, by_node(0), by_node(1))
        mine = np.concatenate([scores.error.sum(axis=1), scores.wrong.sum(axis=1), [weights.sum()]])
        # One model of a loss without second derivatives is not known: NaN stays at home.
        sums = yield Sum(np.where(np.isnan(mine), np.inf, mine))
        with np.errstate(invalid="ignore", divide="ignore"):
            everywhere = sums[:-1].reshape(2, 3) / sums[-1]
        return scores, np.where(np.isfinite(everywhere), everywhere, np.nan), one

    def errors(self, rows: Rows, scales: Scales, w: Array) -> tuple[Array, Array]:
        """Error of each row by the model of its node, and whether its class is wrong."""
        place = np.searchsorted(self.nodes, self.graph.positions(rows.node_ids))
        X = np.hstack([(rows.X - scales.shift) / scales.scale, np.ones((len(rows.X), 1))])
        models = w.reshape(len(w), self.n_outputs, X.shape[1])[place]
        z = np.einsum("rj,rkj->rk", X, models)
        if self.federation.task == "regression":
            return (z[:, 0] + scales.offset - rows.y) ** 2, np.zeros(len(z))
        if self.n_outputs == 1:
            z, code = np.column_stack([-z[:, 0] / 2, z[:, 0] / 2]), (rows.y > 0).astype(int)
        else:
            code = rows.y.astype(int)
        most = z.max(axis=1, initial=-np.inf)
        logs = z - most[:, None] - np.log(np.exp(z - most[:, None]).sum(axis=1, keepdims=True))
        right = logs[np.arange(len(z)), code]
        floor = np.log(np.finfo(float).eps)
        return -np.maximum(right, floor), (z.argmax(axis=1) != code).astype(float)
