"""What was spent stays spent: across runs, processes, kills and copies of files."""

import contextlib
import copy
import json
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from nefele.privacy import Bounds, Budget, BudgetError, Privacy, calibrate, epsilon_of
from nefele.privacy.ledger import LedgerError
from tests.waiting import LONG


def test_releases_compose_by_their_noise_not_by_their_epsilons(tmp_path):
    budget = Budget(2.0, 1e-6, path=tmp_path / "rows.budget")
    for name in ("first run", "second run"):
        budget.spend(name, multiplier=8.0, count=2, outside=["a graph learnt from raw rows"])
    alone = epsilon_of([(8.0, 2)], 1e-6)
    assert budget.spent == pytest.approx(epsilon_of([(8.0, 4)], 1e-6))
    assert alone < budget.spent < 2 * alone
    assert budget.left == pytest.approx(2.0 - budget.spent)
    text = budget.summary()
    assert "second run" in text and "outside the accountant: a graph learnt" in text


def test_another_process_goes_on_with_the_file(tmp_path):
    Budget(1.0, 1e-6, path=tmp_path / "b").spend("one", 6.0)
    again = Budget(path=tmp_path / "b")
    assert [release.what for release in again.releases] == ["one"]
    with pytest.raises(ValueError, match="epsilon must be that of the budget"):
        Budget(5.0, 1e-6, path=tmp_path / "b")


@pytest.mark.parametrize("noise", [5.0, 6.5, 20.0])
def test_the_epsilon_that_a_refusal_names_fits_and_little_more_does_not(noise):
    budget = Budget(1.0, 1e-6)
    budget.spend("one", noise)
    with pytest.raises(BudgetError, match="or less still fits") as refusal:
        budget.spend("two", 1.0)
    most = float(re.search("epsilon ([0-9.]+) or less", str(refusal.value))[1])
    with pytest.raises(BudgetError):
        budget.spend("two", calibrate(1.02 * most, 1e-6))
    budget.spend("two", calibrate(most, 1e-6))


def test_an_account_that_is_spent_says_how_to_go_on():
    budget = Budget(1.0, 1e-6)
    budget.spend("one", calibrate(1.0, 1e-6))
    with pytest.raises(BudgetError, match=r"No further release fits.* --budget FILE"):
        budget.spend("two", 50.0)


def test_it_stops_before_too_much_is_spent(tmp_path):
    budget = Budget(1.0, 1e-6, path=tmp_path / "b")
    budget.spend("one", 5.0)
    before = (tmp_path / "b").read_bytes()
    with pytest.raises(BudgetError, match="Nothing was released"):
        budget.spend("two", 5.0)
    assert (tmp_path / "b").read_bytes() == before


@pytest.mark.parametrize("multiplier", [0.0, float("nan"), -1.0])
def test_noise_that_is_none_is_never_free(multiplier):
    with pytest.raises(ValueError, match="multiplier"):
        Budget(1.0, 1e-6).spend("x", multiplier)


def test_copies_spend_from_the_same_account(tmp_path):
    budget = Budget(1.0, 1e-6)
    copy.deepcopy(budget).spend("copy", 6.0)
    assert len(budget.releases) == 1
    with pytest.raises(TypeError, match="Name a file"):
        pickle.dumps(budget)
    kept = Budget(1.0, 1e-6, path=tmp_path / "b")
    pickle.loads(pickle.dumps(kept)).spend("elsewhere", 6.0)
    assert len(kept.releases) == 1


def test_noise_for_records_does_not_count_for_nodes():
    with pytest.raises(BudgetError, match="whole nodes"):
        Budget(1.0, 1e-6, unit="node").spend("x", 9.0, unit="record")
    Budget(1.0, 1e-6, unit="record").spend("x", 9.0, unit="node")


KILLED = """
import os, signal, sys
from nefele.privacy import Budget
Budget(path=sys.argv[1]).spend("release", 6.0)
os.kill(os.getpid(), signal.SIGKILL)   # after the record, before the release
"""


def test_a_kill_between_record_and_release_counts(tmp_path):
    path = tmp_path / "b"
    Budget(1.0, 1e-6, path=path)
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=LONG)
    assert done.returncode == -signal.SIGKILL
    assert [release.what for release in Budget(path=path).releases] == ["release"]


def test_a_kill_between_the_two_files_counts(tmp_path):
    path = tmp_path / "b"
    budget = Budget(1.0, 1e-6, path=path)
    budget.spend("one", 9.0)
    head = (tmp_path / "b.head").read_bytes()
    budget.spend("two", 9.0)
    (tmp_path / "b.head").write_bytes(head)  # as if the second write had not come
    again = Budget(path=path)
    assert len(again.releases) == 2
    again.spend("three", 9.0)
    assert len(Budget(path=path).releases) == 3


def test_a_kill_while_a_budget_is_made_leaves_one_to_go_on_with(tmp_path):
    Budget(1.0, 1e-6, path=tmp_path / "b")
    os.remove(tmp_path / "b.head")
    assert Budget(path=tmp_path / "b").releases == ()


