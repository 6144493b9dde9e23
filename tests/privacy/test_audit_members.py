"""Membership inference: sharp where models remember, a coin where they do not."""

import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

from nefele.privacy.audit import membership

matplotlib.use("agg")


def rows(n=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.ones(d) + rng.normal(size=n)


def squared(model, X, y):
    return lambda own: (model.fit(X[own], y[own]).predict(X) - y) ** 2


def test_a_model_that_remembers_is_read():
    X, y = rows()
    found = membership(squared(KNeighborsRegressor(1), X, y), 80, models=16)
    assert found.auc > 0.95 and found.caught > 0.5 and found.leaks


def test_few_rows_per_parameter_leak_more_than_many():
    few, many = rows(40, 15), rows(400, 3)
    leak = [membership(squared(Ridge(1e-3), X, y), len(y)).auc for X, y in (few, many)]
    assert leak[0] > 0.8 > 0.6 > leak[1] > 0.5


def test_losses_that_do_not_depend_on_the_rows_are_a_coin():
    far = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        found = membership(lambda own, rng=rng: rng.random(60), 60, models=16, seed=seed)
        far += abs(found.auc - 0.5) > 3 * found.auc_error
    assert far <= 1


def test_log_loss_of_a_classifier():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 20)), rng.random(60) < 0.5

    def losses(own):
        p = LogisticRegression(C=1e4, max_iter=2000).fit(X[own], y[own]).predict_proba(X)
        return -np.log(np.maximum(np.where(y, p[:, 1], p[:, 0]), 1e-12))

    found = membership(losses, 60, models=16)
    assert found.auc > 0.65 and found.leaks


def test_halves_are_drawn_within_groups():
    groups, seen = np.repeat([0, 1, 2], [20, 5, 1]), []
    membership(lambda own: seen.append(own) or np.arange(26.0), 26, models=8, groups=groups)
    for own in seen:
        counts = np.bincount(groups[own], minlength=3)
        assert counts[0] == 10 and counts[1] in (2, 3) and counts[2] in (0, 1)
    assert sorted([*seen[0], *seen[1]]) == list(range(26))


def test_the_sentence_and_the_picture():
    X, y = rows()
    found = membership(squared(KNeighborsRegressor(1), X, y), 80, models=8)
    assert "8 models of 80 rows" in str(found)
    assert found.plot().get_title() == f"AUC {found.auc:.3f}"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (dict(n_rows=5), "n_rows must be an integer >= 10"),
        (dict(models=4), "models must be an integer >= 8"),
        (dict(groups=[1, 2]), r"groups must have shape \(20,\)"),
        (dict(losses=lambda own: np.zeros(3)), "one per row; got shape"),
        (dict(losses=lambda own: np.full(20, np.nan)), "finite numbers"),
    ],
)
def test_bad_input(options, text):
    given = {"losses": lambda own: np.zeros(20), "n_rows": 20, **options}
    with pytest.raises(ValueError, match=text):
        membership(**given)
