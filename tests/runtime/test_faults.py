"""Message passing under faults: what is lost costs time, not the result."""

import numpy as np
import pytest

from nefele import solve
from nefele.losses import Logistic, Squared
from nefele.penalties import L1Norm, L2Norm, Quadratic, SquaredL2
from nefele.runtime import Faults, InProcess, pass_messages, relax_messages, split
from nefele.runtime.programs import algorithm1, algorithm1_latest
from nefele.solvers import FedRelax, PrimalDual
from tests.runtime.networks import network

LOSS_200 = Faults(link_loss=0.3, until=200, seed=3)
FOREVER = Faults(link_loss=0.3, seed=4)
Q = np.array([[2.0, 0.3], [0.3, 0.5]])


# -- the draws --------------------------------------------------------------------------------


def test_draws_depend_on_seed_and_round_alone():
    one, two = (Faults(node_dropout=0.5, link_loss=0.5, delay=3, seed=1) for _ in range(2))
    later = [two.links(k, 8) for k in (5, 4)][1]
    np.testing.assert_array_equal(one.links(4, 8), later)
    np.testing.assert_array_equal(one.online(4, 8), two.online(4, 8))
    other = Faults(node_dropout=0.5, link_loss=0.5, delay=3, seed=2)
    assert any((one.online(k, 8) != other.online(k, 8)).any() for k in range(4))


def test_shares_are_as_asked():
    faults = Faults(node_dropout=0.2, link_loss=0.3, delay=2)
    assert np.mean([faults.online(k, 50).mean() for k in range(100)]) == pytest.approx(
        0.8, abs=0.02
    )
    lost, late = zip(*(faults.links(k, 50) for k in range(100)), strict=True)
    assert np.mean(lost) == pytest.approx(0.3, abs=0.02)
    np.testing.assert_allclose(np.bincount(np.ravel(late)) / 5000, 1 / 3, atol=0.03)


def test_faults_end():
    faults = Faults(node_dropout=1.0, link_loss=1.0, delay=5, stragglers=1.0, until=7)
    assert not faults.online(6, 4).any() and faults.links(6, 4)[0].all()
    assert faults.moving(7, np.ones(4, bool)).all()
    assert not faults.links(7, 4)[0].any() and not faults.links(7, 4)[1].any()


def test_stragglers_move_every_so_often():
    faults = Faults(delay=2, stragglers=["b", "c"])
    slow = faults.slow(["a", "b", "c"])
    moves = np.array([faults.moving(k, slow) for k in range(12)]).sum(axis=0)
    assert moves.tolist() == [12, 4, 4]
    assert Faults(stragglers=0.5).slow(range(10)).sum() == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"link_loss": 1.2}, r"link_loss must be in \[0, 1\]; got 1.2"),
        ({"node_dropout": -0.1}, "node_dropout must be finite and >= 0; got -0.1"),
        ({"delay": 1.5}, "delay must be an integer >= 0; got 1.5"),
        ({"until": -1}, "until must be an integer >= 0; got -1"),
        ({"stragglers": 3}, r"stragglers must be in \[0, 1\]; got 3"),
    ],
)
def test_bad_faults(options, message):
    with pytest.raises(ValueError, match=message):
        Faults(**options)


def test_unknown_stragglers():
    with pytest.raises(ValueError, match="stragglers must be nodes of the graph; got also 'x'"):
        Faults(stragglers=["a", "x"]).slow(["a", "b"])


# -- primal-dual ------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", ["wait", "latest"])
@pytest.mark.parametrize("penalty", [L2Norm(), L1Norm(), SquaredL2()], ids=str)
def test_primal_dual_recovers_when_losses_end(penalty, exchange):
    problem = network(penalty=penalty)
    best = solve(problem, tol=1e-13)
    run = pass_messages(problem, 1000, faults=LOSS_200, exchange=exchange)
    assert run.missing["lost"] > 500
    np.testing.assert_allclose(run.w, best.w, rtol=0, atol=1e-6)


@pytest.mark.parametrize("exchange", ["wait", "latest"])
@pytest.mark.parametrize("penalty", [L2Norm(), L1Norm()], ids=str)
def test_primal_dual_under_permanent_loss(penalty, exchange):
    run = pass_messages(network(penalty=penalty), 700, faults=FOREVER, exchange=exchange)
    assert run.gap <= 1e-4
    assert 0.25 < run.missing["lost"] / run.n_messages < 0.35


HARD = [
    Faults(link_loss=0.7, seed=1),
    Faults(node_dropout=0.3, link_loss=0.2, seed=2),
    Faults(delay=3, seed=3),
    Faults(delay=2, stragglers=[0, 4], link_loss=0.2, node_dropout=0.1, seed=4),
]


