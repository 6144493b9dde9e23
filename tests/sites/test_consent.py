"""What leaves a site is a list that people read, and that the program keeps."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from nefele.program import Exchange, Sum
from nefele.sites.consent import ConsentError, Guard, consent_of
from nefele.sites.example import coast
from nefele.sites.links import network
from tests.e2e.commands import run
from tests.sites.parties import Parties
from tests.sites.running import QUICK, learners, pilot, ring

RELAXED = {"method": "fedrelax", "penalty": "squared_l2", "l2": 0.1}
AUTO = {"alpha": "auto", "n_alphas": 3, "folds": 2, "tol": 1e-2}


def guarded(folder, trial, program, consents=None):
    """Run a program at all members, each behind the guard of its consent; the guards."""
    net = network(trial)
    guards = {name: Guard((consents or {}).get(name, consent_of(trial, name))) for name in net.members}  # fmt: skip  # noqa: E501
    links = {name: net.of(name).rows for name in net.members}
    parties = Parties(folder, links, program)
    start = parties._run

    def named(name):
        threading.current_thread().name = name
        start(name)

    parties._run = named
    parties.driving = {"allow": lambda *said: guards[threading.current_thread().name](*said)}
    parties.run()
    return guards


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"penalty": "l1"},
        {"penalty": "squared_l2"},
        {"standardize": "sums"},
        AUTO,
        RELAXED,
        RELAXED | {"wait": False},
        RELAXED | AUTO,
    ],
    ids=str,
)
def test_a_whole_run_stays_within_the_list(tmp_path, changes):
    trial = pilot(tmp_path, coast(**QUICK | {"rounds": 40, "check_every": 20} | changes))
    found = learners(trial, tmp_path)
    guards = guarded(tmp_path / "run", trial, lambda name: found[name].run())
    for guard in guards.values():
        for way, times in guard.sent.items():
            assert 0 < times <= guard.items[way].times


def test_a_larger_federation_stays_within_the_list(tmp_path):
    trial = pilot(tmp_path, ring(8, rounds=40, check_every=20))
    found = learners(trial, tmp_path)
    guards = guarded(tmp_path / "run", trial, lambda name: found[name].run())
    assert len(guards) == 8 and all(guard.sent for guard in guards.values())


# -- what is not in the list ------------------------------------------------------------------


@pytest.fixture
def guard():
    return Guard(consent_of(coast(**QUICK), "kemi"))


@pytest.mark.parametrize("content", ["predictions", "probabilities", "rows", "labels"])
def test_another_content(guard, content):
    with pytest.raises(ConsentError, match=f"must not send {content} to oulu: nobody agreed"):
        guard(content, "oulu", np.zeros(1))


@pytest.mark.parametrize("to", ["helsinki", "relay", "kemi", ""])
def test_another_receiver(guard, to):
    with pytest.raises(ConsentError, match="nobody agreed to it"):
        guard("parameters", to, np.zeros((1, 3)))


def test_more_numbers_and_more_often(guard):
    guard("parameters", "oulu", np.zeros((1, 3)))
    with pytest.raises(ConsentError, match="must not send 4 numbers of parameters to oulu"):
        guard("parameters", "oulu", np.zeros((1, 4)))
    item = guard.items["parameters", "oulu"]
    guard.sent["parameters", "oulu"] = item.times - 1
    guard("parameters", "oulu", np.zeros((1, 3)))
    with pytest.raises(ConsentError, match=f"more than {item.times} times"):
        guard("parameters", "oulu", np.zeros((1, 3)))


def saying(content, shape):
    """A program that wants to say something else."""

    def program(name):
        near = network(coast()).links[name]
        yield Exchange(content, {q: np.zeros(shape) for q in near})

    return program


@pytest.mark.parametrize(
    ("content", "shape", "message"),
    [
        ("predictions", (1, 3), "must not send predictions"),
        ("parameters", (50, 3), "must not send 150 numbers of parameters"),
    ],
)
def test_a_program_that_says_more_is_stopped_before_it_does(tmp_path, content, shape, message):
    with pytest.raises(ConsentError, match=message):
        guarded(tmp_path, coast(**QUICK), saying(content, shape))
    for name in ("oulu", "kemi", "inari"):
        content = (tmp_path / name / "journal").read_bytes()
        assert content.endswith(b"test")  # not even written down


def test_a_program_that_says_it_too_often_is_stopped(tmp_path):
    trial = coast(**QUICK)
    consents = {}
    for member in trial.members:
        found = consent_of(trial, member.name)
        items = tuple(replace(item, times=3) for item in found.items)
        consents[member.name] = replace(found, items=items)
    times = []

    def program(name):
        for _ in range(10):
            yield Sum(np.ones(2))
            times.append(name)

    with pytest.raises(ConsentError, match="more than 3 times"):
        guarded(tmp_path, trial, program, consents)
    assert max(times.count(name) for name in consents) <= 3


def test_the_text_names_every_receiver_and_the_hash(tmp_path):
    trial = pilot(tmp_path, coast(**QUICK))
    for member in trial.members:
        done = run("site", "check", tmp_path / "sites" / member.name, cwd=tmp_path)
        assert done.returncode == 0 and trial.hash in done.stdout
        consent = consent_of(trial, member.name)
        receivers = {item.to for item in consent.items}
        assert receivers == set(network(trial).of(member.name).peers)
        for to in receivers:
            assert f"  to {to}:" in done.stdout
        for item in consent.items:
            assert f"{item.numbers} number" in done.stdout and f"{item.times:,}" in done.stdout
        assert not (tmp_path / "sites" / member.name / "run-1").exists()
