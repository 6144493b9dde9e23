"""Networks of torch as scikit-learn models, alone and among the local models of FedRelax."""

import copy
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from nefele.agnostic import FedRelaxClassifier, FedRelaxRegressor
from nefele.agnostic.torch_model import TorchClassifier, TorchRegressor
from tests.agnostic.data import GRAPH, SHARED, classifier, fedrelax, rows
from tests.agnostic.nets import EXACT, N_NODES, line, small, two_clusters


def flat_line(n_features):
    return nn.Linear(n_features, 1, bias=False)


def wave(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


# -- scikit-learn's own checks ----------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        TorchRegressor(lr=0.1, epochs=30, **EXACT),
        TorchClassifier(lr=0.1, epochs=20, **EXACT),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- one network ------------------------------------------------------------------------------


def test_a_linear_network_is_least_squares():
    X, y = wave()
    weight = np.random.default_rng(1).uniform(0, 3, len(y))
    model = TorchRegressor(line, optimizer="lbfgs", lr=1.0, epochs=30, **EXACT)
    design = np.column_stack([X, np.ones(len(X))]) * np.sqrt(weight)[:, None]
    best = np.linalg.lstsq(design, y * np.sqrt(weight), rcond=None)[0]
    found = model.fit(X, y, sample_weight=weight).module_
    np.testing.assert_allclose(found.weight.detach()[0], best[:2], atol=1e-7)
    np.testing.assert_allclose(found.bias.detach()[0], best[2], atol=1e-7)


def test_weight_decay_is_ridge():
    X, y = wave()
    model = TorchRegressor(
        flat_line, optimizer="lbfgs", lr=1.0, epochs=30, weight_decay=0.4, **EXACT
    ).fit(X, y)
    ridge = Ridge(alpha=0.2 * len(y), fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.module_.weight.detach()[0], ridge.coef_, atol=1e-7)


@pytest.mark.parametrize("batch_size", [None, 16])
def test_weights_are_repeated_rows(batch_size):
    X, y = wave()
    weight = np.zeros(len(y))
    weight[:30], weight[30:40] = 1.0, 3.0
    options = {"lr": 0.02, "epochs": 150, "batch_size": batch_size, **EXACT}
    weighted = TorchRegressor(small, **options).fit(X, y, sample_weight=weight)
    times = weight.astype(int)
    repeated = TorchRegressor(small, **options).fit(np.repeat(X, times, 0), np.repeat(y, times))
    plain = TorchRegressor(small, **options).fit(X, y)
    gap = np.abs(weighted.predict(X) - repeated.predict(X)).max()
    assert gap < (1e-6 if batch_size is None else 0.5)
    assert np.abs(weighted.predict(X) - plain.predict(X)).max() > 2 * gap


def test_batches_reach_what_all_rows_reach():
    X, y = wave(n=200)
    scores = [
        TorchRegressor(lr=0.02, epochs=60, batch_size=size, random_state=0).fit(X, y).score(X, y)
        for size in (None, 32)
    ]
    assert scores[1] > 0.95 and scores[1] > scores[0]


def test_seeds_decide_and_nothing_else():
    X, y = wave()
    options = {"epochs": 10, "batch_size": 8}
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    one = TorchRegressor(random_state=3, **options).fit(X, y).predict(X)
    assert torch.equal(state, torch.get_rng_state()) and threads == torch.get_num_threads()
    torch.manual_seed(99)
    two = TorchRegressor(random_state=3, **options).fit(X, y).predict(X)
    other = TorchRegressor(random_state=4, **options).fit(X, y).predict(X)
    np.testing.assert_array_equal(one, two)
    assert np.abs(one - other).max() > 1e-3


def test_partial_fit_goes_on_where_fit_ended():
    X, y = wave()
    options = {"optimizer": "sgd", "lr": 0.05, **EXACT}
    whole = TorchRegressor(small, epochs=60, **options).fit(X, y)
    parts = TorchRegressor(small, epochs=20, **options)
    for _ in range(3):
        parts.partial_fit(X, y)
    np.testing.assert_allclose(parts.predict(X), whole.predict(X), atol=1e-12)
    warm = TorchRegressor(small, epochs=30, warm_start=True, **options).fit(X, y).fit(X, y)
    np.testing.assert_allclose(warm.predict(X), whole.predict(X), atol=1e-12)
    cold = TorchRegressor(small, epochs=30, **options).fit(X, y)
    np.testing.assert_array_equal(cold.predict(X), cold.fit(X, y).predict(X))


def test_partial_fit_knows_classes_to_come():
    X, y = wave()
    label = np.where(y > 0, "up", "down")
    model = TorchClassifier(small, random_state=0)
    model.partial_fit(X[y > 0], label[y > 0], classes=["down", "flat", "up"])
    assert model.predict_proba(X).shape == (60, 3)
    assert model.partial_fit(X, label).classes_.tolist() == ["down", "flat", "up"]
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(X, label, classes=["down", "up"])


def test_a_module_is_copied_and_a_single_logit_will_do():
    X, y = wave()
    torch.manual_seed(0)  # the first weights are drawn here, whatever random_state is
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 1))
    before = copy.deepcopy(net.state_dict())
    model = TorchClassifier(net, lr=0.05, random_state=0).fit(X, y > 0)
    assert all(torch.equal(before[name], value) for name, value in net.state_dict().items())
    assert model.score(X, y > 0) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, atol=1e-6)


