"""Messages that are counted once, and messages that no node can use."""

import numpy as np
import pytest

from nefele.runtime import Faults, Message, pass_messages, relax_messages
from nefele.runtime.faults import Post
from tests.runtime.networks import network


def test_a_late_message_to_a_node_that_is_offline_is_lost_and_no_longer_late():
    post = Post(np.array([0, 1]), Faults(), ["a", "b"])
    post.begin(0)
    post._late = np.array([1, 1])
    for link, (sender, receiver) in enumerate(["ba", "ab"]):
        post.send(link, Message(sender, receiver, 0, "dual", np.ones(2)))
    assert post.ledger.missing["late"] == 2
    post.begin(1)
    post._online = np.array([True, False])
    assert [link for link, _ in post.deliver()] == [0]
    assert (post.ledger.lost, post.ledger.late) == (1, 1)


@pytest.mark.parametrize("run", [pass_messages, relax_messages])
def test_no_message_is_counted_twice(run):
    faults = Faults(node_dropout=0.5, link_loss=0.2, delay=3, seed=2)
    missing = run(network(penalty="squared_l2"), 60, faults=faults).ledger
    assert missing.lost + missing.late <= missing.messages


def test_delays_are_counted_as_late_whoever_sleeps():
    """With two rounds of delay two thirds of the messages are late or, at sleepers, lost."""
    faults = Faults(node_dropout=0.4, delay=2, seed=1)
    books = relax_messages(network(penalty="squared_l2"), 300, faults=faults).ledger
    assert books.lost / books.messages == pytest.approx(0.4, abs=0.03)
    assert books.late / books.messages == pytest.approx(0.6 * 2 / 3, abs=0.03)


# -- numbers that are none --------------------------------------------------------------------


def spoil(monkeypatch, value, at=5, times=1):
    """Some messages of round `at` hold `value` when they are sent."""
    send, left = Post.send, [times]

    def spoiled(self, link, message, hop=0):
        if self.k == at and left[0]:
            left[0] -= 1
            payload = message.payload.copy()
            payload.flat[0] = value
            message = Message(
                message.sender,
                message.receiver,
                message.round,
                message.content,
                payload,
                message.edge,
            )
        send(self, link, message, hop)

    monkeypatch.setattr(Post, "send", spoiled)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("schedule", ["jacobi", "gauss-seidel"])
def test_fedrelax_refuses_what_is_not_finite_and_goes_on(monkeypatch, value, schedule):
    problem = network(penalty="squared_l2", empty=False)
    best = relax_messages(problem, 200, schedule).w
    spoil(monkeypatch, value)
    run = relax_messages(problem, 200, schedule)
    assert run.missing == {"lost": 0, "late": 0, "inactive": 0, "refused": 1}
    np.testing.assert_allclose(run.w, best, rtol=0, atol=1e-9)
    assert run.staleness == (1 if schedule == "jacobi" else 0)
    assert np.linalg.norm(run.w - best, axis=1).max() <= run.error_bound + 1e-12


@pytest.mark.parametrize("exchange", ["wait", "latest"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_primal_dual_method_refuses_it_too(monkeypatch, value, exchange):
    problem = network()
    spoil(monkeypatch, value, times=3)
    run = pass_messages(problem, 600, exchange=exchange)
    assert run.missing["refused"] == 3 and np.isfinite(run.w).all()
    assert run.gap <= 1e-6
    assert run.ledger.summary().splitlines()[-1].endswith("inactive 0, refused 3")


def test_a_refused_message_that_is_late_is_refused_only():
    post = Post(np.array([1]), Faults(), ["a", "b"])
    post.begin(0)
    post._late = np.array([1])
    post.send(0, Message("a", "b", 0, "dual", np.array([1.0, np.nan])))
    post.begin(1)
    assert post.deliver() == []
    assert post.ledger.missing == {"lost": 0, "late": 0, "inactive": 0, "refused": 1}


def test_no_bound_where_a_node_has_no_finite_parameters(monkeypatch):
    from nefele.runtime import programs

    problem = network(penalty="squared_l2", empty=False)
    update = programs.Block.update

    def broken(self, problem, w, step):
        out = update(self, problem, w, step)
        return np.full_like(out, np.nan) if getattr(problem, "name", None) == 2 else out

    monkeypatch.setattr(programs.Block, "update", broken)
    run = relax_messages(problem, 40)
    assert np.isnan(run.w[2]).all() and np.isfinite(np.delete(run.w, 2, axis=0)).all()
    assert run.error_bound == np.inf and run.factor == np.inf and run.gap == np.inf
    assert run.missing["refused"] == 40 * 2 - 2  # the last two were not delivered any more
