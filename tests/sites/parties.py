"""All sites of a problem in threads of one process: sealed messages, journals, and crashes."""

import copy
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from nefele.runtime import join, split
from nefele.runtime.tree import Tree
from nefele.sites import _certificates as x
from nefele.sites.carriers.memory import Hub
from nefele.sites.driver import Driver
from nefele.sites.journal import Journal
from nefele.sites.peers import Links
from nefele.sites.sealing import Seal, run_key
from nefele.sites.signing import Identity
from tests.waiting import LONG

FEDERATION, RUN = "f" * 64, "1"


class CrashError(Exception):
    """A process that is killed at some point."""


class StoppedError(Exception):
    """Another site has failed, or nothing has happened for very long."""


@cache
def authority(name="authority"):
    """Key and certificate of an authority."""
    key = x.new_key()
    return key, x.authority_certificate(key, "coast", 30, datetime.now(UTC))


def identity(folder, name, issuer="authority", days=20.0):
    """A real identity in a folder; days < 0: it has expired."""
    signer, certificate = authority(issuer)
    own, now = x.new_key(), datetime.now(UTC)
    start = now - timedelta(days=10) if days < 0 else now
    subject, end = (name, "coast"), now + timedelta(days=days)
    found = x.site_certificate(signer, certificate, own.public_key(), subject, [name], end, start)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "key.pem").touch(0o600)
    (folder / "key.pem").write_bytes(x.private_pem(own))
    (folder / "certificate.pem").write_bytes(x.pem(found))
    (folder / "authority.pem").write_bytes(x.pem(certificate))
    if days < 0:
        return None
    return Identity(folder)


def signed_by(folder, name, issuer="authority", days=20.0):
    """The same without checks of its own: for those that must be refused elsewhere."""
    identity(folder, name, issuer, -1.0 if days < 0 else days)
    found = object.__new__(Identity)
    found.name = name
    found.certificate = (folder / "certificate.pem").read_bytes()
    found.authority = (folder / "authority.pem").read_bytes()
    found._private = x.load_key((folder / "key.pem").read_bytes(), "key")
    return found


def fresh(part):
    """A part as it was before any round."""
    part = copy.copy(part)
    part.w = part.w1 = part.w.copy()
    part.u = part.u1 = part.u.copy()
    return part


class Kills:
    """Raises at chosen events of one site; an event is whatever can be the last of a process."""

    def __init__(self, points=()):
        self.points, self.count = sorted(points), 0

    def __call__(self):
        self.count += 1
        if self.points and self.count >= self.points[0]:
            self.points.pop(0)
            raise CrashError(f"at event {self.count}")


class FragileJournal(Journal):
    """A journal whose process may end before or after it wrote."""

    event = staticmethod(lambda: None)

    def add(self, *records):
        self.event()
        super().add(*records)
        self.event()

    def close(self):
        self._kept.clear()  # a process that is killed writes no more
        super().close()


class FragileCarrier:
    """A carrier whose process may end before or after it sent."""

    def __init__(self, carrier, event):
        self.carrier, self.event = carrier, event

    def send(self, to, blob):
        self.event()
        self.carrier.send(to, blob)
        self.event()


@dataclass
class Ends:
    """What all sites have in the end."""

    values: dict
    drivers: dict
    parts: list
    starts: dict
    w: object = None
    u: object = None


@dataclass
class Parties:
    """Sites that own the parts of a problem, or any programs on some links.

    Parameters
    ----------
    folder : Path
    links : dict of name to {neighbour: rows of its messages}
    program : callable
        Makes the program of a name, again after each restart.
    """

    folder: Path
    links: dict
    program: object
    hub: Hub = field(default_factory=Hub)
    kills: dict = field(default_factory=dict)  # name to Kills
    crashed: object = None  # called with (parties, name) after each crash
    driving: dict = field(default_factory=dict)  # more arguments of drivers
    lingers: float = LONG

    def __post_init__(self):
        self.tree = Tree({name: list(rows) for name, rows in self.links.items()})
        self.identities = {name: identity(self.folder / name, name) for name in self.links}
        self.drivers, self.values, self.errors = {}, {}, {}
        self.starts = dict.fromkeys(self.links, 0)
        self._end = time.monotonic() + LONG

    def links_of(self, name):
        return Links(name, list(self.links), self.links[name], self.tree)

    def journal(self, name):
        return self.folder / name / "journal"

    def seal(self, name):
        key = run_key(self.folder / name / "run.key")
        peers = self.links_of(name).peers
        return Seal(self.identities[name], FEDERATION, RUN, peers, key)

    def _attempt(self, name):
        event = self.kills.get(name, lambda: None)
        carrier = self.hub.carrier(name)

        def told(driver):
            if self.errors:
                raise StoppedError("another has failed")
            if time.monotonic() > self._end:
                waits = {who: (d.number, d.waiting) for who, d in self.drivers.items()}
                raise StoppedError(f"for too long: {waits}")

        with FragileJournal(self.journal(name), b"test") as journal:
            journal.event = event

            driver = Driver(
                self.links_of(name),
                FragileCarrier(carrier, event),
                self.seal(name),
                journal,
                **{"told": told, **self.driving},
            )
            self.drivers[name] = driver
            carrier.open(driver.receive)
            try:
                value = driver.run(self.program(name))
                self.values[name] = value
                driver.linger(self.lingers)
            finally:
                carrier.close()

    def _run(self, name):
        try:
            for _ in range(1000):
                self.starts[name] += 1
                try:
                    self._attempt(name)
                    return
                except CrashError:
                    if self.crashed is not None:
                        self.crashed(self, name)
            raise AssertionError(f"{name} has crashed 1000 times")
        except BaseException as error:
            self.errors[name] = error

    def run(self, names=None):
        """Run all to their ends; the first error is raised, unless others stopped because of it."""
        names = list(self.links) if names is None else names
        threads = [threading.Thread(target=self._run, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        real = [e for e in self.errors.values() if not isinstance(e, StoppedError)]
        for error in real or self.errors.values():
            raise error
        return Ends(self.values, self.drivers, [], self.starts)


def parties_of(folder, problem, parts, make, **kwargs):
    """Sites of a problem; `make(part)` is the program of each. Their parts are in `owned`."""
    shares = {part.name: part for part in split(problem, parts)}
    links = {
        name: {other: len(i) for other, i in part.hears.items()} for name, part in shares.items()
    }
    owned = {}

    def program(name):
        owned[name] = fresh(shares[name])
        return make(owned[name])

    found = Parties(folder, links, program, **kwargs)
    found.owned = owned
    return found


def run_sites(folder, problem, parts, make, **kwargs):
    """Run all sites of a problem, and join what they have in the end."""
    parties = parties_of(folder, problem, parts, make, **kwargs)
    ends = parties.run()
    ends.parts = [parties.owned[name] for name in parties.links]
    ends.w, ends.u = join(problem, ends.parts)
    ends.parties = parties
    return ends
