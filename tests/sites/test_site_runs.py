"""Whole runs of real processes over real TLS: the end is that of one process, bit for bit."""

import contextlib
import json
import shutil
from datetime import timedelta
from functools import partial

import numpy as np
import polars as pl
import pytest

from nefele.sites.example import coast
from nefele.sites.journal import SAID, Journal
from nefele.sites.members import Edge, Member
from tests.e2e.commands import refused, run
from tests.sites.running import QUICK, Sites, check_models, pilot, ring
from tests.waiting import wait_until

MIDDLE = 30_000  # bytes of a journal


def test_three_sites_end_where_one_process_does(tmp_path):
    trial = pilot(tmp_path, coast(**QUICK))
    with Sites(tmp_path, trial) as sites:
        sites.start()
        sites.wait_for("oulu", 1000)
        status = run("site", "status", sites.site("oulu"), "--json", cwd=tmp_path)
        facts = json.loads(status.stdout)
        assert status.returncode == 0 and facts["hash"] == trial.hash
        sites.finish()
    check_models(trial, tmp_path)
    facts = json.loads(run("site", "status", sites.site("kemi"), "--json", cwd=tmp_path).stdout)
    assert facts["state"] == "finished" and facts["gone"] == []


def test_a_site_that_is_killed_in_the_middle_goes_on(tmp_path):
    trial = pilot(tmp_path, coast(**QUICK | {"rounds": 400, "check_every": 200}))
    with Sites(tmp_path, trial) as sites:
        sites.start()
        for size in (MIDDLE, 3 * MIDDLE):
            sites.wait_for("kemi", size)
            sites.running["kemi"].kill()
            assert not sites.ended("kemi")
            sites.start("kemi")
        sites.finish()
    check_models(trial, tmp_path)
    check_books(trial, sites)


def check_books(trial, sites):
    """What one says to have sent is what the other says to have heard, over all restarts."""
    books, facts = {}, {}
    for member in trial.members:
        run = sites.site(member.name) / "run-1"
        table = pl.read_csv(run / "ledger.csv")
        books[member.name] = {
            (way, peer, content): numbers
            for way, peer, content, *numbers in table.select(
                "direction", "peer", "content", "messages", "numbers", "bytes"
            ).rows()
        }
        facts[member.name] = json.loads((run / "run.json").read_bytes())
    for name, own in books.items():
        sent = {key[1:]: numbers for key, numbers in own.items() if key[0] == "sent"}
        assert sent
        for (peer, content), numbers in sent.items():
            assert books[peer]["heard", name, content] == numbers
        assert facts[name]["bytes_sent"] > sum(numbers[2] for numbers in sent.values())


def three_kinds(**changes):
    """One member of each kind."""
    members = (
        Member("oulu", ("oulu-1", "oulu-2"), "oulu.example:7447"),
        Member("kemi", ("kemi",), kind="relay"),
        Member("inari", ("inari",), kind="folder"),
    )
    edges = (Edge("oulu-1", "oulu-2"), Edge("oulu-2", "kemi"), Edge("oulu-1", "inari", 0.5))
    return coast(members=members, edges=edges, relay="relay.example:7447", **{**QUICK, **changes})


def test_direct_relayed_and_folder_sites_and_a_relay_that_is_killed(tmp_path):
    trial = pilot(tmp_path, three_kinds(rounds=20, check_every=20))
    with Sites(tmp_path, trial) as sites:
        sites.start_relay()
        sites.start()
        sites.wait_for("oulu", 2000)
        sites.running["relay"].kill()
        sites.start_relay()
        sites.finish()
    check_models(trial, tmp_path)


def test_the_relay_listens_where_the_federation_says_and_never_holds_what_is_said(tmp_path):
    trial = pilot(tmp_path, ring(3, "relay", rounds=20, check_every=20))
    with Sites(tmp_path, trial) as sites:
        sites.start_relay("--verbose")
        sites.start()
        sites.finish()
        relay = sites.running["relay"]
        held = memory_of(relay.process.pid) + relay.out.read_bytes() + relay.err.read_bytes()
    check_models(trial, tmp_path)
    assert f"nefele/{trial.mark}/s00/s01".encode() in held  # the search does find what is there
    said = [said_by(sites.site(name)) for name in ("s00", "s01", "s02")]
    said = [numbers for messages in said for numbers in (*messages[:10], *messages[-10:])]
    assert len(said) == 60
    assert [numbers for numbers in said if numbers in held] == []


