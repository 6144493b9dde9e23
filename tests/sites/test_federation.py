"""The federation file: what it takes, what it refuses and why, and that its bytes are kept."""

import tomllib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nefele.losses import as_loss
from nefele.sites.config import SiteConfig, site_template
from nefele.sites.example import coast
from nefele.sites.federation import Federation
from nefele.sites.founding import file_of, found_federation, own_members, schema_template
from nefele.sites.members import Edge, Feature, Member, Privacy, Target, safe_name, split_address
from nefele.sites.terms import LOSSES

RELAX = {"method": "fedrelax", "penalty": "squared_l2"}


def values(**changes):
    found = tomllib.loads(coast().to_toml())
    return {**found, **changes}


def refused(**changes):
    with pytest.raises(ValueError) as error:
        Federation.from_dict(values(**changes))
    return str(error.value)


def test_the_graph_and_the_neighbours_are_those_of_the_file():
    federation = coast()
    graph = federation.graph()
    assert graph.ids.tolist() == ["oulu-1", "oulu-2", "kemi", "inari"]
    assert graph.neighbors("kemi") == ["oulu-2", "inari"]
    assert graph.weight[graph.n_edges - 1] == 0.5
    assert federation.owner["oulu-2"] == "oulu"
    assert federation.neighbours("kemi") == ["inari", "oulu"]
    assert federation.neighbours("oulu") == ["kemi"]
    with pytest.raises(ValueError, match=r'No member "kemmi". Did you mean "kemi"\?'):
        federation.member("kemmi")


def test_the_hash_is_over_the_bytes_and_one_byte_changes_it(tmp_path):
    file = tmp_path / "federation.toml"
    file.write_bytes(file_of(coast()))
    first = Federation.read(file)
    assert first.content == file.read_bytes() and Federation.read(tmp_path).hash == first.hash
    file.write_bytes(file.read_bytes() + b" ")
    second = Federation.read(file)
    assert second == first and second.hash != first.hash


def test_a_changed_copy_has_another_hash():
    read = Federation.parse(coast().content)
    changed = replace(read, seed=1)
    assert changed.hash != read.hash and Federation.parse(changed.content).seed == 1


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(str.strip)
NUMBER = st.floats(-1e9, 1e9)


@st.composite
def federations(draw):
    nodes = draw(st.lists(TEXT, min_size=2, max_size=6, unique=True))
    members = [Member(m["name"], (m["nodes"][0],)) for m in own_members(nodes)]
    edges = [Edge(a, b, draw(st.floats(1e-9, 1e9))) for a, b in zip(nodes, nodes[1:], strict=False)]
    names = draw(st.lists(TEXT, min_size=2, max_size=4, unique=True))
    names = [name for name in names if name != "intercept"] or ["wind"]
    low = draw(NUMBER)
    *features, target = (Feature(name, low, low + 1.0, "m/s") for name in [*names, "the target"])
    return coast(
        features=tuple(features),
        target=Target(target.name, target.low, target.high),
        members=tuple(members),
        edges=tuple(edges),
        alpha=draw(st.one_of(st.just("auto"), st.floats(0, 1e6))),
        tol=draw(st.floats(1e-12, 1.0)),
        seed=draw(st.integers(0, 2**40)),
    )


@settings(max_examples=40, deadline=None)
@given(federations())
def test_what_is_written_is_read_back(federation):
    again = Federation.parse(file_of(federation))
    assert again == federation and again.to_toml() == federation.to_toml()


