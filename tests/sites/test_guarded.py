"""Guards that a federation agrees to, and members that lie, between sites."""

import hashlib

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from nefele.estimators import load
from nefele.robust import (
    Alie,
    CentredClip,
    Clip,
    Constant,
    FLTrust,
    GeometricMedian,
    Guarded,
    InnerProduct,
    Krum,
    Median,
    Random,
    SignFlip,
    TrimmedMean,
)
from nefele.robust.naming import rule_of
from nefele.runtime import InProcess, relax_messages
from nefele.runtime.part import split
from nefele.runtime.programs import Fitted
from nefele.sites import learn_together
from nefele.sites.consent import consent_of
from nefele.sites.example import coast, some_rows
from nefele.sites.federation import Federation
from nefele.sites.guarding import fit_guarded
from nefele.sites.learning import Learner
from nefele.sites.members import Edge, Member, Target
from nefele.sites.predicting import Predictor
from nefele.sites.results import site_model
from nefele.sites.terms import Terms
from tests.e2e.commands import run
from tests.robust.networks import blocks
from tests.sites.running import Sites, learners, pilot, ring
from tests.sites.together import by_sites, in_process

ATTACKS = [Constant(1e4), Random(50.0, seed=3), SignFlip(3.0), Alie(1.5), InnerProduct(3.0)]
GUARDS = {
    "clip:0.5": Clip(0.5),
    "trimmed-mean:1": TrimmedMean(1),
    "median": Median(),
    "geometric-median": GeometricMedian(),
    "krum:1": Krum(1),
    "centred-clip:0.5:2": CentredClip(0.5, 2),
    "fltrust": FLTrust(),
}
RELAXED = {"method": "fedrelax", "penalty": "squared_l2", "l2": 0.01, "alpha": 20.0}
SHORT = {"rounds": 40, "check_every": 20, "tol": 1e-12}
EACH_ATTACK = pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: type(a).__name__)


def five(**changes):
    """Five members, all neighbours of each other; the last has two nodes."""
    names = [f"s{i}" for i in range(5)]
    nodes = [(name,) for name in names[:4]] + [("s4", "s4-b")]
    members = tuple(
        Member(q, own, f"{q}.example:7447") for q, own in zip(names, nodes, strict=True)
    )
    edges = [Edge(a, b) for k, a in enumerate(names) for b in names[:k]]
    return coast(members=members, edges=(*edges, Edge("s4", "s4-b")), **SHORT, **changes)


def programs_of(federation, rows, liar, attack):
    """The programs of all members, one of them changed."""
    programs = {name: Learner(federation, name, rows[name]).run() for name in rows}
    return programs | {liar: attack(programs[liar])}


def furthest(one, other, names):
    """The largest difference of two results at these members."""
    return max(np.abs(one[q].part.w1 - other[q].part.w1).max() for q in names)


@EACH_ATTACK
@pytest.mark.parametrize(
    "how", [{"alpha": 0.3}, {**RELAXED, "guard": "median"}], ids=["l2", "guard"]
)
def test_a_lying_member_between_sites_does_what_it_does_in_one_process(tmp_path, attack, how):
    federation = five(**how)
    rows = some_rows(federation)
    here = learn_together(federation, rows, wrap={"s1": attack})
    there, _ = by_sites(federation, programs_of(federation, rows, "s1", attack), tmp_path)
    assert furthest(here, there, rows) == 0.0
    assert furthest(here, learn_together(federation, rows), rows) > 0


@EACH_ATTACK
def test_honest_members_stay_near_with_a_guard_and_not_without(attack):
    honest = ["s0", "s2", "s3", "s4"]
    moved = {}
    for guard in (None, "median"):
        federation = five(**RELAXED, guard=guard)
        rows = some_rows(federation)
        clean = learn_together(federation, rows)
        lied = learn_together(federation, rows, wrap={"s1": attack})
        moved[guard] = furthest(lied, clean, honest)
    assert moved["median"] < 5.0  # of a target that goes from -50 to 40
    assert moved["median"] < moved[None] or moved[None] < 1.0  # ALIE hides among the others


@pytest.mark.parametrize("guard", GUARDS)
def test_every_guard_runs_between_sites_with_the_bits_of_one_process(tmp_path, guard):
    federation = five(**RELAXED, guard=guard)
    rows, attack = some_rows(federation), Constant(1e4)
    here = learn_together(federation, rows, wrap={"s1": attack})
    there, drivers = by_sites(federation, programs_of(federation, rows, "s1", attack), tmp_path)
    assert furthest(here, there, rows) == 0.0
    assert all(np.abs(there[q].part.w1).max() < 200 for q in rows if q != "s1")
    found = there["s0"].fitted
    assert found.certificate is None and found.reason == "no certificate: guarded messages"
    assert found.rounds == 40 and np.isfinite(found.change)
    sent = {content for _, content in drivers["s0"].books.sent}
    assert "correction" not in sent and "dual" not in sent


