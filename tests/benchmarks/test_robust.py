"""The page of benchmarks/robust.py from made records, and its scenes."""

import json

import numpy as np
import pytest
import robust
import robust_scenes
import robust_strengths

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
    (tmp_path / "generated-strengths.json").write_text(json.dumps({"l2": 0.01}))
    robust.measure("generated", range(1), ["l2"])
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


def test_the_page_says_which_defence_holds_where():
    lines = robust.holds([*RECORDS, record(0, "backdoor", "l2", 1.0, success=0.9)])
    assert "| l2 | 1 of 2 | 4 (constant) | constant | 90% |" in lines
    assert "| clip | 1 of 1 | 1 (constant) | - | nan% |" in lines


def test_strengths_are_the_best_that_hold(monkeypatch):
    """Errors without an attack fall with lam; from 0.02 on an attack trebles them."""

    def error(scene, penalty, attack):
        lam = scene.lam[penalty]
        clean = 1.0 / (1.0 + lam)
        return clean if attack == "nobody" else clean * (3.0 if lam >= 0.02 else 1.5)

    monkeypatch.setattr(robust_strengths, "_error", error)
    found = robust_strengths.choose("generated", robust_scenes.generated, range(1))
    assert found["l2"] == found["huber"] == 0.014
    assert found["squared_l2"] == max(robust_strengths.QUADRATICS)
    seeds = [*robust.CHOSEN_ON["generated"], *robust.JUDGED_ON["generated"]]
    assert len(set(seeds)) == 10
