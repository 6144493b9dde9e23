"""`nefele.solve` by parts: checkpoints, restarts with other parts, costs, and what is refused."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import nefele
from nefele import solve
from nefele.engines import PartsResult
from nefele.penalties import L2Norm, Partial, Quadratic
from nefele.penalties.quadratic import times
from nefele.solvers import PrimalDual
from tests.engines.problems import posed

STEPS = PrimalDual(polish=False)


@pytest.fixture(scope="module")
def problem():
    return posed()


@pytest.fixture(scope="module")
def alone(problem):
    return solve(problem, STEPS, tol=None, max_iter=80)


def by_parts(problem, n_iter=80, parts=3, **options):
    return solve(problem, tol=None, max_iter=n_iter, engine="in_process", parts=parts, **options)


def test_the_result_is_that_of_one_process_and_says_what_it_cost(problem, alone):
    result = by_parts(problem)
    assert isinstance(result, PartsResult) and isinstance(result, nefele.Result)
    assert np.array_equal(result.w, alone.w)
    assert result.gap == pytest.approx(alone.gap, rel=0, abs=1e-9)
    costs = result.costs
    assert sum(part.nodes for part in costs.parts) == problem.graph.n_nodes
    assert all(part.compute > 0 and part.exchanges >= 80 for part in costs.parts)
    rows = sum(part.seen for part in costs.parts)
    assert sum(part.bytes for part in costs.parts) >= 80 * 8 * problem.d * rows
    assert costs.imbalance >= 1 and "bound by" in str(costs)


@pytest.mark.parametrize("parts", [1, 3])
def test_a_large_problem_is_certified_by_parts_as_it_is_by_one_process(parts):
    """Large enough for compiled systems, and for rounds that begin with what the last has left."""
    target = posed(side=83, weights=False)
    whole = solve(target, STEPS, tol=None, max_iter=60)
    result = by_parts(target, 60, parts)
    assert np.array_equal(result.w, whole.w) and 0 < whole.gap < 0.1
    assert result.gap == pytest.approx(whole.gap, rel=0, abs=1e-9)


def test_a_tolerance_is_reached_and_the_callback_told(problem):
    seen = []
    result = solve(problem, tol=1e-4, engine="in_process", parts=2, callback=seen.append)
    assert result.converged and result.gap <= 1e-4
    assert [record.iteration for record in seen] == [r.iteration for r in result.history]


def test_the_callback_stops_the_solve(problem):
    result = solve(problem, tol=1e-15, engine="in_process", parts=2, callback=lambda record: True)
    assert result.status == "stopped" and result.n_iter == 50


def test_what_is_not_reached_is_warned_of_at_the_line_that_asked(problem):
    with pytest.warns(nefele.ConvergenceWarning) as caught:
        solve(problem, tol=1e-12, max_iter=60, engine="in_process", parts=2)
    assert caught[0].filename == __file__


def test_an_engine_that_runs_out_of_iterations_says_what_one_process_can_do(problem):
    with pytest.warns(nefele.ConvergenceWarning, match="solve it there.*increase max_iter or tol"):
        solve(problem, tol=1e-12, max_iter=60, engine="in_process", parts=2)


# -- the bits of one process ------------------------------------------------------------------


def small(loss, penalty, d, edges, seed=0):
    """Eight nodes with six rows each; those without an edge stand alone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 6, d))
    y = X @ np.ones(d) + rng.normal(size=(8, 6))
    if loss == "hinge":
        y = np.where(y > 0, 1.0, -1.0)
    data = nefele.LocalData.from_list(list(zip(X, y, strict=True)))
    graph = nefele.Graph.from_edges(edges, nodes=range(8))
    return nefele.Problem(graph, data, loss, penalty, lam=0.5)


CHAIN = [(i, i + 1) for i in range(7)]
SEMI = np.diag([1.0, 2.0, 0.0]) + np.diag([0.5, 0.0], 1) + np.diag([0.5, 0.0], -1)


