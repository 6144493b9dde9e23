"""Losses and penalties of the user: what they may do, and mistakes that must not be silent."""

import numpy as np
import pytest

from nefele import Certificate, ConvergenceWarning, LocalData, Problem, Status, solve
from nefele.graphs import chain
from nefele.losses import Squared
from nefele.penalties import HuberPenalty, L1Norm, Lp, Penalty, Quadratic
from nefele.solvers.loop.best import Best
from tests.robustness.problems import data, path

TARGET = np.arange(4.0)[:, None] * [1.0, -1.0]


class Distance:
    """L_i(w) = ||w - a_i||^2."""

    d = 2

    def value(self, w):
        return ((w - TARGET) ** 2).sum(axis=1)

    def grad(self, w):
        return 2 * (w - TARGET)


class ByProx:
    d = 2
    value = Distance.value

    def prox(self, v, step):
        return (v + 2 * step[:, None] * TARGET) / (1 + 2 * step[:, None])


class Convex(Distance):
    def strong_convexity(self):
        return np.full(4, 2.0)


def variant(**methods):
    return type("Mine", (Distance,), methods)()


@pytest.mark.parametrize("loss", [Distance(), ByProx(), Convex()], ids=lambda x: type(x).__name__)
def test_a_users_loss_equals_the_same_loss_of_ours(loss):
    from nefele import LocalData

    eye = np.sqrt(2.0) * np.eye(2)
    ours = LocalData.from_list([(eye, np.sqrt(2.0) * a) for a in TARGET])
    expected = solve(Problem(path(4), ours, loss=Squared(), lam=0.3))
    result = solve(Problem(path(4), None, loss=loss, lam=0.3))
    assert result.converged
    assert result.objective == pytest.approx(expected.objective, rel=2e-6)
    proven = type(loss) is Convex
    assert result.certificate == ("strong convexity" if proven else "estimated radius")


def nothing(self, w):
    return None


