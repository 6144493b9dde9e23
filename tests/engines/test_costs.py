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


@pytest.mark.parametrize(("engine", "outside"), [("ray", 20.0), ("in_process", 10.0)])
def test_seconds_in_no_phase_are_told(engine, outside):
    made = [PartCosts(10, 20, 2, 9.0, 1.0, 0.0, exchanges=5, messages=5, bytes=80)] * 2
    found = Costs(engine, made, seconds=30.0)
    assert found.outside == outside
    assert f"{outside:.1f} s more than these phases: to start processes" in str(found)
    assert "more than" not in str(Costs(engine, made, seconds=20.0 if outside == 10.0 else 10.5))