def test_own_losses_and_optimisers():
    X, y = wave()
    y = np.where(np.arange(len(y)) % 10 == 0, 30.0, y)
    robust = TorchRegressor(small, loss=lambda z, t: (z - t).abs(), lr=0.05, random_state=0)
    name = TorchRegressor(small, loss="absolute", lr=0.05, random_state=0)
    np.testing.assert_array_equal(robust.fit(X, y).predict(X), name.fit(X, y).predict(X))
    assert np.median(np.abs(robust.predict(X) - y)) < 0.5
    own = TorchRegressor(small, optimizer=torch.optim.Rprop, lr=0.01, random_state=0)
    assert own.fit(*wave()).score(*wave()) > 0.8


def test_early_stopping():
    X, y = wave()
    model = TorchRegressor(line, lr=0.1, epochs=2000, early_stop=5, random_state=0).fit(X, y)
    assert model.n_iter_ < 400 and len(model.loss_curve_) == model.n_iter_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"module": nn.Linear(3, 1)}, "module must take rows of 2 features"),
        ({"module": nn.Linear(2, 4)}, r"must give 1 output\(s\) per row.* gave shape \(2, 4\)"),
        ({"module": lambda d: "net"}, "makes one .*; got str"),
        ({"optimizer": "adem"}, 'Did you mean "adam"?'),
        ({"optimizer": "lbfgs", "batch_size": 4}, '"lbfgs" needs all rows at once'),
        ({"loss": "cross_entropy"}, 'No loss "cross_entropy"'),
        ({"lr": 0.0}, "lr must be finite and > 0"),
        ({"dtype": "float16"}, 'No dtype "float16"'),
        ({"lr": 1e30, "optimizer": "sgd"}, r"Training diverged.*Lower lr \(1e\+30\)"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        TorchRegressor(**options).fit(*wave())


def test_clone_pickle_search_and_pipelines():
    X, y = wave()
    model = clone(TorchRegressor(small, epochs=20, random_state=0)).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    pipeline = make_pipeline(StandardScaler(), TorchRegressor(small, epochs=40, random_state=0))
    search = GridSearchCV(pipeline, {"torchregressor__lr": [1e-5, 0.05]}, cv=2).fit(X, y)
    assert search.best_params_["torchregressor__lr"] == 0.05


WITHOUT = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch())
import numpy as np
from nefele.agnostic import FedRelaxRegressor
import nefele.cli, nefele.baselines, nefele.report, nefele.runtime
X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0)
FedRelaxRegressor(random_state=0).fit(X, y).predict(X)
for name in ("agnostic.torch_model", "networks.estimators"):
    try:
        __import__(f"nefele.{name}")
    except ImportError as error:
        print(error)
