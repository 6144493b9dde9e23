"""NFL, Sec. VI-E and Table III: temperatures at 203 Finnish stations, solved exactly."""

import numpy as np
import pytest

from nefele import Problem, solve
from tests.paper.instances import Weather, fmi_path, validation_error


@pytest.fixture(scope="module")
def weather():
    return Weather(fmi_path())


@pytest.fixture(scope="module")
def network(weather):
    return weather.graph()


def test_network_has_the_known_size(weather, network):
    assert network.n_nodes == 203
    assert sorted({len(y) for y in weather.y}) == [24, 27]
    assert network.n_edges == 3254
    assert int((network.degree == 0).sum()) == 2
    assert weather.graph(eta=1.0).n_edges == 364
    assert weather.graph(eta=20.0).n_edges == 9535


@pytest.mark.parametrize(
    ("penalty", "lam", "objective", "error"),
    [
        ("l1", 0.5, 1027.79462, 5.64470),
        ("l2", 0.5, 1022.10322, 5.66780),
        ("squared_l2", 1.0, 973.67144, 6.04276),  # ||v||^2 unhalved at lam = 1/2
    ],
)
def test_seed_zero(weather, network, penalty, lam, objective, error):
    train, test = weather.split(0)
    result = solve(Problem(network, train, penalty=penalty, lam=lam), tol=1e-7)
    assert result.gap <= 1e-6
    assert result.objective == pytest.approx(objective, rel=1e-6)
    assert validation_error(result.w, test) == pytest.approx(error, abs=2e-3)


def test_isolated_stations_keep_their_local_fit(weather, network):
    train, _ = weather.split(0)
    result = solve(Problem(network, train, penalty="l2", lam=0.5))
    for i in np.flatnonzero(network.degree == 0):
        rows = slice(train.ptr[i], train.ptr[i + 1])
        local = np.linalg.lstsq(train.X[rows], train.y[rows])[0]
        np.testing.assert_allclose(result.w[i], local, rtol=1e-6)


@pytest.mark.parametrize(
    ("penalty", "lam", "mean"),
    [("l1", 0.5, 5.433), ("l2", 0.5, 5.446), ("squared_l2", 1.0, 5.793), ("l2", 2.0, 5.352)],
)
def test_mean_over_five_splits(weather, network, penalty, lam, mean):
    errors = []
    for seed in range(5):
        train, test = weather.split(seed)
        result = solve(Problem(network, train, penalty=penalty, lam=lam))
        assert result.converged
        errors.append(validation_error(result.w, test))
    assert np.mean(errors) == pytest.approx(mean, abs=2e-3)


def test_local_mean_over_five_splits(weather, network):
    errors = []
    for seed in range(5):
        train, test = weather.split(seed)
        errors.append(validation_error(solve(Problem(network, train, lam=0.0)).w, test))
    assert np.mean(errors) == pytest.approx(6.584, abs=2e-3)
