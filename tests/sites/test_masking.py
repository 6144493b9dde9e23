"""Masked sums over neighbours: masks cancel exactly, one message tells nothing, sums are right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nefele.estimators.design import Rows
from nefele.runtime.drivers import InProcess
from nefele.sites.consent import consent_of
from nefele.sites.crowds import Crowd, check_crowd
from nefele.sites.example import coast
from nefele.sites.introducing import Card, packed, unpacked
from nefele.sites.learning import Learner
from nefele.sites.links import network
from nefele.sites.masking import LIMIT, fixed, from_fixed, from_halves, halves, mask, masked
from nefele.sites.members import Edge, Member
from tests.sites.together import by_sites, in_process, seal_of

FEW = settings(derandomize=True, deadline=None, max_examples=60, database=None)
UNIT = 2.0**-32


def secrets_of(names):
    """By member: a secret with each other one."""
    pairs = {
        frozenset((a, b)): bytes([len(a + b)]) + f"{min(a, b)}{max(a, b)}".encode()
        for a in names
        for b in names
    }
    return {
        a: {b: pairs[frozenset((a, b))].ljust(32, b"x") for b in names if b != a} for a in names
    }


@FEW
@given(st.integers(3, 6), st.integers(1, 5), st.integers(0, 2**32), st.floats(1e-9, 1e6))
def test_masks_cancel_exactly(n, d, seed, size):
    values = size * np.random.default_rng(seed).normal(size=(n, d))
    values = np.clip(values, -0.9 * LIMIT * UNIT, 0.9 * LIMIT * UNIT)
    names = [f"m{k}" for k in range(n)]
    secrets, words = secrets_of(names), [fixed(v, UNIT) for v in values]
    covered = [
        masked(w, name, names, secrets[name], ["i", "0", str(seed)])
        for w, name in zip(words, names, strict=True)
    ]
    assert np.array_equal(sum(covered[1:], covered[0]), sum(words[1:], words[0]))
    found = from_fixed(sum(covered[1:], covered[0]), UNIT, n)
    np.testing.assert_allclose(found, values.sum(axis=0), rtol=1e-12, atol=n * UNIT)
    assert not any(np.array_equal(c, w) for c, w in zip(covered, words, strict=True))


@FEW
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=9))
def test_halves_are_exact(values):
    words = np.array(values, dtype=np.uint64)
    assert np.array_equal(from_halves(halves(words)), words)


@FEW
@given(st.binary(max_size=6140))
def test_hellos_are_packed_exactly(hello):
    assert unpacked(packed(hello)) == hello


def test_one_message_is_uniform_whatever_it_says():
    names = ["a", "b", "c"]
    secrets = secrets_of(names)["a"]
    for value in (0.0, 1234.5):
        words = fixed(np.full(20_000, value), UNIT)
        seen = masked(words, "a", names, secrets, ["i", "0", "1"]).tobytes()
        counts = np.bincount(np.frombuffer(seen, dtype=np.uint8), minlength=256)
        chi2 = ((counts - len(seen) / 256) ** 2 / (len(seen) / 256)).sum()
        assert 170 < chi2 < 360  # 255 degrees of freedom: all but 1e-5 of the cases


def test_no_mask_is_used_twice():
    drawn = [mask(bytes(32), ["i", node, str(k)], 4).tobytes() for node in "xy" for k in range(50)]
    assert len(set(drawn)) == len(drawn)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"must be below .* to be masked"):
        fixed(np.array([LIMIT * UNIT]), UNIT)
    with pytest.raises(ValueError, match="must be below"):
        fixed(np.array([np.nan]), UNIT)
    with pytest.raises(ValueError, match="masks of a sum must cancel"):
        from_fixed(mask(bytes(32), ["left over"], 50), UNIT, 3)
    for bad in ([0.5, 0.0], [-1.0, 0.0], [2.0**32, 0.0], [1.0]):
        with pytest.raises(ValueError, match="integers below"):
            from_halves(np.array(bad))
    with pytest.raises(ValueError, match="whole numbers"):
        unpacked(np.full(1024, 0.5))


# -- graphs -------------------------------------------------------------------------------------


def test_each_node_needs_three_members_around_it():
    owner = {"i1": "i", "i2": "i", "a": "a", "b": "b", "c": "c"}
    edges = [("i1", q, 1.0) for q in "abc"]
    around = [(q, r, 1.0) for q in "abc" for r in "abc" if q < r]
    check_crowd(owner, edges + around)
    with pytest.raises(ValueError, match='"i2" of "i" has 2: a, b'):
        check_crowd(owner, [*edges, *around, ("i2", "a", 1.0), ("i2", "b", 1.0)])


def test_sums_that_can_be_taken_from_each_other_are_refused():
    owner = {"i1": "i", "i2": "i", **{q: q for q in "abcd"}}
    clique = [(q, r, 1.0) for q in "abcd" for r in "abcd" if q < r]
    same = [(i, q, 2.0) for i in ("i1", "i2") for q in "abc"]
    check_crowd(owner, same + clique)
    with pytest.raises(ValueError, match='nodes of "i" together reveal'):
        check_crowd(owner, [*same, ("i2", "d", 1.0), *clique])


# -- learning -----------------------------------------------------------------------------------

# A wheel: the members of the rim are not all neighbours; a and c know each other through others.
RIM = "abcdef"
MEMBERS = (Member("i", ("i",)), *(Member(q, (q,)) for q in RIM))
EDGES = (
    *(Edge("i", q, 1.0 + k) for k, q in enumerate(RIM)),
    *(Edge(q, RIM[(k + 1) % 6]) for k, q in enumerate(RIM)),
)


def wheel(**changes):
    usual = {
        "members": MEMBERS, "edges": EDGES, "method": "fedrelax", "penalty": "squared_l2",
        "l2": 0.1, "alpha": 0.3, "tol": 1e-9, "rounds": 300, "check_every": 10, "masked": True,
    }  # fmt: skip
    return coast(**usual | changes)


def learners(federation):
    rng, net, found = np.random.default_rng(0), network(federation), {}
    for member in federation.members:
        ids = np.repeat(member.nodes, 8)
        X = np.column_stack([rng.uniform(0, 40, len(ids)), rng.uniform(900, 1100, len(ids))])
        y = X[:, 0] / 4 + (ord(member.name[0]) % 5) + rng.normal(size=len(ids))
        card = Card(seal_of(federation, member.name, net))
        rows = Rows(X, y, ids, np.ones(len(y)))
        found[member.name] = Learner(federation, member.name, rows, card=card)
    return found


def run_all(federation):
    return in_process(federation, {q: one.run() for q, one in learners(federation).items()})


def test_masked_models_are_the_plain_ones_to_the_resolution():
    rounds = {"rounds": 60, "tol": 1e-15}
    plain, hidden = run_all(wheel(masked=False, **rounds)), run_all(wheel(**rounds))
    for name, learnt in hidden.items():
        kappa = learnt.fitted.kappa
        each = 6 * 45 * UNIT / 2  # rounding of six shares in a round; the bound is 45 degrees
        assert 0 < np.abs(learnt.part.w1 - plain[name].part.w1).max() < each * kappa / (1 - kappa)


def test_the_result_says_that_nothing_is_certified():
    for learnt in run_all(wheel()).values():
        assert learnt.fitted.certificate is None and np.isnan(learnt.fitted.gap)
        assert learnt.fitted.reason == "no certificate while masked"
        assert learnt.fitted.converged(1e-9) and learnt.fitted.kappa < 1
        assert learnt.one is None


def test_over_the_driver_it_is_the_same_and_no_parameters_leave(tmp_path):
    federation = wheel(rounds=40, tol=1e-15)
    near = run_all(federation)
    programs = {q: one.run() for q, one in learners(federation).items()}
    far, drivers = by_sites(federation, programs, tmp_path)
    for name, learnt in far.items():
        assert np.array_equal(learnt.part.w1, near[name].part.w1)
        contents = {content for _, _, content in drivers[name].ledger.by_way}
        assert contents == {"masked", "keys", "sums"}
        sent = {way[1:]: t.messages for way, t in drivers[name].ledger.by_way.items()}
        listed = {
            (item.to, item.content): item.times for item in consent_of(federation, name).items
        }
        assert sent == listed  # with all rounds used, as many as were agreed to
    text = consent_of(federation, "a").text()
    assert "gradients" not in text and "linear system" not in text
    assert "learns the sum over all neighbours only" in text and "certified" not in text


def test_members_that_share_no_edge_share_a_secret():
    federation = wheel()
    one = learners(federation)["a"]
    crowd = Crowd(one.graph, one.owner, one.names, "a")
    assert set(crowd.partners) == {"i", *"bcdef"} and "c" not in federation.neighbours("a")
    programs = {q: learner.covered() for q, learner in learners(federation).items()}
    found = InProcess(network(federation).links, programs).run()
    for a in found:
        assert all(found[b].secrets[a] == s for b, s in found[a].secrets.items())
    assert len({s for masks in found.values() for s in masks.secrets.values()}) == 21


def test_a_forged_introduction_is_refused():
    federation = wheel()
    net = network(federation)
    seal = seal_of(federation, "a", net)
    other = seal_of(federation, "c", net, bytes([99]) * 32)
    hello = seal_of(federation, "c", net).hello(ask=False)
    key = other.hello(ask=False).split(b'"key": "')[1].split(b'"')[0]
    mine = hello.split(b'"key": "')[1].split(b'"')[0]
    with pytest.raises(ValueError, match="not signed"):
        Card(seal).secret("c", hello.replace(mine, key))
    with pytest.raises(ValueError, match="spoofed"):
        Card(seal).secret("d", hello)


def test_alpha_is_chosen_under_masks():
    federation = wheel(alpha="auto", alphas=(1.0, 0.01), folds=2, tol=1e-3)
    found = list(run_all(federation).values())
    assert len({one.alpha for one in found}) == 1 and np.isfinite(found[0].errors).all()
