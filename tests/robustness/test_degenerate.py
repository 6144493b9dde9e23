"""Data that determine little: few rows, constant or repeated columns, zeros, exact fits."""

import numpy as np
import pytest

from nefele import LocalData, Problem, solve
from nefele.losses import Absolute, Hinge, HuberLoss, Logistic, Multinomial, Poisson, Squared
from tests.reference.oracle import oracle
from tests.robustness.problems import PENALTIES, data, path, table


def fat(n):
    rng = np.random.default_rng(3)
    return [(rng.standard_normal((2, 4)), rng.standard_normal(2)) for _ in range(n)]


def single_rows(n):
    return [([[1.0, float(i)]], [float(i)]) for i in range(n)]


def constant_column(n):
    return [(np.column_stack([X[:, 0], np.full(len(X), 3.0)]), y) for X, y in table(n=n)]


def repeated_column(n):
    return [(X[:, [0, 0, 1]], y) for X, y in table(n=n)]


def zero_column(n):
    return [(X * [1.0, 0.0], y) for X, y in table(n=n)]


MAKERS = [fat, single_rows, constant_column, repeated_column, zero_column]


@pytest.mark.parametrize("make", MAKERS)
def test_local_fits_are_of_least_norm(make):
    rows = make(4)
    result = solve(Problem(path(4), LocalData.from_list(rows), lam=0.0))
    fits = [
        np.linalg.lstsq(np.asarray(X, float), np.asarray(y, float), rcond=None)[0] for X, y in rows
    ]
    assert result.converged
    np.testing.assert_allclose(result.w, fits, atol=1e-9)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", [Squared(), HuberLoss(), Absolute()], ids=repr)
@pytest.mark.parametrize("make", MAKERS)
def test_coupled_fits_agree_with_a_cone_solver(make, loss, penalty):
    problem = Problem(path(4), LocalData.from_list(make(4)), loss=loss, penalty=penalty, lam=0.2)
    result = solve(problem)
    _, best = oracle(problem.graph, problem.data, loss, problem.penalty, 0.2)
    assert result.converged
    assert result.objective <= best + 2e-6 * abs(best) + 1e-9
    assert result.objective - result.gap_abs <= best * (1 + 1e-8) + 1e-9


ONE_ROW = [
    (Squared(), 1.0),
    (HuberLoss(), 1.0),
    (Absolute(), 1.0),
    (Hinge(), 1.0),
    (Logistic(l2=0.1), 1.0),
    (Poisson(), 2.0),
    (Multinomial(3, l2=0.1), 1.0),
]


@pytest.mark.parametrize(("loss", "y"), ONE_ROW, ids=repr)
def test_one_row_in_all(loss, y):
    sets = LocalData.from_list([([[1.0, 2.0]], [y]), None, None])
    result = solve(Problem(path(3), sets, loss=loss, lam=1.0))
    assert result.converged and not result.undetermined.any()
    alone = solve(Problem(path(3), sets, loss=loss, lam=1e-3))
    assert result.objective == pytest.approx(alone.objective, abs=1e-6)


@pytest.mark.parametrize(("loss", "y"), ONE_ROW, ids=repr)
def test_features_that_are_all_zero(loss, y):
    sets = LocalData.from_list(3 * [(np.zeros((2, 2)), [y, y])])
    problem = Problem(path(3), sets, loss=loss, lam=1.0)
    result = solve(problem)
    assert result.converged and not result.w.any()
    assert result.objective == problem.objective_at_zero


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", [Squared(), HuberLoss(), Absolute()], ids=repr)
def test_labels_that_are_all_zero(loss, penalty):
    sets = data()
    problem = Problem(
        path(4), LocalData(sets.X, 0 * sets.y, sets.ptr), loss=loss, penalty=penalty, lam=1.0
    )
    result = solve(problem)
    assert result.converged and result.objective == 0.0 and result.gap == 0.0
    assert not result.w.any()


@pytest.mark.parametrize("loss", [Squared(), HuberLoss(), Absolute(), Poisson()], ids=repr)
def test_labels_that_are_constant(loss):
    sets = data()
    problem = Problem(path(4), LocalData(sets.X, 0 * sets.y + 2.0, sets.ptr), loss=loss, lam=0.5)
    result = solve(problem)
    _, best = oracle(problem.graph, problem.data, loss, problem.penalty, 0.5)
    assert result.converged and result.objective == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("lam", [0.0, 1.0])
@pytest.mark.parametrize("loss", [Squared(), HuberLoss(), Absolute()], ids=repr)
def test_noiseless_data_have_optimum_zero(loss, lam, penalty):
    """The relative gap is measured against objective(0), or it could never be reached."""
    sets = data()
    exact = LocalData(sets.X, sets.X @ [1.0, 2.0], sets.ptr)
    problem = Problem(path(4), exact, loss=loss, penalty=penalty, lam=lam)
    result = solve(problem)
    assert result.converged
    assert 0 <= result.objective <= 1e-11 * problem.objective_at_zero
    np.testing.assert_allclose(result.w, np.tile([1.0, 2.0], (4, 1)), atol=1e-4)