"""


def test_everything_else_works_without_torch():
    out = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert out.stdout.count('Networks of torch need torch: pip install "nefele[torch]".') == 2


# -- inside FedRelax --------------------------------------------------------------------------


TORCH = {"lr": 0.02, "epochs": 60, "warm_start": True}
REGRESSORS = [
    TorchRegressor(small, **TORCH),
    Ridge(),
    DecisionTreeRegressor(min_samples_leaf=3, random_state=0),
    KNeighborsRegressor(3),
]
CLASSIFIERS = [
    TorchClassifier(small, **TORCH),
    LogisticRegression(),
    DecisionTreeClassifier(min_samples_leaf=3, random_state=0),
    KNeighborsClassifier(3),
]


@pytest.mark.parametrize("classes", [False, True], ids=["regression", "classification"])
def test_torch_among_other_models_gains_from_its_neighbours(classes):
    """Better than local models on all nodes together, and on the torch nodes by themselves."""
    method = FedRelaxClassifier if classes else FedRelaxRegressor
    models = {i: (CLASSIFIERS if classes else REGRESSORS)[i % 4] for i in range(N_NODES)}
    seeds, better, torch_better = (3 if classes else 5), 0, 0
    for seed in range(seeds):
        graph, (X, y, node), (X_test, y_test, node_test) = two_clusters(seed, classes)
        options = {"graph": graph, "X_shared": "uniform", "n_shared": 60, "rounds": 5, "tol": None}
        off = {}
        for alpha in (0.0, 0.1):
            model = method(models, alpha=alpha, random_state=0, **options)
            found = model.fit(X, y, node_ids=node).predict(X_test, node_ids=node_test)
            off[alpha] = (found != y_test) if classes else (found - y_test) ** 2
        mine = node_test % 4 == 0
        better += off[0.1].mean() < off[0.0].mean()
        torch_better += off[0.1][mine].mean() < off[0.0][mine].mean()
    assert better >= seeds - 1 and torch_better >= seeds - 1


def test_linear_torch_models_agree_with_linear_regression():
    X, y = rows()
    exact = TorchRegressor(line, optimizer="lbfgs", lr=1.0, epochs=4, warm_start=True, **EXACT)
    options = {"alpha": 0.3, "rounds": 30, "tol": None}
    one = fedrelax(exact, **options).fit(X, y)
    two = fedrelax(**options).fit(X, y)
    np.testing.assert_allclose(one.predict(X), two.predict(X), atol=1e-6)


def squares(h, p):
    return (h - p) ** 2


def test_own_discrepancy_equal_to_the_squared_one():
    """The same minimiser as pseudo-labelled rows, reached by another way."""
    X, y = rows()
    exact = TorchRegressor(line, optimizer="lbfgs", lr=1.0, epochs=3, warm_start=True, **EXACT)
    options = {"alpha": 0.3, "rounds": 6, "tol": None}
    own = fedrelax(exact, discrepancy=squares, **options).fit(X, y)
    named = fedrelax(exact, **options).fit(X, y)
    np.testing.assert_allclose(own.predict(X), named.predict(X), atol=1e-6)
    assert own.history_[-1].objective == pytest.approx(named.history_[-1].objective, rel=1e-6)


def test_own_discrepancy_is_made_symmetric():
    """d(h, p) = (h - p)^2 + h - p has the same mean of both ways round as the squared one."""
    X, y = rows()
    exact = TorchRegressor(line, optimizer="lbfgs", lr=1.0, epochs=4, **EXACT)
    options = {"alpha": 0.3, "rounds": 3, "tol": None}
    lop = fedrelax(exact, discrepancy=lambda h, p: (h - p) ** 2 + h - p, **options).fit(X, y)
    even = fedrelax(exact, discrepancy=squares, **options).fit(X, y)
    np.testing.assert_allclose(lop.predict(X), even.predict(X), atol=1e-6)


def test_own_discrepancy_of_probabilities():
    X, y = rows(classes=3)

    def hellinger(h, p):
        return (((h + 1e-6).sqrt() - (p + 1e-6).sqrt()) ** 2).sum(dim=1)

    apart = []
    for alpha in (0.01, 10.0):
        model = classifier(
            TorchClassifier(small, lr=0.05, epochs=30, warm_start=True),
            discrepancy=hellinger,
            schedule="gauss-seidel",
            alpha=alpha,
            rounds=4,
            tol=None,
        ).fit(X, y)
        p = np.array([model.estimators_[town].predict_proba(SHARED) for town in GRAPH.ids])
        apart.append(np.abs(GRAPH.diff(p.reshape(len(p), -1))).mean())
    assert apart[1] < 0.5 * apart[0]
    assert model.estimators_["Kemi"].classes_.tolist() == ["low", "mid", "top"]  # has no rows


def test_own_discrepancy_is_for_torch_only():
    X, y = rows()
    models = {"Oulu": TorchRegressor(line, epochs=1), None: Ridge()}
    message = "A function as discrepancy needs torch models at all nodes.*Ridge"
    with pytest.raises(ValueError, match=message):
        fedrelax(models, discrepancy=squares).fit(X, y)


def test_own_discrepancy_gives_one_number_per_row():
    with pytest.raises(ValueError, match=r"one number per shared row, shape \(40,\); got \(\)"):
        fedrelax(TorchRegressor(line, epochs=1), discrepancy=lambda h, p: ((h - p) ** 2).sum()).fit(
            *rows()
        )


def test_fedrelax_of_torch_models_is_decided_by_its_seed():
    X, y = rows()
    model = fedrelax(TorchRegressor(small, epochs=5, batch_size=8), rounds=2, tol=None)
    one, two = (clone(model).fit(X, y).predict(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    with joblib.parallel_config("threading"):
        np.testing.assert_array_equal(clone(model).set_params(n_jobs=2).fit(X, y).predict(X), one)
    other = clone(model).set_params(random_state=1).fit(X, y).predict(X)
    assert np.abs(one - other).max() > 1e-3


class KerasLike(RegressorMixin, BaseEstimator):
    """As a scikit-learn wrapper of Keras: own cloning, predictions of shape (n_rows, 1)."""

    def __init__(self, model, warm_start=False):
        self.model = model
        self.warm_start = warm_start

    def __sklearn_clone__(self):
        return type(self)(self.model, self.warm_start)

    def fit(self, X, y, sample_weight=None):
        self.model_ = self.model().fit(X, y, sample_weight=sample_weight)
        return self

    def predict(self, X):
        return self.model_.predict(X)[:, None]


def test_wrappers_that_predict_a_column():
    X, y = rows()
    options = {"alpha": 0.3, "rounds": 10, "tol": None}
    column = fedrelax({"Oulu": KerasLike(Ridge), None: Ridge()}, **options).fit(X, y)
    plain = fedrelax(Ridge(), **options).fit(X, y)
    np.testing.assert_allclose(column.predict(X), plain.predict(X), atol=1e-12)
