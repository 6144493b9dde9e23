"""Sites with folders, certificates and files: models of any kind, and masked sums."""

import hashlib
import json
import threading
from dataclasses import replace

import numpy as np
import pytest

from nefele.cli._site_words import ended
from nefele.sites.card import site_card
from nefele.sites.carriers.memory import Hub
from nefele.sites.example import coast
from nefele.sites.members import Edge, Member, Privacy
from nefele.sites.pilot import make_pilot
from nefele.sites.site import Site
from nefele.sites.trust import site_requirements
from tests.e2e.commands import refused
from tests.e2e.commands import run as command

SHARED = "wind,pressure\n3,1000\n5,990\n30,1050\n"


def run_all(out, federation, hub, more="", others=0):
    """Make the folders of all sites and run them over a hub; what each run has left.

    `others` is added to the labels of all members but oulu.
    """
    trial, _ = make_pilot(federation, out, port=0)
    rng, found, errors = np.random.default_rng(0), {}, []

    def run(name):
        try:
            site = Site(out / name, accept=trial.hash, carrier=hub.carrier(name))
            found[name] = site.run()
        except Exception as error:
            errors.append(error)

    for member in trial.members:
        folder = out / member.name
        lines = ["node,wind,pressure,tmax"]
        high = others * (member.name != "oulu")
        for node in member.nodes:
            winds = rng.uniform(0, 40, 12)
            lines += [f"{node},{w:.3f},{1000 + w:.3f},{high + w / 4:.4f}" for w in winds]
        (folder / "data.csv").write_text("\n".join(lines))
        (folder / "shared.csv").write_text(SHARED)
        (folder / "site.toml").write_text(f'name = "{member.name}"\nnode = "node"\n{more}')
    threads = [threading.Thread(target=run, args=(m.name,), daemon=True) for m in trial.members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if errors:
        raise errors[0]
    assert len(found) == len(threads)
    return found


def test_models_of_any_kind(tmp_path):
    federation = coast(
        method="predictions", penalty="squared_l2", alpha=0.1, rounds=30, tol=0.01,
        shared=hashlib.sha256(SHARED.encode()).hexdigest(),
    )  # fmt: skip
    model = '[model]\nuse = "sklearn.linear_model.Ridge"\nparameters = { alpha = 0.1 }\n'
    for run in run_all(tmp_path / "pilot", federation, Hub(), model).values():
        facts = json.loads((run.folder / "run.json").read_text())
        assert facts["gap"] is None and facts["certificate"] == "no certificate: any model"
        assert facts["converged"] and facts["change"] <= 0.01
        assert facts["errors"]["one model"] is None and "not available" in facts["one_model"]
        assert facts["models"].startswith("stored as model-NODE")
        names = {path.name for path in run.folder.iterdir()}
        assert {"predictions.csv", "metrics.csv", "ledger.csv"} <= names
        assert any(name.startswith("model-") and name.endswith(".skops") for name in names)
        assert "no certificate: any model; settled" in ended(facts, run.folder)[0]


def test_masked_sums(tmp_path):
    names = "iabc"
    federation = coast(
        method="fedrelax", penalty="squared_l2", alpha=0.1, l2=0.1, masked=True, tol=1e-6,
        members=tuple(Member(q, (q,)) for q in names),
        edges=tuple(Edge(q, r) for q in names for r in names if q < r), check_every=20,
    )  # fmt: skip
    for run in run_all(tmp_path / "pilot", federation, Hub(loss=0.05, seed=1)).values():
        facts = run.facts
        assert facts["certificate"] == "no certificate while masked" and facts["gap"] is None
        assert facts["converged"] and (run.folder / "model.nefele").exists()
        assert "parameters" not in (run.folder / "ledger.csv").read_text()


def test_a_wrong_model_is_said_before_anything_is_sent(tmp_path):
    federation = coast(
        method="predictions", penalty="squared_l2", alpha=0.1,
        shared=hashlib.sha256(SHARED.encode()).hexdigest(),
    )  # fmt: skip
    model = '[model]\nuse = "sklearn.linear_model.Rigde"\n'
    with pytest.raises(ValueError, match="can be imported"):
        run_all(tmp_path / "pilot", replace(federation), Hub(), model)


def test_the_seven_requirements_of_a_run_at_a_site(tmp_path):
    federation = coast(alpha=0.1, l2=0.1, tol=1e-6)
    run = run_all(tmp_path / "pilot", federation, Hub())["oulu"]
    facts = json.loads((run.folder / "run.json").read_text())
    done = command("trust", run.folder, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["requirements"]
    assert len(rows) == 7
    entries = {entry["text"]: entry for row in rows for entry in row["entries"]}
    assert entries["bytes sent"]["number"] == facts["bytes_sent"] > 0
    assert entries["numbers that left this site"]["number"] == facts["numbers_sent"] > 0
    gap = entries["relative distance of the fit from the optimum, at most"]
    assert gap["mark"] == "proven" and gap["number"] == facts["gap"] <= 1e-6
    assert entries["processor seconds"]["number"] == facts["cpu_seconds"] > 0
    energy = entries["watt-hours, not measured: an assumption of 15 W for a busy core"]
    assert energy["mark"] == "not covered"
    assert energy["number"] == pytest.approx(facts["cpu_seconds"] * 15 / 3600)
    paid = [e["number"] for text, e in entries.items() if text.startswith("of these, payload to")]
    assert len(paid) > 0 and 0 < sum(paid) <= facts["bytes_sent"]
    bound = next(e for text, e in entries.items() if "whatever all other sites do" in text)
    assert bound["mark"] == "proven" and bound["number"] == facts["robustness"]["number"] > 0
    assert entries["differential privacy: the models may tell of single rows"]["number"] is None
    page = (run.folder / "report.html").read_text(encoding="utf-8")
    assert "Seven requirements" in page and "whatever all other sites do" in page
    made = command("trust", run.folder, "--card", "a.json", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    card = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert card["data"]["rows"] == facts["rows"] and card["data"]["sha256"] == "kept back"
    assert card["errors"]["nefele"] == facts["errors"]["nefele"]
    assert command("trust", run.folder, "--card", "a.md", cwd=tmp_path).returncode == 0
    assert "## Seven requirements" in (tmp_path / "a.md").read_text(encoding="utf-8")
    assert "is one of a site" in refused("explain", run.folder, "oulu-1", cwd=tmp_path)
    assert "is the folder of a site" in refused("trust", run.folder.parent, cwd=tmp_path)
    (run.folder / "metrics.csv").unlink()
    assert "must have its metrics.csv" in refused("trust", run.folder, cwd=tmp_path)
    del facts["rounds"]
    (run.folder / "run.json").write_text(json.dumps(facts))
    assert "has no 'rounds'" in refused("trust", run.folder, cwd=tmp_path)
    (run.folder / "run.json").unlink()
    status = json.loads((run.folder / "status.json").read_text())
    (run.folder / "status.json").write_text(json.dumps(status | {"state": "failed"}))
    words = refused("trust", run.folder, cwd=tmp_path)
    assert "not finished (state: failed). Go on with: nefele site run" in words


def test_the_other_sites_move_a_site_no_further_than_its_run_says(tmp_path):
    """Two behaviours of the others end at most twice the bound from each other."""
    federation = coast(alpha=0.1, l2=0.1, tol=1e-9)
    runs = [
        run_all(tmp_path / str(high), federation, Hub(), others=high)["oulu"] for high in (0, 30)
    ]
    own = [run.learnt.part.w1[:2] for run in runs]
    moved, bound = np.linalg.norm(own[0] - own[1]), runs[0].facts["robustness"]["number"]
    assert 0.05 * bound < moved <= 2 * bound
    assert runs[0].facts["robustness"]["covered"] == 2


def test_privacy_of_a_federation_is_a_row_of_its_own(tmp_path):
    private = Privacy("statistics", 2.0, 1e-6)
    run = run_all(tmp_path / "pilot", coast(alpha=0.1, l2=0.1, privacy=private), Hub())["oulu"]
    rows = site_requirements(run.folder, run.facts)
    found = {entry.text: entry for entry in rows[2].entries}
    assert found["epsilon of differential privacy, one record replaced"].number == 2.0
    assert found["delta of differential privacy, one record replaced"].number == 1e-6
    assert any("account" in text for text in found)
    measured = [text for row in rows for text in row.of("measured")]
    assert not any("error" in text or "judged" in text for text in measured)
    noisy = "estimated from the noisy release"
    assert any("error on own held-out rows" in t and noisy in t for t in rows[1].of("not covered"))
    card = site_card(run.folder, run.facts, rows)
    assert card["errors"]["metric"] == f"mean squared error, {noisy}"
