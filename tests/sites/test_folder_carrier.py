"""A shared folder as a carrier: files that are whole or not there, and a partner not to trust."""

import sys
import threading

import pytest

from nefele.sites.carriers.folder import Folder
from tests.sites.network import Mailbox, opened
from tests.waiting import wait_until

F = "f00d"
posix = pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")


def site(me, neighbours, path, **kwargs):
    return Folder(me, neighbours, path, federation=F, poll=0.01, **kwargs)


def messages(folder):
    return sorted(file.name for file in folder.iterdir())


def came(box, *blobs):
    wait_until(lambda: len(box.came) >= len(blobs), f"{len(blobs)} messages")
    assert [blob for _, blob in box.came] == list(blobs)


def test_messages_come_in_order_in_both_directions_and_leave_no_file(tmp_path):
    before = threading.enumerate()
    a, b = site("a", ["b"], tmp_path), site("b", ["a"], tmp_path)
    with opened(a, b) as (at_a, at_b):
        sent = [b"%d" % k for k in range(20)]
        for blob in sent:
            a.send("b", blob)
        b.send("a", b"")
        came(at_b, *sent)
        came(at_a, b"")
        assert {sender for sender, _ in at_b.came} == {"a"}
    assert not list(tmp_path.rglob("*.msg")) and not list(tmp_path.rglob("*.part"))
    assert threading.enumerate() == before
    assert a.refused == b.refused == {}


def test_messages_wait_for_a_receiver_and_restarts_overwrite_nothing(tmp_path):
    b = site("b", ["a"], tmp_path)
    for k in range(3):
        a = site("a", ["b"], tmp_path)
        with opened(a):
            a.send("b", b"%d" % k)
    with opened(b) as (at_b,):
        came(at_b, b"0", b"1", b"2")


def test_a_clock_that_went_back_does_not_change_the_order(tmp_path, monkeypatch):
    a = site("a", ["b"], tmp_path)
    with opened(a):
        a.send("b", b"first")
    monkeypatch.setattr("nefele.sites.carriers.folder._start", lambda: 0)
    a = site("a", ["b"], tmp_path)
    with opened(a), opened(site("b", ["a"], tmp_path)) as (at_b,):
        a.send("b", b"second")
        came(at_b, b"first", b"second")


def test_an_absent_receiver_does_not_fill_the_disk(tmp_path):
    a = site("a", ["b"], tmp_path, most_unread=3)
    with opened(a):
        for k in range(10):
            a.send("b", b"%d" % k)
    assert len(messages(tmp_path / F / "a_to_b")) == 3 and a.refused == {"unread": 7}
    with opened(site("b", ["a"], tmp_path)) as (at_b,):
        came(at_b, b"7", b"8", b"9")


def test_foreign_half_written_and_long_files_are_not_taken(tmp_path):
    a, b = site("a", ["b"], tmp_path), site("b", ["a"], tmp_path, most_bytes=100)
    box = tmp_path / F / "a_to_b"
    with opened(a):
        (box / ".a-1-00.part").write_bytes(b"half")
        (box / "notes.txt").write_bytes(b"foreign")
        (box / "1.msg").write_bytes(b"foreign")
        (box / f"{5:020d}.msg").mkdir()
        (box / f"{6:020d}.msg").write_bytes(b"x" * 101)
        with opened(b) as (at_b,):
            a.send("b", b"end")
            came(at_b, b"end")
            b.send("a", b"x" * 101)
    assert b.refused == {"foreign": 3, "too long": 2}
    left = [".a-1-00.part", f"{5:020d}.msg", "1.msg", "notes.txt"]
    assert messages(box) == sorted(left)


