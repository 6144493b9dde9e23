"""Against known worst records the mechanism tells as much as it may, the broken twins tell more."""

import numpy as np
import pytest

from nefele import Graph, LocalData
from nefele.losses import Absolute
from nefele.penalties import L2Norm
from nefele.privacy import calibrate
from nefele.privacy.updates import Updates
from tests.privacy.twins import HalfNoise, NoisePerNeighbour, RawFeedback

ROUNDS, TRIALS = 20, 400
ROOM = 4 * np.sqrt(2 / TRIALS)  # four standard errors
ALONE = Graph([0], [], [])


def told(kind, epsilon=10.0):
    """How many deviations apart the best linear score is for two worst records."""
    z = calibrate(epsilon, 1e-6, ROUNDS)
    run = kind(ALONE, Absolute(), L2Norm(), 0.0, ROUNDS, z, 1.0)
    rng = np.random.default_rng(0)
    scores = {}
    for sign in (1.0, -1.0):
        data = LocalData(np.ones((1, 1)), np.array([sign * 1e9]), [0, 1])
        said = np.array([run.release(data, rng)[:, 0, 0] for _ in range(TRIALS)])
        # Who knows the rule looks at the steps, or for raw feedback at the distance walked.
        steps = np.diff(said, axis=1, prepend=0.0)
        walked = said @ np.arange(1.0, ROUNDS + 1)
        scores[sign] = steps.sum(axis=1) if kind is not RawFeedback else walked
        if kind is NoisePerNeighbour:
            scores[sign] = said[:, 0]
    apart = scores[1.0].mean() - scores[-1.0].mean()
    return apart / np.sqrt((scores[1.0].var() + scores[-1.0].var()) / 2), np.sqrt(ROUNDS) / z


def test_the_mechanism_tells_what_was_accounted_and_no_more():
    found, allowed = told(Updates)
    assert found == pytest.approx(allowed, abs=ROOM)


@pytest.mark.parametrize("kind", [HalfNoise, RawFeedback])
def test_twins_tell_more(kind):
    found, allowed = told(kind)
    assert found > allowed + ROOM


def test_one_message_to_several_neighbours_is_told_several_times():
    found, allowed = told(NoisePerNeighbour)
    one = allowed / np.sqrt(ROUNDS)  # what one message may tell
    assert found > one + ROOM
