"""What small problems take beside their arithmetic: copies must take the same steps."""

import pytest
import small

from nefele import solve


@pytest.mark.parametrize("loss", small.LOSSES)
def test_two_copies_take_the_steps_of_one(loss):
    one, two = (solve(small.posed(10, loss, "l2", copies), tol=1e-9) for copies in (1, 2))
    assert one.n_iter == two.n_iter
    assert two.objective == pytest.approx(2 * one.objective, rel=1e-8)


def test_a_row_says_what_was_measured():
    text, overhead = small.row(10, "squared", "squared_l2")
    cells = [cell.strip() for cell in text.strip("|").split("|")]
    assert cells[:3] == ["10", "squared, squared_l2", "QuadraticCG"]
    assert overhead <= float(cells[4]) + 0.06  # rounded
