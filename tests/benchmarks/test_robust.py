"""The page of benchmarks/robust.py from made records, and its scenes."""

import json

import numpy as np
import pytest
import robust
import robust_scenes

from nefele.runs.attacking import attacks, defences, play


def record(seed, attack, defence, error, success=0.0, used=None):
    found = {"seed": seed, "attack": attack, "defence": defence, "error": error}
    return {**found, "success": success, "used": used, "seconds": 1.0}


RECORDS = [
    record(0, "nobody", "l2", 1.0, used=0.1),
    record(1, "nobody", "l2", 3.0, used=0.2),
    record(0, "constant", "l2", 4.0, success=1.0, used=0.7),
    record(1, "constant", "l2", 4.0, success=0.0, used=0.4),
    record(0, "nobody", "clip", 5.0),
    record(0, "constant", "clip", 5.0),
]


def test_the_page_has_means_deviations_and_the_largest_share_of_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(robust, "KEPT", tmp_path)
    (tmp_path / "generated.json").write_text(json.dumps(RECORDS))
    page = "\n".join(robust.chapter("generated"))
    assert "| attack | l2 | clip |" in page and "2 seeds" in page
    assert "| nobody | 2 ± 1 | 5 ± 0 |" in page
    assert "| constant | 0.50 | 0.00 |" in page
    assert "over its certified bound: 0.700" in page
    assert "Not measured here." in robust.chapter("digits")


def test_some_defences_are_measured_again_and_the_others_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(robust, "KEPT", tmp_path)
    (tmp_path / "generated.json").write_text(json.dumps(RECORDS))
    outcome = type("Outcome", (), {"error": 9.0, "used": 0.5, "seconds": 0.1})
    rows = [("nobody", "l2", outcome, 0.0)]
    monkeypatch.setattr(robust, "table", lambda scene, against: rows)
    robust.measure("generated", 1, ["l2"])
    kept = json.loads((tmp_path / "generated.json").read_text())
    assert [r["error"] for r in kept if r["defence"] == "l2"] == [9.0]
    assert sum(r["defence"] == "clip" for r in kept) == 2


@pytest.mark.parametrize("name", ["generated", "digits"])
def test_triggers_use_what_clean_rows_do_not(name):
    scene = getattr(robust_scenes, name)(0)
    assert not scene.data.X[:, scene.door.trigger != 0].any()
    assert set(scene.captured) <= set(scene.graph.ids.tolist())
    outcome = play(scene, attacks(scene)["nobody"], defences()["l2"])
    assert np.isfinite(outcome.error) and outcome.opened < 0.2