@pytest.mark.parametrize("faults", HARD, ids=str)
def test_a_waiting_network_makes_the_steps_of_one_without_faults(faults):
    problem = network()
    run = pass_messages(problem, 120, faults=faults)
    assert run.steps.min() > 5 and run.steps.max() < 120
    for i, steps in enumerate(run.steps.tolist()):
        np.testing.assert_array_equal(run.w[i], pass_messages(problem, steps).w[i])


def test_only_a_waiting_network_converges_whatever_is_lost():
    assert pass_messages(network(), 2500, faults=HARD[0]).gap <= 1e-4
    gaps = [pass_messages(network(), n, faults=HARD[0], exchange="latest").gap for n in (600, 900)]
    assert min(gaps) > 1e-3


def test_waiting_with_over_relaxation():
    problem = network()
    solver = PrimalDual(gamma=0.7, polish=False)
    run = pass_messages(problem, 600, solver, faults=LOSS_200)
    np.testing.assert_allclose(run.w, solve(problem, tol=1e-13).w, rtol=0, atol=1e-6)


@pytest.mark.parametrize("wait", [True, False])
def test_copies_of_a_flow_never_go_different_ways(wait):
    """Both ends hold the same flow after the same round; or the tail one that the head has had."""
    parts, program = split(network()), algorithm1 if wait else algorithm1_latest
    programs = {part.name: program(part, PrimalDual.as_printed(), 200) for part in parts}
    links = {part.name: list(part.says) for part in parts}
    driver = InProcess(links, programs, HARD[3], wait=wait, steps=1 if wait else 2)
    had = {}
    for k in range(1, 120):
        driver.round(k)
        for part in parts:
            for e, head, u in zip(part.edges.tolist(), part.counted, part.u, strict=True):
                had.setdefault((e, bool(head)), {}).setdefault(part.rounds, u.copy())
    edges = {e for e, _ in had}
    assert len(edges) == 7 and min(part.rounds for part in parts) > 5
    for e in edges:
        owned, other = had[e, True], had[e, False]
        if wait:
            assert len(owned.keys() & other.keys()) > 5
            for k in owned.keys() & other.keys():
                np.testing.assert_array_equal(owned[k], other[k])
        else:
            flows = {u.tobytes() for u in owned.values()} | {np.zeros(2).tobytes()}
            assert {u.tobytes() for u in other.values()} <= flows


def test_nobody_waits_for_a_node_that_is_gone_with_latest():
    problem, gone = network(), Faults(stragglers=[4], delay=10_000)
    assert pass_messages(problem, 50, faults=gone).steps.max() < 50
    run = pass_messages(problem, 50, faults=Faults(stragglers=[4], delay=0), exchange="latest")
    assert sorted(run.steps.tolist()) == [25, 50, 50, 50, 50, 50]
    assert run.missing["inactive"] == 25


def test_without_faults_both_exchanges_agree():
    problem = network()
    one, two = (pass_messages(problem, 40, exchange=how) for how in ("wait", "latest"))
    np.testing.assert_array_equal(one.w, two.w)
    assert one.n_messages == two.n_messages
    with pytest.raises(ValueError, match='No exchange "waite"'):
        pass_messages(problem, 3, exchange="waite")


# -- inexact proximal steps -------------------------------------------------------------------


def test_errors_with_a_finite_sum_do_no_harm():
    problem = network(empty=False)
    best = solve(problem, tol=1e-13)
    run = pass_messages(problem, 2500, prox_error=lambda k: 1 / k**2)
    rough = pass_messages(problem, 30, prox_error=lambda k: 1 / k**2)
    assert np.abs(rough.w - best.w).max() > 1e-4
    np.testing.assert_allclose(run.w, best.w, rtol=0, atol=1e-6)


def test_the_gap_shows_constant_errors():
    problem = network(empty=False)
    assert pass_messages(problem, 700).gap < 1e-12
    gaps = [pass_messages(problem, n, prox_error=1e-2).gap for n in (300, 500, 700)]
    smaller = [pass_messages(problem, n, prox_error=1e-3).gap for n in (300, 500, 700)]
    assert min(gaps) > 1e-5 and min(gaps) > max(smaller) > min(smaller) > 1e-8


def test_errors_have_the_size_asked_for_and_a_seed():
    problem = network()
    exact = pass_messages(problem, 1).w
    off = pass_messages(problem, 1, prox_error=0.25).w - exact
    np.testing.assert_allclose(np.linalg.norm(off, axis=1), 0.25)
    again = pass_messages(problem, 1, prox_error=0.25, seed=1).w - exact
    assert np.abs(again - off).max() > 0.01
    with pytest.raises(ValueError, match="prox_error must be finite and >= 0"):
        pass_messages(problem, 1, prox_error=-1.0)


