"""Messages and their books."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem
from nefele.runtime import Faults, Ledger, Message, pass_messages, relax_messages
from nefele.runtime.faults import Post

EDGES = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]


def problem(penalty="l2"):
    rng = np.random.default_rng(0)
    graph = Graph.from_edges(EDGES)
    rows = [(rng.standard_normal((4, 3)), rng.standard_normal(4)) for _ in range(4)]
    return Problem(graph, LocalData.from_list(rows, nodes=list("abcd")), penalty=penalty, lam=0.5)


def test_a_message_keeps_a_copy_that_nobody_can_change():
    values = np.arange(3.0)
    message = Message("a", "b", 2, "parameters", values)
    values[0] = 9.0
    assert message.payload.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        message.payload[0] = 1.0
    with pytest.raises(AttributeError):
        message.round = 3


def test_sizes_follow_the_payload():
    message = Message("a", "b", 0, "probabilities", np.zeros((7, 3), dtype=np.float32))
    assert (message.floats, message.nbytes) == (21, 84)


def test_rows_have_no_content_type():
    with pytest.raises(ValueError, match='No content of messages "rows"'):
        Message("a", "b", 0, "rows", np.zeros(3))


def test_the_ledger_sums_by_content_and_edge():
    ledger = Ledger()
    ledger.record(Message("a", "b", 0, "predictions", np.zeros(4)))
    ledger.record(Message("b", "a", 0, "predictions", np.zeros(4)), "late")
    ledger.record(Message("b", "c", 1, "dual", np.zeros(2)), "lost")
    assert (ledger.messages, ledger.floats, ledger.bytes) == (3, 10, 80)
    assert ledger.by_content["predictions"].floats == 8
    assert {edge: sums.messages for edge, sums in ledger.by_edge.items()} == {
        ("a", "b"): 2,
        ("b", "c"): 1,
    }
    assert ledger.missing == {"lost": 1, "late": 1, "inactive": 0}
    assert ledger.busiest(1) == [(("a", "b"), 64)]
    last = ledger.summary().splitlines()[-1]
    assert last == "0 rounds, 2 edges used; lost 1, late 1, inactive 0"


@pytest.mark.parametrize(
    ("exchange", "counts"),
    [("wait", {"parameters": 80}), ("latest", {"parameters": 40, "dual": 40})],
)
def test_the_primal_dual_method_sends_one_message_per_edge_and_direction(exchange, counts):
    """Parameters both ways; or one way, and the flow that they move back."""
    run = pass_messages(problem(), 10, exchange=exchange)
    assert {what: sums.messages for what, sums in run.ledger.by_content.items()} == counts
    assert run.ledger.floats == 10 * 2 * 4 * 3
    assert {s.messages for s in run.ledger.by_edge.values()} == {20}
    assert {frozenset(edge) for edge in run.ledger.by_edge} == set(map(frozenset, EDGES))
    assert run.ledger.rounds == 10 and run.missing == {"lost": 0, "late": 0, "inactive": 0}


def test_fedrelax_sends_one_message_per_edge_and_direction():
    run = relax_messages(problem("squared_l2"), 10)
    assert set(run.ledger.by_content) == {"parameters"}
    assert run.ledger.messages == 10 * 2 * 4 and run.ledger.floats == 10 * 2 * 4 * 3


def test_what_is_lost_was_still_sent():
    run = relax_messages(problem("squared_l2"), 50, faults=Faults(link_loss=0.3, seed=1))
    assert run.ledger.messages == 400
    assert 80 < run.missing["lost"] < 160


def test_late_messages_arrive_later_and_in_order():
    post = Post(np.array([1]), Faults(delay=3, seed=2), ["a", "b"])
    arrived = []
    for k in range(30):
        post.begin(k)
        post.send(0, Message("a", "b", k, "dual", np.zeros(1)))
        arrived += [(k, message.round) for _, message in post.deliver()]
    assert len({made for _, made in arrived}) == len(arrived) >= 27
    assert {k - made for k, made in arrived} == {0, 1, 2, 3}
    assert post.ledger.late == sum(post.faults.links(k, 1)[1][0] > 0 for k in range(30))


def test_an_offline_node_hears_nothing():
    post = Post(np.array([1]), Faults(node_dropout=1.0, until=1), ["a", "b"])
    post.begin(0)
    post.send(0, Message("a", "b", 0, "dual", np.zeros(1)))
    assert post.deliver() == [] and post.ledger.lost == 1
    post.begin(1)
    assert post.deliver() == [] and post.moving.all()
