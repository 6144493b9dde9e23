"""Programs on parts of a network agree with the solvers that hold it as a whole."""

from dataclasses import replace

import numpy as np
import pytest

from nefele import Problem
from nefele.graphs import grid
from nefele.penalties import ByEdge
from nefele.program import Exchange, Sum, Work, run_alone
from nefele.runtime import Faults, InProcess, join, pass_messages, relax_messages, split
from nefele.runtime.programs import algorithm1, certificate
from nefele.solvers import FedRelax, PrimalDual
from nefele.solvers.steps import median, typical_sizes
from tests.contracts.cases import LOSSES, PENALTIES
from tests.problems import random_data

SHARED = [case for case in LOSSES if not case.own]
PARTS = {
    "one part": ["a"] * 6,
    "two parts": ["a", "a", "b", "a", "b", "b"],
    "three parts": [2, 0, 1, 1, 0, 2],
    "each node": None,
}
SOLVERS = {
    "printed": PrimalDual.as_printed(),
    "scaled to the data": PrimalDual(gamma=None, relax=1.7, polish=False),
}
FAULTS = Faults(link_loss=0.3, node_dropout=0.1, delay=1, seed=5)
parts_of = pytest.mark.parametrize("owner", PARTS.values(), ids=PARTS)
steps_of = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)


def problem(loss="squared", penalty="l2", labels="real", lam=0.2):
    """A grid of 2 x 3 nodes; one has no rows, one only one."""
    graph = grid(2, 3)
    data = random_data(np.random.default_rng(2), (8, 0, 2, 1, 6, 5), 2, labels)
    if isinstance(loss, dict):
        loss = {**loss, 1: "zero", 5: "squared"}
    if isinstance(penalty, ByEdge):
        kinds = penalty.penalties
        penalty = ByEdge(kinds, np.arange(graph.n_edges) % len(kinds))
    return Problem(graph, data, loss, penalty, lam=lam)


def vectorised(whole, solver, n_iter):
    """The unrelaxed iterates of the NumPy iteration, from the start on."""
    solver = replace(solver, compiled=False)
    zero = np.zeros((whole.graph.n_nodes, whole.d)), np.zeros((whole.graph.n_edges, whole.d))
    state = solver.init(whole, *zero)
    found = [state.iteration.unrelaxed()]
    for _ in range(n_iter):
        solver.step(whole, state)
        found.append(state.iteration.unrelaxed())
    return found


def close(one, two, tol=1e-12):
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tol * max(1.0, np.abs(b).max()))


# -- Algorithm 1 ------------------------------------------------------------------------------


@parts_of
@steps_of
@pytest.mark.parametrize("case", SHARED, ids=lambda case: case.name)
def test_every_loss(case, solver, owner):
    whole = problem(case.loss, labels=case.labels)
    run = pass_messages(whole, 25, solver, parts=owner)
    close((run.w, run.u), vectorised(whole, solver, 25)[-1])


@parts_of
@steps_of
@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
def test_every_penalty(penalty, solver, owner):
    whole = problem(penalty=penalty(2))
    run = pass_messages(whole, 25, solver, parts=owner)
    close((run.w, run.u), vectorised(whole, solver, 25)[-1])


@parts_of
@steps_of
@pytest.mark.parametrize("case", SHARED[::3], ids=lambda case: case.name)
@pytest.mark.parametrize("penalty", ["l1", "squared_l2"])
def test_faults_cost_rounds_and_nothing_else(case, penalty, solver, owner):
    whole = problem(case.loss, penalty, case.labels)
    run = pass_messages(whole, 60, solver, parts=owner, faults=FAULTS)
    path = vectorised(whole, solver, 60)
    assert run.steps.min() > 5
    for i, steps in enumerate(run.steps.tolist()):
        close([run.w[i]], [path[steps][0][i]])


@steps_of
def test_the_order_of_names_and_the_number_of_parts_do_not_matter(solver):
    whole = problem()
    runs = [pass_messages(whole, 40, solver, parts=owner) for owner in PARTS.values()]
    for run in runs[1:]:
        close((run.w, run.u), (runs[0].w, runs[0].u))


# -- FedRelax on parameters -------------------------------------------------------------------


@parts_of
@pytest.mark.parametrize("case", SHARED, ids=lambda case: case.name)
def test_fedrelax_for_every_loss(case, owner):
    whole = problem(case.loss, "squared_l2", case.labels)
    run = relax_messages(whole, 15, parts=owner)
    solver = FedRelax()
    state = solver.init(whole, np.zeros_like(run.w), np.zeros_like(run.u))
    for _ in range(15):
        solver.step(whole, state)
    close([run.w], [state.w])


