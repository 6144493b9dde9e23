"""Feature maps: scikit-learn's checks, and what each of them must do."""

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from nefele.privacy.maps import (
    AddNoise,
    CourseMap,
    KAnonymous,
    RemoveAttribute,
    plot_cells,
    plot_removed,
    what_remains,
)

matplotlib.use("agg")

MAPS_LINEAR = (RemoveAttribute, CourseMap)


@parametrize_with_checks([RemoveAttribute(), CourseMap(), KAnonymous()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_scikit_learns_checks_of_noise():
    # Those that compare two calls do not apply: each draws anew.
    check_estimator(AddNoise(), on_skip=None)


def rows(n, d=5, seed=0):
    """Features of unlike units of which some follow a private number."""
    rng = np.random.default_rng(seed)
    secret = rng.normal(size=n)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    X[:, 0] += 3 * secret
    X[:, 1] -= secret
    return X * 10.0 ** np.arange(-2, d - 2), secret


def linear_r2(train, test, secret_train, secret_test):
    return LinearRegression().fit(train, secret_train).score(test, secret_test)


@pytest.mark.parametrize("kind", [RemoveAttribute, CourseMap])
def test_no_linear_model_reads_the_attribute(kind):
    X, secret = rows(40_000)
    new, hidden = rows(40_000, seed=1)
    X, secret, new, hidden = X[:20_000], secret[:20_000], X[20_000:], secret[20_000:]
    model = kind().fit(X, secret)
    assert linear_r2(X, new, secret, hidden) > 0.3
    assert linear_r2(model.transform(X), model.transform(new), secret, hidden) <= 1e-3
    assert linear_r2(model.transform(new), model.transform(new), hidden, hidden) <= 1e-3


def test_leace_moves_rows_least():
    X, secret = rows(5000)
    X = X / X.std(axis=0)
    leace, course = (((k().fit_transform(X, secret) - X) ** 2).mean() for k in MAPS_LINEAR)
    assert leace < course
    # Any other map with the same null space of the cross-covariance moves them more.
    model, rng = RemoveAttribute().fit(X, secret), np.random.default_rng(2)
    s = ((X - X.mean(0)).T @ (secret - secret.mean())) / len(X)
    for _ in range(20):
        way = rng.normal(size=5)
        other = np.eye(5) - np.outer(s, way) / (way @ s)
        moved = (X - X.mean(0)) @ other.T - (X - X.mean(0))
        assert (moved**2).mean() >= ((model.transform(X) - X) ** 2).mean() - 1e-12


def test_the_course_map_is_the_formula():
    X, secret = rows(300)
    s = ((X - X.mean(0)).T @ (secret - secret.mean()))[:, None]
    F = np.eye(5) - s @ np.linalg.pinv(s)
    np.testing.assert_allclose(CourseMap().fit_transform(X, secret), X @ F.T, atol=1e-9)


def test_a_difference_of_nearly_equal_features_hides_nothing():
    rng = np.random.default_rng(0)
    base, secret = rng.normal(size=4000), rng.normal(size=4000)
    X = np.column_stack([base, base + 1e-5 * secret])
    Z = RemoveAttribute().fit_transform(X, secret)
    assert linear_r2(X - X.mean(0), X - X.mean(0), secret, secret) > 0.99
    assert np.corrcoef(Z[:, 1] - Z[:, 0], secret)[0, 1] ** 2 < 1e-3


def test_classes_and_several_attributes():
    X, secret = rows(6000)
    label = np.where(secret > 0.5, "c", np.where(secret < -0.5, "a", "b"))
    Z = RemoveAttribute().fit_transform(X, label)
    for one in "abc":
        np.testing.assert_allclose(Z[label == one].mean(0), X.mean(0), rtol=1e-6, atol=1e-6)
    both = np.column_stack([secret, secret**2])
    Z = RemoveAttribute().fit_transform(X, both)
    cross = (Z - Z.mean(0)).T @ (both - both.mean(0)) / len(Z)
    assert np.abs(cross / X.std(0)[:, None]).max() < 1e-9


@pytest.mark.parametrize("attribute", ["age", ["age"], 1])
def test_the_attribute_as_a_column_leaves_y_to_the_target(attribute):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"wage": rng.normal(size=200), "age": rng.normal(size=200)})
    table["wage"] += table["age"]
    y = table["wage"] * 2
    model = make_pipeline(RemoveAttribute(attribute), LinearRegression()).fit(table, y)
    Z = model[0].transform(table)
    np.testing.assert_allclose(Z[:, 1], table["age"].mean(), atol=1e-12)
    assert abs(np.corrcoef(Z[:, 0], table["age"])[0, 1]) < 1e-12