@pytest.mark.parametrize(
    ("loss", "penalty", "d", "edges"),
    [
        ("squared", Quadratic(np.eye(8) + 1), 8, CHAIN),
        ("logistic", Quadratic(SEMI), 3, CHAIN),
        ("absolute", "l2", 3, CHAIN[:3]),
        ("hinge", "linf", 2, CHAIN[:3]),
        (nefele.losses.Quantile(0.3), Partial(L2Norm(), [0]), 3, CHAIN[:3]),
    ],
    ids=["a matrix", "a singular matrix", "alone", "alone with a hinge", "alone with quantiles"],
)
def test_every_loss_and_penalty_has_the_bits_of_one_process(loss, penalty, d, edges):
    if loss == "logistic":
        target = small("hinge", penalty, d, edges)
        target = nefele.Problem(target.graph, target.data, loss, penalty, lam=0.5)
    else:
        target = small(loss, penalty, d, edges)
    whole = solve(target, STEPS, tol=None, max_iter=20)
    for parts in (1, 2, 3, np.arange(8) % 3):
        assert np.array_equal(by_parts(target, 20, parts).w, whole.w)


def test_rows_times_a_matrix_do_not_depend_on_the_other_rows():
    rng = np.random.default_rng(0)
    for d in (1, 2, 3, 5, 8, 17, 40):
        rows, matrix = rng.normal(size=(601, d)), rng.normal(size=(d, d))
        whole = times(rows, matrix)
        np.testing.assert_allclose(whole, rows @ matrix, atol=1e-12)
        some = [times(rows[k : k + 2], matrix)[0] for k in range(601)]
        assert np.array_equal(np.stack(some), whole)
        assert np.array_equal(times(rows[37:580], matrix), whole[37:580])


# -- checkpoints ------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_a_resumed_solve_ends_in_the_same_bits_with_any_number_of_parts(
    problem, alone, tmp_path, parts
):
    by_parts(problem, 30, checkpoint=tmp_path, every=12)
    result = by_parts(problem, parts=parts, resume=tmp_path)
    assert np.array_equal(result.w, alone.w)
    assert result.gap == pytest.approx(alone.gap, rel=0, abs=1e-9)


def test_a_resumed_solve_to_a_tolerance_has_the_history_of_one_that_was_not_stopped(
    problem, tmp_path
):
    options = {"tol": 1e-4, "engine": "in_process", "solver": STEPS}
    whole = solve(problem, parts=2, **options)
    solve(
        problem,
        parts=2,
        checkpoint=tmp_path,
        every=70,
        callback=lambda r: r.iteration >= 225,
        **options,
    )
    result = solve(problem, parts=3, checkpoint=tmp_path, resume=tmp_path, **options)
    assert np.array_equal(result.w, whole.w) and result.converged
    assert [r.iteration for r in result.history] == [r.iteration for r in whole.history]


def test_the_logistic_loss_is_resumed(tmp_path):
    target = posed(nefele.losses.Logistic(l2=0.05))
    whole = by_parts(target, 40)
    by_parts(target, 25, checkpoint=tmp_path, every=10)
    assert np.array_equal(by_parts(target, 40, parts=4, resume=tmp_path).w, whole.w)


def test_without_resume_a_solve_starts_afresh(problem, tmp_path):
    by_parts(problem, 40, checkpoint=tmp_path, every=10)
    again = by_parts(problem, 20, checkpoint=tmp_path, every=10)
    assert again.n_iter == 20
    assert np.array_equal(again.w, by_parts(problem, 20).w)
    names = {path.name for path in tmp_path.glob("checkpoint-*.json")}
    assert names == {"checkpoint-000000010.json", "checkpoint-000000020.json"}


def test_two_checkpoints_are_kept(problem, tmp_path):
    by_parts(problem, 55, checkpoint=tmp_path, every=10)
    assert [k for k, _ in common(tmp_path)] == [50, 55]
    assert {path.name.split("-")[1] for path in tmp_path.glob("part-*")} == {
        "000000050",
        "000000055",
    }


def common(folder):
    files = sorted(path for path in folder.glob("checkpoint-0*.json") if path.is_file())
    return [(json.loads(path.read_text())["k"], path) for path in files]


def torn(path):
    path.write_bytes(path.read_bytes()[:-20])


@pytest.mark.parametrize("harm", [torn, Path.unlink], ids=["torn", "missing"])
@pytest.mark.parametrize("parts", [2, 3])
def test_a_harmed_checkpoint_is_not_used_but_the_one_before(problem, alone, tmp_path, harm, parts):
    by_parts(problem, 36, checkpoint=tmp_path, every=12)
    harm(tmp_path / "part-000000036-00001.npz")
    result = by_parts(problem, parts=parts, resume=tmp_path)
    assert np.array_equal(result.w, alone.w)


