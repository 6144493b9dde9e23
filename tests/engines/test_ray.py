"""Ray: the result of one process, whoever is killed; nothing listens beyond this machine."""

import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from nefele import load, solve
from nefele.cli._app import app
from nefele.engines import partition, solve_parts
from nefele.losses import Logistic
from nefele.runtime.checkpoints import checkpoints
from nefele.runtime.cutting import cut
from nefele.runtime.drivers.ray_actors import Actors
from nefele.runtime.job import Job, Packed, links_of
from nefele.runtime.plan import Plan
from nefele.solvers import PrimalDual
from tests.engines.deadly import Deadly
from tests.engines.listening import LOOPBACK, listening
from tests.engines.problems import posed, written
from tests.engines.ray_instance import small_ray

STEPS = PrimalDual(polish=False)
PARTS = [2, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 4))]


@pytest.fixture(scope="module")
def ray():
    with small_ray() as found:
        yield found


@pytest.fixture(scope="module")
def problem():
    return posed()


@pytest.fixture(scope="module")
def alone(problem):
    return solve(problem, STEPS, tol=None, max_iter=80)


@pytest.mark.parametrize("parts", PARTS)
def test_the_bits_of_one_process(ray, problem, alone, parts):
    result = solve(problem, tol=None, max_iter=80, engine="ray", parts=parts)
    assert np.array_equal(result.w, alone.w)
    assert result.gap == pytest.approx(alone.gap, rel=0, abs=1e-9)
    assert len(result.costs.parts) == parts
    assert all(part.compute > 0 for part in result.costs.parts)


def test_nothing_listens_beyond_the_loopback_device(ray, problem):
    seen = []
    solve(
        problem,
        tol=1e-3,
        engine="ray",
        parts=2,
        callback=lambda record: seen.append(listening()),
    )
    assert seen and all(seen)
    assert not [ip for found in seen for ip in found if not ip.startswith(LOOPBACK)]


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["l2", "l1", "squared_l2"])
@pytest.mark.parametrize("loss", ["squared", Logistic(l2=0.05)], ids=["squared", "logistic"])
def test_the_bits_of_one_process_for_losses_and_penalties(ray, loss, penalty):
    problem = posed(loss, penalty)
    alone = solve(problem, STEPS, tol=None, max_iter=40)
    for parts in (1, 2, 4):
        result = solve(problem, tol=None, max_iter=40, engine="ray", parts=parts)
        assert np.array_equal(result.w, alone.w)
        assert result.gap == pytest.approx(alone.gap, rel=0, abs=1e-9)


# -- who is killed ----------------------------------------------------------------------------


def run_actors(problem, folder, parts=2, n_iter=80, restarts=5, **deadly):
    """A solve whose actors kill themselves; W of the whole and how many were lost."""
    made = cut(problem, parts)
    kept = checkpoints(folder, 20, {"problem": "p", "solver": "s"})
    kept = Deadly(kept.folder, kept.every, kept.marks, **deadly)
    job = Job(Plan(STEPS, None, n_iter), links_of(made), kept)
    actors = Actors(job, [Packed.of(part) for part in made], restarts)
    w = np.full((problem.graph.n_nodes, problem.d), np.nan)
    for part, done in zip(made, actors.run(), strict=True):
        w[part.nodes] = done.ended.w
    return w, actors.lost


def test_an_actor_killed_in_an_iteration_while_another_dies_in_writing(
    ray, problem, alone, tmp_path
):
    at, writing = ((33, 1),), ((60, 0),)
    w, lost = run_actors(problem, tmp_path, at=at, writing=writing)
    assert lost == 2 and np.array_equal(w, alone.w)


@pytest.mark.slow
def test_actors_killed_three_times_in_a_row(ray, problem, alone, tmp_path):
    at = ((33, 1), (34, 0), (34, 1))
    w, lost = run_actors(problem, tmp_path, at=at)
    assert lost == 3 and np.array_equal(w, alone.w)


@pytest.mark.slow
def test_an_actor_killed_before_the_first_checkpoint(ray, problem, alone, tmp_path):
    w, lost = run_actors(problem, tmp_path, parts=4, at=((5, 2),))
    assert lost == 1 and np.array_equal(w, alone.w)


@pytest.mark.slow
def test_actors_are_not_replaced_for_ever(ray, problem, tmp_path):
    with pytest.raises(RuntimeError, match="At most 0 actors may be lost"):
        run_actors(problem, tmp_path, restarts=0, at=((5, 1),))


@pytest.mark.slow
def test_an_error_of_an_actor_is_that_of_the_solve(ray, problem, tmp_path):
    solve(problem, tol=None, max_iter=10, engine="in_process", parts=2, checkpoint=tmp_path)
    for path in tmp_path.glob("part-*"):
        path.unlink()
    with pytest.raises(ValueError, match="iteration 10 is missing, damaged"):
        solve(problem, tol=None, max_iter=80, engine="ray", parts=2, resume=tmp_path)


def test_too_many_parts_for_the_cluster(ray, problem):
    with pytest.raises(ValueError, match="at most the CPUs of the cluster, 4; got 5"):
        solve(problem, tol=None, max_iter=5, engine="ray", parts=5)


@pytest.mark.slow
def test_the_callback_stops_the_solve(ray, problem):
    result = solve(problem, tol=1e-13, engine="ray", parts=2, callback=lambda record: True)
    assert result.status == "stopped"


def test_actors_read_their_own_parts_and_write_their_own_parameters(ray, problem, alone, tmp_path):
    names = {"node": "place", "target": "y"}
    partition(*written(tmp_path, problem), parts=2, out=tmp_path / "parts", **names)
    options = {"lam": problem.lam, "tol": None, "max_iter": 80, "intercept": False}
    fit = solve_parts(tmp_path / "parts", tmp_path / "fit", engine="ray", **options)
    found = fit.parameters().sort("place").collect().drop("place").to_numpy()
    assert np.array_equal(found, alone.w)


@pytest.mark.slow
def test_a_run_with_ray(ray, tmp_path):
    data, edges = written(tmp_path, posed(side=6), kind="csv")
    line = ["fit", data, "--node", "place", "--target", "y", "--graph", edges, "--penalty", "l2"]
    line += ["--alpha", 0.3, "--engine", "ray", "--parts", 2, "--allow-isolates"]
    done = CliRunner().invoke(app, [str(word) for word in [*line, "--out", tmp_path / "run"]])
    assert done.exit_code == 0, done.output
    assert load(tmp_path / "run" / "model.nefele").status_ == "optimal"


ASKS = """
import numpy as np
from nefele import solve
from tests.engines.problems import posed
result = solve(posed(), tol=None, max_iter=80, engine="ray", parts=2, address={address!r})
print(np.float64(result.w.sum()).hex())
"""


@pytest.mark.slow
def test_a_cluster_that_runs_already(ray, alone):
    address = ray.get_runtime_context().gcs_address
    asking = [sys.executable, "-c", ASKS.format(address=address)]
    run = subprocess.run(asking, capture_output=True, text=True, check=True, timeout=600)
    assert np.float64(alone.w.sum()).hex() in run.stdout
    assert ray.is_initialized() and ray.cluster_resources()["CPU"] == 4
