"""Chosen coupling is never much below own images only, however the images are dealt."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from nefele.experiments.pfl_data import find_images  # noqa: E402
from nefele.experiments.pfl_safety import PARTITIONS, compared  # noqa: E402


@pytest.mark.slow
def test_never_half_a_point_below_own_images_only():
    folder = find_images()
    found = [compared(k, folder) for k in range(PARTITIONS)]
    below = [one["own"] - one["nefele"] for one in found]
    assert np.max(below) <= 0.005, found


def test_one_partition_of_small_digits():
    found = compared(3, None, rounds=6)
    assert set(found) >= {"own", "nefele", "concentration", "per_node", "coupling"}
    assert found["nefele"] >= found["own"] - 0.05
