"""Nodes that say something else, nodes that listen, and guards: in process and between sites."""

import numpy as np
import pytest
from scipy.stats import norm

from nefele import Graph, LocalData, Problem, solve
from nefele.program import Exchange, Heard
from nefele.robust import (
    Alie,
    Clip,
    Constant,
    Curious,
    FlipLabels,
    FLTrust,
    Guarded,
    InnerProduct,
    Median,
    Random,
    SignFlip,
    influence_bound,
)
from nefele.runtime import pass_messages, relax_messages
from nefele.runtime.programs import algorithm1
from nefele.sites import learn_together
from nefele.sites.example import coast, some_rows
from nefele.solvers import PrimalDual
from tests.robust.networks import alone
from tests.sites.parties import run_sites

ATTACKS = [Constant(1e3), Random(5.0, seed=3), SignFlip(2.0), Alie(1.5), InnerProduct(2.0)]


def ring(penalty="l2", n=6, lam=0.2):
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(n):
        X = rng.standard_normal((6, 2))
        rows.append((X, X @ [1.0, -1.0] + 0.1 * rng.standard_normal(6)))
    edges = [(i, (i + 1) % n) for i in range(n)] + [(i, (i + 2) % n) for i in range(n)]
    return Problem(Graph.from_edges(edges), LocalData.from_list(rows), penalty=penalty, lam=lam)


def drive(program, answers):
    """What a program asks for, given these answers."""
    asked = [next(program)]
    for answer in answers:
        try:
            asked.append(program.send(answer))
        except StopIteration:
            break
    return asked


def two_rounds():
    for k in (1.0, 2.0):
        yield Exchange("parameters", {"a": np.array([[k]]), "b": np.array([[k]])})


def heard(a, b):
    rows = {"a": np.array([[a]]), "b": np.array([[b]])}
    return Heard(rows, frozenset(rows))


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        (Constant(7.0), (7.0, 7.0)),
        (SignFlip(2.0), (-2.0, -4.0)),
        (Alie(1.0), (1.0, 4.0)),  # of 4 and 6: mean 5, deviation 1; before, its own
        (InnerProduct(2.0), (-2.0, -10.0)),
    ],
)
def test_what_is_said(attack, said):
    asked = drive(attack(two_rounds()), [heard(4.0, 6.0), heard(4.0, 6.0)])
    assert [request.arrays["a"].tolist() for request in asked] == [[[s]] for s in said]
    assert all(request.arrays["b"].shape == (1, 1) for request in asked)


def test_random_messages_repeat_with_their_seed_and_differ_between_neighbours():
    first, again, other = (
        drive(Random(1.0, seed=s)(two_rounds()), [heard(0.0, 0.0)]) for s in (1, 1, 2)
    )
    assert first[0].arrays["a"] == again[0].arrays["a"] != other[0].arrays["a"]
    assert first[0].arrays["a"] != first[0].arrays["b"]


def test_other_messages_and_results_pass_unchanged():
    def program():
        answer = yield Exchange("dual", {"a": np.array([[5.0]])})
        return answer

    attacked = Constant(1.0)(program())
    assert next(attacked).arrays["a"].tolist() == [[5.0]]
    with pytest.raises(StopIteration) as end:
        attacked.send("answer")
    assert end.value.value == "answer"


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: type(a).__name__)
def test_norms_hold_and_the_quadratic_penalty_does_not(attack):
    """One liar of six: under l2 the others end within the bound of the fit without it."""
    problem = ring()
    run = pass_messages(problem, 300, PrimalDual(), wrap={5: attack})
    base = solve(alone(problem, [5]), tol=1e-9).w
    bound = influence_bound(problem, [5])
    size = np.linalg.norm(run.w - base, axis=1)[:5]
    assert (size <= bound.per_node[:5] + 1e-6).all()


def test_a_constant_liar_carries_the_quadratic_fit_away_unless_it_is_guarded():
    problem = ring("squared_l2", lam=1.0)
    clean = relax_messages(problem, 200).w[:5]
    bad = {5: Constant(1e4)}
    assert np.abs(relax_messages(problem, 200, wrap=bad).w[:5]).max() > 100
    for rule in (Median(), Clip(0.5)):
        guards = {i: Guarded(rule) for i in range(5)}
        found = relax_messages(problem, 200, wrap=bad | guards).w[:5]
        assert np.abs(found - clean).max() < 0.3


def test_fltrust_at_rest_is_the_own_fit_whatever_others_say():
    """Updates end, and with them what a node takes from others."""
    problem = ring("squared_l2", lam=0.05)
    local = problem.loss.minimise()[:5]
    for bad in ({}, {5: Constant(1e4)}, {5: SignFlip(3.0)}):
        guards = {i: Guarded(FLTrust()) for i in range(5)}
        found = relax_messages(problem, 400, wrap=bad | guards).w[:5]
        assert np.abs(found - local).max() < 1e-3


