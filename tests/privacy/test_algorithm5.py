"""FedRelax with perturbed updates, Algorithm 5 of the lecture notes: as printed, no guarantee."""

import numpy as np
import pytest

import nefele
from nefele import FedRelaxClassifier, FedRelaxRegressor, Graph, GTVRegressor, LocalData, Problem
from nefele.privacy import Bounds, Privacy
from nefele.result import Status
from nefele.runtime import relax_messages
from nefele.solvers import FedRelax


def local_rows():
    rng = np.random.default_rng(0)
    return [(rng.normal(size=(5, 2)), rng.normal(size=5)) for _ in range(6)]


def problem():
    graph = Graph.from_edges([(i, (i + 1) % 6) for i in range(6)])
    return Problem(graph, LocalData.from_list(local_rows()), penalty="squared_l2", lam=0.5)


def test_the_update_is_the_printed_one():
    """w_i <- argmin L_i + (pull of the neighbours) + sigma eps, from the noisy w of the others."""
    posed, sigma = problem(), 0.3
    result = nefele.solve(posed, FedRelax(noise=sigma, seed=4), max_iter=3)
    rng, w = np.random.default_rng(4), np.zeros((6, 2))
    for _ in range(3):
        new = np.empty_like(w)
        for i in range(6):
            near = [(i - 1) % 6, (i + 1) % 6]
            X, y = local_rows()[i]
            hessian = X.T @ X / len(y) + posed.lam * np.eye(2)
            pull = X.T @ y / len(y) + posed.lam / 2 * w[near].sum(axis=0)
            new[i] = np.linalg.solve(hessian, pull)
        w = new + sigma * rng.standard_normal(w.shape)
    np.testing.assert_allclose(result.w, w, rtol=1e-10)


@pytest.mark.parametrize("tol", [None, 1e-3])
def test_the_result_says_no_guarantee(tol):
    result = nefele.solve(problem(), FedRelax(noise=0.1, seed=0), tol=tol, max_iter=60)
    assert result.status is Status.PERTURBED and result.n_iter == 60
    assert not result.converged and "no guarantee" in repr(result)
    assert "no guarantee" in result.status.advice


def test_without_noise_nothing_changes():
    plain = nefele.solve(problem(), FedRelax(), tol=1e-8)
    zero = nefele.solve(problem(), FedRelax(noise=0.0, seed=3), tol=1e-8)
    assert plain.status is zero.status is Status.OPTIMAL
    assert np.array_equal(plain.w, zero.w)


def test_noise_is_drawn_from_the_system_unless_seeded():
    def fit(**options):
        return nefele.solve(problem(), FedRelax(noise=0.1, **options), max_iter=5).w

    assert np.array_equal(fit(seed=1), fit(seed=1))
    assert not np.array_equal(fit(seed=1), fit(seed=2))
    assert not np.array_equal(fit(), fit())


def test_a_resumed_solve_has_the_same_noise(tmp_path):
    solver, file = FedRelax("gauss-seidel", noise=0.1, seed=2), tmp_path / "state.npz"
    whole = nefele.solve(problem(), solver, max_iter=20)
    nefele.solve(problem(), solver, max_iter=8, checkpoint=file)
    rest = nefele.solve(problem(), solver, max_iter=20, resume=file)
    assert np.array_equal(whole.w, rest.w)


def test_an_estimator_keeps_the_status():
    rng = np.random.default_rng(0)
    X, nodes = rng.normal(size=(40, 2)), np.repeat(list("abcd"), 10)
    graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
    model = GTVRegressor(graph, penalty="squared_l2", solver=FedRelax(noise=0.1, seed=0))
    model.fit(X, X @ [1.0, 2.0], node_ids=nodes)
    assert model.status_ == "perturbed, no guarantee" and model.n_iter_ == 100


def test_messages_carry_noise_and_say_so():
    posed = problem()
    plain, noisy = relax_messages(posed, 30), relax_messages(posed, 30, noise=0.2, seed=0)
    again = relax_messages(posed, 30, noise=0.2, seed=0)
    assert np.array_equal(noisy.w, again.w) and noisy.n_messages == plain.n_messages
    spread = np.std(
        [relax_messages(posed, 30, noise=0.2, seed=s).w - plain.w for s in range(60)], axis=0
    )
    assert 0.2 < np.sqrt((spread**2).mean()) < 0.3  # the last draw, and a little of those before
    assert "no guarantee" in repr(noisy) and "no guarantee" in noisy.summary()
    assert plain.privacy == "none" and np.isinf(noisy.error_bound)


def test_predictions_carry_noise_and_say_so():
    rng = np.random.default_rng(0)
    X, nodes = rng.normal(size=(60, 2)), np.repeat(list("abc"), 20)
    y, graph = X @ [1.0, -1.0], Graph.from_edges([("a", "b"), ("b", "c")])
    options = dict(graph=graph, rounds=8, random_state=0)
    for kind, target in ((FedRelaxRegressor, y), (FedRelaxClassifier, y > 0)):
        plain = kind(**options, tol=None).fit(X, target, node_ids=nodes)
        noisy = kind(**options, noise=0.3).fit(X, target, node_ids=nodes)
        assert noisy.rounds_ == 8 and "privacy: no guarantee" in noisy.summary()
        assert "none: predictions are sent as they are" in plain.summary()
        a, b = (m.estimators_["a"].coef_ for m in (plain, noisy))
        assert not np.allclose(a, b)
    shared = noisy.history_[-1]
    assert np.isfinite(shared.objective)


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf, "much"])
def test_bad_noise_is_refused_before_any_work(noise):
    with pytest.raises(ValueError, match="noise must be"):
        FedRelax(noise=noise)
    with pytest.raises(ValueError, match="noise must be"):
        FedRelaxRegressor(noise=noise).fit(np.zeros((4, 1)), np.zeros(4), node_ids=list("aabb"))


def test_noise_beside_a_guarantee_is_refused():
    promise = Privacy(1.0, 1e-6, bounds=Bounds(x=1.0, y=(-1, 1)))
    model = FedRelaxRegressor(noise=0.1, privacy=promise, X_shared=np.zeros((3, 1)))
    with pytest.raises(ValueError, match="Leave noise out"):
        model.fit(np.zeros((4, 1)), np.zeros(4), node_ids=list("aabb"))
