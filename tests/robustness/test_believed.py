"""A checkpoint is of this very problem, and what it claims is proven again."""

import io
import zipfile
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal

import numpy as np
import pytest

from nefele import ConvergenceWarning, Problem, Status, solve
from nefele._records import read_record, write_record
from nefele.graphs import sbm
from nefele.losses import HuberLoss, Squared
from nefele.penalties import HuberPenalty
from nefele.solvers.loop.fingerprint import fingerprint
from tests.contracts.cases import LOSSES, PENALTIES
from tests.problems import chain_problem, random_data


def other(problem, loss="squared", penalty="l2", lam=None):
    lam = problem.lam if lam is None else lam
    return Problem(problem.graph, problem.data, loss=loss, penalty=penalty, lam=lam)


BASE = chain_problem(n=12)
SWAPS = {
    "ridge": (other(BASE, Squared(l2=0.3)), other(BASE, Squared(l2=0.0))),
    "slightly less ridge": (other(BASE, Squared(l2=0.3)), other(BASE, Squared(l2=0.3 - 1e-9))),
    "huber": (other(BASE, HuberLoss(delta=8.0)), other(BASE, HuberLoss(delta=1.0))),
    "huber penalty": (
        other(BASE, penalty=HuberPenalty(0.5)),
        other(BASE, penalty=HuberPenalty(0.5 + 1e-12)),
    ),
    "lam": (BASE, other(BASE, lam=BASE.lam * (1 + 1e-12))),
}


@pytest.mark.parametrize("name", SWAPS)
def test_a_checkpoint_of_another_problem_is_refused(tmp_path, name):
    first, second = SWAPS[name]
    solve(first, checkpoint=tmp_path / "a.npz")
    with pytest.raises(ValueError, match="must be of the same problem"):
        solve(second, resume=tmp_path / "a.npz")
    assert solve(first, resume=tmp_path / "a.npz").converged


@pytest.mark.parametrize("name", ["ridge", "huber"])
def test_a_claimed_bound_is_not_believed(tmp_path, name):
    first, second = SWAPS[name]
    file = tmp_path / "a.npz"
    solve(first, "primal_dual", tol=1e-9, checkpoint=file)
    facts, arrays = read_record(file, "nefele checkpoint", 2)
    kind, version = facts.pop("format"), facts.pop("version")
    forged = {**facts, "problem": fingerprint(second)}
    write_record(file, kind, version, forged, arrays)
    best = solve(second, tol=1e-10)
    with pytest.warns(ConvergenceWarning):
        found = solve(second, "primal_dual", tol=1e-9, max_iter=facts["iteration"], resume=file)
    assert found.status is Status.MAX_ITER
    real = found.objective - best.objective
    assert real > 1e-3 and found.gap_abs >= real - best.gap_abs


def varied(thing):
    """The same loss or penalty with each of its numbers changed a little."""
    for field in fields(thing) if is_dataclass(thing) else ():
        value = getattr(thing, field.name)
        if isinstance(value, float) and np.isfinite(value) and (field.name != "l1" or value):
            yield replace(thing, **{field.name: value + 1e-9})
        elif is_dataclass(value):
            yield from (replace(thing, **{field.name: part}) for part in varied(value))
        elif isinstance(value, tuple) and all(isinstance(number, float) for number in value):
            for j, number in enumerate(value):
                ends = (*value[:j], number + 1e-9, *value[j + 1 :])
                if np.isfinite(number) and (field.name != "l1" or number):
                    yield replace(thing, **{field.name: ends})
        elif field.name == "Q":
            yield replace(thing, Q=np.asarray(value) * (1 + 1e-12))


@pytest.mark.parametrize("case", [c for c in LOSSES if is_dataclass(c.loss)], ids=lambda c: c.name)
def test_every_parameter_of_a_loss_counts(case):
    data = random_data(np.random.default_rng(0), [6] * 12, 2, case.labels)

    def mark(loss):
        return fingerprint(Problem(BASE.graph, data, loss=loss, lam=1.0))

    marks = [mark(loss) for loss in (case.loss, *varied(case.loss))]
    assert len(set(marks)) == len(marks)
    assert mark(replace(case.loss)) == marks[0]


@pytest.mark.parametrize("name", PENALTIES)
def test_every_parameter_of_a_penalty_counts(name):
    penalty = PENALTIES[name](2)
    marks = [fingerprint(other(BASE, penalty=p)) for p in (penalty, *varied(penalty))]
    assert len(set(marks)) == len(marks)
    assert fingerprint(other(BASE, penalty=PENALTIES[name](2))) == marks[0]


def test_what_a_problem_has_computed_does_not_count():
    problem = other(BASE)
    before = fingerprint(problem)
    solve(problem)
    assert fingerprint(problem) == before


def reshaped(path, member, old, new):
    """Change the declared shape of one array; zip's checksums are right again."""
    with zipfile.ZipFile(path) as file:
        parts = {info.filename: file.read(info) for info in file.infolist()}
    name = f"{member}.npy"
    assert str(old).encode() in parts[name]
    text = str(new).encode().ljust(len(str(old)))
    parts[name] = parts[name].replace(str(old).encode(), text, 1)
    with zipfile.ZipFile(path, "w") as file:
        for part, content in parts.items():
            file.writestr(part, content)


@pytest.mark.parametrize("member", ["w", "u", "best_w", "dual_w", "dual_u"])
@pytest.mark.parametrize("rows", [0, 1])
def test_a_smaller_declared_shape_is_damage(tmp_path, member, rows):
    graph = sbm([15, 15], 0.4, 0.05, seed=0)
    data = random_data(np.random.default_rng(0), [5] * 30, 2)
    problem = Problem(graph, data, lam=0.1)
    file = tmp_path / "a.npz"
    with pytest.warns(ConvergenceWarning):
        solve(problem, "primal_dual", tol=1e-300, max_iter=60, checkpoint=file)
    count = 30 if member.endswith("w") else graph.n_edges
    reshaped(file, member, (count, 2), (rows, 2))
    with pytest.raises(ValueError, match="damaged"):
        solve(problem, "primal_dual", resume=file)


