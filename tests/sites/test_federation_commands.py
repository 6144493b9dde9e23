"""From a graph and a schema to sites with certificates, by the commands."""

import importlib.util
import json
import stat

import polars as pl
import pytest

from nefele.sites.config import SiteConfig
from nefele.sites.federation import Federation
from nefele.sites.identity import check_chain
from tests.e2e.commands import refused, run

SCHEMA = """
name = "coast"
alpha = 0.5
target = { name = "tmax", unit = "C", low = -50, high = 40 }
features = [{ name = "wind", unit = "m/s", low = 0, high = 40 }]
[[members]]
name = "oulu"
nodes = ["001", "002"]
address = "oulu.example:7447"
[[members]]
name = "kemi"
nodes = ["003"]
"""
GRAPH = "source,target,weight\n001,002,1\n002,003,0.5\n"
NEW = ("federation", "new", "graph.csv", "schema.toml", "--out", "fed")
ASK = ("site", "request", "oulu", "--federation", "fed/federation.toml", "--out", "oulu")
SIGN = ("federation", "sign", "fed", "oulu/request.pem", "--out", "answer.pem")


def done(*args, cwd):
    """What a command prints, which never is a private key."""
    found = run(*args, cwd=cwd)
    assert found.returncode == 0, (found.stdout, found.stderr)
    assert "PRIVATE KEY" not in found.stdout + found.stderr
    return found.stdout


