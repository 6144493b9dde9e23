"""The small file that says how a run is going."""

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from nefele.runtime.messages import Ledger
from nefele.sites.status import FILE, Status, read_status


def driver(**changes):
    facts = dict(waiting=[], number=7, gone=[], wire_bytes=10, ledger=Ledger(), again=0, resumed=0)
    return SimpleNamespace(**{**facts, "refused": Counter(), **changes})


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