MISTAKES = {
    "value of one number": (dict(value=lambda s, w: 1.0), "value of Mine must return shape"),
    "value of nothing": (dict(value=nothing), "value of Mine must return shape"),
    "value of text": (dict(value=lambda s, w: ["a"] * 4), "value of Mine must return shape"),
    "value NaN": (dict(value=lambda s, w: np.full(4, np.nan)), "value of Mine must be finite"),
    "grad too short": (dict(grad=lambda s, w: np.zeros(4)), "grad of Mine must return shape"),
    "grad NaN": (dict(grad=lambda s, w: w * np.nan), "of Mine must be finite"),
    "prox too short": (dict(prox=lambda s, v, t: v[:2]), "prox of Mine must return shape"),
    "prox NaN": (dict(prox=lambda s, v, t: v * np.nan), "prox of Mine must be finite"),
    "prox of nothing": (dict(prox=lambda s, v, t: None), "prox of Mine must return shape"),
    "curvature NaN": (dict(curvature=lambda s: np.full(4, np.nan)), "curvature of Mine"),
    "curvature < 0": (dict(curvature=lambda s: -np.ones(4)), "must be >= 0"),
    "labelled too short": (dict(labelled=np.ones(2)), "labelled of Mine must return shape"),
    "d of text": (dict(d="2"), "d must be an integer"),
    "d < 1": (dict(d=0), "d must be an integer"),
    "writes into w": (dict(grad=lambda s, w: w.__isub__(TARGET)), "read-only"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_users_loss_shows_before_the_work(name):
    methods, words = MISTAKES[name]
    with pytest.raises(ValueError, match=words):
        Problem(path(4), None, loss=variant(**methods), lam=0.3)


def test_a_users_loss_needs_its_size_without_data():
    loss = type("Mine", (), {"value": Distance.value, "grad": Distance.grad})()
    with pytest.raises(ValueError, match="must have an attribute d"):
        Problem(path(4), None, loss=loss, lam=0.3)


@pytest.mark.parametrize(
    "loss",
    [
        variant(
            value=lambda s, w: np.where(np.abs(w).max(axis=1) > 1, np.nan, Distance.value(s, w))
        ),
        variant(
            grad=lambda s, w: np.where(np.abs(w) > 1, np.nan, 2 * (w - TARGET)),
            prox=ByProx.prox,
        ),
        variant(prox=lambda s, v, t: np.where(np.abs(v) > 1e-3, np.nan, v + 0.01)),
    ],
    ids=["value", "grad", "prox"],
)
def test_a_loss_that_breaks_down_on_the_way_fails_with_a_finite_point(loss):
    problem = Problem(path(4), None, loss=loss, lam=0.3)
    with pytest.warns(ConvergenceWarning):
        result = solve(problem, max_iter=200)
    assert result.status is not Status.OPTIMAL
    assert np.isfinite(result.w).all() and np.isfinite(result.objective) and result.gap > 1e-6


@pytest.mark.parametrize(
    "grad",
    [
        lambda s, w: -2 * (w - TARGET),
        lambda s, w: w - TARGET,
        lambda s, w: 2 * (w - TARGET) + 0.1 * w,
    ],
    ids=["sign", "factor", "away from zero"],
)
@pytest.mark.parametrize("more", [{}, {"prox": ByProx.prox}], ids=["grad", "grad and prox"])
def test_a_gradient_that_disagrees_with_the_value_is_an_error(grad, more):
    words = r"grad of Mine must be the gradient of value; .* gives -?\d.*, differences .* give -?\d"
    with pytest.raises(ValueError, match=words):
        Problem(path(4), None, loss=variant(grad=grad, **more), lam=0.3)


def norms(self, w):
    return np.abs(w).sum(axis=1)


@pytest.mark.parametrize(
    "methods",
    [
        dict(value=norms, grad=lambda s, w: np.sign(w)),
        dict(value=norms, grad=lambda s, w: np.where(w < 0, -1.0, 1.0)),
        dict(
            value=lambda s, w: Distance.value(s, 1e6 * w),
            grad=lambda s, w: 1e6 * Distance.grad(s, 1e6 * w),
        ),
        dict(
            value=lambda s, w: 1e6 * Distance.value(s, w.astype("f4")).astype("f4"),
            grad=lambda s, w: 1e6 * Distance.grad(s, w),
        ),
        dict(value=lambda s, w: Distance.value(s, w) + 1e9),
    ],
    ids=["kink at zero", "one side of a kink", "steep", "single precision", "large constant"],
)
def test_right_gradients_are_taken(methods):
    loss = variant(prox=lambda s, v, t: v, **methods)
    assert Problem(path(4), None, loss=loss, lam=0.3).loss.smooth


class Plain(Penalty):
    """The l1 norm, given by its prox alone."""

    is_norm = True

    def value(self, v):
        return np.abs(v).sum(axis=1)

    def dual_norm(self, u):
        return np.abs(u).max(axis=1)

    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - step[:, None], 0.0)


def test_a_users_penalty_equals_the_same_penalty_of_ours():
    result = solve(Problem(path(4), data(), penalty=Plain(), lam=0.3))
    ours = solve(Problem(path(4), data(), penalty="l1", lam=0.3))
    assert result.converged and result.objective == pytest.approx(ours.objective, rel=2e-6)


def penalty(**methods):
    return type("Mine", (Plain,), methods)()


@pytest.mark.parametrize(
    ("mine", "words"),
    [
        (penalty(value=lambda s, v: np.abs(v).sum()), "value of Mine must return"),
        (penalty(value=lambda s, v: np.full(len(v), np.nan)), "value of Mine must return finite"),
        (penalty(dual_norm=lambda s, u: np.abs(u)), "of Mine must return"),
        (penalty(dual_norm=lambda s, u: np.full(len(u), np.nan)), "of Mine must return finite"),
        (penalty(prox=lambda s, v, t: v[:1]), "prox of Mine must return"),
        (penalty(prox=lambda s, v, t: v * np.nan), "prox of Mine must return finite"),
    ],
    ids=["value shape", "value nan", "dual shape", "dual nan", "prox shape", "prox nan"],
)
def test_a_mistake_in_a_users_penalty_shows_before_the_work(mine, words):
    with pytest.raises(ValueError, match=words):
        Problem(path(4), data(), penalty=mine, lam=0.3)


@pytest.mark.parametrize(
    ("missing", "norm"), [("prox", True), ("dual_norm", True), ("conjugate", False)]
)
def test_a_method_that_is_missing_is_named(missing, norm):
    methods = {"value": Plain.value, "prox": Plain.prox, "dual_norm": Plain.dual_norm}
    methods.pop(missing, None)
    mine = type("Mine", (Penalty,), {**methods, "is_norm": norm})()
    with pytest.raises(ValueError, match=f"Mine must give.*{missing}"):
        Problem(path(4), data(), penalty=mine, lam=0.3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": 3}, "loss must be one of"),
        ({"loss": None}, "loss must be one of"),
        ({"loss": Squared}, r"Use Squared\(\)"),
        ({"loss": "sqared"}, 'Did you mean "squared"'),
        ({"penalty": 3}, "penalty must be one of"),
        ({"penalty": L1Norm}, r"Use L1Norm\(\)"),
        ({"penalty": "l3"}, "No penalty"),
        ({"penalty": Quadratic(np.eye(3))}, r"Q must have shape \(2, 2\)"),
    ],
    ids=repr,
)
def test_what_is_no_loss_or_penalty_is_an_error(options, words):
    with pytest.raises(ValueError, match=words):
        Problem(path(4), data(), lam=1.0, **options)