# -- FedRelax on parameters -------------------------------------------------------------------

RELAX = [
    (Squared(), SquaredL2()),
    (Squared(), Quadratic(Q)),
    (Logistic(l2=0.1), SquaredL2()),
    (Logistic(l2=0.1), Quadratic(Q)),
]


@pytest.mark.parametrize("schedule", ["jacobi", "gauss-seidel"])
@pytest.mark.parametrize(("loss", "penalty"), RELAX, ids=str)
def test_fedrelax_messages_equal_the_solver(loss, penalty, schedule):
    problem = network(loss=loss, penalty=penalty)
    run = relax_messages(problem, 25, schedule)
    result = solve(problem, FedRelax(schedule), tol=None, max_iter=25)
    np.testing.assert_allclose(run.w, result.w, rtol=0, atol=1e-10)
    assert run.staleness == 0


@pytest.mark.parametrize("schedule", ["jacobi", "gauss-seidel"])
@pytest.mark.parametrize(("loss", "penalty"), RELAX, ids=str)
def test_fedrelax_recovers_when_losses_end(loss, penalty, schedule):
    problem = network(loss=loss, penalty=penalty)
    best = solve(problem, tol=1e-13 if isinstance(loss, Squared) else 1e-11)
    run = relax_messages(problem, 350, schedule, faults=LOSS_200)
    assert run.missing["lost"] > 500
    np.testing.assert_allclose(run.w, best.w, rtol=0, atol=1e-6)


@pytest.mark.parametrize("faults", [FOREVER, *HARD], ids=str)
def test_fedrelax_under_permanent_faults(faults):
    run = relax_messages(network(penalty="squared_l2"), 300, faults=faults)
    assert run.gap <= 1e-4


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("schedule", ["jacobi", "gauss-seidel"])
def test_the_asynchronous_bound_holds(seed, schedule):
    rng = np.random.default_rng(seed)
    problem = network(seed, "squared_l2", lam=rng.choice([0.1, 1.0, 5.0]), rows=8, empty=False)
    best = solve(problem, tol=1e-14).w
    first = np.linalg.norm(best, axis=1).max()
    options = [
        {"delay": 1 + seed},
        {"delay": 2, "stragglers": 0.3},
        {"link_loss": 0.3, "node_dropout": 0.2},
    ]
    for kind in options:
        for n_rounds in (5, 40):
            run = relax_messages(problem, n_rounds, schedule, faults=Faults(seed=seed, **kind))
            error = np.linalg.norm(run.w - best, axis=1).max()
            assert run.kappa < 1 and run.speed == "linear"
            assert run.factor == run.kappa ** (n_rounds // (2 * run.staleness + 1))
            assert error <= run.factor * first + 1e-12
            assert first <= run.error_bound / run.factor * (1 + 1e-12)
            assert error <= run.error_bound


def test_kappa_is_the_formula():
    problem = network(penalty="squared_l2", empty=False, lam=0.7)
    data, graph = problem.data, problem.graph
    factors = []
    for i in range(6):
        own = data.X[data.ptr[i] : data.ptr[i + 1]]
        sigma = 2 * np.linalg.eigvalsh(own.T @ own / len(own))[0]
        factors.append(1 / (1 + sigma / (0.7 * graph.adjacency[[i]].sum())))
    assert relax_messages(problem, 1).kappa == pytest.approx(max(factors), rel=1e-12)


def test_bounded_delay_bounds_the_staleness():
    problem = network(penalty="squared_l2", empty=False)
    for delay in range(4):
        assert relax_messages(problem, 60, faults=Faults(delay=delay)).staleness == delay


def test_the_bound_is_not_idle():
    """It proves six digits here, from the data alone."""
    problem = network(penalty="squared_l2", empty=False, lam=0.05, rows=20)
    run = relax_messages(problem, 30)
    assert run.error_bound < 1e-6 and run.staleness == 0


def test_nodes_without_data_are_slow_and_not_divergent():
    problem = network(penalty="squared_l2", empty=True)
    run = relax_messages(problem, 400)
    assert (run.kappa, run.speed, run.factor, run.error_bound) == (1.0, "slow", 1.0, np.inf)
    assert run.gap < 1e-10
    assert relax_messages(network(penalty=Quadratic(Q)), 3).speed == "unknown"


def test_fedrelax_needs_a_quadratic_penalty():
    with pytest.raises(ValueError, match="FedRelax needs SquaredL2 or Quadratic; got L2Norm"):
        relax_messages(network(), 3)