def test_no_checkpoint_is_whole(problem, tmp_path):
    by_parts(problem, 24, checkpoint=tmp_path, every=12)
    for path in tmp_path.glob("part-*-00001.npz"):
        torn(path)
    with pytest.raises(ValueError, match=r"part 1 of iteration 12 is missing, damaged"):
        by_parts(problem, resume=tmp_path)


def test_a_file_of_another_iteration_is_not_taken(problem, tmp_path):
    by_parts(problem, 24, checkpoint=tmp_path, every=12)
    old, new = (tmp_path / f"part-0000000{k}-00001.npz" for k in (12, 24))
    new.write_bytes(old.read_bytes())
    common(tmp_path)[0][1].unlink()
    with pytest.raises(
        ValueError, match="part 1 of iteration 24 is missing, damaged or of another"
    ):
        by_parts(problem, resume=tmp_path)


def test_damaged_common_files_are_passed_over(problem, alone, tmp_path):
    by_parts(problem, 24, checkpoint=tmp_path, every=12)
    common(tmp_path)[-1][1].write_text("{", encoding="utf-8")
    assert np.array_equal(by_parts(problem, resume=tmp_path).w, alone.w)


def test_checkpoints_of_other_problems_are_refused(problem, tmp_path):
    by_parts(problem, 12, checkpoint=tmp_path, every=12)
    with pytest.raises(ValueError, match="the problem differs"):
        by_parts(problem.with_lam(0.2), 8, resume=tmp_path)
    with pytest.raises(ValueError, match="the solver differs"):
        by_parts(problem, checkpoint=tmp_path, solver="algorithm1")
    assert [k for k, _ in common(tmp_path)] == [12]


FOREIGN = ("part-my-notes.npz", "part-7-notes.npz", "checkpoint-mine.json", "part-000000007.npz")


def test_foreign_files_are_left_alone(problem, alone, tmp_path):
    for name in FOREIGN:
        (tmp_path / name).write_text("mine", encoding="utf-8")
    for name in ("checkpoint-000000010.json", "part-000000010-00007.npz"):
        (tmp_path / name).mkdir()
    by_parts(problem, 48, checkpoint=tmp_path, every=12)
    assert all((tmp_path / name).read_text(encoding="utf-8") == "mine" for name in FOREIGN)
    assert [k for k, _ in common(tmp_path)] == [36, 48]
    assert np.array_equal(by_parts(problem, resume=tmp_path).w, alone.w)


@pytest.mark.parametrize("parts", ["Infinity", "NaN", "-1", '"2"', "null", "[]", "1e400"])
def test_a_common_file_with_no_number_of_parts_is_passed_over(problem, alone, tmp_path, parts):
    by_parts(problem, 24, checkpoint=tmp_path, every=12)
    path = common(tmp_path)[-1][1]
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"parts": 3', f'"parts": {parts}'), encoding="utf-8")
    assert np.array_equal(by_parts(problem, resume=tmp_path).w, alone.w)


def test_a_resumed_solve_must_be_allowed_the_iterations_that_were_done(problem, tmp_path):
    by_parts(problem, 24, checkpoint=tmp_path, every=12)
    with pytest.raises(ValueError, match="iteration to resume at, 24; got 10"):
        by_parts(problem, 10, resume=tmp_path)
    assert by_parts(problem, 24, resume=tmp_path).n_iter == 24