def test_fedrelax_by_colours_is_for_single_nodes():
    whole = problem(penalty="squared_l2")
    with pytest.raises(ValueError, match='use "jacobi"; got "gauss-seidel"'):
        relax_messages(whole, 3, "gauss-seidel", parts=PARTS["two parts"])


# -- the certificate --------------------------------------------------------------------------


def certified(whole, w, u, owner, faults=None):
    parts = split(whole, owner)
    for part in parts:
        part.w1, part.u1 = w[part.nodes], u[part.edges]
    links = {part.name: list(part.says) for part in parts}
    driver = InProcess(links, {part.name: certificate(part) for part in parts}, faults)
    found = driver.run()
    flow = np.zeros_like(u)
    for part in parts:
        flow[part.edges] = found[part.name].u
    return list(found.values()), flow, driver


def same_certificate(found, flow, whole, w, u):
    """Equal to nine digits, and to the leak by which both say they may be off."""
    expected = whole.certificate(w, u)
    for one in found:
        assert one.form == expected.form
        assert one.objective == pytest.approx(expected.objective, rel=1e-9)
        if not np.isfinite(expected.lower):  # a system without a solution proves nothing anywhere
            assert one.lower <= 0.0
            continue
        leak = max(one.leak, expected.leak)
        size = max(abs(expected.objective), abs(expected.lower))
        assert one.lower == pytest.approx(expected.lower, rel=0, abs=1e-9 * size + leak)
        slack = 1e-8 * max(1.0, np.abs(u).max()) + 10 * leak
        np.testing.assert_allclose(flow, expected.u, rtol=0, atol=slack)


@pytest.mark.parametrize("n_iter", [10, 200])
@pytest.mark.parametrize("case", SHARED, ids=lambda case: case.name)
def test_the_certificate_of_every_loss(case, n_iter):
    whole = problem(case.loss, labels=case.labels)
    w, u = vectorised(whole, SOLVERS["printed"], n_iter)[-1]
    for owner in PARTS.values():
        same_certificate(*certified(whole, w, u, owner)[:2], whole, w, u)


@pytest.mark.parametrize("n_iter", [100, 1000])
@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
def test_the_certificate_of_every_penalty(penalty, n_iter):
    whole = problem(penalty=penalty(2))
    w, u = vectorised(whole, SOLVERS["printed"], n_iter)[-1]
    for owner in PARTS.values():
        same_certificate(*certified(whole, w, u, owner)[:2], whole, w, u)


def test_the_certificate_of_a_network_in_pieces_and_without_coupling():
    whole = problem(lam=0.0)
    w, u = vectorised(whole, SOLVERS["printed"], 50)[-1]
    same_certificate(*certified(whole, w, u, None)[:2], whole, w, u)


def test_the_certificate_gets_through_faults():
    whole = problem()
    w, u = vectorised(whole, SOLVERS["printed"], 100)[-1]
    faulty, flow, driver = certified(whole, w, u, None, Faults(link_loss=0.4, delay=2, seed=1))
    plain, same, _ = certified(whole, w, u, None)
    assert driver.ledger.lost > 20
    assert faulty[0].lower == plain[0].lower
    np.testing.assert_array_equal(flow, same)


def test_one_exchange_and_two_sums_in_a_step_of_the_linear_system():
    """The rest of a certificate takes a fixed number of both."""
    whole = problem()
    w, u = vectorised(whole, SOLVERS["printed"], 30)[-1]
    _, _, driver = certified(whole, w, u, PARTS["two parts"])
    sums = driver.ledger.by_content["sums"].messages / 2
    steps = driver.ledger.by_content["correction"].messages / 2
    assert steps > 5 and 2 * steps <= sums <= 2 * steps + 60


# -- what is said -----------------------------------------------------------------------------