def memory_of(process):
    """All that a process can read of its memory, files that it maps left out."""
    found = []
    with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb", 0) as memory:
        for line in maps:
            place, rights, *rest = line.split()
            if "r" not in rights or (len(rest) > 3 and rest[3].startswith(("/", "[v"))):
                continue
            start, end = (int(number, 16) for number in place.split("-"))
            memory.seek(start)
            with contextlib.suppress(OSError):
                found.append(memory.read(end - start))
    return b"".join(found)


def said_by(site):
    """The numbers of each message that a site has said, as bytes; those of counts left out."""
    path = site / "run-1" / "journal-0"
    blob = path.read_bytes()
    start = blob.index(b"\n") + 1
    length = int.from_bytes(blob[start : start + 4], "little")
    with Journal(path, blob[start + 4 : start + 4 + length]) as journal:
        said = [record.payload[-16:] for record in journal.records() if record.kind == SAID]
    values = np.array([np.frombuffer(numbers, dtype="<f8") for numbers in said])
    return [said[k] for k in np.flatnonzero((values != np.round(values)).all(axis=1))]


# -- what is refused ---------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path):
    return tmp_path, pilot(tmp_path, coast(**QUICK)), tmp_path / "sites" / "oulu"


def test_nobody_has_agreed(place):
    folder, trial, site = place
    assert "nobody has agreed yet" in refused("site", "run", site, cwd=folder)
    other = coast(**QUICK).hash
    error = refused("site", "run", site, "--accept", other, cwd=folder)
    assert "only with the hash that people here agreed to" in error
    assert "agreed to" in refused("site", "run", site, "--accept", trial.hash[:8], cwd=folder)
    assert not (site / "run-1").exists()


@pytest.mark.parametrize("name", ["key.pem", "certificate.pem", "authority.pem"])
def test_a_missing_key_or_certificate(place, name):
    folder, trial, site = place
    (site / name).unlink()
    error = refused("site", "run", site, "--accept", trial.hash, cwd=folder)
    assert name in error and "nefele site request" in error


def test_a_key_that_others_can_read(place):
    folder, trial, site = place
    (site / "key.pem").chmod(0o644)
    error = refused("site", "run", site, "--accept", trial.hash, cwd=folder)
    assert "must be readable by its owner only; its mode is 644" in error


def test_another_authority_than_the_agreed_one(place):
    folder, trial, site = place
    (folder / "other").mkdir()
    pilot(folder / "other", coast(**QUICK))
    for name in ("key.pem", "certificate.pem", "authority.pem"):
        content = (folder / "other" / "sites" / "oulu" / name).read_bytes()
        (site / name).write_bytes(content)
    error = refused("site", "run", site, "--accept", trial.hash, cwd=folder)
    assert "authority must be the one of the federation file" in error


def test_a_check_says_a_week_ahead_that_the_certificate_ends(place, monkeypatch):
    folder, _, site = place
    assert "expires" not in run("site", "check", site, cwd=folder).stdout
    monkeypatch.setattr("nefele.sites.validity._WARN", timedelta(days=1000))
    told = run("site", "check", site, cwd=folder).stdout
    assert "Note: certificate of oulu expires in" in told and "--renew" in told


def test_two_runs_in_one_folder(place):
    folder, trial, site = place
    with Sites(folder, trial) as sites:
        sites.start("oulu")
        wait_until((site / "run-1" / "status.json").exists, "the first run")
        error = refused("site", "run", site, "--accept", trial.hash, cwd=folder)
        assert "one writer at a time" in error


class Stranger:
    """Three sites of which s01 comes with something else; all others see and name that."""

    def __init__(self, sites):
        self.sites = sites

    def status(self, name, run="1"):
        file = self.sites.site(name) / f"run-{run}" / "status.json"
        return json.loads(file.read_bytes()) if file.exists() else {}

    def is_refused(self, why, run="1"):
        """By its neighbours, and they by it: counted, in the status and on the terminal."""
        for name, other, at in (("s00", "s01", "1"), ("s02", "s01", "1"), ("s01", "s00", run)):
            happened = partial(self._refuses, name, other, why, at)
            wait_until(happened, f"{name} refuses {other}: {why}")
        assert not any(self.sites.ended(name) for name in self.sites.running)

    def _refuses(self, name, other, why, run):
        counted = self.status(name, run).get("refused", {}).get(f"{other}: {why}", 0)
        return counted and f"Refused: {other} " in self.sites.running[name].err.read_text()

    def comes_back(self):
        """Without what was different: all end well."""
        self.sites.running["s01"].kill()
        shutil.rmtree(self.sites.site("s01") / "run-1", ignore_errors=True)
        self.sites.start("s01")
        self.sites.finish()


