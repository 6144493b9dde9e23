"""What is said to bound the speed of a solve by parts."""

import pytest

from nefele.engines import Costs, PartCosts


def costs(*parts, lost=0):
    made = [PartCosts(10, 20, 2, *times, exchanges=5, messages=5, bytes=80) for times in parts]
    return Costs("ray", made, seconds=sum(parts[0]), lost=lost)


@pytest.mark.parametrize(
    ("parts", "bound"),
    [
        (((9.0, 1.0, 0.0), (9.0, 1.0, 0.0)), "compute"),
        (((1.0, 8.0, 1.0), (1.0, 8.0, 1.0)), "exchange"),
        (((1.0, 2.0, 7.0), (1.0, 2.0, 7.0)), "sums"),
        (((9.0, 1.0, 0.0), (3.0, 7.0, 0.0)), "imbalance"),
        (((0.9, 9.1, 0.0), (0.3, 9.7, 0.0)), "exchange"),  # uneven, but messages take far longer
    ],
)
def test_what_would_make_it_faster(parts, bound):
    found = costs(*parts)
    assert found.bound_by == bound and f"bound by {bound}" in str(found)


def test_lost_workers_are_told():
    parts = ((9.0, 1.0, 0.0),)
    assert "Workers lost and replaced: 2." in str(costs(*parts, lost=2))
    assert "lost" not in str(costs(*parts))