class Listening(InProcess):
    """Keeps every message."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.said, send = [], self.post.send

        def noted(link, message, hop=0):
            self.said.append(message)
            send(link, message, hop)

        self.post.send = noted


@pytest.mark.parametrize("owner", [PARTS["three parts"], None], ids=["three parts", "each node"])
def test_neighbours_hear_what_the_messages_list_and_nothing_else(owner):
    """2 w+ - w of the nodes at the border, round by round: no rows, no labels, no inner nodes."""
    whole = problem()
    parts = split(whole, owner)
    programs = {part.name: algorithm1(part, SOLVERS["printed"], 6) for part in parts}
    driver = Listening({part.name: list(part.says) for part in parts}, programs)
    driver.run()
    path = vectorised(whole, SOLVERS["printed"], 6)
    graph, named = whole.graph, {part.name: part for part in parts}
    names = whole.graph.ids.tolist() if owner is None else owner
    assert len(driver.said) == 6 * sum(len(part.says) for part in parts)
    for message in driver.said:
        assert message.content == "parameters"
        ends = zip(graph.head.tolist(), graph.tail.tolist(), strict=True)
        pairs = [pair for edge in ends for pair in (edge, edge[::-1])]
        border = {
            i for i, j in pairs if names[i] == message.sender and names[j] == message.receiver
        }
        nodes = sorted(border)
        sender = named[message.sender]
        assert sender.nodes[sender.says[message.receiver]].tolist() == nodes
        k = message.round
        ahead = 2 * path[k][0][nodes] - path[k - 1][0][nodes]
        np.testing.assert_allclose(message.payload, ahead, rtol=0, atol=1e-12)


def test_the_certificate_says_parameters_corrections_and_sums():
    whole = problem()
    w, u = vectorised(whole, SOLVERS["printed"], 30)[-1]
    parts = split(whole)
    for part in parts:
        part.w1, part.u1 = w[part.nodes], u[part.edges]
    programs = {part.name: certificate(part) for part in parts}
    driver = Listening({part.name: list(part.says) for part in parts}, programs)
    driver.run()
    assert {message.content for message in driver.said} == {"parameters", "correction"}
    assert {message.payload.shape for message in driver.said} == {(1, 2)}
    assert set(driver.ledger.by_content) == {"parameters", "correction", "sums"}


def test_parts_keep_nothing_of_others():
    """Losses and data are those of the own nodes; of neighbours there are ids and weights."""
    whole = problem()
    for part in split(whole, PARTS["three parts"]):
        assert part.loss.n_nodes == len(part.nodes) == len(part.w)
        assert part.loss.data.n_rows == sum(
            whole.data.ptr[i + 1] - whole.data.ptr[i] for i in part.nodes.tolist()
        )
        assert set(part.edges.tolist()) == {
            e
            for e in range(whole.graph.n_edges)
            if {whole.graph.head[e], whole.graph.tail[e]} & set(part.nodes.tolist())
        }


# -- requests ---------------------------------------------------------------------------------


def test_a_program_can_be_driven_by_hand():
    whole = problem()
    left, right = split(whole, PARTS["two parts"])
    programs = [algorithm1(part, SOLVERS["printed"], 1) for part in (left, right)]
    asked = [next(program) for program in programs]
    assert all(isinstance(request, Exchange) for request in asked)
    from nefele.program import Heard

    for program, mine, theirs in zip(programs, (left, right), asked[::-1], strict=True):
        (name,) = mine.says
        rows = {name: theirs.arrays[mine.name]}
        with pytest.raises(StopIteration):
            program.send(Heard(rows, frozenset(rows)))
    close(join(whole, [left, right]), vectorised(whole, SOLVERS["printed"], 1)[-1])


def test_work_is_handed_to_the_pool():
    seen = []

    def program(x):
        return (yield Work(pow, (x, 2)))

    def pool(tasks):
        seen.append(len(tasks))
        return [task.call(*task.arguments) for task in tasks]

    driver = InProcess({"a": [], "b": []}, {"a": program(3), "b": program(4)}, pool=pool)
    assert driver.run() == {"a": 9, "b": 16} and seen == [2]
    assert run_alone(program(5)) == 25


def test_sums_are_added_in_the_order_of_the_parts():
    def program(x):
        added = yield Sum(np.array([x, 1.0]))
        most = yield Sum(np.array([x]), largest=True)
        return added.tolist(), most.tolist()

    values = {"b": 1e16, "a": 1.0, "c": -1e16}
    driver = InProcess({name: [] for name in values}, {n: program(x) for n, x in values.items()})
    assert set(map(str, driver.run().values())) == {str(([0.0, 3.0], [1e16]))}


@pytest.mark.parametrize("values", [[3.0], [0.0, 0.0], [5.0, 1e-300, 2.0], [1.0, 7.0, 7.0, 1e300]])
def test_the_median_over_parts_is_exact(values):
    assert run_alone(median(np.array(values), len(values))) == np.median(values)
    programs = {i: median(np.array([x]), len(values)) for i, x in enumerate(values)}
    found = InProcess({i: [] for i in programs}, programs).run()
    assert set(found.values()) == {np.median(values)}


@parts_of
def test_typical_sizes_by_parts(owner):
    whole = problem()
    parts = split(whole, owner)
    programs = {part.name: typical_sizes(part) for part in parts}
    found = InProcess({part.name: list(part.says) for part in parts}, programs).run()
    expected = run_alone(typical_sizes(whole))
    for sizes in found.values():
        assert sizes == pytest.approx(expected, rel=1e-12)


def test_owners_must_be_given_for_every_node():
    with pytest.raises(ValueError, match="parts must name the part of 6 nodes; got 2"):
        split(problem(), ["a", "b"])