@pytest.mark.parametrize("wrong", ["shape", "nan", "dtype", "missing", "scalars", "history"])
def test_a_record_with_a_right_hash_and_wrong_parts_is_refused(tmp_path, wrong):
    file = tmp_path / "a.npz"
    with pytest.warns(ConvergenceWarning):
        solve(BASE, "primal_dual", tol=1e-300, max_iter=60, checkpoint=file)
    facts, arrays = read_record(file, "nefele checkpoint", 2)
    kind, version = facts.pop("format"), facts.pop("version")
    if wrong == "shape":
        arrays["u"] = arrays["u"][:-1]
    elif wrong == "nan":
        arrays["w"] = np.where(arrays["w"] > 0, np.nan, 0.0)
    elif wrong == "dtype":
        arrays["w"] = arrays["w"].astype(np.float32)
    elif wrong == "missing":
        del arrays["dual_u"]
    elif wrong == "scalars":
        facts["scalars"] = {"gamma": "much"}
    else:
        facts["history"] = [["late", None, 1, 2, 3, 4]]
    write_record(file, kind, version, facts, arrays)
    with pytest.raises(ValueError, match="damaged"):
        solve(BASE, "primal_dual", resume=file)


def stopped_early(folder, solver):
    """A problem, the checkpoint of three iterations on it, and what that holds."""
    file = folder / "a.npz"
    problem = other(BASE, penalty="squared_l2" if solver == "quadratic_cg" else "l2")
    with pytest.warns(ConvergenceWarning):
        solve(problem, solver, tol=1e-300, max_iter=3, checkpoint=file)
    return problem, file, *read_record(file, "nefele checkpoint", 2)


def rewrite(file, facts, arrays):
    """Write a checkpoint with a right hash."""
    write_record(file, "nefele checkpoint", 2, facts, arrays)


FORGED = {
    "admm": [{"rho": "much"}, {"rho": 0.0}, {"k": None}, {"changes": [1]}],
    "newton": [{"length": "long"}, {"first": None}, {"steps": {}}, {"damp": [0]}],
    "quadratic_cg": [{"rz": "small"}, {"objective": None}],
    "primal_dual": [{"gamma": 0.0}, {"gamma": -1.0}, {"turn": "left"}, {"guess": [1]}],
    "spdhg": [{"rng": {"bit_generator": "MT19937"}}, {"rng": 3}],
}


@pytest.mark.parametrize("solver", FORGED)
def test_forged_numbers_of_a_solver_are_refused(tmp_path, solver):
    problem, file, facts, arrays = stopped_early(tmp_path, solver)
    for change in FORGED[solver]:
        forged = {**facts, "scalars": {**facts["scalars"], **change}}
        rewrite(file, forged, arrays)
        with pytest.raises(ValueError, match="damaged"):
            solve(problem, solver, resume=file)
    for change in ({"iteration": 10**400}, {"seconds": 10**400}, {"bounded": 1}):
        rewrite(file, {**facts, **change}, arrays)
        with pytest.raises(ValueError, match="damaged"):
            solve(problem, solver, resume=file)


class Anchor:
    """A loss of a user's own, with what may hide its parameters."""

    d = 2

    def __init__(self, **given):
        vars(self).update(given)

    def __call__(self):
        return None

    def value(self, w):
        return ((w - 1.0) ** 2).sum(axis=1)

    def prox(self, v, step):
        return (v + 2 * step[:, None]) / (1 + 2 * step[:, None])


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"_points": np.ones(3)}, {"_points": np.ones(3) + 1e-8}),
        ({"points": np.ones(3)}, {"points": -np.ones(3)}),
        ({"chosen": {1, 2}}, {"chosen": {1, 3}}),
        ({"size": Decimal("1.5")}, {"size": Decimal("1.6")}),
        ({"inner": Anchor(x=1)}, {"inner": Anchor(x=2)}),
    ],
)
def test_losses_of_a_users_own_are_told_apart_by_their_attributes(one, two):
    def mark(given):
        return fingerprint(Problem(BASE.graph, None, loss=Anchor(**given), lam=1.0))

    assert mark(one) == mark(dict(one)) != mark(two)


def test_a_declared_size_is_compared_before_anything_is_allocated(tmp_path):
    file = tmp_path / "a.npz"
    solve(BASE, checkpoint=file)
    with zipfile.ZipFile(file) as stored:
        parts = {info.filename: stored.read(info) for info in stored.infolist()}
    huge = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        huge, {"shape": (10**12,), "fortran_order": False, "descr": "<f8"}
    )
    parts["w.npy"] = huge.getvalue() + bytes(800)
    with zipfile.ZipFile(file, "w") as stored:
        for name, content in parts.items():
            stored.writestr(name, content)
    with pytest.raises(ValueError, match="damaged"):
        solve(BASE, resume=file)


@pytest.mark.parametrize("solver", ["newton", "primal_dual", "quadratic_cg", "admm", "spdhg"])
def test_what_a_solver_remembers_must_have_its_shape(tmp_path, solver):
    problem, file, facts, arrays = stopped_early(tmp_path, solver)
    own = [name for name, a in arrays.items() if name.startswith("extra_") and len(a) > 1]
    assert own
    for name in own:
        rewrite(file, facts, {**arrays, name: arrays[name][:1]})
        with pytest.raises(ValueError, match="damaged"):
            solve(problem, solver, resume=file)