@pytest.mark.parametrize("graph", [None, [(0, 1)], "path"], ids=repr)
def test_what_is_no_graph_is_an_error(graph):
    with pytest.raises(ValueError, match="graph must be"):
        Problem(graph, data(), lam=1.0)


@pytest.mark.parametrize("sets", [[([[1.0]], [1.0])], np.ones((2, 2))], ids=["list", "array"])
def test_what_is_no_data_is_an_error(sets):
    with pytest.raises(ValueError, match="data must be LocalData"):
        Problem(path(2), sets, lam=1.0)


def test_a_loss_of_ours_needs_data():
    with pytest.raises(ValueError, match="Squared needs data"):
        Problem(path(2), None, lam=1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Lp(0.5),
        lambda: Lp(np.nan),
        lambda: Lp("2"),
        lambda: HuberPenalty(0.0),
        lambda: HuberPenalty(-1.0),
        lambda: Quadratic([[1.0, 2.0], [0.0, 1.0]]),
        lambda: Quadratic([[-1.0]]),
        lambda: Quadratic([[np.nan]]),
        lambda: Squared(l2=-1.0),
        lambda: Squared(l1=np.nan),
    ],
)
def test_parameters_outside_their_domain_are_errors(make):
    with pytest.raises(ValueError, match="must be"):
        make()


def test_exponents_of_numpy_types_are_numbers():
    v = np.array([[1.0, 2.0]])
    np.testing.assert_allclose(Lp(np.int64(3)).value(v), Lp(3).value(v))


class HalvedDualNorm(Penalty):
    """The l1 norm with half its dual norm: its balls are twice too large."""

    is_norm = True

    def value(self, v):
        return np.abs(v).sum(axis=1)

    def dual_norm(self, u):
        return 0.5 * np.abs(u).max(axis=1)

    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - step[:, None], 0.0)


def test_a_lower_bound_above_the_objective_proves_nothing():
    rng = np.random.default_rng(3)
    table = [(rng.standard_normal((5, 2)), 3 * rng.standard_normal(5)) for _ in range(6)]
    local, w = LocalData.from_list(table), np.zeros((6, 2))
    problem = Problem(chain(6), local, penalty=HalvedDualNorm(), lam=0.5)
    best = Best(problem)
    best.add(w, Certificate(1.0, 1.5, "dual", 0.0, np.zeros((5, 2))))
    assert best.gap_abs == np.inf and best.gap == np.inf
    best = Best(problem)
    best.add(w, Certificate(1.0, 1.0 + 1e-12, "dual", 0.0, np.zeros((5, 2))))
    assert best.gap_abs == 0.0
