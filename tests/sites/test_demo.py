"""`nefele federation demo`: five processes, one killed, and all equal to one process."""

import json
import os
import signal
import subprocess
import sys
from unittest.mock import patch

import numpy as np
import pytest

from nefele import load
from nefele.datasets import load_states
from nefele.sites import demo, demo_states
from nefele.sites.demo_page import demo_page
from nefele.sites.demo_processes import Processes
from nefele.sites.demo_states import REGIONS, states_federation
from nefele.sites.links import network
from nefele.sites.status import read_status
from tests.e2e.commands import refused, run
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The demo, once, with fewer rounds: through the command, in a folder of its own."""
    place = tmp_path_factory.mktemp("demo")
    with patch.dict(demo_states._TERMS, {"tol": 1e-3}):
        found = run("federation", "demo", "--json", cwd=place)
    assert found.returncode == 0, (found.stdout, found.stderr)
    return place / "nefele-demo-federation", json.loads(found.stdout)


def test_five_processes_find_what_one_finds(shown):
    _, facts = shown
    assert facts["equal"] is facts["bit_equal"] is facts["converged"] is True
    assert list(facts["sites"]) == list(REGIONS)
    assert all(one["same"] for one in facts["sites"].values())
    assert facts["gap"] <= facts["tol"] == 1e-3
    assert facts["objective_difference"] <= facts["gap"] + 1e-8
    assert facts["parameter_difference"] < 0.1
    assert sum(one["rows"] for one in facts["sites"].values()) == 816


def test_the_killed_site_went_on_from_its_journal(shown):
    out, facts = shown
    killed = facts["killed"]
    went_on, resumed = killed["went_on"], facts["sites"][killed["site"]]["resumed"]
    assert 0 < went_on["request"] == resumed < facts["requests"]
    assert went_on["request"] >= 0.6 * facts["requests"]
    assert killed["seconds"] < killed["restarted"]
    assert read_status(out / "sites" / killed["site"] / "run-1")["went_on"] == went_on
    others = [name for name in facts["sites"] if name != killed["site"]]
    assert list(killed["others"]) == others
    assert all(facts["sites"][name]["resumed"] == 0 for name in others)


def test_what_it_leaves(shown):
    out, facts = shown
    page = (out / "demo.html").read_text(encoding="utf-8")
    assert "All is equal." in page and facts["hash"] in page and page.count("<svg") == 4
    assert "PRIVATE" not in page and str(out) not in page
    states = 0
    for name in REGIONS:
        left = out / "sites" / name / "run-1"
        report = (left / "report.html").read_text(encoding="utf-8")
        assert f"{name} in states" in report and "Certified:" in report
        assert "PRIVATE" not in report and str(out) not in report
        states += len(load(left / "model.nefele").coef_)
    assert states == 48
    plains = (out / "sites" / facts["killed"]["site"] / "run-1" / "report.html").read_text()
    assert "went on from its journal" in plains


def test_no_process_is_left(shown):
    out, facts = shown
    for name in facts["sites"]:
        assert read_status(out / "sites" / name / "run-1")["state"] == "finished"


def test_a_finished_demo_is_not_replaced_by_accident(shown):
    out, facts = shown
    message = refused("federation", "demo", "--out", str(out), cwd=out.parent)
    assert facts["finished"] in message and "--force" in message
    assert json.loads((out / "demo.json").read_text())["equal"] is True


def test_other_folders_are_never_touched(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    command = ("federation", "demo", "--out", "mine", "--force")
    assert "something else" in refused(*command, cwd=tmp_path)
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    demo.check_place(tmp_path / "new")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="must be a folder"):
        demo.check_place(tmp_path / "file")


def test_what_is_not_equal_is_told(shown):
    _, facts = shown
    facts = {**json.loads((shown[0] / "demo.json").read_text()), "equal": False}
    page = demo_page({**facts, "bit_equal": False, "killed": {**facts["killed"], "went_on": None}})
    assert "Not all is equal." in page and "are NOT the same" in page
    assert "did NOT go on from its journal" in page
    assert "The models of one process, not of the sites, compared" in page


def test_regions_are_connected_and_hold_every_state_once():
    federation = states_federation()
    graph = load_states().graph
    assert sorted(federation.owner) == sorted(graph.ids.tolist())
    for member in federation.members:
        whole = federation.graph()
        inside = np.array([federation.owner[key] == member.name for key in whole.ids.tolist()])
        seen, edge = {member.nodes[0]}, list(zip(whole.head, whole.tail, strict=True))
        for _ in member.nodes:
            for a, b in edge:
                if inside[a] and inside[b] and {whole.ids[a], whole.ids[b]} & seen:
                    seen |= {whole.ids[a], whole.ids[b]}
        assert seen == set(member.nodes)
    assert len(network(federation).members) == 5


SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]


def is_gone(number):
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    return False


def test_processes_end_with_an_error(tmp_path):
    one = Processes({"a": SLEEP}, {"a": tmp_path / "a"})

    def fail():
        with one:
            one.start("a")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert one.running == [] and list(one.codes()) == ["a"]


def test_a_process_that_fails_says_why(tmp_path):
    command = [sys.executable, "-c", "import sys; sys.exit('no such port')"]
    with Processes({"a": command}, {"a": tmp_path / "a"}) as one:
        one.start("a")
        wait_until(lambda: not one.running, "the end")
        with pytest.raises(ValueError, match=r"a must run .* \(exit code 1\): no such port"):
            one.check(good=(0,))


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_processes_end_with_the_one_that_started_them(tmp_path, name):
    code = (
        "import sys, time, pathlib\n"
        "from nefele.sites.demo_processes import Processes\n"
        f"place = pathlib.Path({str(tmp_path)!r})\n"
        f"with Processes({{'a': {SLEEP!r}}}, {{'a': place / 'log'}}) as one:\n"
        "    one.start('a')\n"
        "    (place / 'pid').write_text(str(one._processes['a'].pid))\n"
        "    (place / 'ready').write_text('')\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as starter:
        wait_until((tmp_path / "ready").exists, "the start")
        starter.send_signal(getattr(signal, name))
        starter.wait(60)
    child = int((tmp_path / "pid").read_text())
    wait_until(lambda: is_gone(child), "the end of the child")
