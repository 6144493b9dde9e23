"""The small file that says how a run is going."""

import json
from types import SimpleNamespace

import pytest

from nefele.cli._site_words import shown
from nefele.runtime.messages import Ledger
from nefele.sites.attempt import Attempt
from nefele.sites.books import Books
from nefele.sites.example import coast
from nefele.sites.status import FILE, Status, read_status


def driver(**changes):
    facts = dict(waiting=[], number=7, gone=[], why="", ledger=Ledger(), books=Books(), resumed=0)
    return SimpleNamespace(**{**facts, **changes})


def strictly(folder):
    """The facts, from a file that any reader of JSON takes."""

    def no_constant(text):
        raise AssertionError(f"{text} is no JSON")

    return json.loads((folder / FILE).read_text(), parse_constant=no_constant)


def test_a_gap_that_is_not_proven_is_none(tmp_path):
    status = Status(tmp_path, {"name": "oulu"})
    status.write(state="ending", gap=float("inf"))
    assert strictly(tmp_path)["gap"] is None
    status.write(state="finished", gap=0.5)
    assert strictly(tmp_path)["gap"] == 0.5


def test_the_last_round_is_told_although_rounds_are_faster_than_the_file(tmp_path):
    status = Status(tmp_path, {"name": "oulu"})
    status.report("final fit", 1, 0.5)
    status.update(driver())
    status.report("final fit", 2, 0.25)
    status.update(driver())  # too soon to write
    assert strictly(tmp_path)["round"] == 1
    status.write(state="ending")
    assert (strictly(tmp_path)["stage"], strictly(tmp_path)["round"]) == ("final fit", 2)


@pytest.mark.parametrize("resumed", [0, 7])
def test_a_process_that_went_on_says_from_where(tmp_path, resumed):
    status = Status(tmp_path, {"name": "oulu"})
    status.report("comparison", 3, 0.5)
    status.update(driver(resumed=resumed))
    status.report("comparison", 9, 0.5)
    status.update(driver(resumed=resumed, number=20))
    where = {"stage": "comparison", "round": 3, "request": 7} if resumed else None
    assert read_status(tmp_path).get("went_on") == where


def test_a_run_that_does_not_begin_says_once_what_to_look_at(capsys):
    show = shown(False)
    facts = {"name": "oulu", "run": "7", "hash": "ab" * 32, "state": "waiting", "stage": "starting"}
    for seconds in (5.0, 25.0, 30.0):
        show({**facts, "late": {"kemi": seconds}, "refused": {"kemi: other run": 1}})
    told = capsys.readouterr().err
    assert told.count("from kemi yet") == 1 and "--run 7 and the hash abababab" in told
    assert "refused: kemi: other run" in told


def test_a_run_that_was_killed_while_it_ended_has_stopped(tmp_path, monkeypatch):
    Status(tmp_path, {"name": "oulu"}).write(state="ending")
    monkeypatch.setattr("nefele.sites.status.is_alive", lambda process: False)
    assert read_status(tmp_path)["state"] == "stopped"


def test_who_comes_when_the_others_have_left_is_told_to_ask_for_a_new_run():
    attempt = object.__new__(Attempt)
    attempt.site = SimpleNamespace(federation=coast(), name="oulu")
    with pytest.raises(ValueError, match=r"Without kemi, .* gone on without oulu, .* a new run"):
        attempt._network(["kemi"])
