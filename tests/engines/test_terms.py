"""What is minimised over parts: one penalty, the same classes in all parts, and which problem."""

import numpy as np
import polars as pl
import pytest

from nefele import LocalData, Problem, solve
from nefele.engines import partition, solve_parts
from nefele.engines.files import read_index
from nefele.engines.terms import mark, terms_of
from nefele.graphs import chain
from nefele.losses import Constrained, GraphicalLasso, Multinomial
from nefele.penalties import ByEdge, L2Norm, Quadratic, SquaredL2

NAMES = {"node": "place", "target": "y"}
HERE = {"engine": "in_process", "intercept": False}


def labelled():
    """A chain of 8 nodes; the last of three classes is in its second half only."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 6, 2))
    y = np.concatenate([rng.integers(0, 2, size=(4, 6)), rng.integers(0, 3, size=(4, 6))])
    return Problem(
        chain(8), LocalData.from_list(list(zip(X, y, strict=True))), "multinomial", lam=0.5
    )


def parted(folder, problem, parts=2):
    data, graph = problem.data, problem.graph
    names = {f"f{j}": data.X[:, j] for j in range(data.d)}
    pl.DataFrame({"place": data.row_node, **names, "y": data.y}).write_parquet(folder / "r.parquet")
    pairs = pl.DataFrame({"source": graph.head, "target": graph.tail})
    pairs.write_parquet(folder / "e.parquet")
    paths = folder / "r.parquet", folder / "e.parquet"
    return partition(*paths, parts=parts, out=folder / "parts", **NAMES)


@pytest.fixture
def places(tmp_path):
    parted(tmp_path, labelled())
    return tmp_path / "parts", tmp_path / "fit"


@pytest.mark.parametrize("loss", ["multinomial", Multinomial(3), Multinomial(l2=0.1)])
def test_all_parts_have_the_classes_of_all_labels(places, loss):
    problem = Problem(chain(8), labelled().data, loss, lam=0.5)
    whole = solve(problem, tol=1e-6)
    fit = solve_parts(*places, lam=0.5, loss=loss, tol=1e-4, **HERE)
    assert fit.converged and fit.objective == pytest.approx(whole.objective, rel=2e-4)
    found = fit.parameters().sort("place").collect()
    assert found.columns[1:] == [f"f{j} [{k}]" for k in range(3) for j in range(2)]
    np.testing.assert_allclose(found.drop("place").to_numpy(), whole.w, atol=0.05)


def test_several_classes_and_an_intercept(places):
    options = {"lam": 0.5, "loss": "multinomial", "engine": "in_process", "tol": 1e-3}
    found = solve_parts(*places, **options).parameters().collect()
    assert found.columns[1:] == [f"{x} [{k}]" for k in range(3) for x in ("f0", "f1", "intercept")]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"penalty": ByEdge([L2Norm(), SquaredL2()], [0, 1, 1, 0])}, "the same for all edges"),
        ({"penalty": {(0, 1): L2Norm(), None: SquaredL2()}}, "the same for all edges"),
        ({"penalty": Quadratic(np.eye(3))}, r"Q must have shape \(2, 2\)"),
        ({"loss": GraphicalLasso(0.1)}, "one parameter for each of the 2 columns"),
        ({"loss": Constrained(GraphicalLasso())}, "needs a loss with a gradient"),
    ],
)
def test_what_does_not_fit_parts_is_refused_before_any_work(places, options, said):
    with pytest.raises(ValueError, match=said):
        solve_parts(*places, lam=0.5, **options, **HERE)
    assert not places[1].exists()


def test_labels_that_are_wrong_are_named_by_node_and_nothing_is_left(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(2, 2)), [1.0, -1.0 if i else 0.5]) for i in range(6)]
    data = LocalData.from_list(rows)
    frame = pl.DataFrame({"place": [f"n{i}" for i in data.row_node], "f": data.X[:, 0]})
    frame.with_columns(y=data.y).write_parquet(tmp_path / "r.parquet")
    pairs = pl.DataFrame({"source": [f"n{i}" for i in range(5)]})
    pairs = pairs.with_columns(target=pl.Series([f"n{i + 1}" for i in range(5)]))
    pairs.write_parquet(tmp_path / "e.parquet")
    paths = tmp_path / "r.parquet", tmp_path / "e.parquet"
    partition(*paths, parts=2, out=tmp_path / "parts", **NAMES)
    with pytest.raises(ValueError, match="at node 'n0'"):
        solve_parts(tmp_path / "parts", tmp_path / "a" / "fit", lam=1.0, loss="logistic", **HERE)
    assert not (tmp_path / "a").exists()


def test_problems_are_told_apart_by_every_bit_of_their_penalties(tmp_path):
    problem = labelled()
    index = parted(tmp_path, problem)
    near = np.eye(2)
    near[1, 1] += 1e-10
    marks = {
        mark(index, terms_of("squared", Quadratic(Q), 0.5, False, index)) for Q in (np.eye(2), near)
    }
    assert len(marks) == 2
    again = mark(read_index(str(tmp_path / "parts")), terms_of("squared", "l2", 0.5, False, index))
    assert again == mark(index, terms_of("squared", L2Norm(), 0.5, False, index))


def test_a_checkpoint_of_another_large_penalty_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(45, 40)), rng.normal(size=45)) for _ in range(4)]
    parted(tmp_path, Problem(chain(4), LocalData.from_list(rows), lam=0.3))
    other = np.eye(40)
    other[20, 20] = 50.0  # numpy's own words for both are the same
    options = {"lam": 0.3, "tol": None, "max_iter": 4, **HERE}
    kept = {"checkpoint": tmp_path / "kept", "every": 2}
    options |= kept
    solve_parts(tmp_path / "parts", tmp_path / "a", penalty=Quadratic(np.eye(40)), **options)
    with pytest.raises(ValueError, match="the problem differs"):
        solve_parts(
            tmp_path / "parts",
            tmp_path / "b",
            penalty=Quadratic(other),
            resume=tmp_path / "kept",
            **options,
        )
