"""Sites that can only dial out, slow links, and links that are cut.

With root and iproute2 each site lives in a network namespace of its own and netem spoils its link;
elsewhere a proxy on this machine delays, stalls and cuts the bytes. The result is the same.
"""

import contextlib
import os
import select
import shutil
import socket
import subprocess
import threading
import time
from dataclasses import replace

import pytest

from nefele.sites.members import split_address
from tests.sites.network import free_port
from tests.sites.running import Sites, check_models, pilot, ring
from tests.waiting import wait_until

SLOW = 0.1  # seconds of delay, each way


def _ip(*args, tool="ip"):
    return subprocess.run([tool, *args], capture_output=True, text=True, timeout=60)


def can_make_namespaces(netem):
    """Whether this machine lets us make namespaces with links, and netem spoil them."""
    if os.name != "posix" or os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("tc")):
        return False
    name = f"nefele-{os.getpid()}-try"
    try:
        if _ip("netns", "add", name).returncode:
            return False
        try:
            made = _ip("-n", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
            qdisc = ("-n", name, "qdisc", "add", "dev", "v0", "root", "netem", "delay", "1ms")
            spoils = not netem or _ip(*qdisc, tool="tc").returncode == 0
            return made.returncode == 0 and spoils
        finally:
            _ip("netns", "del", name)
    except (OSError, subprocess.SubprocessError):
        return False


class Namespaces:
    """The relay in one namespace, each site in another with a link to the relay's only."""

    kind = "namespaces"

    def __init__(self, names):
        self.names, self.base = list(names), f"nf{os.getpid() % 10000}"
        self.relay = "10.213.0.1:7447"

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        self._do("netns", "add", self._ns("relay"))
        self._do("-n", self._ns("relay"), "link", "set", "lo", "up")
        self._do("-n", self._ns("relay"), "addr", "add", "10.213.0.1/32", "dev", "lo")
        for k, name in enumerate(self.names):
            space, near, far = self._ns(name), f"{self.base}a{k}", f"{self.base}b{k}"
            self._do("netns", "add", space)
            self._do("-n", space, "link", "add", near, "type", "veth", "peer", "name", far,
                     "netns", self._ns("relay"))  # fmt: skip
            for where, dev, at in ((space, near, 2), (self._ns("relay"), far, 1)):
                self._do("-n", where, "addr", "add", f"10.213.{k + 1}.{at}/24", "dev", dev)
                self._do("-n", where, "link", "set", dev, "up")
            self._do("-n", space, "link", "set", "lo", "up")
            self._do("-n", space, "route", "add", "10.213.0.1/32", "via", f"10.213.{k + 1}.1")

    def __exit__(self, *error):
        for name in ["relay", *self.names]:
            _ip("netns", "del", self._ns(name))

    def _ns(self, name):
        return f"{self.base}-{name}"

    def _do(self, *args, tool="ip"):
        done = _ip(*args, tool=tool)
        assert done.returncode == 0, (tool, args, done.stderr)

    def federation(self, federation):
        return replace(federation, relay=self.relay)

    def prefix(self, name):
        return ("ip", "netns", "exec", self._ns(name))

    def start(self, sites):
        sites.start_relay("--listen", self.relay, prefix=self.prefix("relay"))
        for name in self.names:
            sites.start(name, prefix=self.prefix(name))

    def slow(self):
        for k, name in enumerate(self.names):
            rule = ("root", "netem", "delay", f"{SLOW * 1000:g}ms", "loss", "5%")
            self._do("-n", self._ns(name), "qdisc", "add", "dev", f"{self.base}a{k}", *rule, tool="tc")  # fmt: skip  # noqa: E501

    @contextlib.contextmanager
    def cut(self, name):
        place = "-n", self._ns(name), "link", "set", f"{self.base}a{self.names.index(name)}"
        self._do(*place, "down")
        yield
        self._do(*place, "up")
        k = self.names.index(name)
        self._do("-n", self._ns(name), "route", "replace", "10.213.0.1/32", "via", f"10.213.{k + 1}.1")  # fmt: skip  # noqa: E501


class Shim:
    """A TCP proxy before the relay that delays, stalls now and then, and cuts links.

    TCP sends again what a network loses, so that loss is a pause of the stream.
    """

    kind = "shim"

    def __init__(self, names):
        self.names, self.delay, self.closed = list(names), 0.0, threading.Event()
        self.stop, self.threads, self.pairs, self.count = threading.Event(), [], [], 0

    def __enter__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.relay = f"127.0.0.1:{self.server.getsockname()[1]}"
        self.behind = f"127.0.0.1:{free_port()}"
        self._begin(self._accept)
        return self

    def __exit__(self, *error):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        self.server.close()
        for one in self.pairs:
            one.close()

    def _begin(self, call, *args):
        thread = threading.Thread(target=call, args=args)
        self.threads.append(thread)
        thread.start()

    def _accept(self):
        while not self.stop.is_set():
            if not select.select([self.server], [], [], 0.05)[0]:
                continue
            one = self.server.accept()[0]
            if self.closed.is_set():
                one.close()
                continue
            try:
                other = socket.create_connection(split_address(self.behind, "here"), timeout=5)
            except OSError:
                one.close()
                continue
            self.pairs += [one, other]
            self._begin(self._pump, one, other)
            self._begin(self._pump, other, one)

    def _pump(self, source, sink):
        """Bytes leave when they are due, in their order."""
        waiting = []
        with contextlib.suppress(OSError):
            while not (self.stop.is_set() or self.closed.is_set()):
                due = waiting[0][0] - time.monotonic() if waiting else 0.05
                if select.select([source], [], [], min(max(due, 0.0), 0.05))[0]:
                    blob = source.recv(65536)
                    if not blob:
                        break
                    self.count += 1
                    stall = 2 * self.delay if self.count % 20 == 0 else 0.0
                    waiting.append((time.monotonic() + self.delay + stall, blob))
                while waiting and waiting[0][0] <= time.monotonic():
                    sink.sendall(waiting.pop(0)[1])
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def federation(self, federation):
        return replace(federation, relay=self.relay)

    def start(self, sites):
        sites.start_relay("--listen", self.behind)
        sites.start()

    def slow(self):
        self.delay = SLOW

    @contextlib.contextmanager
    def cut(self, name):
        self.closed.set()
        yield
        self.closed.clear()


@contextlib.contextmanager
def made(netem):
    """Namespaces where this machine allows them, chosen when the test runs; else the shim."""
    found = Namespaces if can_make_namespaces(netem) else Shim
    with found(["s00", "s01", "s02"]) as way:
        yield way


@pytest.fixture
def way():
    with made(netem=False) as found:
        yield found


@pytest.fixture
def slow_way():
    with made(netem=True) as found:
        found.slow()
        yield found


def run_relayed(folder, way, rounds, spoil=lambda way, sites: None):
    federation = way.federation(ring(3, "relay", rounds=rounds, check_every=rounds))
    trial = pilot(folder, federation, moved=False)
    with Sites(folder, trial) as sites:
        way.start(sites)
        spoil(way, sites)
        sites.finish()
    check_models(trial, folder)


def test_sites_that_can_only_dial_out(tmp_path, way):
    run_relayed(tmp_path, way, 20)


def cut_in_the_middle(way, sites):
    sites.wait_for("s01", 8000)
    with way.cut("s01"):
        stands = sites.journal("s01")
        status = sites.site("s00") / "run-1" / "status.json"
        wait_until(lambda: b'"state": "waiting"' in status.read_bytes(), "the others wait")
        assert not sites.ended("s01") and sites.journal("s01") < stands + 8000


@pytest.mark.slow
def test_a_link_that_is_cut_for_some_seconds(tmp_path, way):
    run_relayed(tmp_path, way, 400, cut_in_the_middle)


@pytest.mark.slow
def test_a_slow_link_that_loses(tmp_path, slow_way):
    run_relayed(tmp_path, slow_way, 20)
