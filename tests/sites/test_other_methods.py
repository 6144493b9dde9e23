"""FedRelax between real processes over real TLS: masked sums, any models, and without waiting."""

import hashlib
import json

import numpy as np
import polars as pl
import pytest

from nefele.estimators import load
from nefele.sites.config import SiteConfig
from nefele.sites.consent import consent_of
from nefele.sites.introducing import Card
from nefele.sites.learning import Learner
from nefele.sites.links import network
from nefele.sites.members import Edge
from nefele.sites.programs import program_of
from nefele.sites.results import answers, site_model
from nefele.sites.rows import read_rows, read_shared
from tests.e2e.commands import run
from tests.sites.running import Sites, pilot, ring
from tests.sites.together import in_process, seal_of

SHARED = "wind,pressure\n3,1000\n5,990\n30,1050\n"
RELAXED = {"method": "fedrelax", "penalty": "squared_l2", "l2": 0.1, "alpha": 0.3}


def four(**changes):
    """Four members, each of them a neighbour of all others."""
    names = [f"s{i:02d}" for i in range(4)]
    edges = tuple(Edge(a, b) for k, a in enumerate(names) for b in names[k + 1 :])
    return ring(4, edges=edges, **changes)


def run_and_kill(folder, trial, name, size):
    """All sites to their ends, one of them killed in the middle and started again."""
    with Sites(folder, trial) as sites:
        sites.start()
        sites.wait_for(name, size)
        sites.running[name].kill()
        assert not sites.ended(name)
        sites.start(name)
        sites.finish()
    assert facts_of(sites, name)["resumed"] > 0
    return sites


def facts_of(sites, name):
    return json.loads((sites.site(name) / "run-1" / "run.json").read_bytes())


def learners(trial, folder, **more):
    """By member; `more` are functions of its name that give further arguments."""
    found = {}
    for member in trial.members:
        rows = read_rows(trial, SiteConfig.read(folder / "sites" / member.name))
        args = {key: make(member.name) for key, make in more.items()}
        found[member.name] = Learner(trial, member.name, rows, **args)
    return found


def test_masked_sums_of_processes_one_of_which_is_killed(tmp_path):
    changes = {"masked": True, "rounds": 400, "check_every": 100, "tol": 1e-15}
    trial = pilot(tmp_path, four(**RELAXED | changes))
    sites = run_and_kill(tmp_path, trial, "s02", 80_000)
    net = network(trial)
    found = learners(trial, tmp_path, card=lambda name: Card(seal_of(trial, name, net)))
    ends = in_process(trial, {name: one.run() for name, one in found.items()})
    for name, learner in found.items():
        model = load(sites.site(name) / "run-1" / "model.nefele")
        assert np.array_equal(model.coef_, site_model(learner, ends[name]).coef_)
        table = pl.read_csv(sites.site(name) / "run-1" / "ledger.csv")
        rows = table.filter(pl.col("direction") == "sent").to_dicts()
        sent = {(row["peer"], row["content"]): row["messages"] for row in rows}
        listed = {(item.to, item.content): item.times for item in consent_of(trial, name).items}
        assert sent.keys() == listed.keys() and all(sent[way] <= listed[way] for way in sent)
        told = run("site", "status", sites.site(name), cwd=tmp_path).stdout
        assert "change " in told and "gap" not in told
        status = json.loads(run("site", "status", sites.site(name), "--json", cwd=tmp_path).stdout)
        assert status["gap"] is None and status["change"] is not None


@pytest.mark.slow
def test_predictions_of_processes_one_of_which_is_killed(tmp_path):
    mark = hashlib.sha256(SHARED.encode()).hexdigest()
    how = {"method": "predictions", "penalty": "squared_l2", "alpha": 0.5, "shared": mark}
    trial = pilot(tmp_path, ring(3, **how | {"rounds": 60, "tol": 1e-300}))
    uses = "sklearn.tree.DecisionTreeRegressor"
    for member in trial.members:
        site = tmp_path / "sites" / member.name
        (site / "shared.csv").write_text(SHARED)
        with (site / "site.toml").open("a") as file:
            file.write(f'\n[model]\nuse = "{uses}"\nparameters = {{ random_state = 0 }}\n')
    sites = run_and_kill(tmp_path, trial, "s01", 3_000)
    programs = {}
    for name, learner in learners(trial, tmp_path).items():
        config = SiteConfig.read(sites.site(name))
        programs[name] = program_of(learner, config.model, read_shared(trial, config))
    for name, end in in_process(trial, programs).items():
        table = pl.read_csv(sites.site(name) / "run-1" / "predictions.csv")
        assert table.rows() == answers(end).rows()
        assert facts_of(sites, name)["certificate"] == "no certificate: any model"


@pytest.mark.slow
def test_without_waiting_processes_end_with_a_proven_gap(tmp_path):
    """Not with the same bits: what is heard depends on time. The optimum is the same."""
    changes = {"wait": False, "rounds": 4000, "check_every": 200, "tol": 1e-8}
    trial = pilot(tmp_path, ring(4, **RELAXED | changes))
    sites = run_and_kill(tmp_path, trial, "s01", 6_000)
    found = learners(pilot_of(tmp_path / "step", **changes | {"wait": True}), tmp_path / "step")
    ends = in_process(next(iter(found.values())).federation, {q: o.run() for q, o in found.items()})
    for name, learner in found.items():
        facts = facts_of(sites, name)
        assert facts["converged"] and facts["gap"] <= 1e-8 and 0 < facts["kappa"] < 1
        page = (sites.site(name) / "run-1" / "report.html").read_text()
        said = f"{facts['kappa']:.3g} of itself"
        assert said in page
        printed = sites.running[name].out.read_text()
        assert f"Contraction factor of the rounds: {facts['kappa']:.3g}." in printed
        model = load(sites.site(name) / "run-1" / "model.nefele")
        assert np.allclose(model.coef_, site_model(learner, ends[name]).coef_, rtol=1e-3, atol=1e-3)


def pilot_of(folder, **changes):
    folder.mkdir()
    return pilot(folder, ring(4, **RELAXED | changes))
