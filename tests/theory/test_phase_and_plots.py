"""The phase diagram and the pictures."""

import sys

import numpy as np
import pytest

from nefele.theory import (
    critical_lambda,
    phase_diagram,
    plot_critical_flow,
    plot_phase,
    plot_slack,
    well_connected,
)
from tests.theory.problems import planted, random_regression


@pytest.fixture(scope="module")
def diagram():
    return phase_diagram([0.0, 0.003, 0.1], [0.3, 1.0], n=40, runs=3, seed=1)


def test_what_is_predicted_is_observed(diagram):
    assert diagram.predicted.shape == diagram.observed.shape == diagram.mse.shape == (3, 2)
    assert (diagram.predicted <= diagram.observed).all()
    assert diagram.predicted[0].min() == 1.0 and diagram.predicted[2].max() == 0.0
    assert diagram.mse[0].max() < 1e-6 < diagram.mse[2].max()


def test_more_edges_between_the_clusters_hurt(diagram):
    assert diagram.observed[0].mean() > diagram.observed[2].mean()


def test_same_seed_same_diagram():
    args = dict(p_out=[0.02], fraction=[0.5], n=12, runs=2, noise=0.1)
    first, second = phase_diagram(**args, seed=3), phase_diagram(**args, seed=3)
    assert np.array_equal(first.mse, second.mse)
    assert not np.array_equal(first.mse, phase_diagram(**args, seed=4).mse)


def test_phase_errors():
    with pytest.raises(ValueError, match="n must be even"):
        phase_diagram(n=13)
    with pytest.raises(ValueError, match=r"p_out must hold numbers in \[0, 1\]"):
        phase_diagram([1.5])
    with pytest.raises(ValueError, match="fraction must be > 0"):
        phase_diagram([0.0], [0.5, 0.0], n=8)
    with pytest.raises(ValueError, match="norm of all parameters"):
        phase_diagram([0.0], [1.0], n=8, penalty="squared_l2")
    with pytest.raises(ValueError, match="runs must be an integer >= 1"):
        phase_diagram(runs=0)


def test_critical_flow_shows_each_edge():
    problem = random_regression(0, "l2", n=6, density=0.4)
    found = critical_lambda(problem)
    ax = plot_critical_flow(found, problem)
    lines = ax.collections[0]
    assert len(lines.get_segments()) == problem.graph.n_edges
    assert lines.get_array().max() == pytest.approx(1.0)
    place = np.random.default_rng(0).random((6, 2))
    own = plot_critical_flow(found, problem, positions=place)
    assert np.allclose(own.collections[1].get_offsets(), place)


def test_slack_shows_each_cluster():
    problem, label = planted(0, "l2")
    found = well_connected(problem, label)
    ax = plot_slack(found)
    heights = [bar.get_height() for bar in ax.patches]
    assert len(heights) == len(found.slack)
    assert (np.sign(heights) == np.sign(found.slack)).all()


def test_phase_shows_both(diagram):
    axes = plot_phase(diagram)
    shown = [ax.images[0].get_array() for ax in axes]
    assert np.array_equal(shown[0], diagram.predicted)
    assert np.array_equal(shown[1], diagram.observed)


def test_plot_errors(diagram):
    problem = random_regression(0, "l2", n=6)
    found = critical_lambda(problem)
    with pytest.raises(ValueError, match="found must be a WellConnected; got PhaseDiagram"):
        plot_slack(diagram)
    with pytest.raises(ValueError, match="problem must have"):
        plot_critical_flow(found, random_regression(0, "l2", n=9))
    with pytest.raises(ValueError, match=r"positions must have shape \(6, 2\)"):
        plot_critical_flow(found, problem, positions=np.zeros((5, 2)))
    smooth = random_regression(0, "squared_l2", n=6)
    with pytest.raises(ValueError, match="no finite critical lam"):
        plot_critical_flow(critical_lambda(smooth), smooth)
    with pytest.raises(ValueError, match="two matplotlib Axes"):
        plot_phase(diagram, axes=[plot_phase(diagram)[0]])


def test_missing_matplotlib_says_what_to_install(diagram, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "nefele\[plot\]"'):
        plot_phase(diagram)
