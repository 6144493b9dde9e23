"""No pair of records moves what is released further than the noise is made for."""

import numpy as np
import pytest

from nefele import Graph, LocalData
from nefele.losses import Absolute, Hinge, HuberLoss, Logistic, Multinomial, Poisson, Squared
from nefele.penalties import L2Norm
from nefele.privacy import Bounds, predictions, statistics
from nefele.privacy.sensitivity import lipschitz, of_predictions, of_probabilities, of_statistics
from nefele.privacy.updates import Steps, Updates
from tests.privacy.worst import QUIET, Silent, worst_distance

ROOM = 1 + 1e-6  # rounding of differences
MANY = [pytest.param(500, marks=pytest.mark.slow), 25]


def check_all(search, count):
    shares = np.array([search(np.random.default_rng([7, k])) for k in range(count)])
    assert (shares <= ROOM).sum() == count, f"{(shares > ROOM).sum()} violations in {count}"
    assert shares.max() >= 0.99, f"the bound is {1 / shares.max():.3f} times the worst pair"


@pytest.mark.parametrize("count", MANY)
@pytest.mark.parametrize("unit", ["record", "node"])
def test_statistics(count, unit):
    def search(rng):
        d, m = int(rng.integers(1, 5)), int(rng.integers(1, 8))
        ranges = [sorted(pair) for pair in rng.normal(size=(d, 2)).tolist()]
        box = Bounds(x=float(rng.uniform(0.1, 9)) if rng.random() < 0.7 else ranges, y=3.0)
        box = box.fixed(d)
        X, y = 3 * rng.normal(size=(m, d)), 3 * rng.normal(size=m)

        def output(record):
            rows, target = X.copy(), y.copy()
            rows[: m if unit == "node" else 1], target[: m if unit == "node" else 1] = (
                record[:d],
                record[d],
            )
            found = statistics.release(rows, target, box, QUIET, unit, Silent())
            upper = np.triu_indices(len(found))  # each number that is released, in its own units
            return found[upper] * np.where(upper[0] == upper[1], 1.0, np.sqrt(2))

        spread = statistics.deviation(1.0, m, unit)
        return worst_distance(output, d + 1, rng) / spread

    check_all(search, count)


@pytest.mark.parametrize("count", [pytest.param(500, marks=pytest.mark.slow), 8])
@pytest.mark.parametrize("step", ["gradient", "prox"])
def test_updates(count, step):
    def search(rng):
        smooth = [*[HuberLoss(delta=float(rng.uniform(0.1, 2)))] * 2, Logistic(), Logistic(l2=0.3)]
        kinds = [*smooth, Absolute(), Hinge(), Multinomial(3)] if step == "gradient" else smooth
        loss = kinds[int(rng.integers(len(kinds)))]
        d, m = int(rng.integers(1, 4)), int(rng.integers(1, 5))
        graph = Graph.from_edges([(0, 1)])
        radius = float(rng.uniform(0.3, 3))
        run = Updates(graph, loss, L2Norm(), 0.5, 10, 1.0, radius, None, "record", step)
        X, y = rng.normal(size=(m + 1, d)), rng.normal(size=m + 1) * 10 ** rng.uniform(-1, 5)
        steps, width = [], d * (3 if isinstance(loss, Multinomial) else 1)
        w = rng.normal(size=(2, width)) * 10 ** rng.uniform(-2, 2)
        flow = rng.normal(size=(2, width))

        def output(record):
            rows, target = X.copy(), y.copy()
            rows[0], target[0] = record[:d], record[d]
            rows *= radius / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), radius)
            data = LocalData(rows, labels(loss, target), [0, m, m + 1])
            steps[:] = [Steps(run, data)]
            return steps[0].moved(w, flow)[0]

        found = worst_distance(output, d + 1, rng, starts=2, steps=250)
        return found / steps[0].deviation[0]

    check_all(search, count)


def labels(loss, y):
    if isinstance(loss, Logistic | Hinge):
        return np.where(y > 0, 1.0, -1.0)
    return np.clip(np.rint(np.abs(y)), 0, 2) if isinstance(loss, Multinomial) else y