def test_unknown_keys_are_refused_with_a_suggestion():
    assert 'Did you mean "penalty"?' in refused(penalti="l2")
    member = {"name": "oulu", "nodes": ["a"], "adress": "x:1"}
    assert 'No key "adress" in members 1' in refused(members=[member])
    assert 'Did you mean "unit"?' in refused(target={"name": "y", "unti": "C"})
    assert 'No key "sigma" in privacy' in refused(privacy={"sigma": 1})
    assert "Known: format" in refused(source="x")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"format": 2}, "must be of format 1; got 2"),
        ({"name": "Coast"}, 'Write "coast"'),
        ({"features": []}, "at least one feature"),
        ({"features": 7}, r"must be a list of tables, \[\[features\]\]"),
        ({"members": ["oulu"]}, "must be a table"),
        ({"members": []}, "must have members"),
        ({"edges": [{"source": "oulu-1", "target": "oulu-3"}]}, "oulu-3"),
        ({"edges": [{"source": "kemi", "target": "kemi"}]}, "is a loop"),
        ({"edges": [{"source": "kemi", "target": "inari", "weight": 0}]}, "weight must be .* > 0"),
        ({"edges": [{"source": 1, "target": "inari"}]}, "source must be text"),
        ({"target": {"name": "tmax"}}, "low and high, or classes"),
        ({"target": {"name": "tmax", "low": 2, "high": 1}}, "low must be < high"),
        ({"target": {"name": "wind", "low": 0, "high": 1}}, "'wind' stands there twice"),
        ({"target": {"name": "ill", "classes": ["no", "yes"]}}, "Change task or target"),
        ({"task": "classification"}, "loss for classification"),
        ({"task": "classification", "loss": "logistic"}, "must have classes"),
        ({"loss": "logistic"}, 'No loss for regression "logistic"'),
        ({"penalty": ["l2"]}, "penalty must be text"),
        ({"method": "fedavg"}, 'No method "fedavg"'),
        ({"method": "fedrelax"}, 'needs penalty "squared_l2"; got "l2"'),
        ({"method": "predictions", "penalty": "squared_l2"}, "shared must be there"),
        ({"shared": "0" * 64}, "and only then"),
        ({"alpha": "best"}, "alpha must be a number >= 0"),
        ({"alpha": 1.0, "alphas": [1.0, 2.0]}, 'alphas needs alpha = "auto"'),
        ({"alphas": [1.0, 1.0]}, "alphas must be distinct"),
        ({"held_out": 1.0}, "held_out must be a share < 1"),
        ({"check_every": 20_000}, "check_every must be <= rounds"),
        ({"absent": "ignore"}, "policy for absent members"),
        ({"relay": "relay.example"}, "must be host:port"),
        ({"authority": "abc"}, "authority must be the SHA-256"),
        ({"privacy": {"mechanism": "gaussian"}}, "mechanism of privacy in a federation"),
        ({"privacy": {"epsilon": 1.0}}, "must go with a mechanism"),
        ({"privacy": {"mechanism": "statistics"}}, "epsilon of privacy must be"),
        (
            {"loss": "huber", "privacy": {"mechanism": "statistics", "epsilon": 1, "delta": 1e-6}},
            'needs loss "squared"',
        ),
        ({"tol": float("nan")}, "tol must be finite"),
        ({"wait": 1}, "wait must be True or False"),
    ],
)
def test_what_does_not_hold_is_said(changes, text):
    with pytest.raises(ValueError, match=text):
        Federation.from_dict(values(**changes))


def test_a_node_belongs_to_one_member():
    members = [{"name": "a", "nodes": ["kemi", "oulu-1"]}, {"name": "b", "nodes": ["kemi"]}]
    assert """'kemi' is of "a" and of "b".""" in refused(members=members)


@pytest.mark.parametrize(
    "name", ["Oulu", "-oulu", "oulu/1", "o*", "", "a" * 64, "relay", "authority"]
)
def test_names_of_members_are_safe(name):
    with pytest.raises(ValueError, match="member"):
        Member(name, ("a",))


@pytest.mark.parametrize("text", ["Oulu", "-", "a" * 200, "x/../y", "Ä Ö", "\n", "a-" * 50])
def test_safe_names_are_names(text):
    assert Member(safe_name(text), ("a",)).name == safe_name(text)


