"""The restricted likelihood against its definition, MixedLM, and differences."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from nefele import LocalData, graphs
from nefele.mixed.columns import Table
from nefele.mixed.components import Form, estimate
from nefele.mixed.coupling import Apart, Joined
from nefele.mixed.family import CORRELATED, SLOPES, Family
from nefele.mixed.likelihood import Likelihood
from nefele.mixed.response import Numbers
from nefele.mixed.statistics import Statistics
from tests.mixed.rows import grouped, long

NONE = np.array([-1, -1, -1])
COUPLINGS = {"centre": Apart(), "graph": Joined(graphs.chain(12), 0.9)}


def by_definition(data, personal, F, ridge, R):
    """Minus twice the log restricted likelihood, from the covariance of all rows."""
    n, p = data.n_nodes, len(personal)
    Z = np.zeros((data.n_rows, n * p))
    for r, i in enumerate(data.row_node):
        Z[r, i * p : (i + 1) * p] = data.X[r, personal]
    covariance = Z @ np.kron(np.linalg.inv(R), F @ F.T) @ Z.T + np.eye(data.n_rows)
    on = ridge > 0
    covariance += data.X[:, on] @ np.diag(1 / ridge[on]) @ data.X[:, on].T
    X = data.X[:, ~on]
    inverse = np.linalg.inv(covariance)
    M = X.T @ inverse @ X
    b = np.linalg.solve(M, X.T @ inverse @ data.y)
    rest = (data.y - X @ b) @ inverse @ (data.y - X @ b)
    free = data.n_rows - X.shape[1]
    return free * np.log(rest) + np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(M)[1]


@pytest.mark.parametrize("name", COUPLINGS)
def test_the_deviance_is_that_of_the_definition_up_to_a_constant(name):
    data = grouped(n=12, empty=(4,))
    personal, coupling = np.array([0, 2]), COUPLINGS[name]
    R = np.eye(12) if name == "centre" else coupling.R.toarray()
    likelihood = Likelihood(Statistics.of(data), personal, coupling)
    rng = np.random.default_rng(1)
    differences = []
    for _ in range(4):
        F, ridge = np.tril(rng.uniform(0.2, 2.0, (2, 2))), np.array([0.0, rng.uniform(1, 9), 0.0])
        found = likelihood(F, ridge).deviance
        differences.append(found - by_definition(data, personal, F, ridge, R))
    assert np.ptp(differences) < 1e-8


@pytest.mark.parametrize("name", COUPLINGS)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("noise", [None, 2.0])
def test_slopes_are_those_of_differences(name, full, noise):
    data = grouped(n=12)
    likelihood = Likelihood(Statistics.of(data), np.array([0, 1, 2]), COUPLINGS[name], noise)
    form = Form(3, full, np.array([0, 1, -1]))
    x = np.random.default_rng(2).uniform(0.3, 1.5, len(form.start(1.0)))
    found = form.slope(likelihood(form.F(x), form.ridge(x)))

    def deviance(x):
        return likelihood(form.F(x), form.ridge(x)).deviance

    steps = 1e-5 * np.eye(len(x))
    expected = [(deviance(x + h) - deviance(x - h)) / 2e-5 for h in steps]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_variances_are_those_of_mixedlm():
    data = grouped(n=60, rows=12)
    X, y, ids = long(data)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "node": ids})
    theirs = sm.MixedLM.from_formula("y ~ a + b", frame, groups="node", re_formula="~ a").fit()
    found = estimate(Likelihood(Statistics.of(data), np.array([2, 0])), Form(2, True, NONE))
    np.testing.assert_allclose(found.S, theirs.cov_re, rtol=0.01, atol=0.01 * found.S.max())
    np.testing.assert_allclose(found.model.s2, theirs.scale, rtol=0.01)
    expected = theirs.fe_params[["a", "b", "Intercept"]]
    np.testing.assert_allclose(found.model.b, expected, rtol=1e-3)


def test_no_variance_is_found_where_there_is_none():
    data = grouped(n=60, rows=12, deviations=(0.0, 0.0, 2.0))
    found = estimate(Likelihood(Statistics.of(data), np.array([0, 1, 2])), Form(3, False, NONE))
    deviation = np.sqrt(found.S.diagonal())
    assert (deviation[:2] < 0.25).all()
    assert 1.4 < deviation[2] < 2.8


def test_a_start_far_off_leads_to_the_same_components():
    likelihood = Likelihood(Statistics.of(grouped(n=60)), np.array([0, 1, 2]))
    form = Form(3, False, NONE)
    near = estimate(likelihood, form)
    for size in (1e-3, 20.0):
        far = estimate(likelihood, form, np.full(3, size))
        assert abs(far.model.deviance - near.model.deviance) < 1e-2


def test_a_target_without_any_variance_gives_numbers():
    data = grouped(n=5)
    flat = type(data)(data.X, np.zeros(data.n_rows), data.ptr)
    found = estimate(Likelihood(Statistics.of(flat), np.array([2])), Form(1, False, NONE))
    assert np.isfinite(found.model.b).all()


def test_correlated_slopes_are_never_less_likely_than_without_their_correlations():
    for seed in range(80, 120):
        rng = np.random.default_rng(seed)
        ids = np.repeat(np.arange(40), rng.integers(2, 20, 40))
        x = 5 + 2 * rng.normal(size=len(ids))
        b = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 0.3]], 40)
        y = 1 + b[ids, 0] + (b[ids, 1] + 0.5) * x + rng.normal(size=len(ids))
        table = Table(x[:, None], y, np.ones(len(y)), ids, 40, True, np.zeros(1, dtype=bool))
        family = Family(table, Numbers())
        family.choose()
        found = {t.name: t.fit.found for t in family.tried}
        assert found[CORRELATED].model.deviance < found[SLOPES].model.deviance + 0.1


@pytest.mark.parametrize("seed", range(5))
def test_the_first_step_to_correlations_never_lowers_the_likelihood(seed):
    likelihood = Likelihood(Statistics.of(grouped(seed, n=20)), np.array([0, 1, 2]))
    apart = estimate(likelihood, Form(3, False, NONE))
    full = Form(3, True, NONE)
    x = apart.correlated()
    assert likelihood(full.F(x), full.ridge(x)).deviance <= apart.model.deviance + 1e-6


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("size", [1e3, 1e5])
def test_deviations_far_above_the_noise_are_found(size, full):
    """Offsets of instruments: the moments of balanced nodes say what the components are."""
    rng = np.random.default_rng(3)
    level, slope = size * rng.normal(size=(2, 60))
    x = rng.permuted(np.tile(np.linspace(-1, 1, 12), (60, 1)), axis=1)
    y = level[:, None] + slope[:, None] * x + rng.normal(size=(60, 12))
    data = LocalData.from_list([(np.column_stack([x[i], np.ones(12)]), y[i]) for i in range(60)])
    likelihood = Likelihood(Statistics.of(data), np.array([0, 1]))
    found = estimate(likelihood, Form(2, full, np.array([-1, -1])))
    expected = [slope.std(ddof=1), level.std(ddof=1)]
    np.testing.assert_allclose(np.sqrt(found.S.diagonal()), expected, rtol=0.01)
    own = [np.polyfit(x[i], y[i], 1, full=True)[1][0] for i in range(60)]
    assert found.model.s2 == pytest.approx(sum(own) / 600, rel=0.02)


def test_a_fit_without_noise_finds_the_deviations():
    level = 2.0 * np.arange(20)
    data = LocalData.from_list([(np.ones((6, 1)), np.full(6, a - level.mean())) for a in level])
    found = estimate(Likelihood(Statistics.of(data), np.array([0])), Form(1, False, NONE[:1]))
    assert np.sqrt(found.S[0, 0]) == pytest.approx(level.std(ddof=1), rel=0.01)
    assert np.sqrt(found.model.s2) < 1e-4
