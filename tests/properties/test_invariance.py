"""What must not change the solution, and how it must change when the problem is scaled."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nefele import DataWarning, Graph, LocalData, Problem, solve
from nefele.losses import Absolute, Logistic, Squared
from nefele.penalties import HuberPenalty
from tests.problems import random_parts

TOL = 1e-9
PENALTIES = st.sampled_from(["l2", "l1", "linf", "squared_l2", HuberPenalty(0.3)])
NORMS = st.sampled_from(["l2", "l1", "linf"])
LOSSES = st.sampled_from([Squared(), Squared(l2=0.1), Logistic(l2=0.05)])
SEEDS = st.integers(0, 10_000)
FEW = settings(derandomize=True, deadline=None, max_examples=12, database=None)


def quiet(problem, **options):
    """Solve; components without data are part of the game."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return solve(problem, **{"tol": TOL, **options})


def same(first, second):
    """Equal objectives within the certified gaps."""
    slack = first.gap_abs + second.gap_abs + 1e-12 * abs(first.objective)
    assert abs(first.objective - second.objective) <= slack


def unique(loss):
    """Whether the ridge makes the solution unique where there are data."""
    return getattr(loss, "l2", 0.0) > 0


@FEW
@given(SEEDS, LOSSES, PENALTIES)
def test_permuted_nodes(seed, loss, penalty):
    graph, data, lam = random_parts(seed, loss)
    order = np.random.default_rng(seed).permutation(graph.n_nodes)
    rank = np.argsort(order)
    moved = Graph(graph.ids[order], rank[graph.head], rank[graph.tail], graph.weight)
    first = quiet(Problem(graph, data, loss, penalty, lam=lam))
    second = quiet(Problem(moved, data.subset(order), loss, penalty, lam=lam))
    same(first, second)
    assert first.status == second.status
    assert first.problem.objective(second.w[rank]) == pytest.approx(second.objective, rel=1e-12)
    if unique(loss):
        labelled = first.problem.data.labelled
        np.testing.assert_allclose(second.w[rank][labelled], first.w[labelled], atol=1e-3)


@FEW
@given(SEEDS, LOSSES, PENALTIES)
def test_flipped_and_reordered_edges(seed, loss, penalty):
    graph, data, lam = random_parts(seed, loss)
    rng = np.random.default_rng(seed)
    flip, order = rng.random(graph.n_edges) < 0.5, rng.permutation(graph.n_edges)
    head = np.where(flip, graph.tail, graph.head)[order]
    tail = np.where(flip, graph.head, graph.tail)[order]
    flipped = Graph(graph.ids, head, tail, graph.weight[order])
    first, second = (
        quiet(Problem(g, data, loss, penalty, lam=lam), tol=1e-6) for g in (graph, flipped)
    )
    np.testing.assert_array_equal(first.w, second.w)


@FEW
@given(SEEDS, LOSSES, PENALTIES)
def test_duplicated_rows_with_half_the_weight(seed, loss, penalty):
    graph, data, lam = random_parts(seed, loss)
    weight = np.random.default_rng(seed).uniform(0.5, 2, data.n_rows)
    rows = np.repeat(np.arange(data.n_rows), 2)
    once = LocalData(data.X, data.y, data.ptr, sample_weight=weight)
    twice = LocalData(data.X[rows], data.y[rows], 2 * data.ptr, sample_weight=0.5 * weight[rows])
    first, second = (quiet(Problem(graph, d, loss, penalty, lam=lam)) for d in (once, twice))
    same(first, second)
    assert first.problem.objective(second.w) == pytest.approx(second.objective, rel=1e-10)


@FEW
@given(SEEDS, NORMS, st.sampled_from([Squared(), Absolute()]), st.sampled_from([-6, -2, 2, 6]))
def test_scaled_labels_scale_the_parameters(seed, penalty, loss, power):
    """y and lam times c for a norm penalty; the absolute loss needs no other lam."""
    c = 10.0**power
    graph, data, lam = random_parts(seed)
    scaled = LocalData(data.X, c * data.y, data.ptr)
    # Absolute losses with l1 or linf are linear programmes, hard for first-order methods.
    times, tol = (c, 1e-6) if isinstance(loss, Squared) else (1.0, 1e-3)
    first = quiet(Problem(graph, data, loss, penalty, lam=lam), tol=tol)
    second = quiet(Problem(graph, scaled, loss, penalty, lam=times * lam), tol=tol)
    assert first.status == second.status
    power_of_objective = 2 if isinstance(loss, Squared) else 1
    objective = second.objective / c**power_of_objective
    slack = first.gap_abs + second.gap_abs / c**power_of_objective
    assert abs(objective - first.objective) <= slack + 1e-9 * first.objective
    value = first.problem.objective(second.w / c)
    assert value == pytest.approx(objective, rel=1e-9, abs=1e-12)


