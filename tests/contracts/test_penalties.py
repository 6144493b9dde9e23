"""What every penalty must do, whatever its formula."""

import numpy as np
import pytest

from nefele.penalties import ByEdge, Penalty, as_penalty
from tests.contracts.cases import PENALTIES

CASES = pytest.mark.parametrize("make", PENALTIES.values(), ids=PENALTIES.keys())
DIMENSIONS = pytest.mark.parametrize("d", [2, 3])
NORMS = {name: make for name, make in PENALTIES.items() if make(2).is_norm}
# A partial norm is zero in some directions: no ball of the whole space is its dual's.
WHOLE = {name: make for name, make in NORMS.items() if make(2).whole}
# These tests take rows out of their order; a penalty by edge is tested row by row below.
ALIKE = {name: make for name, make in PENALTIES.items() if not isinstance(make(2), ByEdge)}
ALIKE_CASES = pytest.mark.parametrize("make", ALIKE.values(), ids=ALIKE.keys())
NORM_CASES = pytest.mark.parametrize("make", NORMS.values(), ids=NORMS.keys())
SCALES = (1.0, 1e-2, 1e-4, 1e-6)


def edges(d, seed=0):
    """Differences or flows over edges: small, large, axis-parallel, equal entries, zero."""
    rng = np.random.default_rng(seed)
    rows = [rng.standard_normal((6, d)) * size for size in (0.01, 1.0, 10.0)]
    special = [np.zeros((1, d)), np.ones((1, d)), -3 * np.eye(d)]
    v = np.concatenate([*rows, *special])
    return v, rng.uniform(0.2, 3, len(v)), rng.uniform(0.2, 3, len(v))