@pytest.fixture
def place(tmp_path):
    (tmp_path / "graph.csv").write_text(GRAPH)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def test_new_request_sign_join(place):
    out = done(*NEW, cwd=place)
    federation = Federation.read(place / "fed")
    assert federation.hash in out and federation.edges[1].weight == 0.5
    asked = done(*ASK, cwd=place)
    signed = done(*SIGN, "--days", "30", cwd=place)
    mark = asked.splitlines()[0]
    assert mark.startswith("Fingerprint of the request of oulu: ") and mark in signed
    assert "valid for 30 days, until" in done("site", "join", "oulu", "answer.pem", cwd=place)
    names = {file.name for file in (place / "oulu").iterdir()}
    assert names == {
        "authority.pem",
        "certificate.pem",
        "federation.toml",
        "key.pem",
        "request.pem",
        "site.toml",
    }
    files = {name: (place / "oulu" / name).read_bytes() for name in names}
    assert files["federation.toml"] == federation.content
    assert files["authority.pem"] == (place / "fed/authority/certificate.pem").read_bytes()
    assert check_chain(files["certificate.pem"], files["authority.pem"]) == "oulu"
    SiteConfig.read(place / "oulu").check(federation)
    for key in (place / "oulu/key.pem", place / "fed/authority/key.pem"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        assert not any(key.read_bytes() in files[n] for n in names - {"key.pem"})


def test_nothing_is_replaced(place):
    done(*NEW, cwd=place)
    done(*ASK, cwd=place)
    done(*SIGN, cwd=place)
    before = {file: file.read_bytes() for file in place.rglob("*") if file.is_file()}
    assert "federations are not replaced" in refused(*NEW, cwd=place)
    assert "is there already" in refused(*ASK, cwd=place)
    assert "is there already" in refused(*SIGN, cwd=place)
    assert {file: file.read_bytes() for file in place.rglob("*") if file.is_file()} == before


def test_a_renewal_by_its_command(place):
    done(*NEW, cwd=place)
    done(*ASK, cwd=place)
    done(*SIGN, cwd=place)
    done("site", "join", "oulu", "answer.pem", cwd=place)
    key = (place / "oulu/key.pem").read_bytes()
    done("site", "request", "oulu", "--renew", cwd=place)
    assert (place / "oulu/key.pem").read_bytes() == key
    done("federation", "sign", "fed", "oulu/request-new.pem", "--out", "again.pem", cwd=place)
    facts = json.loads(done("site", "join", "oulu", "again.pem", "--json", cwd=place))
    assert facts["name"] == "oulu" and (place / "oulu/key.pem").read_bytes() != key
    assert "must be for a key" in refused("site", "join", "oulu", "answer.pem", cwd=place)


def test_strangers_are_refused(place):
    done(*NEW, cwd=place)
    ask = ("site", "request", "turku", "--federation", "fed", "--out", "turku")
    assert 'No member "turku"' in refused(*ask, cwd=place)
    assert not (place / "turku").exists()
    assert "No file" in refused("federation", "sign", "fed", "none.pem", cwd=place)
    assert "must be a request" in refused("federation", "sign", "fed", "graph.csv", cwd=place)
    (place / "big.pem").write_bytes(b"x" * 70_000)
    assert "at most 64 kB" in refused("federation", "sign", "fed", "big.pem", cwd=place)
    assert "No folder" in refused("site", "join", "none", "big.pem", cwd=place)
    assert "No folder" in refused("site", "request", "none", "--renew", cwd=place)
    assert "must have a federation" in refused("site", "request", "oulu", cwd=place)


def test_an_edge_to_an_unknown_node_is_said_before_a_key_is_made(place):
    (place / "graph.csv").write_text("source,target\n001,004\n")
    assert "004" in refused(*NEW, cwd=place)
    assert not (place / "fed").exists()


def test_the_template_is_a_schema(place):
    done("federation", "new", "--template", "mine.toml", cwd=place)
    assert "is there already" in refused("federation", "new", "--template", "mine.toml", cwd=place)
    found = run("federation", "new", "graph.csv", "mine.toml", "--out", "fed", cwd=place)
    assert found.returncode == 0
    assert "each of the 3 nodes of graph.csv is a member of its own" in found.stderr
    assert "No member has an address" in found.stderr
    assert Federation.read(place / "fed").neighbours("002") == ["001", "003"]


def test_the_options_of_the_template_are_those_of_the_federation(place):
    done("federation", "new", "--template", "mine.toml", cwd=place)
    text = (place / "mine.toml").read_text()
    plain = text.replace("# relay", "relay")
    for name in ("shared", "guard"):  # none unless they are set
        assert f'# {name} = "..."' in plain
        plain = plain.replace(f'# {name} = "..."', f"# {name}: none")
    lines = [line.removeprefix("# ") if " = " in line else line for line in plain.splitlines()]
    lines = [
        line for line in lines if line != "Without members, every node is a member of its own."
    ]
    start = next(k for k, line in enumerate(lines) if line.startswith('name = "oulu"'))
    lines[start - 1] = "[[members]]"
    lines = [line.replace("alphas = [", "# alphas = [") for line in lines]
    (place / "all.toml").write_text("\n".join(lines))
    (place / "graph.csv").write_text("source,target\noulu-1,oulu-2\n")
    done("federation", "new", "graph.csv", "all.toml", "--out", "fed", cwd=place)
    federation = Federation.read(place / "fed")
    assert federation.relay == "relay.example:7447" and federation.absent_after == 600
    (place / "schema.toml").write_text(text)
    done("federation", "new", "graph.csv", "schema.toml", "--out", "usual", cwd=place)
    usual = Federation.read(place / "usual")
    for name in ("method", "loss", "l2", "penalty", "alpha", "n_alphas", "folds", "held_out"):
        assert getattr(usual, name) == getattr(federation, name), name
    for name in ("tol", "rounds", "check_every", "standardize", "weighting", "seed", "masked"):
        assert getattr(usual, name) == getattr(federation, name), name


def test_show_says_all_of_it(place):
    done(*NEW, cwd=place)
    federation = Federation.read(place / "fed")
    out = done("federation", "show", "fed", cwd=place)
    assert f"Hash: {federation.hash}" in out and "wind (0 to 40 m/s)" in out
    assert "kemi: 1 node, direct, no address; talks to oulu." in out
    facts = json.loads(done("federation", "show", "fed/federation.toml", "--json", cwd=place))
    assert facts["members"]["oulu"]["neighbours"] == ["kemi"]


def test_a_pilot_splits_the_data_and_says_that_it_is_a_trial(place):
    done(*NEW, cwd=place)
    rows = pl.DataFrame(
        {"id": ["001", "003", "002", "003"], "wind": [1, 2, 3, 4], "tmax": [1.5, 2.5, 3.5, 4.5]}
    )
    rows.write_csv(place / "data.csv")
    pilot = ("federation", "pilot", "fed", "--out", "trial")
    out = done(*pilot, "--data", "data.csv", "--node", "id", cwd=place)
    assert "This is a trial: all keys were made in one place" in out
    real, trial = Federation.read(place / "fed"), Federation.read(place / "trial")
    assert trial.hash != real.hash and trial.authority != real.authority
    assert [member.address for member in trial.members] == ["127.0.0.1:7450", "127.0.0.1:7451"]
    trial.check_reachable()
    for name, ids in {"oulu": ["001", "002"], "kemi": ["003", "003"]}.items():
        folder = place / "trial" / name
        config = SiteConfig.read(folder)
        config.check(trial)
        assert config.data == folder / "data.csv" and config.node == "id"
        assert config.listens(trial) == trial.member(name).address
        split = pl.read_csv(config.data, schema_overrides={"id": pl.String})
        assert split["id"].to_list() == ids and split.columns == rows.columns
        assert Federation.read(folder).hash == trial.hash
        files = [(folder / file).read_bytes() for file in ("certificate.pem", "authority.pem")]
        assert check_chain(*files) == name
        assert stat.S_IMODE((folder / "key.pem").stat().st_mode) == 0o600
    assert "new or empty" in refused(*pilot, cwd=place)


def test_a_pilot_with_a_relay_a_folder_and_free_ports(place):
    text = SCHEMA.replace('name = "coast"', 'name = "coast"\nrelay = "relay.example:7447"')
    text += 'kind = "relay"\n[[members]]\nname = "inari"\nnodes = ["004"]\nkind = "folder"\n'
    (place / "schema.toml").write_text(text)
    (place / "graph.csv").write_text(GRAPH + "003,004,1\n")
    done(*NEW, cwd=place)
    out = done("federation", "pilot", "fed", "--out", "trial", "--port", "0", "--json", cwd=place)
    assert "trial" in json.loads(out)["notes"][0]
    trial = Federation.read(place / "trial")
    assert trial.relay != trial.member("oulu").address and trial.relay.startswith("127.0.0.1:")
    assert trial.member("kemi").address is None
    for name in ("oulu", "kemi", "inari", "relay"):
        SiteConfig.read(place / "trial" / name).check(trial)
    assert SiteConfig.read(place / "trial/relay").listens(trial) == trial.relay
    assert SiteConfig.read(place / "trial/inari").folder.is_dir()


def test_a_pilot_refuses_rows_of_nobody(place):
    done(*NEW, cwd=place)
    (place / "data.csv").write_text("id,wind,tmax\n001,1,1\n009,1,1\n")
    pilot = ("federation", "pilot", "fed", "--out", "trial", "--data", "data.csv")
    assert "--data needs --node" in refused(*pilot, cwd=place)
    assert "009" in refused(*pilot, "--node", "id", cwd=place)
    assert 'No column "idd"' in refused(*pilot, "--node", "idd", cwd=place)
    assert not (place / "trial").exists()


def test_a_missing_package_is_named(place, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *a: None if n == "cryptography" else real(n, *a)
    )
    assert 'pip install "nefele[sites]"' in refused(*NEW, cwd=place)


@pytest.mark.parametrize(("module", "name"), [("nacl", "PyNaCl"), ("zenoh", "eclipse-zenoh")])
def test_the_demo_names_packages_that_are_missing(tmp_path, monkeypatch, module, name):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *a: None if n == module else real(n, *a)
    )
    said = refused("federation", "demo", "--out", "demo", cwd=tmp_path)
    assert name in said and 'pip install "nefele[sites]"' in said
    assert not (tmp_path / "demo").exists()