def test_an_older_copy_is_refused(tmp_path):
    path = tmp_path / "b"
    budget = Budget(3.0, 1e-6, path=path)
    budget.spend("one", 6.0)
    shutil.copy(path, tmp_path / "old")
    budget.spend("two", 6.0)
    shutil.copy(tmp_path / "old", path)
    for use in (lambda: Budget(path=path), lambda: budget.spend("three", 6.0)):
        with pytest.raises(LedgerError, match="older"):
            use()


def test_both_files_restored_are_refused_by_what_was_made_with_them(tmp_path):
    path = tmp_path / "b"
    budget = Budget(3.0, 1e-6, path=path)
    budget.spend("one", 6.0)
    old = [(name, (tmp_path / name).read_bytes()) for name in ("b", "b.head")]
    budget.spend("two", 6.0)
    head = budget.head
    for name, content in old:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(LedgerError, match="older copy"):
        Budget(path=path).check_head(head)


def test_the_object_that_spent_refuses_both_files_of_before(tmp_path):
    path = tmp_path / "b"
    budget = Budget(3.0, 1e-6, path=path)
    old = [(name, (tmp_path / name).read_bytes()) for name in ("b", "b.head")]
    budget.spend("one", 6.0)
    sent = pickle.dumps(budget)
    for name, content in old:
        (tmp_path / name).write_bytes(content)
    uses = (lambda: budget.spend("two", 6.0), lambda: budget.spent, lambda: pickle.loads(sent))
    for use in uses:
        with pytest.raises(LedgerError, match="older copy"):
            use()
    assert path.read_bytes() == old[0][1]


def test_an_account_of_which_both_files_are_gone_is_not_begun_again(tmp_path):
    budget = Budget(3.0, 1e-6, path=tmp_path / "b")
    for name in ("b", "b.head"):
        (tmp_path / name).unlink()
    for use in (lambda: budget.spend("one", 6.0), lambda: budget.spent):
        with pytest.raises(LedgerError, match="it is gone"):
            use()
    assert list(tmp_path.iterdir()) == []


def test_a_lost_ledger_is_not_a_new_one(tmp_path):
    Budget(1.0, 1e-6, path=tmp_path / "b").spend("one", 6.0)
    os.remove(tmp_path / "b")
    with pytest.raises(LedgerError, match="must be there"):
        Budget(1.0, 1e-6, path=tmp_path / "b")


@pytest.mark.parametrize("change", ["drop", "edit", "swap", "text", "empty"])
def test_a_changed_ledger_is_refused(tmp_path, change):
    path = tmp_path / "b"
    budget = Budget(3.0, 1e-6, path=path)
    for k in range(3):
        budget.spend(f"release {k}", 9.0)
    lines = path.read_text().splitlines()
    if change == "drop":
        del lines[2]
    elif change == "edit":
        lines[2] = json.dumps(json.loads(lines[2]) | {"multiplier": 1e9})
    elif change == "swap":
        lines[1], lines[2] = lines[2], lines[1]
    elif change == "text":
        lines = ["hello"]
    else:
        lines = []
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(LedgerError, match="damaged"):
        Budget(path=path)


def spend_some(path, count):
    for _ in range(count):
        Budget(path=path).spend("concurrent", 40.0)


def test_processes_at_the_same_time_lose_nothing(tmp_path):
    path = tmp_path / "b"
    Budget(3.0, 1e-6, path=path)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=spend_some, args=(path, 5)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(LONG)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len(Budget(path=path).releases) == 15


@pytest.mark.parametrize("path", [None, "b"])
def test_threads_together_spend_what_there_is(tmp_path, path, monkeypatch):
    budget = Budget(1.0, 1e-6, path=None if path is None else tmp_path / path)
    together = threading.Barrier(6)
    cost = Budget._cost

    def slow(self, releases):  # all threads would have looked before the first one writes
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(0.2)
        return cost(self, releases)

    monkeypatch.setattr(Budget, "_cost", slow)

    def spend(k):
        try:
            budget.spend(f"thread {k}", 5.0)
        except BudgetError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        granted = list(pool.map(spend, range(6)))
    assert sum(granted) == len(budget.releases) == 1


def test_a_fork_has_no_account_of_its_own(tmp_path):
    budget = Budget(1.0, 1e-6)
    context = multiprocessing.get_context("fork")
    child = context.Process(target=spend_or_tell, args=(budget, tmp_path / "said"))
    child.start()
    child.join(LONG)
    assert "the process that made it" in (tmp_path / "said").read_text()
    budget.spend("here", 6.0)
    assert len(budget.releases) == 1


def spend_or_tell(budget, path):
    try:
        budget.spend("in a fork", 6.0)
    except BudgetError as error:
        path.write_text(str(error))


def test_a_promise_is_charged_before_it_is_kept(tmp_path):
    budget = Budget(1.0, 1e-6, path=tmp_path / "b")
    promise = Privacy(0.5, 1e-6, bounds=Bounds(x=1.0), budget=tmp_path / "b")
    spent = promise.charge("updates", 20, [])
    assert spent.head == budget.head
    assert budget.spent == pytest.approx(0.5, abs=1e-3)
    with pytest.raises(ValueError, match="No budget file"):
        Privacy(0.5, 1e-6, bounds=Bounds(x=1.0), budget=tmp_path / "c").charge("x", 1, [])
