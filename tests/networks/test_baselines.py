"""Every method against a loop over nodes written from its paper, on quadratic losses."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from nefele.networks.baselines import (  # noqa: E402
    APFL,
    Ditto,
    FedAMP,
    FedAvg,
    FedPer,
    FedProx,
    FedRep,
    Local,
    PerFedAvg,
    PersonalClassifier,
    PersonalRegressor,
    PFedMe,
    Pooled,
)

ROUNDS, STEPS, LR = 4, 4, 0.05
SIZES = (6, 9, 4)
IDS = np.repeat([0, 1, 2], SIZES)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((sum(SIZES), 2))
Y = X @ np.array([1.0, -2.0]) + np.array([0.0, 1.0, -1.0])[IDS] * X[:, 0] + 0.1
SHARE = np.array(SIZES) / sum(SIZES)


def line(n_features):
    return torch.nn.Linear(n_features, 1, bias=False)


def two_layers(n_features):
    return torch.nn.Sequential(
        torch.nn.Linear(n_features, 2, bias=False), torch.nn.Linear(2, 1, bias=False)
    )


def fitted(method, module=line, **changes):
    options = {"rounds": ROUNDS, "local_steps": STEPS, "lr": LR, "falling": False}
    options |= {"batch_size": None, "dtype": "float64", "random_state": 0, **changes}
    return PersonalRegressor(module, method=method, **options).fit(X, Y, node_ids=IDS)


def found(method, module=line, **changes):
    """Parameters of all nodes, and those that all begin with."""
    model = fitted(method, module, **changes)
    start = torch.cat([p.detach().reshape(-1) for p in model.module_.parameters()]).numpy()
    return model.parameters_, start


def grad(i, w):
    """Gradient of the mean squared error of node i."""
    rows, target = X[i == IDS], Y[i == IDS]
    return 2 * rows.T @ (rows @ w - target) / len(target)


def hessian(i):
    rows = X[i == IDS]
    return 2 * rows.T @ rows / len(rows)


def test_own_rows_only():
    got, start = found(Local())
    for i in range(3):
        w = start
        for _ in range(ROUNDS * STEPS):
            w = w - LR * grad(i, w)
        np.testing.assert_allclose(got[i], w, rtol=1e-10)


def test_pooled_reaches_least_squares_of_all_rows():
    got, _ = found(Pooled(), rounds=400)
    np.testing.assert_allclose(got, np.tile(np.linalg.lstsq(X, Y)[0], (3, 1)), rtol=1e-8)


@pytest.mark.parametrize("finetune", [0.0, 0.5])
@pytest.mark.parametrize("mu", [0.0, 0.7])
def test_fedavg_and_fedprox(finetune, mu):
    method = FedProx(finetune=finetune, mu=mu) if mu else FedAvg(finetune=finetune)
    got, server = found(method)
    common = round(ROUNDS * (1 - finetune))
    for _ in range(common):
        local = []
        for i in range(3):
            w = server
            for _ in range(STEPS):
                w = w - LR * (grad(i, w) + mu * (w - server))
            local.append(w)
        server = SHARE @ np.array(local)
    for i in range(3):
        w = server
        for _ in range((ROUNDS - common) * STEPS):
            w = w - LR * grad(i, w)
        np.testing.assert_allclose(got[i], w, rtol=1e-10)


def test_ditto():
    lam = 0.6
    got, server = found(Ditto(lam))
    own = np.tile(server, (3, 1))
    for _ in range(ROUNDS):
        local = []
        for i in range(3):
            w = server
            for _ in range(STEPS // 2):
                w = w - LR * grad(i, w)
            local.append(w)
            for _ in range(STEPS // 2):
                own[i] = own[i] - LR * (grad(i, own[i]) + lam * (own[i] - server))
        server = SHARE @ np.array(local)
    np.testing.assert_allclose(got, own, rtol=1e-10)


def test_ditto_ends_at_the_minimum_of_its_personal_objective():
    lam = 0.6
    got, _ = found(Ditto(lam), rounds=600, local_steps=2)
    server, _ = found(FedAvg(), rounds=600, local_steps=1)  # of one step: the pooled minimum
    for i in range(3):
        slope = grad(i, np.zeros(2))
        best = np.linalg.solve(hessian(i) + lam * np.eye(2), lam * server[0] - slope)
        np.testing.assert_allclose(got[i], best, rtol=1e-6)


def test_pfedme():
    lam, inner, step, beta = 2.0, 2, 0.3, 0.8
    got, server = found(PFedMe(lam, inner=inner, step=step, beta=beta))
    for _ in range(ROUNDS):
        local, personal = [], []
        for i in range(3):
            w = server
            for _ in range(STEPS // inner):
                theta = w
                for _ in range(inner):
                    theta = theta - LR * (grad(i, theta) + lam * (theta - w))
                w = w - step * (w - theta)
            local.append(w)
            personal.append(theta)
        server = (1 - beta) * server + beta * SHARE @ np.array(local)
    np.testing.assert_allclose(got, personal, rtol=1e-10)


@pytest.mark.parametrize("exact", [False, True])
def test_per_fedavg(exact):
    inner = 0.1
    got, server = found(PerFedAvg(inner, hessian=exact, finetune=0.25), local_steps=8)
    for _ in range(round(ROUNDS * 0.75)):
        local = []
        for i in range(3):
            w = server
            for _ in range(2 if exact else 4):
                outer = grad(i, w - inner * grad(i, w))
                if exact:  # the difference of gradients is exact for a quadratic
                    outer = outer - inner * hessian(i) @ outer
                w = w - LR * outer
            local.append(w)
        server = SHARE @ np.array(local)
    for i in range(3):
        w = server
        for _ in range(8):
            w = w - inner * grad(i, w)
        np.testing.assert_allclose(got[i], w, rtol=1e-7)


@pytest.mark.parametrize("adaptive", [False, True])
def test_apfl(adaptive):
    got, server = found(APFL(0.4, adaptive=adaptive))
    own, mix = np.tile(server, (3, 1)), np.full(3, 0.4)
    for _ in range(ROUNDS):
        local = []
        for i in range(3):
            w = server
            for _ in range(STEPS // 2):
                slope = grad(i, mix[i] * own[i] + (1 - mix[i]) * w)
                after = own[i] - LR * mix[i] * slope
                if adaptive:
                    mix[i] = np.clip(mix[i] - LR * (own[i] - w) @ slope, 0, 1)
                own[i], w = after, w - LR * grad(i, w)
            local.append(w)
        server = SHARE @ np.array(local)
    expected = mix[:, None] * own + (1 - mix[:, None]) * server
    np.testing.assert_allclose(got, expected, rtol=1e-10)


def layered(i, body, head):
    """Gradients of the mean squared error of x' B' h with respect to B and h."""
    rows, target = X[i == IDS], Y[i == IDS]
    off = 2 * (rows @ body.T @ head - target) / len(target)
    return np.outer(head, off @ rows), off @ rows @ body.T


@pytest.mark.parametrize("first", [None, 0.25])
def test_fedper_and_fedrep(first):
    method = FedPer() if first is None else FedRep(of_head=first)
    got, start = found(method, two_layers)
    body, heads = start[:4].reshape(2, 2), np.tile(start[4:], (3, 1))
    for _ in range(ROUNDS):
        local = []
        for i in range(3):
            own = body
            for k in range(STEPS):
                of_body, of_head = layered(i, own, heads[i])
                only_head = first is not None and k < round(STEPS * first)
                only_body = first is not None and not only_head
                own = own if only_head else own - LR * of_body
                heads[i] = heads[i] if only_body else heads[i] - LR * of_head
            local.append(own)
        body = np.einsum("i,ijk->jk", SHARE, np.array(local))
    expected = np.hstack([np.tile(body.ravel(), (3, 1)), heads])
    np.testing.assert_allclose(got, expected, rtol=1e-10)


@pytest.mark.parametrize("step", [0.05, float("inf")])
def test_fedamp(step):
    lam, sigma = 0.5, 2.0
    got, start = found(FedAMP(lam, step=step, sigma=sigma))
    w = np.tile(start, (3, 1))
    for _ in range(ROUNDS):
        slope = np.exp(-((w[:, None] - w[None]) ** 2).sum(axis=2) / sigma) / sigma
        np.fill_diagonal(slope, 0.0)
        xi = min(step, 1 / slope.sum(axis=1).max()) * slope
        xi += np.diag(1 - xi.sum(axis=1))
        after = []
        for i in range(3):
            v, centre = w[i], xi[i] @ w
            for _ in range(STEPS):
                v = v - LR * (grad(i, v) + lam * (v - centre))
            after.append(v)
        w = np.array(after)
    np.testing.assert_allclose(got, w, rtol=1e-9)


METHODS = [
    Local(),
    Pooled(),
    FedAvg(finetune=0.5),
    FedProx(),
    Ditto(),
    PFedMe(inner=2),
    PerFedAvg(finetune=0.25),
    APFL(),
    FedPer(),
    FedRep(),
    FedAMP(),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_every_method_keeps_to_the_budget_and_counts_what_is_sent(method):
    model = fitted(method, two_layers)
    assert model.gradients_ == ROUNDS * STEPS
    each = {"Local": 0, "Pooled": 0, "FedAvg": 2, "FedPer": 4, "FedRep": 4, "FedAMP": 3}
    rounds = {"FedAvg": ROUNDS / 2, "PerFedAvg": 3, "FedAMP": 3}.get(type(method).__name__, ROUNDS)
    size = 4 if "FedPer" in str(method) or "FedRep" in str(method) else 6
    silent = each.get(type(method).__name__, 1) == 0
    assert model.traffic_ == (0 if silent else 2 * rounds * size)
    assert model.ledger_.floats == 3 * model.traffic_


def test_the_same_seed_gives_the_same_networks_and_batches_do_not_depend_on_the_method():
    one, two = (fitted(Ditto(), two_layers, batch_size=2).parameters_ for _ in range(2))
    np.testing.assert_array_equal(one, two)
    own = fitted(Local(), two_layers, batch_size=2).parameters_
    alone = fitted(FedAvg(finetune=1.0), two_layers, batch_size=2).parameters_
    np.testing.assert_array_equal(own, alone)


def test_a_classifier_knows_all_classes_at_every_node():
    y = np.where(IDS == 2, "c", np.where(X[:, 0] > 0, "a", "b"))
    model = PersonalClassifier(rounds=20, random_state=0).fit(X, y, node_ids=IDS)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.predict_proba(X, node_ids=IDS).shape == (len(X), 3)
    assert model.score(X, y, node_ids=IDS) > 0.9
    assert model.network(0)(torch.zeros(1, 2)).shape == (1, 3)


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("FedAvg", "method must be one of"),
        (FedAvg(finetune=2), "finetune must be a share"),
        (Ditto(lam=-1), "lam must be finite and >= 0"),
        (FedAMP(step=0), "step must be > 0"),
        (PFedMe(inner=0), "inner"),
    ],
)
def test_bad_methods_are_refused_before_any_work(method, says):
    with pytest.raises(ValueError, match=says):
        fitted(method)


def test_divergence_is_said():
    with pytest.raises(ValueError, match="diverged"), np.errstate(all="ignore"):
        fitted(Local(), lr=1e6, rounds=100)