def test_members_get_different_names():
    names = [m["name"] for m in own_members(["a b", "a-b", "A.B", "Relay", "x" * 80, "x" * 81])]
    assert len(set(names)) == 6 and "relay" not in names
    assert all(Member(name, ("n",)) for name in names)


def test_addresses():
    assert split_address("[::1]:80", "x") == ("::1", 80)
    assert split_address("10.0.0.7:80", "x") == ("10.0.0.7", 80)
    for bad in (
        "a:0",
        "a:65536",
        "a b:1",
        "::1:80",
        "[a]:80",
        "1.2.3:80",
        ":80",
        "a:-1",
        7,
        "a/b:1",
    ):
        with pytest.raises(ValueError, match="host:port"):
            split_address(bad, "x")


def pair(one, other, **changes):
    members = (Member("a", ("a",), **one), Member("b", ("b",), **other), Member("c", ("c",), "c:1"))
    return coast(members=members, edges=(Edge("a", "b"),), **changes)


@pytest.mark.parametrize(
    ("one", "other", "relay", "fine"),
    [
        ({}, {}, None, False),
        ({"address": "a:1"}, {}, None, True),
        ({"kind": "relay"}, {}, None, False),
        ({"kind": "relay"}, {}, "r:1", True),
        ({"kind": "relay"}, {"address": "b:1"}, None, True),
        ({"kind": "relay"}, {"kind": "relay"}, "r:1", True),
        ({"kind": "relay"}, {"kind": "relay"}, None, False),
        ({"kind": "folder"}, {}, None, True),
        ({}, {}, "r:1", False),
    ],
)
def test_one_end_of_each_edge_is_reachable(one, other, relay, fine):
    if fine:
        assert pair(one, other, relay=relay).neighbours("a") == ["b"]
        return
    with pytest.raises(ValueError, match=r'"a" and "b" have no address. Give one to'):
        pair(one, other, relay=relay)


def test_without_any_address_it_is_a_draft_that_cannot_talk():
    members = tuple(replace(member, address=None) for member in coast().members)
    federation = coast(members=members)
    assert not federation.has_addresses
    with pytest.raises(ValueError, match="must reach each other"):
        federation.check_reachable()


def test_no_waiting_only_where_it_converges():
    assert not coast(wait=False, l2=0.1, **RELAX).wait
    with pytest.raises(ValueError, match=r'needs method "fedrelax".*known to converge'):
        coast(wait=False, l2=0.1)
    with pytest.raises(ValueError, match=r"needs l2 > 0; got 0. Only with strongly convex"):
        coast(wait=False, **RELAX)


def clique(n):
    members = tuple(Member(f"m{i}", (str(i),), f"m{i}:1") for i in range(n))
    edges = tuple(Edge(str(i), str(j)) for i in range(n) for j in range(i))
    return {"members": members, "edges": edges}


def test_masks_need_a_crowd_and_the_squared_penalty():
    assert coast(masked=True, **RELAX, **clique(4)).masked
    alone = clique(4)
    alone["members"] += (Member("alone", ("alone",)),)
    assert coast(masked=True, **RELAX, **alone).masked
    with pytest.raises(ValueError, match=r'"m0" has 2: m1, m2. A sum over fewer tells'):
        coast(masked=True, **RELAX, **clique(3))
    with pytest.raises(ValueError, match="Only its update needs no more than the sum"):
        coast(masked=True, **clique(4))
    with pytest.raises(ValueError, match="Masks cancel only when"):
        coast(masked=True, wait=False, l2=1.0, **RELAX, **clique(4))


