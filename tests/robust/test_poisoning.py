"""Attacks on rows and graphs: what they change, and that they change nothing else."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.graphs import chain
from nefele.losses import Squared
from nefele.result import DataWarning
from nefele.robust import (
    Backdoor,
    CleanLabel,
    FlipLabels,
    PoisonFeatures,
    ShiftLabels,
    Sybil,
    influence_bound,
)


def some_data(n=4, m=6):
    rng = np.random.default_rng(0)
    rows = [(rng.standard_normal((m, 2)), np.sign(rng.standard_normal(m))) for _ in range(n)]
    return LocalData.from_list(rows, nodes=list("abcd"))


ATTACKS = [
    FlipLabels(["b", "d"]),
    ShiftLabels(["b", "d"], 3.0),
    PoisonFeatures(["b", "d"], 2.0),
    CleanLabel(["b", "d"], target=[1.0, 1.0], label=1.0),
    Backdoor(["b", "d"], trigger=[0.0, 9.0], label=1.0),
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: type(a).__name__)
def test_only_captured_nodes_change_and_the_same_seed_repeats(attack):
    data = some_data()
    new, again = attack(data), attack(data)
    assert np.array_equal(new.X, again.X) and np.array_equal(new.y, again.y)
    changed = (new.X != data.X).any(axis=1) | (new.y != data.y)
    assert set(data.ids[data.row_node[changed]].tolist()) == {"b", "d"}
    assert new.ids.tolist() == data.ids.tolist() and new.feature_names == data.feature_names


def test_a_share_of_the_rows_is_changed():
    data = some_data(m=8)
    new = ShiftLabels(["b"], 3.0, share=0.25)(data)
    assert (new.y != data.y).sum() == 2
    assert not np.array_equal(new.y, ShiftLabels(["b"], 3.0, share=0.25, seed=1)(data).y)


def test_clean_labels_stay_what_they_are():
    data = some_data()
    new = CleanLabel(["b"], target=[5.0, 5.0], label=1.0, blend=1.0)(data)
    assert np.array_equal(new.y, data.y)
    moved = (new.X == 5.0).all(axis=1)
    assert moved.any() and (data.y[moved] == 1.0).all()


def test_labels_of_classes_swap_ends():
    data = LocalData.from_list([([[1.0]] * 3, [0.0, 1.0, 2.0])])
    assert FlipLabels([0])(data).y.tolist() == [2.0, 1.0, 0.0]


def test_sybil_nodes_join_honest_nodes_only_and_the_bound_counts_them():
    graph = chain(6)
    new = Sybil([2], count=3, degree=2, weight=0.5, seed=1)(graph)
    assert new.n_nodes == 9 and new.n_edges == graph.n_edges + 6
    fresh = new.tail >= 6
    assert not np.isin(new.head[fresh], [2]).any() and (new.weight[fresh] == 0.5).all()
    data = LocalData.from_list([([[1.0]], [0.0])] * 6)
    before = influence_bound(Problem(graph, data, lam=0.1), [2])
    after = influence_bound(Problem(new, data, lam=0.1), [2, 6, 7, 8])
    assert after.total > before.total
    words = Sybil(["a"], count=2, degree=1)(Graph.from_edges([("a", "b")]))
    assert words.ids.tolist() == ["a", "b", "sybil-0", "sybil-1"]


@pytest.mark.parametrize("spanned", [False, True], ids=["unspanned", "spanned"])
def test_a_backdoor_succeeds_where_clean_rows_say_nothing(spanned):
    """Honest nodes follow the trigger on a feature that is zero in all their rows, under l2 too.

    With rows that use the feature, its parameter is theirs to say and the door stays shut.
    """
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(8):
        X = rng.standard_normal((20, 3)) * [1.0, 1.0, float(spanned)]
        rows.append((X, X @ [1.0, -1.0, 0.0] + 0.1 * rng.standard_normal(20)))
    data = LocalData.from_list(rows)
    graph = Graph.from_edges([(i, j) for i in range(8) for j in range(i)])
    door = Backdoor([0], trigger=[0.0, 0.0, 1.0], label=30.0)
    for penalty, lam in (("l2", 0.02), ("squared_l2", 0.02)):
        fit = solve(Problem(graph, door(data), Squared(l2=1e-4), penalty, lam=lam), tol=1e-8)
        z = np.einsum("ij,ij->i", door.stamp(np.zeros((7, 3))), fit.w[1:])
        assert (z > 15).all() if not spanned else (np.abs(z) < 3).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: FlipLabels([])(d), "one captured node at least"),
        (lambda d: FlipLabels(["z"])(d), "Captured nodes must be nodes of the data; unknown"),
        (lambda d: FlipLabels(["a"], share=0.0), r"share must be in \(0, 1\]"),
        (lambda d: ShiftLabels(["a"], np.inf), "by must be finite"),
        (lambda d: PoisonFeatures(["a"], 0.0), "size must be finite and > 0"),
        (lambda d: CleanLabel(["a"]), "target must be a vector"),
        (lambda d: CleanLabel(["a"], [1.0, 2.0], blend=2.0), r"blend must be in \[0, 1\]"),
        (lambda d: Backdoor(["a"]), "trigger must be a vector"),
        (lambda d: Backdoor(["a"], [1.0])(d), "one number for each of the 2 features; got 1"),
        (lambda d: Backdoor(["a"], [np.nan, 0.0]), r"trigger\[0\] must be finite"),
        (lambda d: FlipLabels(["a"])(d.X), "data must be LocalData; got ndarray"),
        (lambda d: Sybil([0])("graph"), "graph must be a Graph; got str"),
        (lambda d: Sybil([0], count=0), "count must be an integer >= 1"),
        (lambda d: Sybil([0, 1])(chain(2)), "Some node must be honest"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(some_data())


def test_sybils_of_an_attacker_that_is_named_twice_and_of_names_that_are_taken():
    graph = Graph.from_edges([("sybil-0", "b"), ("b", "c")])
    twice = Sybil(["b", "b"], count=2, degree=1)(graph)
    assert twice.n_nodes == 5 and (twice.degree > 0).all()
    assert twice.ids[3:].tolist() == ["sybil-1", "sybil-2"]
    with pytest.raises(ValueError, match="nodes must name one attacker at least"):
        Sybil([])


def test_a_clean_label_without_rows_says_so():
    with pytest.warns(DataWarning, match="CleanLabel changes nothing"):
        CleanLabel(["b"], target=[1.0, 1.0], label=7.0)(some_data())
    with pytest.raises(ValueError, match="label must be"):
        CleanLabel(["b"], target=[1.0, 1.0], label=np.nan)
