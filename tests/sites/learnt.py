"""Small federations that learn in one process, for tests of what is left in the end."""

from types import SimpleNamespace

import numpy as np

from nefele.estimators.design import Rows
from nefele.runtime import InProcess
from nefele.runtime.messages import Ledger
from nefele.sites.example import coast
from nefele.sites.learning import Learner
from nefele.sites.links import network
from nefele.sites.results import facts_of


def rows_of(federation, name, n_rows=12, labels=None):
    """Rows of a member within the agreed bounds; labels by their codes, or a linear target."""
    rng = np.random.default_rng(len(name))
    nodes = federation.member(name).nodes
    low = np.array([feature.low for feature in federation.features])
    high = np.array([feature.high for feature in federation.features])
    X = low + (high - low) * rng.random((n_rows * len(nodes), len(low)))
    y = ((X - low) / (high - low)).sum(axis=1) + 0.1 * rng.standard_normal(len(X))
    if labels is not None:
        y = np.asarray(labels, dtype=float)[np.arange(len(X)) % len(labels)]
    return Rows(X, y, np.repeat(nodes, n_rows), np.ones(len(X)))


def learn(federation=None, labels=None):
    """What each member has learnt, and the driver of all."""
    federation = federation or coast(alpha=0.1, check_every=20)
    net = network(federation)
    programs = {
        name: Learner(federation, name, rows_of(federation, name, labels=labels)).run()
        for name in net.members
    }
    driver = InProcess(net.links, programs)
    return federation, driver.run(), driver


def books(driver, name, refused=None):
    """The driver of one member, as a page needs it."""
    found = {"ledger": Ledger(), "heard": Ledger()}
    for (sender, receiver, content), sums in driver.ledger.by_way.items():
        for kind, end in (("ledger", sender), ("heard", receiver)):
            if end == name:
                found[kind].by_way[sender, receiver, content] = sums
                total = found[kind].total
                total.messages += sums.messages
                total.floats += sums.floats
                total.bytes += sums.bytes
    counts = {"wire_bytes": 54_321, "again": 3, "resumed": 0, "refused": refused or {}}
    return SimpleNamespace(me=name, **found, **counts, books=SimpleNamespace(cpu_seconds=1.5))


def facts(federation, name, learnt, driver, gone=()):
    """What run.json would hold."""
    learner = Learner(federation, name, learnt.rows, list(gone))
    return facts_of("1", learner, learnt, driver)
