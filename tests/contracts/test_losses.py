"""What every loss must do, whatever its formula."""

import copy

import numpy as np
import pytest

from nefele import LocalData
from nefele.losses import Constrained, PointwiseLoss, Squared
from nefele.losses.multinomial import BoundMultinomial
from tests.contracts.cases import COUNTS, EMPTY, LOSSES, N_NODES, LossCase

CASES = pytest.mark.parametrize("case", LOSSES, ids=lambda c: c.name)
DATA_CASES = pytest.mark.parametrize("case", [c for c in LOSSES if not c.own], ids=lambda c: c.name)
# A set is for nodes without data as well; all other losses are zero there.
FREE = [c for c in LOSSES if not (c.own or isinstance(c.loss, Constrained))]
FREE_CASES = pytest.mark.parametrize("case", FREE, ids=lambda c: c.name)
# Points here are no positive definite matrices; see tests/losses/test_precision.py.
GRADIENT_CASES = pytest.mark.parametrize(
    "case", [c for c in LOSSES if not c.matrix], ids=lambda c: c.name
)
SCALARS = [c for c in LOSSES if isinstance(c.loss, PointwiseLoss)]
SCALAR_CASES = pytest.mark.parametrize("case", SCALARS, ids=lambda c: c.name)
STEPS = (0.01, 1.0, 100.0)
SCALES = (1.0, 1e-2, 1e-4, 1e-6)


def points(bound, seed=1):
    """The zero vector, a point near it and one farther out."""
    w = np.random.default_rng(seed).standard_normal((bound.n_nodes, bound.d))
    return [np.zeros_like(w), 0.1 * w, 2 * w]