def frozen(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


def nearby(point, seed=1):
    rng = np.random.default_rng(seed)
    for scale in SCALES:
        for _ in range(10):
            yield point + scale * rng.standard_normal(point.shape)


@CASES
@DIMENSIONS
def test_is_a_convex_even_function_with_value_zero_at_zero(make, d):
    penalty = make(d)
    v, _, _ = edges(d)
    value = penalty.value(v)
    assert value.shape == (len(v),) and (value >= 0).all()
    assert penalty.value(np.zeros((1, d)))[0] == 0
    np.testing.assert_allclose(penalty.value(-v), value)
    middle = penalty.value(0.5 * (v + v[::-1]))
    mirrored = penalty.value(v[::-1])
    assert (middle <= 0.5 * (value + mirrored) * (1 + 1e-12)).all()


@NORM_CASES
def test_norms_are_homogeneous(make):
    penalty = make(3)
    v, _, _ = edges(3)
    np.testing.assert_allclose(penalty.value(7 * v), 7 * penalty.value(v), rtol=1e-12)
    np.testing.assert_allclose(penalty.dual_norm(7 * v), 7 * penalty.dual_norm(v), rtol=1e-12)


@CASES
@DIMENSIONS
def test_prox_is_the_argmin(make, d):
    """(v - z)/step is a subgradient of phi at z."""
    penalty = make(d)
    v, step, _ = edges(d)
    z = penalty.prox(v, step)
    slope = (v - z) / step[:, None]
    for other in nearby(z):
        plane = penalty.value(z) + (slope * (other - z)).sum(axis=1)
        assert (penalty.value(other) >= plane - 1e-10 * (1 + np.abs(plane))).all()


@CASES
@DIMENSIONS
def test_prox_conjugate_is_the_argmin(make, d):
    """scale phi*(z/scale) + ||z - v||^2 / (2 step) grows away from the dual update."""
    penalty = make(d)
    v, scale, step = edges(d)
    z = penalty.prox_conjugate(v, scale, step)

    def excess(z):
        return penalty.conjugate(z, scale) + ((z - v) ** 2).sum(axis=1) / (2 * step)

    best = excess(z)
    assert np.isfinite(best).all()
    finite = 0
    for other in [*nearby(z), 0.999 * z, 0.5 * z, 0 * z]:
        # Perturbations that leave the domain say nothing: pull them back inside.
        other = z + penalty.mix(other - z)
        other = other / np.maximum(penalty.domain_ratio(other, scale), 1.0)[:, None]
        value = excess(other)
        finite += np.isfinite(value).sum()
        assert (value >= best - 1e-9 * (1 + best)).all()
    assert finite > 20 * len(v)


@CASES
@DIMENSIONS
def test_prox_and_prox_conjugate_satisfy_fenchel_young_with_equality(make, d):
    """z = prox(v), u = prox_conjugate(v): scale phi(z) + scale phi*(u/scale) = <u, z>."""
    penalty = make(d)
    v, scale, _ = edges(d)
    one = np.ones(len(v))
    z, u = penalty.prox(v, scale), penalty.prox_conjugate(v, scale, one)
    np.testing.assert_allclose(z + u, v, atol=1e-12)
    left = scale * penalty.value(z) + penalty.conjugate(u, scale)
    np.testing.assert_allclose(left, (u * z).sum(axis=1), rtol=1e-9, atol=1e-9)


@CASES
@DIMENSIONS
def test_fenchel_young_inequality(make, d):
    penalty = make(d)
    v, scale, step = edges(d)
    u = penalty.prox_conjugate(v, scale, step)
    bound = penalty.conjugate(u, scale)
    for other in nearby(v):
        slack = scale * penalty.value(other) + bound - (u * other).sum(axis=1)
        assert (slack >= -1e-10 * (1 + np.abs(bound))).all()


@ALIKE_CASES
def test_conjugate_equals_the_maximum_over_a_grid(make):
    """sup_v <u, v> - scale phi(v) over the plane; unbounded where the conjugate is inf."""
    penalty = make(2)
    axis = np.linspace(-30, 30, 601)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    phi = penalty.value(grid)
    far = np.abs(grid).max(axis=1) > 15
    rng = np.random.default_rng(2)
    flows = penalty.prox_conjugate(3 * rng.standard_normal((4, 2)), np.full(4, 0.7), np.ones(4))
    for u in (*flows, *(5 * rng.standard_normal((3, 2)))):
        claimed = penalty.conjugate(u[None], np.array([0.7]))[0]
        value = grid @ u - 0.7 * phi
        if np.isinf(claimed):
            assert value.max() > value[~far].max() + 0.1
        else:
            assert value.max() <= claimed + 1e-9
            if claimed < 15:  # the maximiser is on the grid
                np.testing.assert_allclose(value.max(), claimed, atol=0.05)


@ALIKE_CASES
@DIMENSIONS
def test_domain_ratio_tells_the_conjugates_domain(make, d):
    penalty = make(d)
    v, scale, step = edges(d)
    u = penalty.prox_conjugate(v, scale, step)
    ratio = penalty.domain_ratio(u, scale)
    assert (ratio <= 1 + 1e-12).all()
    assert np.isfinite(penalty.conjugate(u, scale)).all()
    bounded = ratio > 0
    outside = u[bounded] * (1.01 / ratio[bounded])[:, None]
    np.testing.assert_allclose(penalty.domain_ratio(outside, scale[bounded]), 1.01, rtol=1e-9)
    assert np.isinf(penalty.conjugate(outside, scale[bounded])).all()
    back = outside / penalty.domain_ratio(outside, scale[bounded])[:, None]
    assert np.isfinite(penalty.conjugate(back, scale[bounded])).all()


def test_singular_quadratic_has_an_infinite_conjugate_outside_its_range():
    penalty = PENALTIES["singular quadratic"](3)
    kernel = np.linalg.svd(penalty.Q)[2][-1:]
    assert penalty.conjugate(kernel, np.ones(1))[0] == np.inf
    np.testing.assert_allclose(
        penalty.prox_conjugate(kernel, np.ones(1), np.ones(1)), 0, atol=1e-12
    )


@pytest.mark.parametrize("make", WHOLE.values(), ids=WHOLE.keys())
def test_dual_norm_equals_the_maximum_over_directions(make):
    """sup <u, v> / phi(v), by a fine grid of angles."""
    penalty = make(2)
    angle = np.linspace(0, 2 * np.pi, 20_001)
    v = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    u, _, _ = edges(2)
    best = ((u @ v.T) / penalty.value(v)).max(axis=1)
    np.testing.assert_allclose(penalty.dual_norm(u), best, rtol=1e-3, atol=1e-12)
    assert (best <= penalty.dual_norm(u) * (1 + 1e-12) + 1e-12).all()


@CASES
@DIMENSIONS
def test_gradient_and_curvature_equal_differences(make, d):
    penalty = make(d)
    v = edges(d)[0][6:18]  # generic rows: not at a kink
    if not penalty.twice:
        with pytest.raises(TypeError, match="gives no gradient"):
            penalty.gradient(v)
        with pytest.raises(TypeError, match="gives no curvature"):
            penalty.curvature(v)
        return
    gradient, curvature = penalty.gradient(v), penalty.curvature(v)
    eps = 1e-6
    for j in range(d):
        shift = eps * np.eye(d)[j]
        rise = (penalty.value(v + shift) - penalty.value(v - shift)) / (2 * eps)
        np.testing.assert_allclose(gradient[:, j], rise, rtol=1e-6, atol=1e-8)
        bend = (penalty.gradient(v + shift) - penalty.gradient(v - shift)) / (2 * eps)
        np.testing.assert_allclose(curvature[:, :, j], bend, rtol=1e-5, atol=1e-7)


@CASES
@DIMENSIONS
def test_zero_vector(make, d):
    penalty = make(d)
    zero, one = np.zeros((2, d)), np.ones(2)
    assert (penalty.prox(zero, one) == 0).all()
    assert (penalty.prox_conjugate(zero, one, one) == 0).all()
    assert (penalty.conjugate(zero, one) == 0).all()
    assert (penalty.domain_ratio(zero, one) == 0).all()
    if penalty.twice:
        assert (penalty.gradient(zero) == 0).all()
        assert np.isfinite(penalty.curvature(zero)).all()
    if penalty.is_norm:
        assert (penalty.dual_norm(zero) == 0).all()
        coupled = penalty.mix(np.ones((1, d)))[0] != 0
        assert (penalty.fused(zero, one) == coupled).all()


@CASES
def test_zero_scale_gives_zero_flow(make):
    """lam = 0: no edge may carry a flow."""
    penalty = make(3)
    v, _, step = edges(3)
    with np.errstate(divide="ignore"):
        flow = penalty.prox_conjugate(v, np.zeros(len(v)), step)
    np.testing.assert_allclose(flow, 0, atol=1e-14)


@CASES
@DIMENSIONS
def test_no_edges(make, d):
    penalty = make(d)
    none, empty = np.zeros((0, d)), np.zeros(0)
    assert penalty.value(none).shape == (0,)
    assert penalty.prox(none, empty).shape == (0, d)
    assert penalty.prox_conjugate(none, empty, empty).shape == (0, d)
    assert penalty.conjugate(none, empty).shape == (0,)
    assert penalty.domain_ratio(none, empty).shape == (0,)


@CASES
@DIMENSIONS
def test_inputs_are_not_changed(make, d):
    """Read-only arrays are accepted, so nothing is written into them."""
    penalty = make(d)
    v, scale, step = (frozen(a) for a in edges(d))
    penalty.value(v)
    penalty.prox(v, step)
    u = frozen(penalty.prox_conjugate(v, scale, step))
    penalty.conjugate(u, scale)
    penalty.domain_ratio(u, scale)
    penalty.give(u, scale, 1.0, 0.01)
    penalty.mix(u)
    penalty.fused(u, scale)
    if penalty.twice:
        penalty.gradient(v)
        penalty.curvature(v)


@CASES
@DIMENSIONS
def test_give_is_positive_and_fused_is_only_for_norms(make, d):
    penalty = make(d)
    v, scale, step = edges(d)
    u = penalty.prox_conjugate(v, scale, step)
    give = penalty.give(u, scale, 2.0, 0.01)
    assert give.shape in ((len(v), 1), (len(v), d)) and (give > 0).all()
    fused = penalty.fused(u, scale)
    assert fused.shape == (len(v), d)
    if not penalty.is_norm:
        assert not fused.any()
    held = fused.all(axis=1)
    # A flow strictly inside its ball allows no difference: prox of anything it comes from is 0.
    np.testing.assert_allclose(penalty.prox(u, scale)[held], 0, atol=1e-9)


class OnlyValue(Penalty):
    def value(self, v):
        return np.abs(v).sum(axis=1)


def test_a_penalty_that_gives_too_little_says_so():
    v, one = np.ones((1, 2)), np.ones(1)
    with pytest.raises(ValueError, match="OnlyValue must give prox or prox_conjugate"):
        OnlyValue().prox(v, one)
    with pytest.raises(ValueError, match="OnlyValue must give prox or prox_conjugate"):
        OnlyValue().prox_conjugate(v, one, one)
    with pytest.raises(ValueError, match="OnlyValue must give conjugate"):
        OnlyValue().conjugate(v, one)
    with pytest.raises(ValueError, match="OnlyValue must give dual_norm"):
        OnlyValue().dual_norm(v)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: as_penalty("squared"), 'No penalty "squared". Did you mean "squared_l2"?'),
        (lambda: as_penalty(3), "penalty must be one of huber, l1, l2, linf, squared_l2 or a"),
        (lambda: PENALTIES["lp 3"](2).__class__(0.5), "p must be >= 1 for a norm; got 0.5."),
        (lambda: PENALTIES["huber"](2).__class__(0.0), "delta must be finite and > 0; got 0.0."),
        (lambda: PENALTIES["quadratic"](2).__class__([[1.0, 2.0], [0.0, 1.0]]), "Q must be symm"),
        (lambda: PENALTIES["quadratic"](2).__class__([[-1.0]]), "Q must be positive semidefinite"),
    ],
)
def test_bad_arguments(build, message):
    with pytest.raises(ValueError) as error:
        build()
    assert str(error.value).startswith(message)