@pytest.mark.parametrize("guard", GUARDS)
def test_the_agreed_guard_is_the_wrapper_of_one_node_each(guard):
    """Rounds of the sites' program are those of `Guarded` around FedRelax."""
    problem, _, captured = blocks(0, "squared_l2", lam=0.05)
    rule, n = GUARDS[guard], problem.graph.n_nodes
    parts = split(problem)
    links = {part.name: list(part.says) for part in parts}
    programs = {p.name: fit_guarded(p, rule, 1e-300, 15, 15, True, lambda *_: None) for p in parts}
    liars = {i: SignFlip(2.0) for i in captured}
    programs |= {i: liar(programs[i]) for i, liar in liars.items()}
    ends = InProcess(links, programs).run()
    assert all(isinstance(end, Fitted) for end in ends.values())
    wraps = {i: Guarded(rule) for i in range(n)}
    # A liar listens by the rule as well, and says something else than it has learnt.
    wraps |= {
        i: lambda program, liar=liar: liar(Guarded(rule)(program)) for i, liar in liars.items()
    }
    found = relax_messages(problem, 15, wrap=wraps).w
    ours = np.concatenate([part.w for part in parts])
    assert np.abs(ours - found).max() <= 1e-9


def test_without_waiting_a_guard_ends_near_the_guarded_fit(tmp_path):
    federation = five(**RELAXED | {"l2": 0.1}, wait=False, guard="clip:0.5")
    rows = some_rows(federation)
    programs = programs_of(federation, rows, "s1", Constant(1e4))
    there, _ = by_sites(federation, programs, tmp_path)
    assert all(np.abs(there[q].part.w1).max() < 200 for q in rows if q != "s1")


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_predictions_can_be_guarded(task):
    shared = np.array([[3.0, 1000.0], [5.0, 990.0], [30.0, 1050.0]])
    classes = {"task": task, "loss": "logistic", "target": Target("rain", classes=("no", "yes"))}
    more, make = ({}, Ridge) if task == "regression" else (classes, LogisticRegression)
    how = {"method": "predictions", "penalty": "squared_l2", "alpha": 1.0, "shared": "0" * 64}
    ends = {}
    for guard, liar in ((None, None), (None, "s1"), ("median", "s1")):
        federation = five(**how | more, guard=guard)
        rows = some_rows(five())
        if task == "classification":
            for own in rows.values():
                own.y[:] = np.where(own.y > np.median(own.y), 1.0, -1.0)
        programs = {}
        for name in rows:
            learner = Learner(federation, name, rows[name])
            programs[name] = Predictor(learner, make, shared).run()
        if liar:  # answers that are shares in the one case, and far away in the other
            said = np.tile([1.0, 0.0], 3) if task == "classification" else 1e3
            programs[liar] = Constant(said)(programs[liar])
        ends[guard, liar] = in_process(federation, programs)
    clean, lied, kept = ends.values()
    far, near = (max(np.abs(e[q].shared - clean[q].shared).max() for q in ("s0", "s2", "s3"))
                 for e in (lied, kept))  # fmt: skip
    assert near < far
    if task == "classification":
        assert all(np.allclose(end.shared.sum(axis=2), 1.0) for end in kept.values())


def test_processes_one_of_which_lies(tmp_path):
    """Real sites over TLS: one changes what it says before its program meets its driver."""
    trial = pilot(
        tmp_path, ring(4, **RELAXED | {"guard": "median", "rounds": 30, "check_every": 15})
    )
    lies = (
        "import nefele.sites.attempt as attempt\n"
        "from nefele.robust import SignFlip\n"
        "honest = attempt.program_of\n"
        "attempt.program_of = lambda *given: SignFlip(3.0)(honest(*given))"
    )
    with Sites(tmp_path, trial) as sites:
        sites.start("s00", "s02", "s03")
        sites.start("s01", first=lies)
        sites.finish()
    found = learners(trial, tmp_path)
    programs = {name: one.run() for name, one in found.items()}
    ends = in_process(trial, programs | {"s01": SignFlip(3.0)(programs["s01"])})
    for name, learner in found.items():
        model = load(sites.site(name) / "run-1" / "model.nefele")
        assert np.array_equal(model.coef_, site_model(learner, ends[name]).coef_), name
    shown = run("federation", "show", sites.site("s00"), cwd=tmp_path).stdout
    assert "Guard: median." in shown


def test_the_guard_is_part_of_the_file_and_of_the_consent():
    federation = five(**RELAXED, guard="krum:1")
    assert Federation.parse(federation.content).guard == "krum:1"
    assert federation.hash != five(**RELAXED).hash
    consent = consent_of(federation, "s0")
    assert {item.content for item in consent.items} == {"parameters", "sums"}
    assert "each node hears its neighbours by the guard krum:1" in consent.text()


@pytest.mark.parametrize("text", GUARDS)
def test_rules_by_name(text):
    assert rule_of(text) == GUARDS[text]


@pytest.mark.parametrize(
    ("guard", "message"),
    [
        ("medain", 'No guard "medain". Did you mean "median"?'),
        ("clip", 'The guard "clip" needs a number'),
        ("median:2", 'The guard "median" needs no number'),
        ("clip:x", 'Behind "clip:" must stand numbers'),
        ("krum:1.5", 'Behind "krum:" must stand numbers'),
        ("clip:-1", "radius must be finite and > 0"),
        (3, "guard must be a name"),
    ],
)
def test_guards_that_are_refused(guard, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        Terms(**RELAXED, guard=guard)


def test_guards_that_do_not_fit_the_rest():
    with pytest.raises(ValueError, match='the penalty guards: use penalty "l2" or "huber"'):
        Terms(guard="median")
    with pytest.raises(ValueError, match="guard = 'median' needs masked = false"):
        Terms(**RELAXED, guard="median", masked=True)
    shared = hashlib.sha256(b"").hexdigest()
    how = {"method": "predictions", "penalty": "squared_l2", "shared": shared}
    assert Terms(**how, guard="median").guard == "median"