@pytest.mark.parametrize("attribute", ["wages", 2, -1, 0.5, True])
def test_an_attribute_that_is_no_column(attribute):
    table = pd.DataFrame({"wage": [1.0, 2.0, 3.0], "age": [1.0, 0.0, 1.0]})
    with pytest.raises(ValueError, match="attribute must name columns of X"):
        RemoveAttribute(attribute).fit(table)


def test_what_has_nothing_to_remove_stays():
    X = np.random.default_rng(0).normal(size=(50, 3))
    for kind in MAPS_LINEAR:
        np.testing.assert_allclose(kind().fit_transform(X, np.ones(50)), X, atol=1e-12)


def test_noise_has_the_deviation_asked_for_and_is_drawn_anew():
    model = AddNoise(0.5).fit(np.zeros((4, 2)))
    first, second = model.transform(np.zeros((50_000, 2))), model.transform(np.zeros((50_000, 2)))
    assert abs(first.std() - 0.5) < 0.01 and (first != second).all()
    with pytest.raises(ValueError, match="sigma must be finite and >= 0"):
        AddNoise(-1.0).fit(np.zeros((4, 2)))


def table(seed):
    """A random table with numbers, heavy ties, categories, duplicates, and a column of ids."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 120))
    made = pd.DataFrame(
        {
            "id": [f"p{i}" for i in rng.permutation(n)],
            "age": rng.integers(18, 80, n),
            "wage": rng.lognormal(size=n),
            "zero": rng.choice([0.0, 1.0], n, p=[0.9, 0.1]),
            "town": rng.choice(list("abcdefgh"), n),
            "left": rng.random(n) < 0.5,
        }
    )
    made = made[rng.permutation(made.columns)[: int(rng.integers(1, 7))]]
    if rng.random() < 0.5:  # duplicates
        made = pd.concat([made, made.iloc[rng.integers(0, n, n)]], ignore_index=True)
    return made, int(rng.integers(1, min(n, 12) + 1))


@pytest.mark.parametrize("seed", range(200))
def test_every_cell_has_k_rows(seed):
    made, k = table(seed)
    model = KAnonymous(k).fit(made)
    Z = pd.DataFrame(model.transform(made), columns=made.columns)
    assert Z.groupby(list(Z.columns)).size().min() >= k
    cells = model.cells(made)
    assert np.array_equal(np.bincount(cells), model.sizes_) and model.sizes_.min() >= k
    equal = made.groupby(list(made.columns)).ngroup().to_numpy()
    assert all(len(set(cells[equal == g])) == 1 for g in np.unique(equal))


def test_cells_are_small_where_rows_allow_it():
    X = np.random.default_rng(0).normal(size=(1000, 3))
    model = KAnonymous(10).fit(X)
    assert model.sizes_.max() < 20 and model.n_cells_ > 50
    Z = model.transform(X)
    assert ((X - Z) ** 2).mean() < 0.5 * X.var()
    np.testing.assert_allclose(Z.mean(0), X.mean(0), atol=1e-9)


def test_categories_are_listed_or_starred():
    X = pl.DataFrame(
        {"town": ["a", "b"] * 5 + ["c", "d", "e", "f", "g"], "n": [0.0] * 10 + [9.0] * 5}
    )
    Z = KAnonymous(5).fit_transform(X)
    assert set(Z[:10, 0]) <= {"a", "b", "a|b"} and set(Z[10:, 0]) == {"*"}
    assert Z[0, 1] == 0.0 and Z[-1, 1] == 9.0
    new = KAnonymous(5).fit(X).transform(pl.DataFrame({"town": ["zz"], "n": [8.0]}))
    assert new[0].tolist() == ["*", 9.0]


def test_too_few_rows():
    with pytest.raises(ValueError, match=r"at least k = 5 rows.*n_samples=4. Lower k"):
        KAnonymous(5).fit(np.zeros((4, 2)))
    with pytest.raises(ValueError, match="k must be an integer >= 1"):
        KAnonymous(0).fit(np.zeros((4, 2)))


@pytest.mark.parametrize("gap", [None, np.nan, np.inf])
def test_gaps_in_tables_are_refused(gap):
    made = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": pd.Series(["x", gap, "y"], dtype=object)})
    with pytest.raises(ValueError, match="b has some, the first in row 1"):
        KAnonymous(1).fit(made)


def test_what_remains_of_a_number_and_of_a_class():
    rng = np.random.default_rng(0)
    secret = rng.normal(size=3000)
    # The square follows the attribute but no linear model sees it.
    X = np.column_stack([secret + rng.normal(size=3000), secret**2])
    Z = RemoveAttribute().fit_transform(X, secret)
    found = what_remains(Z, secret, before=X)
    assert abs(found.linear.value) < 0.01 < 0.4 < found.before.linear.value
    assert found.k == found.l == 1 and found.metric == "R2"
    label = np.where(np.abs(secret) > 0.7, "far", "near")
    found = what_remains(Z, label)
    assert found.metric == "AUC" and found.forest.value > 0.9
    assert "a forest AUC" in str(found) and found.plot().get_ylabel().startswith("AUC")


def test_k_and_l_of_a_map_by_cells():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(20, 60, 300), "town": rng.choice(list("abc"), 300)})
    ill = rng.random(300) < 0.3
    Z = KAnonymous(20).fit_transform(X)
    found = what_remains(Z, ill, before=X)
    assert found.k >= 20 and found.l == 2 and found.before.k < 20
    assert "20" in str(found) or found.k > 20


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (lambda: what_remains(np.zeros((30, 1)), np.zeros(29)), "one value per row"),
        (lambda: what_remains(np.zeros((5, 1)), np.zeros(5)), "at least 20 rows"),
        (lambda: what_remains(np.zeros((30, 1)), ["a"] * 30), "at least 2 classes"),
        (lambda: what_remains(np.zeros((30, 1)), ["a"] * 30, kind="odd"), "kind of attribute"),
    ],
)
def test_bad_input_of_what_remains(bad, text):
    with pytest.raises(ValueError, match=text):
        bad()


def test_pictures():
    X, secret = rows(100)
    X = X[:, :2]
    Z = RemoveAttribute().fit_transform(X, secret)
    before, after = plot_removed(X, Z, secret)
    assert len(before.texts) == 1 and len(after.texts) == 0  # the arrow is gone
    label = np.where(secret > 0, "yes", "no")
    assert len(plot_removed(X, Z, label)[0].get_legend().get_texts()) == 2
    one = KAnonymous(10).fit(X[:, :1])
    drawn = plot_cells(one, X[:, :1])
    assert f"{one.n_cells_} cells" in drawn.get_title()
    with pytest.raises(ValueError, match="one feature"):
        plot_cells(KAnonymous(10).fit(X), X)
    matplotlib.pyplot.close("all")


def test_a_rare_class_is_in_both_halves():
    rng = np.random.default_rng(0)
    rare = np.zeros(60, dtype=int)
    rare[:2] = 1
    found = what_remains(rng.normal(size=(60, 2)), rare, kind="classes")
    assert "AUC" in str(found)
    with pytest.raises(ValueError, match=r"2 classes with 2 rows .* \[59, 1\] rows"):
        what_remains(rng.normal(size=(60, 2)), (np.arange(60) == 0).astype(int), kind="classes")


def test_k_anonymous_refuses_every_kind_of_gap():
    for gap in (pd.NaT, pd.NA, None, np.nan):
        table = pd.DataFrame({"a": pd.Series(["u", "v", "u", gap] * 3, dtype=object)})
        with pytest.raises(ValueError, match="missing values"):
            KAnonymous(k=2).fit(table)