def test_only_folders_of_neighbours_are_read(tmp_path):
    c = site("c", ["b"], tmp_path)
    a, b = site("a", ["b"], tmp_path), site("b", ["a"], tmp_path)
    with opened(c):
        c.send("b", b"no neighbour of b")
    with opened(a, b) as (_, at_b):
        a.send("b", b"end")
        came(at_b, b"end")
        with pytest.raises(ValueError, match="No neighbour 'c'"):
            b.send("c", b"")
    assert len(messages(tmp_path / F / "c_to_b")) == 1


@posix
def test_links_do_not_lead_out_of_the_folder(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    shared = tmp_path / "shared"
    shared.mkdir()
    a, b = site("a", ["b"], shared), site("b", ["a"], shared)
    with opened(a), opened(b) as (at_b,):
        (shared / F / "a_to_b" / f"{1:020d}.msg").symlink_to(secret)
        a.send("b", b"end")
        came(at_b, b"end")
    assert b.refused == {"foreign": 1} and secret.read_bytes() == b"secret"


@posix
def test_a_folder_that_is_a_link_is_refused(tmp_path):
    outside, shared = tmp_path / "outside", tmp_path / "shared"
    for folder in (outside, shared, shared / F):
        folder.mkdir()
    (shared / F / "a_to_b").symlink_to(outside)
    a = site("a", ["b"], shared)
    with pytest.raises(ValueError, match="is a link or a file"):
        a.open(Mailbox())
    a.send("b", b"secret")
    assert a.refused == {"not sent": 1} and not list(outside.iterdir())


@posix
def test_a_link_that_comes_later_is_not_followed_either(tmp_path):
    outside, shared = tmp_path / "outside", tmp_path / "shared"
    outside.mkdir(), shared.mkdir()
    a = site("a", ["b"], shared)
    with opened(a):
        (shared / F / "a_to_b").rmdir()
        (shared / F / "a_to_b").symlink_to(outside)
        a.send("b", b"secret")
    assert a.refused == {"not sent": 1} and not list(outside.iterdir())


def test_a_folder_that_is_gone_costs_messages_only_and_may_come_back(tmp_path):
    shared, away = tmp_path / "shared", tmp_path / "away"
    shared.mkdir()
    a, b = site("a", ["b"], shared), site("b", ["a"], shared)
    with opened(a, b) as (_, at_b):
        shared.rename(away)
        a.send("b", b"lost")
        away.rename(shared)
        a.send("b", b"end")
        came(at_b, b"end")
    assert a.refused == {"not sent": 1}


def test_half_files_of_an_earlier_run_are_cleared(tmp_path):
    with opened(site("a", ["b"], tmp_path)):
        (tmp_path / F / "a_to_b" / ".a-1-00.part").write_bytes(b"half")
    with opened(site("a", ["b"], tmp_path)):
        assert messages(tmp_path / F / "a_to_b") == []


def test_errors_of_the_system_become_clear_ones(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(ValueError, match="must be readable and writable; Permission denied"):
        site("a", ["b"], tmp_path).open(Mailbox())


def test_errors_say_what_must_hold(tmp_path):
    with pytest.raises(ValueError, match=r"No folder .*Make it, or mount it"):
        site("a", ["b"], tmp_path / "none").open(Mailbox())
    for me, neighbours in (("../a", ["b"]), ("a", ["b/c"]), ("a", ["b_to_c"]), ("a", ["a"])):
        with pytest.raises(ValueError, match=r"name of a site must be|no neighbour of itself"):
            site(me, neighbours, tmp_path)
    with pytest.raises(ValueError, match="id of a federation"):
        Folder("a", ["b"], tmp_path, federation="..")
    for bad in ({"most_bytes": 0}, {"most_unread": 0}):
        with pytest.raises(ValueError, match="must be >= 1"):
            site("a", ["b"], tmp_path, **bad)
    with pytest.raises(ValueError, match="poll must be > 0"):
        Folder("a", ["b"], tmp_path, federation=F, poll=0)
    a = site("a", ["b"], tmp_path)
    with opened(a), pytest.raises(ValueError, match="open already"):
        a.open(Mailbox())
