"""The hub in one process: what it draws depends on the seed, and on nothing else."""

import threading

import pytest

from nefele.sites.carriers.memory import Hub
from tests.sites.network import opened
from tests.waiting import wait_until


def sent_through(hub, n=200):
    a, b = hub.carrier("a"), hub.carrier("b")
    with opened(a, b) as (_, at_b):
        for k in range(n):
            a.send("b", b"%d" % k)
        return [int(blob) for _, blob in at_b.came]


def test_without_faults_all_comes_in_order_and_in_the_thread_of_the_sender():
    hub, threads = Hub(), []
    a, b = hub.carrier("a"), hub.carrier("b")
    a.open(print)
    b.open(lambda sender, blob: threads.append(threading.current_thread()))
    a.send("b", b"1")
    a.close(), b.close()
    assert threads == [threading.current_thread()]
    assert sent_through(Hub()) == list(range(200))


def test_faults_are_drawn_from_the_seed():
    made = [sent_through(Hub(loss=0.2, duplicate=0.2, reorder=0.2, seed=k)) for k in (3, 3, 4)]
    assert made[0] == made[1] != made[2]
    came = made[0]
    assert 130 < len(set(came)) < 190 and len(came) > len(set(came))
    assert came != sorted(came)


def test_only_what_is_asked_for_happens():
    assert len(sent_through(Hub(loss=0.5))) == len(set(sent_through(Hub(loss=0.5)))) < 150
    assert sent_through(Hub(loss=0.5)) == sorted(sent_through(Hub(loss=0.5)))
    assert sent_through(Hub(duplicate=1.0), 3) == [0, 0, 1, 1, 2, 2]
    assert sent_through(Hub(reorder=1.0), 4) == [1, 0, 3, 2]
    assert sent_through(Hub(loss=1.0)) == []


def test_one_pair_does_not_change_what_another_draws():
    hub = Hub(loss=0.3, seed=1)
    carriers = [hub.carrier(name) for name in "abc"]
    with opened(*carriers) as (_, at_b, at_c):
        for k in range(200):
            carriers[0].send("b", b"%d" % k)
            carriers[0].send("c", b"%d" % k)
    assert [int(blob) for _, blob in at_b.came] == sent_through(Hub(loss=0.3, seed=1))
    assert at_c.came != at_b.came


def test_jitter_delays_and_its_thread_ends():
    before = threading.enumerate()
    hub = Hub(jitter=0.01)
    a, b = hub.carrier("a"), hub.carrier("b")
    with opened(a, b) as (_, at_b):
        for k in range(50):
            a.send("b", b"%d" % k)
        wait_until(lambda: len(at_b.came) == 50, "all messages")
        assert {blob for _, blob in at_b.came} == {b"%d" % k for k in range(50)}
    assert threading.enumerate() == before


def test_a_closed_site_loses_messages_and_may_come_back():
    hub = Hub()
    a, b = hub.carrier("a"), hub.carrier("b")
    with opened(a) as (at_a,):
        a.send("b", b"lost")
        b.send("a", b"not open")
        with opened(b) as (at_b,):
            a.send("b", b"1")
            with pytest.raises(ValueError, match="open already"):
                hub.carrier("b").open(print)
        a.send("b", b"lost")
        with opened(b) as (again,):
            a.send("b", b"2")
    assert at_b.came == [("a", b"1")] and again.came == [("a", b"2")] and at_a.came == []


@pytest.mark.parametrize("bad", [{"loss": -0.1}, {"duplicate": 1.5}, {"reorder": 2}])
def test_chances_are_between_0_and_1(bad):
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        Hub(**bad)
    with pytest.raises(ValueError, match="seconds"):
        Hub(jitter=-1)
