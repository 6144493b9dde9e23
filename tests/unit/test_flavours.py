"""Each flavour against the fit it stands for."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from nefele import Graph, LocalData, solve
from nefele.baselines import local, oracle, pooled
from nefele.flavours import (
    centralised,
    clustered,
    decentralised,
    horizontal,
    personalised,
    vertical,
)


def table(n=6, m=8, d=2, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        X = rng.normal(size=(m + i, d))
        true = np.full(d, 2.0 if i < n // 2 else -2.0)
        rows.append((X, X @ true + 0.1 * rng.normal(size=m + i)))
    return LocalData.from_list(rows, nodes=[f"s{i}" for i in range(n)])


def ring(data):
    ids = data.ids.tolist()
    return Graph.from_edges(list(zip(ids, [*ids[1:], ids[0]], strict=True)), nodes=ids)


def test_centralised_and_decentralised_are_the_pooled_fit():
    data = table()
    goal = pooled(data).w[0]
    star = solve(centralised(data), tol=1e-10)
    np.testing.assert_allclose(star.w, np.tile(goal, (7, 1)), atol=1e-6)
    assert "server" in star.problem.graph.ids.tolist()
    around = solve(decentralised(data, ring(data)), tol=1e-10)
    np.testing.assert_allclose(around.w, np.tile(goal, (6, 1)), atol=1e-6)
    with pytest.raises(ValueError, match="centre must not be a node of the data; got 's1'"):
        centralised(data, centre="s1")


def test_clustered_finds_the_groups_and_nears_their_pooled_fits():
    data = table(m=30)
    labels = np.repeat([0, 1], 3)
    ids = data.ids.tolist()
    pairs = [(ids[a], ids[b]) for a in range(6) for b in range(a) if labels[a] == labels[b]]
    graph = Graph.from_edges([*pairs, (ids[0], ids[5])], nodes=ids)
    result = solve(clustered(data, graph, lam=0.3), tol=1e-9)
    assert result.clusters().tolist() == labels.tolist()
    assert np.abs(result.w - oracle(data, labels).w).max() < 0.2
    with pytest.raises(ValueError, match=r"needs a norm.*personalised"):
        clustered(data, graph, lam=0.3, penalty="squared_l2")


def test_personalised_goes_from_the_own_fits_to_one():
    data = table()
    own = local(data).w
    away = [
        np.abs(solve(personalised(data, ring(data), lam), tol=1e-9).w - own).max()
        for lam in (1e-6, 1e-2, 1.0)
    ]
    assert away[0] < 1e-4 < away[1] < away[2]


@pytest.mark.parametrize("sites", [2, 5])
def test_horizontal_is_the_fit_to_the_whole_table(sites):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    where = np.concatenate([np.arange(sites), rng.integers(0, sites, 40 - sites)])
    result = solve(horizontal(X, y, where), tol=1e-10)
    goal = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(result.w, np.tile(goal, (sites, 1)), atol=1e-5)


def exact_vertical(X, y, blocks, alpha, labelled):
    """argmin sum_i |y - X_i w_i|^2 + alpha sum_{i<j} |X_i w_i - X_j w_j|^2, by least squares."""
    m, parts = len(y), [np.c_[X[:, b], np.ones(len(y))] for b in blocks]
    at = np.cumsum([0, *(p.shape[1] for p in parts)])
    rows, right = [], []
    for i, P in enumerate(parts):
        if i in labelled:
            row = np.zeros((m, at[-1]))
            row[:, at[i] : at[i + 1]] = P
            rows.append(row)
            right.append(y)
        for j in range(i):
            row = np.zeros((m, at[-1]))
            row[:, at[i] : at[i + 1]], row[:, at[j] : at[j + 1]] = P, -parts[j]
            rows.append(np.sqrt(alpha) * row)
            right.append(np.zeros(m))
    w = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=None)[0]
    return [p @ w[a:b] for p, a, b in zip(parts, at[:-1], at[1:], strict=True)]


@pytest.mark.parametrize("labelled", [("a", "b", "c"), ("a", "c")])
def test_vertical_minimises_errors_and_disagreement(labelled):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 4))
    y = X @ [1.0, -1.0, 2.0, 0.5] + 0.1 * rng.normal(size=50)
    columns = {"a": [0, 1], "b": [2], "c": [1, 3]}
    model = vertical(X, y, columns, alpha=0.7, labelled=labelled, rounds=2000, tol=1e-10)
    known = ["abc".index(site) for site in labelled]
    goal = exact_vertical(X, y, list(columns.values()), 0.7, known)
    for site, expected in zip("abc", goal, strict=True):
        np.testing.assert_allclose(model.predict(X, node_ids=[site] * 50), expected, atol=1e-5)


def test_vertical_models_see_their_own_columns_only():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    model = vertical(X, X @ [1.0, 2.0], {"bank": [0], "shop": [1]})
    other = X.copy()
    other[:, 1] = 99.0
    bank = ["bank"] * 30
    assert (model.predict(X, node_ids=bank) == model.predict(other, node_ids=bank)).all()
    with pytest.raises(ValueError, match=r"columns of site 'shop' must be positions 0\.\.1"):
        vertical(X, X[:, 0], {"bank": [0], "shop": [2]})
    with pytest.raises(ValueError, match="labelled must name sites"):
        vertical(X, X[:, 0], {"bank": [0], "shop": [1]}, labelled=["barber"])


def test_chain_of_one_site():
    X, y = np.ones((3, 1)), np.array([0.0, 3.0, 6.0])
    assert solve(horizontal(X, y, ["a"] * 3)).w[0, 0] == pytest.approx(3.0)


def test_vertical_takes_masks_and_any_estimator():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 3))
    masks = {"bank": [True, True, False], "shop": [False, False, True]}
    forest = RandomForestRegressor(5, random_state=0)
    model = vertical(X, X[:, 2], masks, estimator=forest, rounds=2, tol=None)
    assert model.estimators_["shop"][0].transformers[0][2] == [2]
    with pytest.raises(ValueError, match=r"must be positions 0\.\.2; got \['a'\]"):
        vertical(X, X[:, 2], {"bank": ["a"], "shop": [2]})
