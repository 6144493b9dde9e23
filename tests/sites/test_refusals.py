"""What a site does not believe is refused and counted, and changes nothing."""

import ast
import base64
import json
import struct
import threading
import tracemalloc
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import nefele.sites
from nefele.program import Exchange
from nefele.runtime.tree import Tree
from nefele.sites.consent import Guard, consent_of
from nefele.sites.driver import Driver
from nefele.sites.example import coast
from nefele.sites.journal import Journal
from nefele.sites.learning import Learner
from nefele.sites.links import network
from nefele.sites.peers import Links, epoch_of
from nefele.sites.sealing import Seal, run_key
from nefele.sites.wire import Kind, Packet, RefusedError, decode, encode, run_mark
from tests.sites.parties import FEDERATION, RUN, Parties, identity, signed_by
from tests.sites.running import QUICK, learners, write_data
from tests.waiting import LONG, wait_until

ROWS = Packet(Kind.ROWS, "parameters", 0, 1, np.ones((1, 2)))
LINE = {"a": ["b"], "b": ["a", "c"], "c": ["b"]}


class Outbox:
    """A carrier that keeps what is sent."""

    def __init__(self):
        self.sent = []

    def send(self, to, blob):
        self.sent.append((to, blob))


class Bench:
    """The driver of b between a and c, whose messages the test makes."""

    def __init__(self, folder, **kwargs):
        self.folder, self.out = folder, Outbox()
        self.identities = {name: identity(folder / name, name) for name in "abcd"}
        self.seals = {name: self.seal(name) for name in "abc"}
        links = Links("b", ["a", "b", "c"], {"a": 1, "c": 1}, Tree(LINE))
        self.journal = Journal(folder / "journal", b"test")
        self.driver = Driver(links, self.out, self.seals["b"], self.journal, **kwargs)
        self.refused = self.driver.refused
        for name in "ac":
            self.hear(name, self.seals[name].hello(False))
            self.seals[name].meet("b", self.seals["b"].hello(False))
        self.thread = self.heard = None

    def seal(self, name, signer=None, federation=FEDERATION, run=RUN, key=None):
        key = run_key(self.folder / name / "run.key") if key is None else key
        peers = set("abcd") - {name} if name != "b" else {"a", "c"}
        return Seal(signer or self.identities[name], federation, run, peers, key)

    def hear(self, sender, blob):
        """Take a message as if a carrier had brought it."""
        self.driver.receive(sender, blob)
        if getattr(self, "thread", None) is None:
            self.driver._take(0.01)

    def say(self, sender, packet):
        self.hear(sender, self.seals[sender].seal("b", packet))

    def start(self, times=1):
        def program():
            found = []
            for _ in range(times):
                rows = {"a": np.ones((1, 2)), "c": np.ones((1, 2))}
                found.append((yield Exchange("parameters", rows)).rows["a"].tolist())
            return found

        def run():
            self.heard = self.driver.run(program())

        self.thread = threading.Thread(target=run)
        self.thread.start()
        wait_until(lambda: self.driver.number == 1 and self.driver.waiting, "the exchange")

    def counted(self, who, why):
        wait_until(lambda: self.refused[who, why] > 0, f"{why} of {who} is counted")

    def finish(self):
        """Good messages; what a said in the first request."""
        self.say("a", ROWS)
        self.say("c", ROWS)
        self.thread.join(LONG)
        assert not self.thread.is_alive()
        return self.heard


@pytest.fixture
def bench(tmp_path):
    found = Bench(tmp_path)
    assert not found.refused and found.driver.seal.knows("a") and found.driver.seal.knows("c")
    yield found
    found.journal.close()


def only(bench, who, why, times=1):
    """This and nothing else was counted, and nothing was kept."""
    assert dict(bench.refused) == {(who, why): times}
    assert not bench.driver._inbox


# -- who --------------------------------------------------------------------------------------


def test_a_good_message_is_kept(bench):
    bench.say("a", ROWS)
    assert list(bench.driver._inbox) == [(1, Kind.ROWS, "a")] and not bench.refused


def hello(bench, sender="a", **changes):
    blob = bench.seals[sender].hello(False)
    content = json.loads(blob[1:]) | changes
    return b"H" + json.dumps(content).encode()


def test_an_unknown_authority(bench):
    stranger = signed_by(bench.folder / "stranger", "a", issuer="another")
    bench.hear("a", bench.seal("a", stranger).hello(True))
    only(bench, "a", "not signed by its certificate")


