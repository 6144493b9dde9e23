"""What losses refuse and accept: columns, offsets, domains without zero."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.losses import Hinge, Multinomial, Quantile, Squared

DATA = LocalData([[1.0, 2.0], [0.5, 1.0]], [1.0, -1.0], [0, 1, 2])
CHAIN = Graph.from_edges([(0, 1), (1, 2)])


def test_weights_by_column_fit_the_columns():
    with pytest.raises(ValueError, match=r"l2 must be a number or one for each of the 2 columns"):
        Squared(l2=(1.0, 2.0, 3.0)).bind(DATA)
    with pytest.raises(ValueError, match=r"l1\[1\] must be finite and >= 0; got -1"):
        Squared(l1=[1.0, -1.0])
    assert Squared(l2=np.array([1.0, 2.0])) == Squared(l2=(1.0, 2.0))
    assert len({Squared(l2=[1.0, 2.0]), Squared(l2=(1.0, 2.0))}) == 1
    by_class = Multinomial(n_classes=2, l2=(1.0, 2.0, 3.0, 4.0)).bind(
        LocalData(DATA.X, [0.0, 1.0], DATA.ptr)
    )
    assert by_class.ridge[0].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_what_takes_no_offset_says_so():
    data = LocalData(DATA.X, DATA.y, DATA.ptr, offset=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"Hinge takes no offset\. Use SquaredHinge"):
        Hinge().bind(data)
    with pytest.raises(ValueError, match="Multinomial takes no offset"):
        Multinomial(n_classes=2).bind(data)
    with pytest.raises(ValueError, match="q must be between 0 and 1"):
        Quantile(q=1.0)


class Above:
    """||w - 3||^2 for w >= low, infinite elsewhere."""

    d = 2

    def __init__(self, low):
        self.low = low

    def value(self, w):
        return np.where(w.min(axis=1) >= self.low - 1e-12, ((w - 3) ** 2).sum(axis=1), np.inf)

    def prox(self, v, step):
        t = 2 * step[:, None]
        return np.maximum((v + 3 * t) / (1 + t), self.low)

    def strong_convexity(self):
        return np.full(3, 2.0)


@pytest.mark.parametrize(("low", "best"), [(1.0, 3.0), (5.0, 5.0)])
@pytest.mark.parametrize("solver", ["auto", "admm", "spdhg"])
def test_a_prox_of_ones_own_may_have_a_domain_without_zero(low, best, solver):
    problem = Problem(CHAIN, None, loss=Above(low), lam=0.1)
    assert problem.objective(np.zeros((3, 2))) == np.inf
    result = solve(problem, solver, tol=1e-8)
    assert result.converged and result.certificate == "strong convexity"
    np.testing.assert_allclose(result.w, best, atol=1e-6)
    alone = solve(problem.with_lam(0.0))
    np.testing.assert_allclose(alone.w, best, atol=1e-6)


def test_a_domain_that_its_prox_misses_is_an_error():
    class Nowhere(Above):
        def value(self, w):
            return np.full(len(w), np.inf)

    with pytest.raises(ValueError, match="value of Nowhere must be finite at w = 0 or at its prox"):
        Problem(CHAIN, None, loss=Nowhere(1.0), lam=0.1)