def test_updates_of_a_whole_node():
    rng = np.random.default_rng(0)
    graph = Graph.from_edges([(0, 1)])
    run = Updates(graph, Absolute(), L2Norm(), 0.5, 10, 1.0, 1.0, None, "node")
    shares = []
    for _ in range(40):
        m = int(rng.integers(1, 6))
        moved = []
        for sign in (1, -1):
            x = np.ones((m + 1, 1)) if rng.random() < 0.5 else rng.uniform(-1, 1, (m + 1, 1))
            steps = Steps(run, LocalData(x, sign * 1e6 * np.ones(m + 1), [0, m, m + 1]))
            moved.append(steps.moved(np.zeros((2, 1)), np.zeros((2, 1)))[0])
        shares.append(np.linalg.norm(moved[0] - moved[1]) / steps.deviation[0])
    assert 0.99 <= max(shares) <= ROOM


@pytest.mark.parametrize("count", MANY)
@pytest.mark.parametrize("classes", [False, True])
def test_predictions(count, classes):
    def search(rng):
        m, k, shared = int(rng.integers(1, 12)), int(rng.integers(1, 5)), int(rng.integers(1, 6))
        low, high = np.sort(rng.normal(size=2)) * 5
        rows = rng.normal(size=(m, 3))
        weights = rng.normal(size=(3, shared))

        def output(record):
            own = rows.copy()
            own[0] = record

            def fit(part):  # a model as sensitive as can be: any number for any rows
                score = own[part].sum(axis=0) @ weights
                if not classes:
                    return 1e3 * score
                sure = np.where(score > 0, 1.0, 0.0)
                return np.column_stack([sure, 1 - sure])

            if classes:
                return predictions.release_classes(fit, m, k, QUIET, "record", Silent()).ravel()
            return predictions.release(fit, m, low, high, k, QUIET, "record", Silent())

        bound = of_probabilities(shared, k, "record")
        bound = bound if classes else of_predictions(high - low, shared, k, "record")
        return worst_distance(output, 3, rng, starts=4, steps=60) / bound

    check_all(search, count)


def test_shards_share_no_rows():
    parts = predictions.shards_of(17, 5)
    assert sorted(np.concatenate(parts).tolist()) == list(range(17))


def test_a_node_hides_behind_the_whole_range_whatever_its_shards():
    assert of_predictions(2.0, 9, 10, "node") == 6.0
    assert of_predictions(2.0, 9, 10, "record") == pytest.approx(0.6)


def test_statistics_of_short_rows_about_a_constant():
    rng = np.random.default_rng(0)
    for radius in (0.2, 0.9, 1.0, 2.0):
        bound, found = of_statistics(radius, 1.0), 0.0
        for _ in range(3000):
            a, b = rng.normal(size=(2, 3))
            a, b = (np.append(radius * v / np.linalg.norm(v), 1.0) for v in (a, b))
            found = max(found, np.linalg.norm(np.outer(a, a) - np.outer(b, b)))
        assert 0.97 * bound <= found <= bound * ROOM


@pytest.mark.parametrize(
    "loss", [Logistic(), HuberLoss(delta=0.7), Absolute(), Hinge(), Squared(), Poisson()]
)
def test_slopes_stay_below_their_bound(loss):
    rng = np.random.default_rng(1)
    bound = lipschitz(loss, 2.0, weights=3.0, target=4.0)
    if isinstance(loss, Poisson):
        assert bound is None
        return
    x = rng.normal(size=(5000, 2))
    x *= 2 / np.linalg.norm(x, axis=1, keepdims=True)
    w = rng.normal(size=(5000, 2))
    w *= 3 / np.linalg.norm(w, axis=1, keepdims=True)
    signs = isinstance(loss, Logistic | Hinge)
    y = rng.choice([-1.0, 1.0], 5000) if signs else rng.uniform(-4, 4, 5000)
    size = np.abs(loss.slope((x * w).sum(axis=1), y)) * 2
    assert 0.9 * bound <= size.max() <= bound * ROOM


def test_the_squared_loss_alone_has_no_bound():
    assert lipschitz(Squared(), 1.0) is None