def test_an_expired_certificate(bench):
    old = signed_by(bench.folder / "old", "a", days=-1.0)
    bench.hear("a", bench.seal("a", old).hello(True))
    only(bench, "a", "not signed by its certificate")


def test_a_member_that_is_no_neighbour(bench):
    bench.hear("d", bench.seal("d").hello(True))
    bench.hear("d", b"S" + bytes(100))
    only(bench, "?", "not a neighbour", 2)
    assert not bench.out.sent


def test_a_hello_of_one_claimed_to_be_of_another(bench):
    bench.hear("a", bench.seals["c"].hello(True))
    only(bench, "a", "spoofed sender")


def test_a_certificate_of_one_in_the_hello_of_another(bench):
    of_c = json.loads(bench.seals["c"].hello(True)[1:])
    bench.hear("a", b"H" + json.dumps(of_c | {"name": "a"}).encode())
    only(bench, "a", "not signed by its certificate")


def test_a_message_of_one_claimed_to_be_of_another(bench):
    bench.hear("c", bench.seals["a"].seal("b", ROWS))
    only(bench, "c", "changed or forged")


def test_a_reflected_message(bench):
    bench.hear("a", bench.seals["b"].seal("a", ROWS))
    only(bench, "a", "other run")


def test_plain_bytes(bench):
    for blob in (b"", b"hello", encode(ROWS, bytes(16)), bytes(1000)):
        bench.hear("a", blob)
    only(bench, "a", "not sealed", 4)


# -- hello ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"version": 2}, "other version"),
        ({"version": 0}, "other version"),
        ({"version": True}, "malformed"),
        ({"version": "1"}, "malformed"),
        ({"federation": "e" * 64}, "other federation file"),
        ({"run": "2"}, "other run"),
        ({"run": None}, "malformed"),
        ({"name": ["a"]}, "malformed"),
        ({"key": "AAAA"}, "malformed"),
        ({"key": "no base64 at all"}, "malformed"),
        ({"key": base64.b64encode(bytes(32)).decode()}, "not signed by its certificate"),
        ({"signature": "AAAA"}, "not signed by its certificate"),
        ({"certificate": "none"}, "not signed by its certificate"),
        ({"certificate": "\ud800"}, "malformed"),
        ({"certificate": "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----"}, None),
        ({"ask": 1}, "malformed"),
    ],
)
def test_a_hello_that_is_not_right(bench, changes, reason):
    bench.hear("a", hello(bench, **changes))
    only(bench, "a", reason or "not signed by its certificate")


@pytest.mark.parametrize(
    "blob",
    [
        b"H",
        b"Hello",
        b"H{}",
        b"H[]",
        b"Hnull",
        b"H" + b"[" * 16000,
        b'H{"a":' * 2700,
        b"H\xff\xfe\x00",
        b'H{"version": ' + b"9" * 10000 + b"}",
        b'H{"version": NaN}',
    ],
)
def test_a_hello_that_is_none(bench, blob):
    bench.hear("a", blob)
    only(bench, "a", "malformed")


def test_a_hello_that_is_too_long(bench):
    bench.hear("a", hello(bench, more="x" * 20000))
    only(bench, "a", "too long")


def test_a_weak_key_of_a_real_member(bench):
    """Signed all right, but the secret would be known to everybody."""
    seal = bench.seals["a"]
    key = bytes(32)
    signature = base64.b64encode(seal.signer.sign(seal._said("a", key))).decode()
    bench.hear("a", hello(bench, key=base64.b64encode(key).decode(), signature=signature))
    only(bench, "a", "malformed")
    bench.say("a", ROWS)
    assert bench.driver._inbox


def test_a_hello_of_another_federation_or_run_that_is_signed_all_right(bench):
    bench.hear("a", bench.seal("a", federation="e" * 64).hello(True))
    bench.hear("a", bench.seal("a", run="2").hello(True))
    assert dict(bench.refused) == {("a", "other federation file"): 1, ("a", "other run"): 1}
    assert not bench.out.sent


def test_a_lost_key_is_asked_for_again(bench):
    """a has a new key of the run, and its hello was lost."""
    new = bench.seal("a", key=bytes(range(32)))
    new.meet("b", bench.seals["b"].hello(False))
    bench.hear("a", new.seal("b", ROWS))
    bench.hear("a", new.seal("b", ROWS))
    only(bench, "a", "changed or forged", 2)
    assert [(to, blob[:1]) for to, blob in bench.out.sent] == [("a", b"H")]
    assert new.meet("b", bench.out.sent[0][1])
    bench.hear("a", new.hello(False))
    bench.hear("a", new.seal("b", ROWS))
    assert bench.driver._inbox


