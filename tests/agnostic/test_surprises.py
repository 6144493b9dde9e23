"""What surprised new users of FedRelax and of the networks."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeRegressor
from torch import nn

from nefele import ConvergenceWarning, DataWarning, Graph, Problem, graphs
from nefele.agnostic import (
    FedRelaxClassifier,
    FedRelaxRegressor,
    TorchClassifier,
    TorchRegressor,
)
from nefele.data import LocalData
from nefele.networks import GTVNetRegressor
from nefele.runtime import Faults, relax_messages

PAIR = graphs.chain(2)
IDS = np.arange(20) % 2
X = np.random.default_rng(0).normal(size=(20, 1))
Y = X[:, 0] + 4 * IDS


def fedrelax(estimator=None, graph=PAIR, y=Y, ids=IDS, **options):
    options = {"rounds": 200, "tol": None, "random_state": 0, **options}
    return FedRelaxRegressor(estimator, graph=graph, **options).fit(X, y, node_ids=ids)


@pytest.mark.parametrize("schedule", ["jacobi", "gauss-seidel", "random"])
@pytest.mark.parametrize(
    "faults",
    [
        Faults(link_loss=1.0, until=1),
        Faults(link_loss=0.9, until=5, seed=3),
        Faults(node_dropout=1.0, until=20),
    ],
)
def test_lost_first_messages_are_said_again(faults, schedule):
    there = fedrelax(schedule=schedule)
    after = fedrelax(schedule=schedule, faults=faults)
    np.testing.assert_allclose(
        after.predict(X, node_ids=IDS), there.predict(X, node_ids=IDS), atol=1e-6
    )


@pytest.mark.parametrize("tol", [None, 1e-3])
def test_nodes_that_no_news_reached_are_named(tol):
    with pytest.warns(DataWarning, match=r"No news reached 3 nodes in 2 rounds, such as 3"):
        found = fedrelax(graph=graphs.chain(6), ids=np.zeros(20, int), rounds=2, tol=tol)
    assert not found.converged_


def test_a_loss_must_be_given_by_row():
    line = lambda d: nn.Linear(d, 1)  # noqa: E731
    with pytest.raises(ValueError, match=r"loss must give one number per row.*reduction=\"none\""):
        TorchRegressor(line, loss=nn.MSELoss(), epochs=1).fit(X, Y)
    with pytest.raises(ValueError, match="one number per row"):
        GTVNetRegressor(line, loss=nn.MSELoss(), graph=PAIR, rounds=1).fit(X, Y, node_ids=IDS)
    assert TorchRegressor(line, loss=nn.MSELoss(reduction="none"), epochs=1).fit(X, Y)


class Squeezed(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.line = nn.Linear(d, 1)

    def forward(self, x):
        return self.line(x).squeeze()


class Pair(nn.Linear):
    def forward(self, x):
        return super().forward(x), 0


def test_odd_networks_are_refused_before_work():
    with pytest.raises(ValueError, match=r"1 row\(s\) of 1 features gave shape \(\)"):
        TorchRegressor(Squeezed).fit(X, Y)
    with pytest.raises(ValueError, match="give one tensor; it failed"):
        TorchRegressor(lambda d: Pair(d, 1)).fit(X, Y)
    with pytest.raises(ValueError, match="parameters to train; got none"):
        TorchRegressor(lambda d: nn.Flatten()).fit(X, Y)
    with pytest.raises(ValueError, match="one for each class among its rows"):
        TorchClassifier(lambda d: nn.Linear(d, 3)).fit(X, Y > 2)


class Expired(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        raise ValueError("licence expired")


def test_only_a_single_class_makes_a_constant():
    y = np.where(IDS == 0, "a", np.where(X[:, 0] > 0, "a", "b"))
    plain = FedRelaxClassifier(LogisticRegression(), graph=PAIR, alpha=0.0).fit(X, y, node_ids=IDS)
    assert (plain.predict(X[:3], node_ids=[0] * 3) == "a").all()
    with pytest.raises(ValueError, match="licence expired"):
        FedRelaxClassifier({0: Expired(), None: LogisticRegression()}, graph=PAIR).fit(
            X, y, node_ids=IDS
        )


def test_typos_are_errors():
    names = np.array(["Oulu", "Kemi"])[IDS]
    roads = Graph.from_edges([("Oulu", "Kemi")])
    with pytest.raises(ValueError, match=r"unknown: 'oulu'\. Did you mean 'Oulu'"):
        fedrelax({"oulu": DecisionTreeRegressor(), None: Ridge()}, graph=roads, ids=names)
    with pytest.raises(ValueError, match="discrepancy"):
        fedrelax(discrepancy=("absolute", 3.0))
    data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    problem = Problem(PAIR, data, penalty="squared_l2", lam=1.0)
    with pytest.raises(ValueError, match=r"must be a nefele\.runtime\.Faults or None; got dict"):
        relax_messages(problem, 5, faults={"link_loss": 0.3})


def test_not_converged_is_a_warning():
    with pytest.warns(ConvergenceWarning, match="still change by"):
        assert not fedrelax(rounds=1, tol=1e-9).converged_