def test_between_sites_an_attack_is_the_same_as_in_process(tmp_path):
    problem, attack, solver = ring(), SignFlip(3.0), PrimalDual()
    names = {i: f"s{i}" for i in range(6)}

    def make(part):
        program = algorithm1(part, solver, 40)
        return attack(program) if part.name == "s5" else program

    ends = run_sites(tmp_path, problem, names, make)
    here = pass_messages(problem, 40, solver, parts=names, wrap={"s5": attack})
    assert np.array_equal(ends.w, here.w) and np.array_equal(ends.u, here.u)
    assert not np.array_equal(here.w, pass_messages(problem, 40, solver, parts=names).w)


def test_members_of_a_federation_can_be_attacked():
    federation = coast(alpha=0.3, rounds=200)
    rows = some_rows(federation)
    spy, liar = Curious(), Constant(50.0)
    names = list(rows)
    clean = learn_together(federation, rows)
    watched = learn_together(federation, rows, wrap={names[0]: spy})
    for name in names:
        assert np.array_equal(clean[name].part.w1, watched[name].part.w1)
    assert set(spy.models()) <= set(names) - {names[0]} and spy.models()
    attacked = learn_together(federation, rows, wrap={names[0]: liar})
    moved = [np.abs(attacked[q].part.w1 - clean[q].part.w1).max() for q in names[1:]]
    assert max(moved) > 0 and np.isfinite(moved).all()
    with pytest.raises(ValueError, match="wrap must name parts of the network; 'x' is none"):
        learn_together(federation, rows, wrap={"x": liar})


def test_a_curious_neighbour_ends_with_the_others_models():
    problem, spy = ring(), Curious()
    run = pass_messages(problem, 400, PrimalDual(), wrap={0: spy})
    assert np.array_equal(run.w, pass_messages(problem, 400, PrimalDual()).w)
    found = spy.models()
    assert set(found) == set(problem.graph.neighbors(0))
    for node, model in found.items():
        assert model[0] == pytest.approx(run.w[node], abs=1e-5)


def test_a_guard_refuses_what_is_not_finite_before_anything_else():
    seen = []

    def program():
        for k in range(3):
            seen.append((yield Exchange("parameters", {q: np.array([[float(k)]]) for q in "abc"})))

    def said(a):
        rows = {"a": np.array([[a]]), "b": np.array([[1.0]]), "c": np.array([[2.0]])}
        return Heard(rows, frozenset(rows))

    drive(Guarded(Clip(100.0))(program()), [said(np.nan), said(5.0), said(np.inf)])
    assert [h.rows["a"].tolist() for h in seen] == [[[0.0]], [[5.0]], [[5.0]]]


def test_a_guard_needs_vectors_of_one_shape():
    def program():
        yield Exchange("parameters", {"a": np.zeros((1, 2)), "b": np.zeros((1, 2))})

    rows = {"a": np.zeros((1, 2)), "b": np.zeros((2, 2))}
    guarded = Guarded(Median())(program())
    next(guarded)
    with pytest.raises(ValueError, match="Let every part be one node"):
        guarded.send(Heard(rows, frozenset(rows)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Guarded(np.median), r"rule must be one such as Median\(\)"),
        (lambda: Constant(np.nan), "value must be a finite number or vector"),
        (lambda: Random(-1.0), "size must be finite and >= 0"),
        (lambda: SignFlip(0.0), "factor must be finite and > 0"),
        (lambda: Alie(0.0), "z must be finite and > 0"),
        (lambda: InnerProduct(-1.0), "factor must be finite and > 0"),
        (lambda: Alie.among(10, 6), "bad must be at most half of n=10"),
        (lambda: Alie.among(10, 1), "too few to hide"),
        (lambda: pass_messages(ring(), 1, wrap={"x": SignFlip()}), "wrap must name parts"),
        (lambda: pass_messages(ring(), 1, wrap={0: 3}), "wrap must have callables"),
        (lambda: pass_messages(ring(), 1, wrap={0: Guarded(Median())}), "not have a Guarded"),
        (lambda: pass_messages(ring(), 1, wrap={0: Constant([1.0] * 3)}), "one number or 2,"),
        (lambda: pass_messages(ring(), 1, wrap={0: FlipLabels([0])}), "attacks on messages only"),
        (lambda: relax_messages(ring("squared_l2"), 1, wrap={9: SignFlip()}), "wrap must name"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(("n", "bad"), [(50, 24), (25, 11), (40, 15)])
def test_alie_hides_as_its_paper_says(n, bad):
    """The largest z with Phi(z) < (n - m - s) / (n - m), s = floor(n/2 + 1) - m, by search."""
    s = np.floor(n / 2 + 1) - bad
    grid = np.linspace(0.0, 4.0, 400_001)
    best = grid[norm.cdf(grid) < (n - bad - s) / (n - bad)].max()
    assert Alie.among(n, bad).z == pytest.approx(best, abs=2e-5)
