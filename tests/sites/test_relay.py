"""Sites that meet at a relay: through proxies, after crashes, and never past the rights."""

import contextlib
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from nefele.sites.carriers.tunnel import Tunnel, proxy_for
from nefele.sites.carriers.zenoh import Zenoh
from nefele.sites.example import coast
from nefele.sites.members import Edge, Member
from nefele.sites.relay import Relay
from tests.e2e.commands import refused
from tests.sites.certificates import Authority
from tests.sites.network import Proxy, free_port, opened, say_until, stranger
from tests.waiting import wait_until

F = "f00d"


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "authority")


@pytest.fixture
def at():
    return f"127.0.0.1:{free_port()}"


def site(authority, me, neighbours, at=None, proxy="", federation=F, **kwargs):
    return Zenoh(
        me=me,
        neighbours=neighbours,
        federation=federation,
        relay=at,
        proxy=proxy,
        **authority.files(me),
        **kwargs,
    )


@contextlib.contextmanager
def relaying(authority, at, pairs, **kwargs):
    relay = Relay(listen=at, pairs=pairs, federation=F, **kwargs, **authority.files("relay"))
    relay.open()
    try:
        yield relay
    finally:
        relay.close()


def test_messages_pass_and_sites_may_come_before_the_relay(authority, at):
    before = threading.enumerate()
    a, b = site(authority, "a", {"b": None}, at), site(authority, "b", {"a": None}, at)
    with opened(a, b) as (at_a, at_b):
        a.send("b", b"lost")
        assert a.refused == {"not open": 1}
        with relaying(authority, at, [("a", "b")]):
            say_until(a, "b", b"to b", at_b)
            say_until(b, "a", b"to a", at_a)
            wait_until(lambda: a.linked("b"), "the link")
    assert threading.enumerate() == before


def test_a_site_closes_though_there_is_no_relay(authority, at):
    with opened(site(authority, "a", {"b": None}, at)):
        pass


def test_direct_and_relayed_neighbours_in_one_federation(authority, at):
    own = f"127.0.0.1:{free_port()}"
    a = site(authority, "a", {"b": None, "c": None}, at, listen=own)
    b = site(authority, "b", {"a": own, "c": None}, at)
    c = site(authority, "c", {"a": None, "b": None}, at)
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    with relaying(authority, at, pairs, count=True) as relay, opened(a, b, c) as boxes:
        sites = {one.me: (one, box) for one, box in zip((a, b, c), boxes, strict=True)}
        wait_until(lambda: a._ends[0].leads_to("b") and b._ends[0].leads_to("a"), "the direct link")
        for one, box in sites.values():
            for other, (other_site, _) in sites.items():
                if other != one.me:
                    say_until(other_site, one.me, b"hello " + other.encode(), box)
        wait_until(lambda: len(relay.bytes) == 4, "what is relayed")
    assert {frozenset(pair) for pair in relay.bytes} == {frozenset("bc"), frozenset("ac")}


def test_what_has_no_direct_link_goes_through_the_relay(authority, at):
    nobody = f"127.0.0.1:{free_port()}"
    a, b = site(authority, "a", {"b": nobody}, at), site(authority, "b", {"a": None}, at)
    with relaying(authority, at, [("a", "b")]), opened(a, b) as (at_a, at_b):
        say_until(a, "b", b"to b", at_b)
        say_until(b, "a", b"to a", at_a)


def test_rights_end_at_the_edge(authority, at):
    sites = [site(authority, me, {"b" if me == "a" else "a": None}, at) for me in "ab"]
    heard = []
    with relaying(authority, at, [("a", "b"), ("c", "d")]), contextlib.ExitStack() as stack:
        other = Authority(authority.folder / "other")
        c, d, false = (
            stranger(maker, name, at)
            for maker, name in ((authority, "c"), (authority, "d"), (other, "a"))
        )
        for session in (c, d, false):
            stack.callback(session.close)
        at_a, at_b = stack.enter_context(opened(*sites))
        for session in (c, false):
            for keys in (f"nefele/{F}/a/b", f"nefele/{F}/b/a", "nefele/**", "**"):
                session.declare_subscriber(keys, lambda one: heard.append(bytes(one.payload)))
        d.declare_subscriber(f"nefele/{F}/c/d", lambda one: heard.append(bytes(one.payload)))
        wait_until(
            lambda: c.put(f"nefele/{F}/c/d", b"allowed") or heard.count(b"allowed") > 1, "c to d"
        )
        for session in (c, false):
            for keys in (f"nefele/{F}/a/b", f"nefele/{F}/b/a", f"nefele/{F}/*/a", "nefele/**"):
                session.put(keys, b"false")
        for one, box in ((sites[0], at_b), (sites[1], at_a)):
            say_until(one, *one.neighbours, b"secret", box)
        c.put(f"nefele/{F}/c/d", b"end")
        wait_until(lambda: heard.count(b"end") > 1, "the end")
        assert {blob for _, blob in (*at_a.came, *at_b.came)} == {b"secret"}
        assert b"secret" not in heard


