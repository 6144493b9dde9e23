"""Sites with privacy: all that is sent follows from one release, which is paid for once."""

import json

import numpy as np
import pytest

from nefele import load
from nefele.privacy import Budget
from nefele.privacy.ledger import LedgerError
from nefele.runtime import InProcess
from nefele.sites import learn_together
from nefele.sites.config import SiteConfig
from nefele.sites.consent import consent_of
from nefele.sites.example import coast, some_rows
from nefele.sites.learning import Learner
from nefele.sites.links import network
from nefele.sites.members import Privacy
from nefele.sites.noisy import fresh_release, kept_release
from nefele.sites.results import site_model
from nefele.sites.rows import read_rows
from tests.sites.running import QUICK, Sites, pilot

TERMS = Privacy("statistics", 3.0, 1e-6)
MIDDLE = 30_000  # bytes of a journal


def test_a_federation_says_what_it_promises():
    text = consent_of(coast(privacy=TERMS), "oulu").text()
    assert "noise for privacy: statistics, epsilon 3, delta 1e-06 for one record" in text
    assert "without noise" not in text


def test_rows_are_never_used_in_place_of_the_release():
    federation = coast(alpha=0.3, privacy=TERMS)
    rows = some_rows(federation)
    program = Learner(federation, "oulu", rows["oulu"]).run()
    with pytest.raises(ValueError, match="must work with noisy moments"):
        next(program)


@pytest.mark.parametrize("alpha", [0.3, "auto"])
def test_learning_sees_the_release_and_the_numbers_of_rows_only(alpha):
    federation = coast(alpha=alpha, folds=2, n_alphas=3, check_every=50, privacy=TERMS)
    rows = some_rows(federation)
    found = learn_together(federation, rows)
    for name, learnt in found.items():
        d = len(federation.features)
        nodes = len(np.unique(rows[name].node_ids))
        assert len(learnt.rows.y) == nodes * 2 * (d + 1)
        assert learnt.rows.sample_weight.sum() == pytest.approx(len(rows[name].y))
        assert np.isfinite(learnt.part.w1).all()
    again = learn_together(federation, rows)
    assert not np.array_equal(found["oulu"].part.w1, again["oulu"].part.w1)


def test_a_release_is_kept_and_charged_once(tmp_path):
    federation = coast(alpha=0.3, privacy=TERMS)
    rows, data = some_rows(federation)["oulu"], tmp_path / "rows.csv"
    first, second = (kept_release(tmp_path, federation, "oulu", rows, data) for _ in range(2))
    assert np.array_equal(first.noise, second.noise)
    account = Budget(path=f"{data}.budget")
    assert [release.what for release in account.releases] == ["statistics"]
    (tmp_path / "released.npz").unlink()  # lost: it must be paid for again, and cannot
    with pytest.raises(ValueError, match="would bring epsilon to"):
        kept_release(tmp_path, federation, "oulu", rows, data)
    (tmp_path / "rows.csv.budget").unlink()
    with pytest.raises(LedgerError, match="must be there"):
        kept_release(tmp_path, federation, "oulu", rows, data)


def test_a_link_to_the_data_is_charged_to_the_same_account(tmp_path):
    federation = coast(alpha=0.3, privacy=TERMS)
    rows, data, link = some_rows(federation)["oulu"], tmp_path / "rows.csv", tmp_path / "link.csv"
    data.write_text("rows")
    link.symlink_to(data)
    kept_release(tmp_path, federation, "oulu", rows, data)
    (tmp_path / "released.npz").unlink()
    with pytest.raises(ValueError, match="would bring epsilon to"):
        kept_release(tmp_path, federation, "oulu", rows, link)
    assert not (tmp_path / "link.csv.budget").exists()


def test_a_kept_release_refuses_an_older_account(tmp_path):
    federation = coast(alpha=0.3, privacy=TERMS)
    rows, data = some_rows(federation)["oulu"], tmp_path / "rows.csv"
    Budget(3.0, 1e-6, path=f"{data}.budget")
    names = ("rows.csv.budget", "rows.csv.budget.head")
    old = {name: (tmp_path / name).read_bytes() for name in names}
    kept_release(tmp_path, federation, "oulu", rows, data)
    for name, content in old.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(LedgerError, match="older copy"):
        kept_release(tmp_path, federation, "oulu", rows, data)


def test_a_release_of_another_federation_is_refused(tmp_path):
    rows = some_rows(coast())["oulu"]
    kept_release(tmp_path, coast(privacy=TERMS), "oulu", rows, tmp_path / "a")
    other = coast(privacy=Privacy("statistics", 2.0, 1e-6))
    with pytest.raises(ValueError, match="must be what this run released"):
        kept_release(tmp_path, other, "oulu", rows, tmp_path / "a")


def test_without_privacy_or_rows_nothing_is_released(tmp_path):
    rows = some_rows(coast())["oulu"]
    assert fresh_release(coast(), "oulu", rows) is None
    none = rows.take(np.zeros(0, dtype=np.int64))
    assert kept_release(tmp_path, coast(privacy=TERMS), "oulu", none, tmp_path / "a") is None
    assert list(tmp_path.iterdir()) == []


def test_real_sites_with_a_kill_pay_once_and_end_where_one_process_does(tmp_path):
    more = {"rounds": 400, "check_every": 200, "privacy": TERMS}
    trial = pilot(tmp_path, coast(**QUICK | more), rows=30)
    with Sites(tmp_path, trial) as sites:
        sites.start()
        sites.wait_for("kemi", MIDDLE)
        sites.running["kemi"].kill()
        sites.start("kemi")
        sites.finish()
    learners = {}
    for member in trial.members:
        folder = tmp_path / "sites" / member.name
        config = SiteConfig.read(folder)
        rows = read_rows(trial, config)
        account = Budget(path=f"{config.data}.budget")
        assert account.spent == pytest.approx(3.0, abs=1e-3)
        assert len(account.releases) == 1
        noisy = kept_release(folder / "run-1", trial, member.name, rows, config.data)
        learners[member.name] = Learner(trial, member.name, rows, noisy=noisy)
    programs = {name: one.run() for name, one in learners.items()}
    ends = InProcess(network(trial).links, programs).run()
    for name, one in learners.items():
        run = tmp_path / "sites" / name / "run-1"
        assert np.array_equal(load(run / "model.nefele").coef_, site_model(one, ends[name]).coef_)
        facts = json.loads((run / "run.json").read_bytes())
        assert facts["privacy"].startswith("statistics, epsilon 3")
        assert facts["rows"] == 30 * len(trial.member(name).nodes)