@pytest.fixture(params=["direct", pytest.param("relay", marks=pytest.mark.slow)])
def strangers(tmp_path, request):
    trial = pilot(tmp_path, ring(3, request.param, rounds=20, check_every=20))
    with Sites(tmp_path, trial) as sites:
        if request.param == "relay":
            sites.start_relay()
        sites.start("s00", "s02")
        yield Stranger(sites)
    check_models(trial, tmp_path)


def test_a_federation_file_that_differs_by_one_byte(strangers):
    sites = strangers.sites
    site, trial = sites.site("s01"), sites.trial
    (site / "federation.toml").write_bytes(trial.content + b"\n")
    other = json.loads(run("site", "check", site, "--json", cwd=sites.folder).stdout)["hash"]
    assert other != trial.hash
    sites.accept["s01"] = other
    sites.start("s01")
    strangers.is_refused("other federation file")
    told = run("site", "status", sites.site("s00"), cwd=sites.folder).stdout
    assert f"another federation file than this site, whose hash is {trial.hash[:16]}" in told
    (site / "federation.toml").write_bytes(trial.content)
    sites.accept["s01"] = trial.hash
    strangers.comes_back()


@pytest.mark.slow
def test_another_run(strangers):
    strangers.sites.start("s01", more=("--run", "2"))
    strangers.is_refused("other run", run="2")
    strangers.comes_back()


@pytest.mark.slow
def test_another_version(strangers):
    strangers.sites.start("s01", first="import nefele.sites.wire as wire; wire.VERSION = 2")
    strangers.is_refused("other version")
    strangers.comes_back()


def test_what_is_written_and_printed_holds_no_keys(tmp_path):
    trial = pilot(tmp_path, coast(**QUICK | {"rounds": 20, "check_every": 20}))
    with Sites(tmp_path, trial) as sites:
        sites.start()
        sites.finish()
    for member in trial.members:
        site = sites.site(member.name)
        pem = (site / "key.pem").read_bytes()
        assert (site / "key.pem").stat().st_mode & 0o777 == 0o600
        assert (site / "run-1" / "run.key").stat().st_mode & 0o777 == 0o600
        secrets = [pem.splitlines()[1], (site / "run-1" / "run.key").read_bytes()]
        assert len(secrets[1]) == 32
        secrets.append(secrets[1].hex().encode())
        seen = 0
        for file in tmp_path.rglob("*"):
            if file.is_file() and file.name not in ("key.pem", "run.key"):
                content = file.read_bytes()
                seen += 1
                assert not any(secret in content for secret in secrets), file
        names = {file.name for file in (site / "run-1").iterdir()}
        assert names >= {"status.json", "run.json", "ledger.csv", "journal-0"}
        assert seen > 20


# -- bigger ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["direct", "relay"])
@pytest.mark.parametrize("penalty", ["l2", "l1", "squared_l2"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_twenty_sites(tmp_path, loss, penalty, kind):
    changes = {"penalty": penalty, "rounds": 300, "check_every": 300}
    if loss == "logistic":
        from nefele.sites.members import Target

        changes |= {"task": "classification", "loss": "logistic", "l2": 0.01}
        changes |= {"target": Target("warm", classes=("no", "yes"))}
    trial = pilot(tmp_path, ring(20, kind, **changes))
    with Sites(tmp_path, trial) as sites:
        if kind == "relay":
            sites.start_relay()
        sites.start()
        sites.finish()
    check_models(trial, tmp_path)


@pytest.mark.slow
def test_thirty_kills_of_processes(tmp_path):
    trial = pilot(tmp_path, ring(6, rounds=3000, check_every=3000))
    rng = np.random.default_rng(0)
    names = [member.name for member in trial.members]
    with Sites(tmp_path, trial) as sites:
        sites.start()
        for _ in range(30):
            name = names[rng.integers(len(names))]
            sites.wait_for(name, sites.journal(name) + int(rng.integers(500, 6000)))
            sites.running[name].kill()
            assert not sites.ended(name)
            sites.start(name)
        sites.finish()
    check_models(trial, tmp_path)