def test_members_that_do_not_hang_together_are_said_before_a_key_is_made(place):
    (place / "graph.csv").write_text("source,target\n001,002\n")
    assert "connected by edges" in refused(*NEW, cwd=place)
    assert not (place / "fed").exists()


def test_more_days_than_a_date_can_hold(place):
    done(*NEW, cwd=place)
    done(*ASK, cwd=place)
    assert "must end before its authority" in refused(*SIGN, "--days", "1e11", cwd=place)


@pytest.fixture
def trial(place):
    rows = [f"{node},{i},{i % 7}" for node in ("001", "002", "003") for i in range(9)]
    (place / "data.csv").write_text("\n".join(["node,wind,tmax", *rows]))
    (place / "schema.toml").write_text('relay = "relay.example:7447"\n' + SCHEMA)
    done(*NEW, cwd=place)
    args = ("--out", "trial", "--data", "data.csv", "--node", "node", "--port", "0")
    done("federation", "pilot", "fed", *args, cwd=place)
    return place / "trial"


def test_check_refuses_what_run_would_refuse(trial):
    check = ("site", "check", "kemi")
    file = trial / "kemi" / "site.toml"
    text = file.read_text()
    file.write_text(text.replace('"kemi"', '"oulu"'))
    (trial / "kemi" / "data.csv").write_text("node,wind,tmax\n001,1,2\n")
    assert "must be of oulu, as site.toml says; it is of kemi" in refused(*check, cwd=trial)
    assert 'No member "relay"' in refused("site", "check", "relay", cwd=trial)


def test_a_site_may_have_no_rows_yet(trial):
    (trial / "kemi" / "data.csv").write_text("node,wind,tmax\n")
    assert "Rows here: 0" in done("site", "check", "kemi", cwd=trial)


def test_a_hash_that_is_right_but_too_short(trial):
    mark = Federation.read(trial / "kemi").hash[:8]
    found = refused("site", "run", "kemi", "--accept", mark, cwd=trial)
    assert f"got {mark}, and its first 16 characters are the least" in found


def test_a_relay_needs_the_certificate_of_a_relay(trial):
    found = refused("relay", "run", "kemi", "--listen", "127.0.0.1:0", cwd=trial)
    assert "must be of relay; it is of kemi" in found