@FEW
@given(SEEDS, LOSSES)
def test_scaled_labels_with_the_quadratic_penalty_need_no_other_lam(seed, loss):
    if not isinstance(loss, Squared):
        loss = Squared()
    graph, data, lam = random_parts(seed)
    scaled = LocalData(data.X, 1e4 * data.y, data.ptr)
    first = quiet(Problem(graph, data, loss, "squared_l2", lam=lam))
    second = quiet(Problem(graph, scaled, loss, "squared_l2", lam=lam))
    assert first.status == second.status
    assert second.objective == pytest.approx(1e8 * first.objective, rel=1e-6)


@FEW
@given(SEEDS, LOSSES, PENALTIES)
def test_a_disconnected_graph_equals_its_components(seed, loss, penalty):
    graph, data, lam = random_parts(seed, loss)
    whole = quiet(Problem(graph, data, loss, penalty, lam=lam))
    total, slack = 0.0, whole.gap_abs
    for label in np.unique(graph.components):
        nodes = np.flatnonzero(graph.components == label)
        rank = np.full(graph.n_nodes, -1)
        rank[nodes] = np.arange(len(nodes))
        inside = np.isin(graph.head, nodes)
        part = Graph(
            graph.ids[nodes],
            rank[graph.head[inside]],
            rank[graph.tail[inside]],
            graph.weight[inside],
        )
        alone = quiet(Problem(part, data.subset(nodes), loss, penalty, lam=lam))
        total, slack = total + alone.objective, slack + alone.gap_abs
    assert abs(whole.objective - total) <= slack + 1e-12 * total


@FEW
@given(SEEDS, LOSSES, PENALTIES)
def test_never_above_simple_candidates(seed, loss, penalty):
    """Zero, the local fits, their mean and random points near the solution."""
    graph, data, lam = random_parts(seed, loss)
    problem = Problem(graph, data, loss, penalty, lam=lam)
    result = quiet(problem, tol=1e-6)
    fits = problem.loss.minimise()
    mean = np.broadcast_to(fits[problem.loss.labelled].mean(axis=0), fits.shape)
    rng = np.random.default_rng(seed)
    near = result.w + 1e-2 * rng.standard_normal(result.w.shape)
    for candidate in (np.zeros_like(fits), fits, mean, near, 0.9 * result.w):
        assert result.objective - result.gap_abs <= problem.objective(candidate)
        assert result.objective <= problem.objective(candidate) * (1 + 1e-6) + result.gap_abs


@FEW
@given(SEEDS, LOSSES, PENALTIES)
def test_the_optimal_value_grows_with_lam(seed, loss, penalty):
    graph, data, lam = random_parts(seed, loss)
    values = [
        quiet(Problem(graph, data, loss, penalty, lam=factor * lam), tol=1e-7)
        for factor in (0.0, 0.1, 1.0, 10.0)
    ]
    for less, more in pairwise(values):
        assert less.objective - less.gap_abs <= more.objective
    # The coupling term alone shrinks as lam grows.
    coupling = [r.problem.penalty.value(graph.diff(r.w)) @ graph.weight for r in values[1:]]
    losses = [r.problem.loss.value(r.w).sum() for r in values[1:]]
    for a, b in pairwise(losses):
        assert a <= b + 1e-4 * (1 + abs(b))
    for a, b in pairwise(coupling):
        assert b <= a + 1e-4 * (1 + abs(a)) / lam


@FEW
@given(SEEDS, LOSSES, PENALTIES)
def test_weights_and_lam_enter_as_their_product(seed, loss, penalty):
    graph, data, lam = random_parts(seed, loss)
    heavier = Graph(graph.ids, graph.head, graph.tail, 8 * graph.weight)
    first = quiet(Problem(graph, data, loss, penalty, lam=lam))
    second = quiet(Problem(heavier, data, loss, penalty, lam=lam / 8))
    same(first, second)


@FEW
@given(SEEDS, PENALTIES)
def test_ridge_of_zero_is_no_ridge(seed, penalty):
    graph, data, lam = random_parts(seed)
    plain = quiet(Problem(graph, data, "squared", penalty, lam=lam), tol=1e-6)
    zero = quiet(Problem(graph, data, replace(Squared(), l2=0.0), penalty, lam=lam), tol=1e-6)
    np.testing.assert_array_equal(plain.w, zero.w)