@DIMENSIONS
def test_a_penalty_by_edge_is_that_of_each_edge(d):
    made = PENALTIES["by edge"](d)
    v, scale, step = edges(d)
    kinds = [made.penalties[e % len(made.penalties)] for e in range(len(v))]
    whole = ByEdge(made.penalties, np.arange(len(v)) % len(made.penalties))
    u = whole.prox_conjugate(v, scale, step)
    found = {
        "value": (whole.value(v), lambda p, e: p.value(v[e])),
        "prox": (whole.prox(v, step), lambda p, e: p.prox(v[e], step[e])),
        "dual": (u, lambda p, e: p.prox_conjugate(v[e], scale[e], step[e])),
        "conjugate": (whole.conjugate(u, scale), lambda p, e: p.conjugate(u[e], scale[e])),
        "ratio": (whole.domain_ratio(v, scale), lambda p, e: p.domain_ratio(v[e], scale[e])),
    }
    for values, alone in found.values():
        each = [alone(kinds[e], slice(e, e + 1))[0] for e in range(len(v))]
        np.testing.assert_allclose(values, each, rtol=1e-13)
    some = np.array([5, 2, 11])
    np.testing.assert_array_equal(whole.at(some).value(v[some]), whole.value(v)[some])
    with pytest.raises(ValueError, match=f"is for {len(v)} edges; got 3"):
        whole.value(v[some])