def frozen(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


def smooth_value(bound, w):
    """The value without the l1 term, which `grad` leaves out."""
    parts = getattr(bound, "parts", [(np.arange(bound.n_nodes), bound)])
    l1 = np.zeros(w.shape)
    for nodes, part in parts:
        l1[nodes] = getattr(part, "lasso", 0.0)
    return bound.value(w) - (l1 * np.abs(w)).sum(axis=1)


def nearby(point, rng):
    """Points around each row, at several scales."""
    for scale in SCALES:
        for _ in range(8):
            yield point + scale * rng.standard_normal(point.shape)


@CASES
@pytest.mark.parametrize("step", STEPS)
def test_prox_is_the_argmin(case, step):
    """(v - z)/step is a subgradient at z: all other values lie above its plane."""
    bound = case.bind()
    steps = np.full(N_NODES, step)
    rng = np.random.default_rng(2)
    for v in points(bound):
        z = bound.prox(v, steps)
        slope, value = (v - z) / step, bound.value(z)
        for other in nearby(z, rng):
            plane = value + (slope * (other - z)).sum(axis=1)
            room = bound.value(other) - plane
            assert (room >= -1e-10 * (1 + np.abs(value))).all()


@CASES
def test_prox_with_a_step_per_node_and_a_start(case):
    bound = case.bind()
    steps = 10.0 ** np.linspace(-1, 1, N_NODES)
    for v in points(bound):
        z = bound.prox(v, steps)
        again = bound.prox(v, steps, start=z + 0.5)
        np.testing.assert_allclose(again, z, atol=1e-7 * (1 + np.abs(z).max()))
        for i in (0, N_NODES - 1):
            alone = bound.prox(v, np.full(N_NODES, steps[i]))
            np.testing.assert_allclose(alone[i], z[i], atol=1e-7 * (1 + np.abs(z).max()))


@GRADIENT_CASES
def test_gradient_equals_central_differences(case):
    bound = case.bind()
    if case.name == "user prox":
        with pytest.raises(TypeError, match="UserProx gives no grad"):
            bound.grad(np.zeros((N_NODES, bound.d)))
        return
    eps = 1e-6
    for w in points(bound)[1:]:
        bound = getattr(bound, "inner", bound)  # of a constrained loss the loss itself
        grad = bound.grad(w)
        for j in range(bound.d):
            shift = eps * np.eye(bound.d)[j]
            rise = smooth_value(bound, w + shift) - smooth_value(bound, w - shift)
            np.testing.assert_allclose(grad[:, j], rise / (2 * eps), rtol=1e-6, atol=1e-7)


@CASES
def test_hessian_equals_differences_of_gradients(case):
    bound = case.bind()
    w = points(bound)[1]
    hess = bound.hess(w)
    if hess is None:
        assert not bound.smooth or case.own
        return
    assert hess.shape == (N_NODES, bound.d, bound.d)
    np.testing.assert_allclose(hess, np.swapaxes(hess, 1, 2), atol=1e-14)
    eps = 1e-6
    for j in range(bound.d):
        shift = eps * np.eye(bound.d)[j]
        rise = bound.grad(w + shift) - bound.grad(w - shift)
        np.testing.assert_allclose(hess[:, :, j], rise / (2 * eps), rtol=1e-6, atol=1e-7)


@CASES
def test_strong_convexity_is_a_lower_bound(case):
    """L(b) >= L(a) + <g, b - a> + mu/2 ||b - a||^2 with g from the prox."""
    bound = case.bind()
    mu = bound.strong_convexity()
    assert mu.shape == (N_NODES,) and (mu >= 0).all()
    rng = np.random.default_rng(3)
    for v in points(bound):
        a = bound.prox(v, np.ones(N_NODES))
        for b in nearby(a, rng):
            square = 0.5 * mu * ((b - a) ** 2).sum(axis=1)
            plane = bound.value(a) + ((v - a) * (b - a)).sum(axis=1) + square
            assert (bound.value(b) >= plane - 1e-10 * (1 + np.abs(plane))).all()


# Conjugates of the scalar functions f(z, y).


def scalar_grid(case: LossCase):
    y = np.unique(case.data().y)
    z = np.linspace(-4, 4, 41)
    return (a.ravel() for a in np.meshgrid(z, y))


@SCALAR_CASES
def test_scalar_conjugate_is_tight_at_the_slope(case):
    z, y = scalar_grid(case)
    a = case.loss.slope(z, y)
    np.testing.assert_allclose(
        case.loss.f(z, y) + case.loss.conjugate(a, y), a * z, rtol=1e-12, atol=1e-12
    )


@SCALAR_CASES
def test_scalar_conjugate_bounds_from_above(case):
    z, y = scalar_grid(case)
    for a in np.linspace(-3, 3, 25):
        bound = case.loss.f(z, y) + case.loss.conjugate(np.full_like(z, a), y)
        assert (bound >= a * z - 1e-12 * (1 + np.abs(a * z))).all()


@SCALAR_CASES
def test_scalar_conjugate_equals_the_maximum_over_a_grid(case):
    """sup_z a z - f(z, y); outside the domain the maximum sits at the end of every grid."""
    loss = case.loss
    for y in np.unique(case.data().y)[:6]:
        z = np.append(np.linspace(-40, 40, 160_001), y)  # y: where the kinks are
        values = loss.f(z, np.full_like(z, y))
        for a in (-2.5, -0.9, -0.3, 0.0, 0.3, 0.9, 2.5):
            best = np.max(a * z - values)
            claimed = loss.conjugate(np.array([a]), np.array([y]))[0]
            ratio = loss.domain_ratio(np.array([a]), np.array([y]))[0]
            if ratio > 1:
                assert claimed == np.inf
                half = np.max((a * z - values)[np.abs(z) <= 20])
                assert best > half + 0.1
            else:
                assert best <= claimed + 1e-12 * (1 + abs(claimed))
                np.testing.assert_allclose(best, claimed, rtol=1e-6, atol=1e-6)


@SCALAR_CASES
def test_scaling_by_the_ratio_brings_a_dual_into_the_domain(case):
    rng = np.random.default_rng(4)
    y = np.repeat(np.unique(case.data().y), 200)
    a = 10 * rng.standard_normal(len(y))
    ratio = case.loss.domain_ratio(a, y)
    assert (ratio >= 0).all()
    reachable = np.isfinite(ratio)
    assert reachable.any()
    scaled = a[reachable] * (1 / np.maximum(ratio, 1.0)[reachable])
    assert np.isfinite(case.loss.conjugate(scaled, y[reachable])).all()


def test_multinomial_conjugate():
    """Tight at the slope, an upper bound elsewhere, inf outside the simplex."""
    case = next(c for c in LOSSES if c.name == "multinomial")
    bound = case.bind()
    assert isinstance(bound, BoundMultinomial)
    rng = np.random.default_rng(5)
    z = 2 * rng.standard_normal(bound.predict(np.zeros((N_NODES, bound.d))).shape)
    a = bound.row_slope(z)
    tight = bound.row_value(z) + bound.row_conjugate(a)
    np.testing.assert_allclose(tight, (a * z).sum(axis=1), atol=1e-12)
    for _ in range(20):
        other = rng.dirichlet(np.ones(3), len(z)) - bound.hot
        slack = bound.row_value(z) + bound.row_conjugate(other) - (other * z).sum(axis=1)
        assert (slack >= -1e-12).all()
    assert (bound.row_ratio(a) <= 1).all()
    assert np.isinf(bound.row_conjugate(a + 0.1)).all()
    own = a * 5
    assert np.isinf(bound.row_conjugate(own)[bound.row_ratio(own) > 1]).all()
    back = own / np.maximum(bound.row_ratio(own), 1.0)[:, None]
    assert np.isfinite(bound.row_conjugate(back)).all()


# Dual points.


def dual_at(bound, w, target):
    dual = bound.dual_point(w, target)
    if dual is None:
        pytest.fail("no dual point")
    return dual


def test_a_users_own_object_has_no_dual_point():
    for case in LOSSES:
        if case.own:
            bound = case.bind()
            zero = np.zeros((N_NODES, bound.d))
            assert bound.dual_point(zero, zero) is None


@DATA_CASES
def test_dual_point_is_tight_at_a_prox_point(case):
    """At z = prox(v, t) with s = (v - z)/t: flow = s and L*(s) = <s, z> - L(z)."""
    bound = case.bind()
    for v in points(bound):
        z = bound.prox(v, np.ones(N_NODES))
        dual = dual_at(bound, z, v - z)
        np.testing.assert_allclose(dual.flow(), v - z, atol=1e-8)
        tight = ((v - z) * z).sum(axis=1) - bound.value(z)
        np.testing.assert_allclose(dual.conjugate(np.ones(N_NODES)), tight, atol=1e-7)
        assert (dual.domain_ratio() <= 1 + 1e-9).all()


@DATA_CASES
def test_metric_is_psd_and_settle_is_exactly_linear(case):
    bound = case.bind()
    rng = np.random.default_rng(6)
    for w in points(bound):
        dual = dual_at(bound, w, rng.standard_normal(w.shape))
        metric, flow = dual.metric(), dual.flow()
        assert np.linalg.eigvalsh(metric).min() >= -1e-12 * max(1.0, np.abs(metric).max())
        x = 0.3 * rng.standard_normal(w.shape)
        other = copy.copy(dual)
        other.settle(x)
        change = (metric @ x[..., None])[..., 0]
        np.testing.assert_allclose(other.flow(), flow - change, atol=1e-12)
        np.testing.assert_array_equal(dual.flow(), flow)


@DATA_CASES
def test_dual_conjugate_is_an_upper_bound(case):
    """Weak duality: L*(theta s) >= <theta s, b> - L(b) for every b, after any move."""
    bound = case.bind()
    rng = np.random.default_rng(7)
    for w in points(bound):
        dual = dual_at(bound, w, rng.standard_normal(w.shape))
        for size in (0.0, 0.01, 0.3, 3.0):
            dual.move(size * rng.standard_normal(w.shape), rng.standard_normal(w.shape))
            assert (dual.domain_ratio() <= 1 + 1e-12).all()
            settled = copy.copy(dual)
            settled.settle(0.1 * size * rng.standard_normal(w.shape))
            for candidate in (dual, settled):
                ratio = candidate.domain_ratio()
                theta = 1 / np.maximum(ratio, 1.0)
                claimed = candidate.conjugate(theta)
                assert np.isfinite(claimed[np.isfinite(ratio)]).all()
                s = theta[:, None] * candidate.flow()
                for b in (*points(bound, seed=8), w):
                    needed = (s * b).sum(axis=1) - bound.value(b)
                    assert (claimed >= needed - 1e-9 * (1 + np.abs(needed))).all()


# Nodes without data, sample weights, inputs.


@FREE_CASES
def test_empty_node_has_no_loss(case):
    bound = case.bind()
    assert not bound.labelled[EMPTY]
    for w in points(bound):
        assert bound.value(w)[EMPTY] == 0
        assert (bound.grad(w)[EMPTY] == 0).all()
        for step in STEPS:
            z = bound.prox(w, np.full(N_NODES, step))
            np.testing.assert_allclose(z[EMPTY], w[EMPTY], rtol=1e-15)
    assert (bound.minimise()[EMPTY] == 0).all()
    assert bound.strong_convexity()[EMPTY] == 0


@pytest.mark.parametrize(
    "case",
    [c for c in FREE if not c.own and not isinstance(c.loss, dict)],
    ids=lambda c: c.name,
)
def test_all_nodes_empty(case):
    data = LocalData(np.zeros((0, 2)), [], [0, 0, 0])
    bound = case.bind(data)
    v = np.ones((2, bound.d))
    np.testing.assert_array_equal(bound.prox(v, np.ones(2)), v)
    assert (bound.value(v) == 0).all() and (bound.minimise() == 0).all()
    assert not bound.labelled.any()


def weighted(data, weight):
    return LocalData(data.X, data.y, data.ptr, data.ids, sample_weight=weight)


def doubled(data):
    """Every row twice, with half its weight."""
    rows = np.repeat(np.arange(data.n_rows), 2)
    weight = 0.5 * data.sample_weight[rows]
    return LocalData(data.X[rows], data.y[rows], 2 * data.ptr, data.ids, sample_weight=weight)


@DATA_CASES
def test_duplicated_rows_with_half_the_weight_change_nothing(case):
    data = case.data()
    data = weighted(data, np.random.default_rng(9).uniform(0.5, 2, data.n_rows))
    one, two = case.bind(data), case.bind(doubled(data))
    for w in points(one):
        np.testing.assert_allclose(two.value(w), one.value(w), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(two.grad(w), one.grad(w), rtol=1e-10, atol=1e-13)
        steps = np.ones(N_NODES)
        np.testing.assert_allclose(two.prox(w, steps), one.prox(w, steps), atol=1e-8)


@DATA_CASES
def test_equal_weights_are_no_weights(case):
    data = case.data()
    plain, same = case.bind(data), case.bind(weighted(data, np.full(data.n_rows, 7.0)))
    for w in points(plain):
        np.testing.assert_allclose(same.value(w), plain.value(w), rtol=1e-13)


@FREE_CASES
def test_a_node_with_all_weights_zero_has_no_data(case):
    data = case.data()
    weight = np.ones(data.n_rows)
    weight[: COUNTS[0]] = 0.0
    bound = case.bind(weighted(data, weight))
    assert not bound.labelled[0]
    for w in points(bound):
        assert bound.value(w)[0] == 0 and (bound.grad(w)[0] == 0).all()
        np.testing.assert_allclose(bound.prox(w, np.ones(N_NODES))[0], w[0], rtol=1e-15)
    assert (bound.minimise()[0] == 0).all()


@DATA_CASES
def test_rows_of_weight_zero_do_not_count(case):
    data = case.data()
    weight = np.ones(data.n_rows)
    weight[:3] = 0.0
    kept = np.arange(3, data.n_rows)
    ptr = np.concatenate([[0], data.ptr[1:] - 3])
    fewer = LocalData(data.X[kept], data.y[kept], ptr, data.ids)
    one, two = case.bind(weighted(data, weight)), case.bind(fewer)
    for w in points(one):
        np.testing.assert_allclose(one.value(w), two.value(w), rtol=1e-12)
        steps = np.ones(N_NODES)
        np.testing.assert_allclose(one.prox(w, steps), two.prox(w, steps), atol=1e-8)


@CASES
def test_inputs_are_not_changed(case):
    """Read-only arrays are accepted, so nothing is written into them."""
    bound = case.bind()
    w, v = (frozen(p) for p in points(bound)[1:])
    steps = frozen(np.ones(N_NODES))
    bound.value(w)
    bound.hess(w)
    bound.prox(v, steps)
    bound.prox(v, steps, start=w)
    bound.minimise()
    if case.name != "user prox":
        bound.grad(w)
    dual = bound.dual_point(w, v)
    if dual is not None:
        dual.move(w, v)
        dual.settle(w)
        dual.conjugate(steps)


@DATA_CASES
def test_data_is_not_changed(case):
    data = case.data()
    before = data.X.copy(), data.y.copy()
    bound = case.bind(data)
    bound.prox(points(bound)[2], np.ones(N_NODES))
    bound.minimise()
    np.testing.assert_array_equal(data.X, before[0])
    np.testing.assert_array_equal(data.y, before[1])


@CASES
def test_minimise_is_a_local_minimiser(case):
    bound = case.bind()
    w = bound.minimise()
    assert w.shape == (N_NODES, bound.d)
    value = bound.value(w)
    for other in nearby(w, np.random.default_rng(10)):
        low = bound.value(other) < value - 1e-7 * (1 + np.abs(value))
        # A log det of few rows has no infimum; all other losses have.
        assert not low[~(bound.unbounded(np.arange(N_NODES)) & case.matrix)].any()


def test_minimise_is_the_least_norm_least_squares_solution():
    case = next(c for c in LOSSES if c.name == "squared")
    data = case.data()
    w = Squared().bind(data).minimise()
    for i in range(N_NODES):
        rows = slice(data.ptr[i], data.ptr[i + 1])
        expected = np.linalg.lstsq(data.X[rows], data.y[rows])[0] if COUNTS[i] else np.zeros(2)
        np.testing.assert_allclose(w[i], expected, atol=1e-10)


@pytest.mark.parametrize("name", ["nonnegative", "box", "box without zero", "simplex"])
def test_a_set_is_for_nodes_without_data_as_well(name):
    """There the prox is the projection, whatever the step."""
    bound = next(case for case in LOSSES if case.name == name).bind()
    for w in points(bound):
        z = bound.prox(w, np.full(N_NODES, 7.0))
        assert np.isfinite(bound.value(z)).all() and bound.value(z)[EMPTY] == 0
        for other in nearby(z, np.random.default_rng(3)):
            there = bound.prox(other, np.ones(N_NODES))[EMPTY]
            turn = (w[EMPTY] - z[EMPTY]) @ (there - z[EMPTY])
            assert turn <= 1e-12
