"""Zenoh between direct neighbours: real TLS on loopback, and all that must be refused."""

import socket
import threading

import pytest

from nefele.sites.carriers.zenoh import Zenoh
from nefele.sites.carriers.zenoh_settings import rights
from tests.sites.certificates import Authority
from tests.sites.network import free_port, opened, say_until, stranger
from tests.waiting import wait_until

F = "f00d"


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "authority")


def site(authority, me, neighbours, federation=F, **kwargs):
    return Zenoh(
        me=me,
        neighbours=neighbours,
        federation=federation,
        proxy=kwargs.pop("proxy", ""),
        **authority.files(me),
        **kwargs,
    )


def pair(authority, **kwargs):
    at = f"127.0.0.1:{free_port()}"
    a = site(authority, "a", {"b": None}, listen=at, **kwargs)
    return a, site(authority, "b", {"a": at}, **kwargs)


def test_messages_arrive_in_both_directions_and_nothing_is_left_running(authority):
    before = threading.enumerate()
    a, b = pair(authority)
    with opened(a, b) as (at_a, at_b):
        say_until(a, "b", b"to b", at_b)
        say_until(b, "a", b"", at_a)
        wait_until(lambda: a.linked("b") and b.linked("a"), "the links")
    assert threading.enumerate() == before


def test_who_dials_may_come_first_and_either_may_come_again(authority):
    a, b = pair(authority)
    with opened(b) as (at_b,):
        with opened(a) as (at_a,):
            say_until(a, "b", b"1", at_b)
            say_until(b, "a", b"1", at_a)
        with opened(a) as (at_a,):
            say_until(a, "b", b"2", at_b)
            say_until(b, "a", b"2", at_a)


def test_long_messages_are_dropped_and_counted_at_both_ends(authority):
    a, b = pair(authority, most_bytes=1000)
    with opened(a, b) as (at_a, at_b):
        a._most_bytes = 2000  # a sender that keeps to another limit
        say_until(a, "b", b"x" * 1000, at_b)
        a.send("b", b"x" * 1001)
        say_until(a, "b", b"after", at_b)
        b.send("a", b"x" * 1001)
        say_until(b, "a", b"after", at_a)
    assert b.refused == {"too long": 2}
    assert {len(blob) for _, blob in at_b.came} == {1000, 5}
    assert {blob for _, blob in at_a.came} == {b"after"}


def test_messages_of_megabytes_come_whole(authority):
    a, b = pair(authority)
    blob = bytes(range(256)) * 16384
    with opened(a, b) as (_, at_b):
        say_until(a, "b", b"first", at_b)
        say_until(a, "b", blob, at_b)


def test_another_authority_is_refused(authority, tmp_path):
    at = f"127.0.0.1:{free_port()}"
    a = site(authority, "a", {"b": None}, listen=at)
    false = site(Authority(tmp_path / "other"), "b", {"a": at})
    with opened(a) as (at_a,):
        with opened(false) as (at_false,):
            wait_until(lambda: false.send("a", b"false") or _dialled(at), "a dial")
            with opened(site(authority, "b", {"a": at})) as (at_b,):  # the positive control
                for _ in range(5):
                    false.send("a", b"false")
                    a.send("b", b"secret")
                say_until(a, "b", b"true", at_b)
        with opened(site(authority, "b", {"a": at})) as (_,):
            pass
    assert at_a.came == [] and at_false.came == []


def _dialled(at):
    host, port = at.split(":")
    socket.create_connection((host, int(port))).close()
    return True


def test_a_certificate_of_no_neighbour_can_neither_write_nor_read(authority):
    at = f"127.0.0.1:{free_port()}"
    a = site(authority, "a", {"b": None, "d": None}, listen=at)
    b = site(authority, "b", {"a": at})
    d = stranger(authority, "d", at)  # a neighbour of a, but not b
    c = stranger(authority, "c", at)  # a member, no neighbour
    heard = []
    try:
        with opened(a, b) as (at_a, at_b):
            for session in (c, d):
                for keys in (f"nefele/{F}/a/b", f"nefele/{F}/b/a", "nefele/**", "**"):
                    session.declare_subscriber(keys, lambda one: heard.append(bytes(one.payload)))
            wait_until(lambda: list(c.info.peers_zid()), "the link of c")
            wait_until(
                lambda: d.put(f"nefele/{F}/d/a", b"d") or ("d", b"d") in at_a, "d, who may write"
            )
            for session in (c, d):
                for keys in (f"nefele/{F}/b/a", f"nefele/{F}/c/a", f"nefele/{F}/*/a", "nefele/**"):
                    session.put(keys, b"false")
            d.put(f"nefele/{F}/d/a", b"control")
            wait_until(lambda: ("d", b"control") in at_a, "what d may write")
            say_until(a, "b", b"secret", at_b)
            say_until(b, "a", b"secret", at_a)
            c.put(f"nefele/{F}/b/a", b"false")
            say_until(b, "a", b"end", at_a)
            assert {blob for _, blob in at_a.came} == {b"d", b"control", b"secret", b"end"}
            assert b"secret" not in heard and b"end" not in heard
    finally:
        c.close()
        d.close()


