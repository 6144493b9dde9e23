"""Every mechanism under a canary: honest at four epsilons, and caught when it is broken."""

import numpy as np
import pytest

from nefele import Graph, LocalData
from nefele.losses import Absolute
from nefele.penalties import L2Norm
from nefele.privacy import Bounds, calibrate, epsilon_of, predictions, statistics
from nefele.privacy.audit import canary
from nefele.privacy.updates import Steps, Updates
from nefele.solvers.updates import ahead, dual

DELTA, ROUNDS, NEIGHBOURS = 1e-5, 10, 6
# Runs with which half of the noise shows; small epsilons take many.
LONG = [pytest.param(e, n, marks=pytest.mark.slow) for e, n in ((0.5, 24_000), (1.0, 8000))]
SHORT = [(3.0, 2000), (10.0, 2000)]
LONG_PREDICTIONS = [*LONG, pytest.param(*SHORT[0], marks=pytest.mark.slow), SHORT[1]]


def audited(release, pair, epsilon, runs, score=None, seed=0):
    options = dict(delta=DELTA, family="gaussian", confidence=0.999, claimed=epsilon, score=score)
    return canary(release, *pair, runs=runs, seed=seed, **options)


class ForEach:
    """The noise of a broken twin that draws for every neighbour anew: they compare notes."""

    def __init__(self, rng):
        self.rng = rng

    def standard_normal(self, size=None):
        return self.rng.standard_normal((NEIGHBOURS, *(size or ()))).mean(axis=0)


def to_each(release):
    return lambda data, rng: release(data, ForEach(rng))


# -- statistics: one release of second moments ----------------------------------------------------

BOX = Bounds(x=1.0, y=(-1.0, 1.0)).fixed(2)
OTHERS = np.array([[0.3, 0.1], [-0.2, 0.5]]), np.array([0.4, -0.6])
# At right angles and as long as the bounds allow: the worst pair of records.
RECORDS = (np.array([1.0, 0.0, 1.0]), np.array([1.0, 0.0, -1.0]))


def moments(factor=1.0, epsilon=1.0):
    multiplier = factor * calibrate(epsilon, DELTA)

    def release(record, rng):
        X, y = np.vstack([record[:2], OTHERS[0]]), np.append(record[2], OTHERS[1])
        return statistics.release(X, y, BOX, multiplier, "record", rng)

    return release


def along():
    """The score that a normal distribution of the same spread in every direction calls for."""
    way = np.subtract(*[statistics.moments(r[None, :2], r[2:]) for r in RECORDS])
    return lambda sent: float((np.asarray(sent) * way).sum())


@pytest.mark.parametrize(("epsilon", "runs"), [*LONG, *SHORT])
def test_statistics(epsilon, runs):
    found = audited(moments(epsilon=epsilon), RECORDS, epsilon, runs, along())
    assert not found.refuted
    assert found.epsilon > 0.4 * epsilon or epsilon < 3  # a real attack
    for broken in (moments(0.5, epsilon), to_each(moments(epsilon=epsilon))):
        assert audited(broken, RECORDS, epsilon, runs, along()).refuted


# -- updates: noisy steps in a fixed number of rounds ---------------------------------------------


class RawFedBack(Updates):
    """The broken twin whose nodes go on from what they did not say."""

    def release(self, data, rng):
        steps = Steps(self, data)
        n, e = self.graph.n_nodes, self.graph.n_edges
        w, u = np.zeros((n, steps.width)), np.zeros((e, steps.width))
        said = np.empty((self.rounds, n, steps.width))
        for k in range(self.rounds):
            new = steps.moved(w, self.graph.div(u))
            flow = self.graph.diff(ahead(w, new))
            u = dual(self.penalty, u, flow, self.lam * self.graph.weight, steps.sigma)
            said[k], w = steps.noisy(new, rng), new
        return said


class DrawnForEach(Updates):
    """The broken twin with one draw per neighbour; what they know together is the mean."""

    def release(self, data, rng):
        return super().release(data, ForEach(rng))


def updates(kind, epsilon, factor=1.0, trials=1000):
    """Many pairs of nodes in one run: nothing joins them, so that each pair is a run of its own.

    The first node of a pair has a record that pulls its only weight up or down as hard as it can.
    """
    graph = Graph.from_edges([(2 * i, 2 * i + 1) for i in range(trials)])
    multiplier = factor * calibrate(epsilon, DELTA, ROUNDS)
    run = kind(graph, Absolute(), L2Norm(), 0.05, ROUNDS, multiplier, 1.0)
    waiting = {}

    def release(target, rng):
        if not waiting.get(target):
            y = np.tile([target, 0.2], trials)
            data = LocalData(np.ones((2 * trials, 1)), y, np.arange(2 * trials + 1))
            said = run.release(data, rng)[:, :, 0]
            waiting[target] = [said[:, 2 * i : 2 * i + 2] for i in range(trials)]
        return waiting[target].pop()

    return release


TARGETS = (1e6, -1e6)
ALL = [(0.5, 20_000), (1.0, 8000), (3.0, 4000), (10.0, 4000)]


@pytest.mark.parametrize(("epsilon", "runs"), ALL)
def test_updates(epsilon, runs):
    found = audited(updates(Updates, epsilon), TARGETS, epsilon, runs)
    assert not found.refuted
    assert found.epsilon > 0.4 * epsilon or epsilon < 3


@pytest.mark.parametrize(("epsilon", "runs"), ALL)
@pytest.mark.parametrize(
    ("kind", "factor"), [(Updates, 0.5), (RawFedBack, 1.0), (DrawnForEach, 1.0)]
)
def test_broken_updates(kind, factor, epsilon, runs):
    assert audited(updates(kind, epsilon, factor), TARGETS, epsilon, runs).refuted


def test_the_epsilon_of_a_run_is_not_that_of_one_message():
    multiplier = calibrate(3.0, DELTA, ROUNDS)
    one = epsilon_of([(multiplier, 1)], DELTA)
    found = audited(updates(Updates, 3.0), TARGETS, one, 4000)
    assert found.refuted and found.epsilon < 3.0


# -- predictions: clipped means of models of disjoint shards --------------------------------------

SHARDS, TIMES = 10, 2


def said(epsilon, factor=1.0):
    """A model that predicts the record itself; every other shard has nothing to say."""
    multiplier = factor * calibrate(epsilon, DELTA, TIMES)

    def release(record, rng):
        def fit(part):
            return np.full(1, record if part[0] == 0 else 0.0)

        terms = (SHARDS, -1.0, 1.0, SHARDS, multiplier, "record", rng)
        return np.array([predictions.release(fit, *terms) for _ in range(TIMES)])

    return release


@pytest.mark.parametrize(("epsilon", "runs"), LONG_PREDICTIONS)
def test_predictions(epsilon, runs):
    pair = (50.0, -50.0)  # far outside the range, into which it is clipped
    found = audited(said(epsilon), pair, epsilon, runs, total)
    assert not found.refuted
    assert found.epsilon > 0.3 * epsilon or epsilon < 3
    for broken in (said(epsilon, 0.5), to_each(said(epsilon))):
        assert audited(broken, pair, epsilon, runs, total).refuted


def total(sent):
    return float(np.sum(sent))