def test_through_a_proxy_with_a_password(authority, at):
    wanted = "Proxy-Authorization: Basic dXNlcjpwYXNzOndvcmQ="  # user:pass:word
    with Proxy(wanted) as proxy, relaying(authority, at, [("a", "b")]):
        url = f"http://user:pass%3Aword@127.0.0.1:{proxy.port}"
        a, b = site(authority, "a", {"b": None}, at, url), site(authority, "b", {"a": None}, at)
        with opened(a, b) as (at_a, at_b):
            say_until(a, "b", b"to b", at_b)
            say_until(b, "a", b"to a", at_a)
        assert proxy.targets.get(timeout=60) == at
        assert proxy.refused == 0


def test_a_proxy_that_refuses_gives_no_way_and_closing_ends(authority, at):
    with Proxy("never") as proxy, relaying(authority, at, [("a", "b")]):
        a = site(authority, "a", {"b": None}, at, f"http://127.0.0.1:{proxy.port}")
        with opened(a):
            wait_until(lambda: proxy.refused > 0, "a refusal")
            assert not a.linked("b")


def test_behind_a_proxy_the_common_name_tells_who_answers(authority, at):
    """A member that answers in place of the relay can neither read nor write for others."""
    heard = []
    with Proxy() as proxy, contextlib.ExitStack() as stack:
        false = stranger(authority, "m", at, mode="router", listens=True)
        stack.callback(false.close)
        a = site(authority, "a", {"b": None}, at, f"http://127.0.0.1:{proxy.port}")
        (at_a,) = stack.enter_context(opened(a))
        wait_until(lambda: list(false.info.peers_zid()) or list(_clients(false)), "a link to a")
        false.declare_subscriber("**", lambda one: heard.append(bytes(one.payload)))
        false.put(f"nefele/{F}/b/a", b"false")
        wait_until(lambda: a._ends, "the session of a")
        for _ in range(5):
            a.send("b", b"secret")
        false.put(f"nefele/{F}/b/a", b"false")
    assert b"secret" not in heard and at_a.came == []


def _clients(session):
    return [one for one in session.info.transports() if one is not None]


def two_members(at):
    members = tuple(Member(name, (name,), kind="relay") for name in "ab")
    return coast(relay=at, members=members, edges=(Edge("a", "b"),))


@contextlib.contextmanager
def relay_process(authority, at):
    folder = authority.files("relay")["certificate"].parent
    (folder / "federation.toml").write_bytes(two_members(at).content)
    command = [sys.executable, "-m", "nefele", "relay", "run", str(folder), "--listen", at]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith(f"Relay listens at {at} for 2 members, 1 pairs"), line
            yield process
        finally:
            process.kill()


def test_a_killed_relay_comes_back_and_the_sites_go_on(authority, at):
    mark = two_members(at).mark
    a = site(authority, "a", {"b": None}, at, federation=mark)
    b = site(authority, "b", {"a": None}, at, federation=mark)
    with opened(a, b) as (at_a, at_b):
        for k in range(2):
            with relay_process(authority, at) as process:
                say_until(a, "b", b"%d" % k, at_b)
                say_until(b, "a", b"%d" % k, at_a)
                process.kill()  # -9
                process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_ends_cleanly(authority, at, number):
    with relay_process(authority, at) as process:
        process.send_signal(number)
        assert process.wait() == 0
        assert process.stdout.read() == "Relay ended.\n"


@pytest.mark.parametrize(
    ("days", "mode", "message"),
    [
        (-1.0, 0o600, "certificate of relay must be valid now; it expired on"),
        (20.0, 0o640, "must be readable by its owner only; its mode is 640"),
    ],
)
def test_a_relay_with_an_expired_certificate_or_an_open_key_does_not_start(
    authority, at, tmp_path, days, mode, message
):
    folder = authority.files("relay", days=days)["private_key"].parent
    (folder / "key.pem").chmod(mode)
    (folder / "federation.toml").write_bytes(two_members(at).content)
    assert message in refused("relay", "run", folder, "--listen", at, cwd=tmp_path)