# -- messages ---------------------------------------------------------------------------------


def test_every_byte_of_a_message_counts(bench):
    blob = bench.seals["a"].seal("b", ROWS)
    for place in range(1, len(blob)):
        bench.hear("a", blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1 :])
    for end in range(1, len(blob)):
        bench.hear("a", blob[:end])
    only(bench, "a", "changed or forged", 2 * (len(blob) - 1))
    bench.hear("a", bytes([blob[0] ^ 1]) + blob[1:])
    assert bench.refused["a", "not sealed"] == 1 and not bench.driver._inbox


def sealed(bench, plain, sender="a"):
    """What a real neighbour could seal, right or not."""
    return bench.seals[sender].seal_plain("b", plain)


def header(version=1, kind=1, flags=0, content=2, epoch=0, number=1, axes=2, mark=None):
    mark = run_mark(FEDERATION, RUN, "a", "b") if mark is None else mark
    return struct.pack("<BBBBIQ16sB", version, kind, flags, content, epoch, number, mark, axes)


@pytest.mark.parametrize(
    ("plain", "reason"),
    [
        (header()[:-1], "too short"),
        (header(), "too short"),
        (header(version=2) + bytes(32), "other version"),
        (header(mark=run_mark(FEDERATION, "2", "a", "b")) + bytes(32), "other run"),
        (header(mark=run_mark(FEDERATION, RUN, "c", "b")) + bytes(32), "other run"),
        (header(kind=0) + bytes(32), "malformed"),
        (header(kind=99) + bytes(32), "malformed"),
        (header(content=200) + bytes(32), "malformed"),
        (header(axes=255) + bytes(255 * 8), "malformed"),
        (header() + struct.pack("<2Q", 1, 2) + bytes(8), "wrong size"),
        (header() + struct.pack("<2Q", 1, 2) + bytes(17), "wrong size"),
        (header() + struct.pack("<2Q", 2**62, 2**62) + bytes(16), "wrong size"),
        (header() + struct.pack("<2Q", 0, 2**63), "wrong size"),
        (header() + struct.pack("<2Q", 0, 2**64 - 1), "wrong size"),
        (header(number=9) + struct.pack("<2Q", 1, 2) + bytes(16), "wrong round"),
        (header(number=2**64 - 1) + struct.pack("<2Q", 1, 2) + bytes(16), "wrong round"),
        (header(epoch=7) + struct.pack("<2Q", 1, 2) + bytes(16), "other epoch"),
        (header(kind=4, content=5, axes=1) + struct.pack("<Q", 1) + bytes(8), "not agreed"),
    ],
)
def test_messages_of_a_neighbour_that_cannot_be(bench, plain, reason):
    bench.hear("a", sealed(bench, plain))
    only(bench, "a", reason)