def test_plain_tcp_gets_nothing(authority):
    at = f"127.0.0.1:{free_port()}"
    a = site(authority, "a", {"b": None}, listen=at)
    b = site(authority, "b", {"a": at})
    with opened(a) as (at_a,):
        plain = stranger(authority, "b", at, protocol="tcp")
        heard = []
        try:
            plain.declare_subscriber("**", lambda one: heard.append(bytes(one.payload)))
            plain.put(f"nefele/{F}/b/a", b"plain")
            with opened(b) as (at_b,):
                say_until(b, "a", b"true", at_a)
                plain.put(f"nefele/{F}/b/a", b"plain")
                say_until(a, "b", b"secret", at_b)
                say_until(b, "a", b"end", at_a)
        finally:
            plain.close()
    assert {blob for _, blob in at_a.came} == {b"true", b"end"}
    assert set(heard) == {b"plain"}  # its own


def test_a_host_that_is_not_in_the_certificate_is_refused_unless_asked(authority):
    at = f"127.0.0.1:{free_port()}"
    authority.files("a", hosts=("elsewhere.example",))
    a = site(authority, "a", {"b": None, "c": None}, listen=at)
    strict = site(authority, "b", {"a": at})
    lax = site(authority, "c", {"a": at}, verify_hosts=False)
    with opened(a, strict, lax) as (at_a, _, _):
        strict.send("a", b"strict")
        say_until(lax, "a", b"lax", at_a)
        assert not strict.linked("a")
    assert {sender for sender, _ in at_a.came} == {"c"}


@pytest.mark.parametrize("missing", ["private_key", "certificate", "authority"])
def test_without_any_of_the_three_files_there_is_no_carrier(authority, missing):
    files = authority.files("a")
    for value in (None, authority.folder / "none.pem"):
        with pytest.raises(ValueError, match=f"mutual TLS only: {missing} must be a file"):
            Zenoh(me="a", neighbours={"b": "h:1"}, federation=F, **files | {missing: value})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"neighbours": {"a": "h:1"}}, "no neighbour of itself"),
        ({"neighbours": {"b/*": "h:1"}}, "must be 1 to 63 of a-z"),
        ({"neighbours": {"relay": "h:1"}}, "may be called 'relay'"),
        ({"federation": "**"}, "id of a federation must be 1 to 64"),
        ({"neighbours": {"b": "tcp/h:1"}}, 'address of b must be "host:port"'),
        ({"neighbours": {"b": "h:1#iface=eth0"}}, 'must be "host:port"'),
        ({"listen": "h"}, 'address to listen at must be "host:port"'),
        ({"relay": "h:0"}, 'address of the relay must be "host:port"'),
        ({"neighbours": {"b": None}}, "Nothing leads to 'b'"),
        ({"most_bytes": 0}, "most_bytes must be >= 1"),
    ],
)
def test_errors_say_what_must_hold(authority, change, message):
    with pytest.raises(ValueError, match=message):
        site(authority, **{"me": "a", "neighbours": {"b": "h:1"}, "federation": F} | change)


def test_a_port_in_use_is_an_error_at_once(authority):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        a = site(authority, "a", {}, listen=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(ValueError, match="Zenoh cannot open a session"):
            a.open(print)
        a.close()


def test_strangers_and_second_opens_are_errors(authority):
    a, _ = pair(authority)
    with opened(a):
        with pytest.raises(ValueError, match="No neighbour 'z'"):
            a.send("z", b"")
        with pytest.raises(ValueError, match="open already"):
            a.open(print)


def test_no_wildcards_and_only_exact_keys_are_allowed():
    made = rights(F, {"b": [("b", "a")], "relay": [("b", "a"), ("c", "a")]})
    assert made["enabled"] is True and made["default_permission"] == "deny"
    keys = {one for rule in made["rules"] for one in rule["key_exprs"]}
    assert not any(sign in one for one in keys for sign in "*$?#")
    assert keys == {f"nefele/{F}/{x}" for x in ("a/b", "b/a", "a/c", "c/a")}
    assert all(rule["permission"] == "allow" and rule["flows"] for rule in made["rules"])
    assert [one["cert_common_names"] for one in made["subjects"]] == [["b"], ["relay"]]