def test_a_relay_says_a_week_ahead_that_its_certificate_ends(authority, at):
    folder = authority.files("relay", days=3.5)["private_key"].parent
    (folder / "federation.toml").write_bytes(two_members(at).content)
    command = [sys.executable, "-m", "nefele", "relay", "run", str(folder), "--listen", at]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = process.stderr.readline()
        finally:
            process.kill()
    assert said.startswith("Note: certificate of relay expires in 3 days")
    assert "nefele site request" in said


def test_another_authority_than_that_of_the_file_is_refused_by_the_relay(authority, at, tmp_path):
    folder = authority.files("relay")["private_key"].parent
    file = replace(two_members(at), authority="0" * 64)
    (folder / "federation.toml").write_bytes(file.content)
    error = refused("relay", "run", folder, "--listen", at, cwd=tmp_path)
    assert "authority must be the one of the federation file" in error


def test_counted_bytes_are_told(authority, at):
    a, b = site(authority, "a", {"b": None}, at), site(authority, "b", {"a": None}, at)
    stop, told = threading.Event(), []
    with relaying(authority, at, [("a", "b")], count=True) as relay, opened(a, b) as (_, at_b):
        say_until(a, "b", b"12345", at_b)
        wait_until(lambda: relay.bytes["a", "b"] >= 5, "a count")
        relay.serve(stop, lambda line: told.append(line) or stop.set(), pause=0.01)
    assert told[0].startswith("a to b: ") and told[0].endswith(" bytes")


def test_no_wildcards_and_only_pairs(authority):
    files = authority.files("relay")
    relay = Relay(listen="h:1", pairs=[("b", "a"), ("a", "b"), ("c", "b")], federation=F, **files)
    assert relay.pairs == [("a", "b"), ("b", "c")] and relay.members == ["a", "b", "c"]
    access = relay.access
    assert access["default_permission"] == "deny"
    allowed = {
        (policy["subjects"][0], flow, message, one)
        for policy in access["policies"]
        for rule in access["rules"]
        if rule["id"] in policy["rules"]
        for flow in rule["flows"]
        for message in rule["messages"]
        for one in rule["key_exprs"]
    }
    assert {one for *_, one in allowed} == {f"nefele/{F}/{x}" for x in ("a/b", "b/a", "b/c", "c/b")}
    assert {one for who, *_, one in allowed if who == "a"} == {f"nefele/{F}/a/b", f"nefele/{F}/b/a"}
    assert ("a", "ingress", "put", f"nefele/{F}/a/b") in allowed
    assert ("a", "ingress", "put", f"nefele/{F}/b/a") not in allowed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": []}, "got no pair"),
        ({"pairs": [("a", "a")]}, "must be two members"),
        ({"pairs": [("a", "relay")]}, "none the relay"),
        ({"pairs": [("a", "*")]}, "1 to 63 of a-z"),
        ({"listen": "here"}, 'must be "host:port"'),
        ({"authority": None}, "mutual TLS only: authority must be a file"),
    ],
)
def test_errors_say_what_must_hold(authority, change, message):
    good = {"listen": "h:1", "pairs": [("a", "b")], "federation": F} | authority.files("relay")
    with pytest.raises(ValueError, match=message):
        Relay(**good | change)


def test_the_environment_names_the_proxy():
    env = {"HTTPS_PROXY": "proxy:3128", "NO_PROXY": "10.0.0.0/8, .intern:7447,*.lan, exact"}
    assert proxy_for("relay.example", 1, environ=env) == "http://proxy:3128"
    for host in ("10.1.2.3", "a.intern", "b.lan", "exact", "a.exact"):
        assert proxy_for(host, 7447, environ=env) is None
    assert proxy_for("notexact", 7447, environ=env) and proxy_for("a.intern", 1, environ=env)
    assert proxy_for("h", 1, environ={"https_proxy": "p:1", "no_proxy": "*"}) is None
    assert proxy_for("h", 1, environ={}) is None and proxy_for("h", 1, "", environ=env) is None
    assert proxy_for("exact", 1, "http://mine:80", environ=env) == "http://mine:80"


@pytest.mark.parametrize("bad", ["https://p:1", "http://", "socks5://p:1", "http://u:secret@p:0x"])
def test_other_proxies_are_refused_without_telling_the_password(bad):
    with pytest.raises(ValueError, match=r"The proxy must be \"http://") as error:
        Tunnel(bad, "h", 1)
    assert "secret" not in str(error.value)