def test_a_terabyte_costs_nothing(bench):
    plain = header() + struct.pack("<2Q", 1, 10**12 // 8) + bytes(16)
    blob = sealed(bench, plain)
    tracemalloc.start()
    try:
        bench.hear("a", blob)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    only(bench, "a", "wrong size")
    assert peak < 1e6


@pytest.mark.parametrize(
    ("values", "content", "reason"),
    [
        (np.full((1, 2), np.nan), "parameters", "not finite"),
        (np.array([[1.0, np.inf]]), "parameters", "not finite"),
        (np.array([[1.0, -np.inf]]), "parameters", "not finite"),
        (np.ones((2, 2)), "parameters", "wrong shape"),
        (np.ones((1, 3)), "parameters", "wrong shape"),
        (np.ones(2), "parameters", "wrong shape"),
        (np.ones(()), "parameters", "wrong shape"),
        (np.ones((1, 2, 1)), "parameters", "wrong shape"),
        (np.zeros((0, 2)), "parameters", "wrong shape"),
        (np.ones((1, 2)), "correction", "wrong content"),
        (np.ones((1, 2)), "sums", "wrong content"),
    ],
)
def test_values_that_are_refused_and_the_right_ones_afterwards(bench, values, content, reason):
    bench.start()
    bench.say("a", Packet(Kind.ROWS, content, 0, 1, values))
    bench.counted("a", reason)
    assert bench.finish() == [[[1.0, 1.0]]]
    assert bench.refused["a", reason] == 1


def test_a_sum_instead_of_rows(bench):
    bench.start(times=2)
    bench.say("a", Packet(Kind.UP, "sums", 0, 1, np.ones(2)))
    bench.say("a", ROWS)
    bench.say("c", ROWS)
    bench.counted("a", "wrong content")
    for name in "ac":
        bench.say(name, replace(ROWS, number=2, values=np.full((1, 2), 2.0)))
    bench.thread.join(LONG)
    assert bench.heard == [[[1.0, 1.0]], [[2.0, 2.0]]]


def test_replayed_and_late_messages_are_counted_and_without_effect(bench):
    bench.start(times=2)
    first = bench.seals["a"].seal("b", ROWS)
    second = bench.seals["a"].seal("b", replace(ROWS, number=2, values=np.full((1, 2), 2.0)))
    changed = bench.seals["a"].seal("b", replace(ROWS, values=np.full((1, 2), 7.0)))
    for blob in (second, second, first, first, changed):
        bench.hear("a", blob)
    wait_until(lambda: bench.refused["a", "repeated or late"] == 3, "three repeated")
    bench.say("c", ROWS)
    wait_until(lambda: bench.driver.number == 2, "the second request")
    bench.hear("a", first)
    wait_until(lambda: bench.refused["a", "repeated or late"] == 4, "a late one")
    bench.say("c", replace(ROWS, number=2))
    bench.thread.join(LONG)
    assert bench.heard == [[[1.0, 1.0]], [[2.0, 2.0]]]
    assert bench.driver.heard.by_way["a", "b", "parameters"].messages == 2


def test_an_old_epoch_is_told_who_has_left(tmp_path):
    bench = Bench(tmp_path, gone=["d"], patience=100.0)
    bench.driver.links.members.append("d")
    bench.driver.place["d"] = 3
    bench.say("a", ROWS)
    only(bench, "a", "other epoch")
    assert not bench.out.sent
    bench.say("a", replace(ROWS, again=True))
    told = bench.seals["a"].open("b", bench.out.sent[-1][1])
    assert told.kind == Kind.ABSENT and told.values.tolist() == [3.0]
    bench.say("a", replace(ROWS, epoch=epoch_of(["d"])))
    assert bench.driver._inbox
    bench.journal.close()


@pytest.mark.parametrize("values", [[0.5], [-1.0], [99.0], [np.nan], [[1.0]]])
def test_a_list_of_absent_members_that_is_none(tmp_path, values):
    bench = Bench(tmp_path, patience=100.0)
    bench.say("a", Packet(Kind.ABSENT, "sums", 0, 0, np.array(values)))
    only(bench, "a", "malformed")
    bench.journal.close()


def test_a_flood_fills_no_memory_and_what_is_said_afterwards_is_heard(bench):
    bench.start()
    blob = bench.seals["a"].seal("b", replace(ROWS, number=99)) + bytes(10_000)
    box = bench.driver._mailbox
    with patch.object(bench.driver, "_handle"):  # it is busy with something else
        for _ in range(1000):
            box.put("a", blob)
    tracemalloc.start()
    try:
        for _ in range(20_000):
            bench.driver.receive("a", bytes(10_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e6
    bench.counted("a", "too many")
    wait_until(lambda: not len(box), "all of it is refused")
    assert bench.finish() == [[[1.0, 1.0]]]


def test_of_long_messages_fewer_are_kept(bench):
    for _ in range(10):
        bench.driver.receive("a", bytes(1 << 25))
        bench.driver.receive("c", b"short")
    assert len(bench.driver._mailbox) == 2 + 10
    bench.driver._take(0.01)
    assert bench.refused["a", "too many"] == 8 and bench.refused["c", "not sealed"] == 10


def test_any_bytes_at_all_are_refused(bench):
    rng = np.random.default_rng(0)
    for k in range(400):
        blob = rng.bytes(int(rng.integers(0, 200)))
        bench.hear("a", (b"S", b"H", b"")[k % 3] + blob)
        with pytest.raises(RefusedError):
            decode(blob, bytes(16))
    assert sum(bench.refused.values()) == 400 and not bench.driver._inbox


def test_a_flood_keeps_nothing(bench):
    for k in range(2000):
        bench.hear("a", bench.seals["a"].seal("b", replace(ROWS, number=k)))
    assert len(bench.driver._inbox) <= 3  # the present request and two to come


# -- what never leaves ------------------------------------------------------------------------


def test_nothing_is_unpickled_or_evaluated():
    folder = Path(nefele.sites.__file__).parent
    found = []
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")]
            names += [getattr(node, "module", None) or ""]
            if isinstance(node, ast.Call):
                names.append(ast.unparse(node.func))
            for name in names:
                last = name.split(".")[-1]
                bad = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}
                if bad & set(name.split(".")) or name in ("eval", "exec", "__import__"):
                    found.append((file.name, name))
                if isinstance(node, ast.Call) and name.endswith(("np.load", "numpy.load")):
                    words = {word.arg: ast.unparse(word.value) for word in node.keywords}
                    if words.get("allow_pickle") != "False":
                        found.append((file.name, last))
    assert found == []


def spied(folder, trial, program, **kwargs):
    """Run sites over a hub; all packets that any of them seals, by sender."""
    net = network(trial)
    links = {name: net.of(name).rows for name in net.members}
    parties = Parties(folder, links, program, **kwargs)
    left = []
    make = parties.seal

    def seal(name):
        found = make(name)
        seal_plain = found.seal_plain

        def spy(to, plain):
            left.append((name, to, found.decode(to, plain)))
            return seal_plain(to, plain)

        found.seal_plain = spy
        return found

    parties.seal = seal
    return parties, left


def check_left(trial, parties, left):
    """Each plaintext is an item of the consent, or says nothing; the books have them all."""
    books = {}
    for name, to, packet in left:
        if packet.kind in (Kind.HERE, Kind.BYE):
            assert packet.values.size == 0
            continue
        assert packet.kind in (Kind.ROWS, Kind.UP, Kind.DOWN, Kind.NEWS)
        items = {(i.content, i.to): i for i in consent_of(trial, name).items}
        item = items[packet.content, to]
        assert packet.values.dtype == float and packet.values.size <= item.numbers
        key = name, to, packet.content, packet.kind, packet.number
        known = books.setdefault(key, packet.values.tobytes())
        assert known == packet.values.tobytes()  # said again, it is the same
    for name, driver in parties.drivers.items():
        mine = [len(plain) for key, plain in books.items() if key[0] == name]
        assert (len(mine), sum(mine)) == (driver.ledger.messages, driver.ledger.bytes)


@pytest.fixture
def small(tmp_path):
    trial = coast(**QUICK | {"rounds": 20, "check_every": 20})
    (tmp_path / "sites").mkdir()
    write_data(tmp_path / "all.csv", trial)
    from nefele.sites.pilot import make_pilot

    (tmp_path / "sites").rmdir()
    trial, _ = make_pilot(trial, tmp_path / "sites", tmp_path / "all.csv", "node", port=0)
    return tmp_path, trial


def test_only_what_was_agreed_to_leaves_a_site(small):
    folder, trial = small
    found = learners(trial, folder)
    parties, left = spied(folder / "run", trial, lambda name: found[name].run())
    parties.run()
    check_left(trial, parties, left)
    assert {packet.kind for _, _, packet in left} >= {Kind.ROWS, Kind.UP, Kind.DOWN}


SECRET = "the path /home/anna/patients.csv of an error"


def test_an_error_of_a_program_never_leaves(small):
    folder, trial = small
    found = learners(trial, folder)

    class Broken(Learner):
        def compare(self, *args):
            raise ValueError(SECRET)
            yield

    broken = Broken(trial, "kemi", found["kemi"].rows)

    def program(name):
        return (broken if name == "kemi" else found[name]).run()

    parties, left = spied(folder / "run", trial, program)
    sent = []
    carrier = parties.hub._send
    parties.hub._send = lambda *args: (sent.append(args[2]), carrier(*args))
    with pytest.raises(ValueError, match="patients"):
        parties.run()
    assert sent and not any(b"patients" in blob or b"anna" in blob for blob in sent)
    for _, _, packet in left:
        assert packet.kind in (Kind.ROWS, Kind.UP, Kind.DOWN, Kind.HERE, Kind.BYE)
        assert b"patients" not in packet.values.tobytes()


def test_the_guard_of_a_whole_run_is_never_asked_too_much(small):
    folder, trial = small
    found = learners(trial, folder)
    guards = {name: Guard(consent_of(trial, name)) for name in found}
    parties, _ = spied(folder / "run", trial, lambda name: found[name].run())

    def allow(content, to, values):
        name = threading.current_thread().name
        guards[name](content, to, values)

    parties.driving = {"allow": allow}
    plain = parties._run

    def named(name):
        threading.current_thread().name = name
        plain(name)

    parties._run = named
    parties.run()
    assert all(guard.sent for guard in guards.values())