def test_one_folder_may_be_named_in_two_ways(problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    by_parts(problem, 12, checkpoint="kept", every=12)
    result = by_parts(problem, 24, checkpoint=tmp_path / "kept", resume="./kept")
    assert result.n_iter == 24


def test_what_losses_remember_is_kept(tmp_path):
    target = posed("absolute")
    whole = by_parts(target, 30)
    by_parts(target, 20, checkpoint=tmp_path, every=10)
    assert np.array_equal(by_parts(target, 30, resume=tmp_path).w, whole.w)


def test_checkpoints_that_cannot_be_written_cost_a_warning(problem, alone, tmp_path, monkeypatch):
    def full(path, *content):
        if "00001" in path.name:
            raise OSError(28, "No space left on device")
        return write_record(path, *content)

    from nefele._records import write_record

    monkeypatch.setattr("nefele.runtime.checkpoints.write_record", full)
    with pytest.warns(UserWarning, match="could not be written by 1 parts .*No space left"):
        result = by_parts(problem, checkpoint=tmp_path, every=30)
    assert np.array_equal(result.w, alone.w) and not common(tmp_path)


# -- other problems ---------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [0.0, 1e-3])
def test_nodes_that_nothing_couples(lam):
    graph = nefele.Graph.from_edges([(0, 1)], nodes=range(4))
    data = nefele.LocalData.from_list([([[1.0]], [float(i)]) for i in range(4)])
    target = nefele.Problem(graph, data, lam=lam)
    result = solve(target, engine="in_process", parts=[0, 1, 0, 1])
    assert result.converged
    np.testing.assert_allclose(result.w[:, 0], [lam / 2, 1 - lam / 2, 2, 3], atol=2e-3)


def test_components_without_data_stay_at_zero():
    graph = nefele.Graph.from_edges([(0, 1), (2, 3)])
    data = nefele.LocalData.from_list([([[1.0]], [1.0]), ([[1.0]], [3.0]), None, None])
    target = nefele.Problem(graph, data, lam=0.1)
    with pytest.warns(nefele.DataWarning, match="2 nodes are not connected to any data"):
        result = solve(target, engine="in_process", parts=2)
    assert result.undetermined.tolist() == [False, False, True, True]
    assert not result.w[2:].any()


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"engine": "spark"}, "engine must be one of in_process, ray, mpi"),
        ({"parts": 2}, "parts goes with an engine"),
        ({"address": "auto"}, "address goes with an engine"),
        ({"engine": "mpi", "address": "auto"}, "address must be that of a Ray cluster"),
        ({"engine": "in_process", "parts": 0}, "parts must be"),
        ({"engine": "in_process", "parts": 10_000}, "at most the number of nodes"),
        ({"engine": "in_process", "solver": "newton"}, "solver must be one of auto"),
        ({"engine": "in_process", "tol": -1.0}, "tol must be"),
        ({"engine": "in_process", "tol": None}, "give max_iter"),
        ({"engine": "in_process", "w0": np.zeros((196, 3))}, "starts at zero"),
        ({"engine": "in_process", "certify": False}, "starts at zero and certifies"),
        ({"engine": "in_process", "callback": 3}, "callback must be callable"),
        ({"engine": "in_process", "checkpoint": ""}, "name of a folder"),
        ({"engine": "in_process", "checkpoint": __file__}, "is a file"),
        ({"engine": "in_process", "resume": "nowhere"}, "No checkpoint in"),
        ({"engine": "in_process", "checkpoint": "a", "resume": "b"}, "must be the same folder"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(problem, tmp_path, monkeypatch, options, said):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=said):
        solve(problem, **options)
    assert not list(tmp_path.iterdir())


def test_what_is_no_problem_is_refused():
    with pytest.raises(ValueError, match="must be a Problem"):
        solve("problem", engine="in_process")


def test_every_must_be_a_count(problem, tmp_path):
    with pytest.raises(ValueError, match="every must be"):
        by_parts(problem, checkpoint=tmp_path / "new", every=0)
    for every in (0, -1, "x"):
        with pytest.raises(ValueError, match="every must be"):
            by_parts(problem, every=every)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("module", "extra"), [("ray", "ray"), ("mpi4py", "mpi"), ("pymetis", "parts")]
)
def test_packages_that_are_missing_are_named(problem, monkeypatch, module, extra):
    engine = {"ray": "ray", "mpi4py": "mpi", "pymetis": "in_process"}[module]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install \"nefele\[{extra}\]\""):
        solve(problem, tol=None, max_iter=5, engine=engine, parts=2)


class Own:
    """A loss of a user's own, for all nodes at once."""

    def value(self, w):
        return (w**2).sum(axis=1)

    def grad(self, w):
        return 2 * w


def test_a_loss_that_cannot_be_cut(problem):
    target = nefele.Problem(problem.graph, problem.data, loss=Own(), lam=0.1)
    with pytest.raises(ValueError, match="must be one that can be cut into parts"):
        solve(target, engine="in_process", parts=2)