def test_classes_choose_the_loss():
    two = {"name": "ill", "classes": ["no", "yes"]}
    three = {"name": "ill", "classes": ["no", "a", "b"]}
    small = {"task": "classification", "format": 1, "name": "x"}
    small |= {key: values()[key] for key in ("features", "members", "edges")}
    assert Federation.from_dict({**small, "target": two}).loss == "logistic"
    federation = Federation.from_dict({**small, "target": three})
    assert (federation.loss, federation.l2) == ("multinomial", 1e-3)
    with pytest.raises(ValueError, match='"multinomial" for more; got "logistic" for 3'):
        Federation.from_dict({**small, "target": three, "loss": "logistic"})
    with pytest.raises(ValueError, match=r"classes must be a list of texts"):
        Federation.from_dict({**small, "target": {"name": "ill", "classes": [0, 1]}})


def test_the_losses_are_those_of_nefele():
    for names in LOSSES.values():
        assert all(as_loss(name) for name in names)


def test_privacy_by_a_mechanism_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="mechanism of privacy"):
        Privacy("laplace")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a = ", b"[" * 5000])
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "federation.toml").write_bytes(content)
    with pytest.raises(ValueError, match="must be TOML"):
        Federation.read(tmp_path)
    with pytest.raises(ValueError, match=r"No file .* Write one by"):
        Federation.read(tmp_path / "none.toml")


def test_nothing_is_founded_over_something(tmp_path):
    (tmp_path / "graph.csv").write_text("source,target,weight\na,b,1\nb,c,0\na,c,1\n")
    (tmp_path / "schema.toml").write_text(schema_template())
    files = tmp_path / "graph.csv", tmp_path / "schema.toml", tmp_path / "coast"
    federation, notes = found_federation(*files)
    assert federation.name == "coast" and len(federation.edges) == 2
    assert any("weight 0" in note for note in notes)
    before = federation.content
    with pytest.raises(ValueError, match="federations are not replaced"):
        found_federation(*files)
    assert (tmp_path / "coast" / "federation.toml").read_bytes() == before


def site(tmp_path, text):
    (tmp_path / "site.toml").write_text(text)
    return SiteConfig.read(tmp_path)


def test_a_site_reads_its_own_file(tmp_path):
    config = site(
        tmp_path,
        'name = "oulu"\nnode = "id"\ndata = "rows/a.csv"\nproxy = "http://p.example:3128/"\n'
        '[columns]\nwind = "v10"\n[model]\nuse = "sklearn.linear_model.Ridge"\n'
        "parameters = { alpha = 2.0 }\n",
    )
    config.check(coast())
    assert config.data == tmp_path / "rows" / "a.csv" and config.proxy == "p.example:3128"
    assert config.columns_of(coast())["wind"] == "v10"
    assert config.model.parameters == {"alpha": 2.0}
    assert config.listens(coast()) == "0.0.0.0:7447"


@pytest.mark.parametrize("name", ["oulu", "kemi", "inari"])
def test_the_template_of_a_site_is_one(tmp_path, name):
    config = site(tmp_path, site_template(coast(), name))
    config.check(coast())
    assert config.name == name and (config.node is not None) == (name == "oulu")
    lines = site_template(coast(), name).replace("\n# ", "\n").splitlines()
    keys = {line.split(" = ")[0] for line in lines if " = " in line}
    assert {"listen", "folder", "proxy", "use", "file"} <= keys


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('nmae = "oulu"', 'Did you mean "name"'),
        ("", 'must have the key "name"'),
        ('name = "oulu"', "which column has the node ids"),
        ('name = "turku"', 'No member "turku"'),
        ('name = "kemi"\nlisten = "7447"', "must be host:port"),
        ('name = "kemi"\ndata = 7', "data must be text"),
        ('name = "kemi"\n[columns]\nwnid = "v10"', 'Did you mean "wind"'),
        ('name = "kemi"\n[model]\nuse = "Ridge"', "full name of a class"),
        ('name = "kemi"\n[model]', "must have use or file"),
    ],
)
def test_a_site_that_does_not_fit_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        site(tmp_path, text).check(coast())


def test_bounds_in_which_rows_would_vanish():
    with pytest.raises(ValueError, match="high must be at most 1e\\+12 in size; got 1e\\+100"):
        Feature("wind", -1.0, 1e100)
