"""The driver in one process: what it refuses, and that it ends."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.program import Exchange, Sum, Work, run_alone, total
from nefele.runtime import Faults, InProcess, join, pass_messages, relax_messages, split

BOTH = {"a": ["b"], "b": ["a"]}


def exchanging(times, to, content="parameters"):
    heard = []
    for k in range(times):
        answer = yield Exchange(content, {to: np.full(1, float(k))})
        heard.append((sorted(answer.rows), sorted(answer.fresh)))
    return heard


def summing(times, largest=False, size=1):
    for _ in range(times):
        yield Sum(np.ones(size), largest)


def saying(what):
    yield what


@pytest.mark.parametrize(
    ("one", "two", "wait"),
    [
        (lambda: exchanging(3, "b"), lambda: exchanging(5, "a"), True),
        (lambda: summing(3), lambda: summing(5), True),
        (lambda: summing(3), lambda: summing(5), False),
        (lambda: exchanging(2, "b"), lambda: summing(2), True),
        (lambda: exchanging(2, "b"), lambda: summing(2), False),
    ],
)
def test_programs_that_wait_for_each_other_for_ever_end_with_an_error(one, two, wait):
    with pytest.raises(RuntimeError, match="No program has gone on for 2 rounds"):
        InProcess(BOTH, {"a": one(), "b": two()}, wait=wait).run()


@pytest.mark.parametrize("faults", [Faults(link_loss=1.0), Faults(node_dropout=1.0)], ids=str)
def test_a_network_without_any_messages_ends_with_an_error(faults):
    programs = {"a": exchanging(2, "b"), "b": exchanging(2, "a")}
    with pytest.raises(RuntimeError, match=r"for 1001 rounds.*messages must get through"):
        InProcess(BOTH, programs, faults).run()


@pytest.mark.parametrize(
    ("links", "programs", "message"),
    [
        ({}, {}, "links and programs must have the same parts"),
        ({"a": []}, {"a": total(1.0), "b": total(1.0)}, "must have the same parts"),
        ({"a": ["z"]}, {"a": total(1.0)}, "'a' has a link to 'z', which is no part"),
        ({"a": ["b"], "b": []}, {"a": total(1.0), "b": total(1.0)}, "links in both directions"),
        ({"a": []}, {"a": total}, "must be a generator; got <function total"),
    ],
)
def test_links_and_programs_that_do_not_go_together(links, programs, message):
    with pytest.raises(ValueError, match=message):
        InProcess(links, programs)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda: saying("hello"), "must yield an Exchange, a Sum or a Work; got 'hello'"),
        (lambda: saying(None), "must yield an Exchange, a Sum or a Work; got None"),
        (lambda: exchanging(1, "z"), "Part 'a' has no link to 'z'"),
        (lambda: summing(1, largest=True), "All parts must ask for the same sum"),
        (lambda: summing(1, size=3), "All parts must ask for the same sum"),
    ],
)
def test_requests_that_cannot_be_answered(program, message):
    with pytest.raises(ValueError, match=message):
        InProcess(BOTH, {"a": program(), "b": summing(1)}).run()


def test_a_program_alone_gets_a_copy_of_its_sums():
    def program(values):
        found = yield Sum(values)
        found += 1
        return values.tolist()

    assert run_alone(program(np.ones(2))) == [1.0, 1.0]
    with pytest.raises(ValueError, match="must yield an Exchange"):
        run_alone(saying("hello"))


def test_rows_of_the_round_before_are_fresh_where_all_go_on_at_once():
    driver = InProcess(BOTH, {"a": exchanging(3, "b"), "b": exchanging(3, "a")}, wait=False)
    assert driver.run()["a"] == [(["b"], ["b"])] * 3


def test_repeated_messages_are_not_kept():
    faults = Faults(link_loss=0.4, delay=2, seed=1)
    driver = InProcess(BOTH, {"a": exchanging(200, "b"), "b": exchanging(200, "a")}, faults)
    driver.run()
    assert all(len(box) <= 2 for seat in driver.seats.values() for box in seat.inbox.values())


def test_a_run_can_go_on():
    programs = {"a": exchanging(9, "b"), "b": exchanging(9, "a")}
    driver = InProcess(BOTH, programs)
    driver.run(3)
    driver.run(3)
    assert driver.ledger.rounds == 6 and driver.values == {"a": None, "b": None}
    assert len(driver.run()["a"]) == 9 and driver.ledger.messages == 18


def test_work_may_come_before_anything_else():
    def program(x):
        found = yield Work(pow, (x, 2))
        return (yield from total(found))

    driver = InProcess({"a": [], "b": []}, {"a": program(1.0), "b": program(3.0)})
    assert driver.run() == {"a": 10.0, "b": 10.0}


# -- parts ------------------------------------------------------------------------------------


def tupled(penalty="l2"):
    """A ring of nodes that have pairs as ids."""
    rng = np.random.default_rng(0)
    ids = [(0, 0), (0, 1), (1, 1), (1, 0)]
    graph = Graph.from_edges([(ids[i], ids[(i + 1) % 4]) for i in range(4)])
    rows = [(rng.standard_normal((3, 2)), rng.standard_normal(3)) for _ in ids]
    return Problem(graph, LocalData.from_list(rows, nodes=ids), penalty=penalty, lam=0.3)


@pytest.mark.parametrize("exchange", ["wait", "latest"])
def test_pairs_as_ids_and_as_names_of_parts(exchange):
    problem = tupled()
    best = solve(problem, "algorithm1", tol=None, max_iter=200).w
    for parts in (None, [("x", 1), ("x", 1), ("y", 2), ("y", 2)]):
        run = pass_messages(problem, 200, parts=parts, exchange=exchange)
        np.testing.assert_allclose(run.w, best, rtol=0, atol=1e-12)


def test_the_error_bound_holds_with_pairs_as_ids():
    problem = tupled("squared_l2")
    run = relax_messages(problem, 5)
    best = solve(problem, tol=1e-13).w
    assert np.linalg.norm(run.w - best, axis=1).max() <= run.error_bound


def test_flows_and_parameters_on_one_link_are_not_mixed_up():
    """Two parts, each with the head of one edge between them: both contents go both ways."""
    rng = np.random.default_rng(1)
    rows = [(rng.standard_normal((3, 2)), rng.standard_normal(3)) for _ in range(4)]
    graph = Graph.from_edges([(0, 1), (2, 3), (0, 2), (1, 3)])
    problem = Problem(graph, LocalData.from_list(rows), lam=0.3)
    faults = Faults(node_dropout=0.2, seed=3)
    run = pass_messages(problem, 400, parts=[0, 1, 1, 0], exchange="latest", faults=faults)
    assert run.gap < 1e-6


def test_parts_by_node_id():
    problem = tupled()
    ids = problem.graph.ids.tolist()
    names = dict(zip(ids[::-1], "yyxx", strict=True))
    assert [(p.name, p.nodes.tolist()) for p in split(problem, names)] == [
        ("x", [0, 1]),
        ("y", [2, 3]),
    ]
    del names[ids[2]]
    with pytest.raises(ValueError, match=r"every node; .* has none"):
        split(problem, names)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (3, "parts must be a dict or one name per node; got int"),
        (["a", "b"], "parts must name the part of 4 nodes; got 2"),
        ([np.nan] * 4, "must have names such as strings or numbers; got nan"),
        ([None, 1, 1, 1], "must have names such as strings or numbers; got None"),
        ([[1]] * 4, "must have names such as strings or numbers"),
    ],
)
def test_bad_parts(parts, message):
    with pytest.raises(ValueError, match=message):
        pass_messages(tupled(), 3, parts=parts)


def test_bad_arguments():
    problem = tupled()
    with pytest.raises(ValueError, match="solver must be a PrimalDual; got 'algorithm1'"):
        pass_messages(problem, 3, "algorithm1")
    with pytest.raises(ValueError, match="problem must be a Problem; got NoneType"):
        pass_messages(None, 3)
    with pytest.raises(ValueError, match="seed must be an integer >= 0; got -1"):
        pass_messages(problem, 3, prox_error=0.1, seed=-1)
    with pytest.raises(ValueError, match=r"prox_error\(1\) must be finite and >= 0; got -1"):
        pass_messages(problem, 3, prox_error=lambda k: -1.0)
    with pytest.raises(ValueError, match="each node in one of them"):
        join(problem, split(problem)[:2])


def test_slow_nodes_from_a_generator_stay_slow():
    faults = Faults(stragglers=(i for i in ["a"]))
    assert [faults.slow(["a", "b"]).tolist() for _ in range(2)] == [[True, False]] * 2
    assert hash(faults) == hash(Faults(stragglers=["a"]))


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_programs_that_trust_each_other_hear_what_has_overflowed(bad):
    def says(name, other):
        heard = yield Exchange("correction", {other: np.array([bad])})
        return heard.rows[other]

    links = {"a": ["b"], "b": ["a"]}
    programs = {"a": says("a", "b"), "b": says("b", "a")}
    heard = InProcess(links, programs, finite=False).run()
    np.testing.assert_array_equal(heard["a"], [bad])
    programs = {"a": says("a", "b"), "b": says("b", "a")}
    with pytest.raises(RuntimeError, match="messages must get through"):
        InProcess(links, programs).run()
