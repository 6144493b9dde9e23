"""One call of `Site.run`: epochs, each with those members that are still there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nefele._checks import Array
from nefele.estimators.design import Rows
from nefele.sites._secrets import write
from nefele.sites.books import Books
from nefele.sites.carriers import Carrier
from nefele.sites.config import SiteConfig
from nefele.sites.consent import Guard, consent_of
from nefele.sites.driver import Driver
from nefele.sites.federation import Federation
from nefele.sites.frozen import heard_nodes, held_name
from nefele.sites.introducing import Card
from nefele.sites.journal import Journal
from nefele.sites.learning import Learner
from nefele.sites.learnt import Learnt
from nefele.sites.links import Network, network
from nefele.sites.models import mark_of
from nefele.sites.noisy import kept_release, mark_of_release
from nefele.sites.peers import AbsentError
from nefele.sites.predicting import Predicted
from nefele.sites.presence import part_of
from nefele.sites.programs import program_of
from nefele.sites.results import write_results
from nefele.sites.sealing import Seal, run_key
from nefele.sites.signing import Identity
from nefele.sites.status import Status, read_status

Tell = Callable[[str], object]


class Member(Protocol):
    """What an attempt needs to know of a site: see `nefele.sites.Site`."""

    name: str
    run_name: str
    config: SiteConfig
    federation: Federation
    network: Network
    carrier: Carrier | None

    @property
    def run_folder(self) -> Path:
        """Where the journal is, and the results will be."""

    @property
    def shared(self) -> Array:
        """The shared rows of the method "predictions"."""

    def make_carrier(self) -> Carrier:
        """What leads to all peers."""


@dataclass(frozen=True, eq=False)
class SiteRun:
    """What a run has left at a site.

    Attributes
    ----------
    folder : Path
        With model.nefele, metrics.csv, ledger.csv, run.json and report.html; for models of any
        kind predictions.csv in place of the first, and model-NODE.skops where that is possible.
    learnt : Learnt or Predicted
    driver : Driver
        With the books of what was sent and heard.
    gone : list of str
        Members that left on the way.
    facts : dict
        What run.json holds.
    """

    folder: Path
    learnt: Learnt | Predicted
    driver: Driver
    gone: list[str]
    facts: dict[str, Any]


def _status(folder: Path) -> dict[str, Any]:
    """What a process before wrote last; nothing if there was none."""
    try:
        return read_status(folder)
    except ValueError:
        return {}


class Attempt:
    """Takes part in a run, from its beginning or from where it was stopped.

    Parameters
    ----------
    site : Member
    identity : Identity
    rows : Rows
    tell, progress : callables
        See `Site.run`.
    """

    def __init__(
        self, site: Member, identity: Identity, rows: Rows, tell: Tell, progress: Any
    ) -> None:
        self.site, self.identity, self.rows, self.tell = site, identity, rows, tell
        facts = {
            "federation": site.federation.name,
            "hash": site.federation.hash,
            "name": site.name,
            "run": site.run_name,
        }
        self._before = _status(site.run_folder)
        self.status = Status(site.run_folder, facts, progress)
        self.driver: Driver | None = None

    def run(self) -> SiteRun:
        site = self.site
        carrier = site.carrier or site.make_carrier()
        carrier.open(self._receive)
        try:
            while True:
                gone, held, books = self._gone()
                net = self._network(gone)
                try:
                    return self._epoch(carrier, net, gone, held, books)
                except AbsentError as error:
                    self._leave(error, gone, held)
        except Exception:
            self.status.write(state="failed")
            raise
        finally:  # stopped by a person: the status shows that nobody works, as after a kill
            carrier.close()

    def _network(self, gone: list[str]) -> Network:
        try:
            return network(self.site.federation, frozenset(gone))
        except ValueError:
            raise ValueError(
                f"Without {', '.join(gone)}, who did not answer for longer than agreed, those who "
                "are left are not connected by edges. Perhaps the others have gone on without "
                f"{self.site.name}, or ended. Ask them for a new run."
            ) from None

    def _receive(self, sender: str, blob: bytes) -> None:
        if self.driver is not None:
            self.driver.receive(sender, blob)

    def _epoch(
        self, carrier: Carrier, net: Network, gone: list[str], held: dict[str, Any], books: Books
    ) -> SiteRun:
        site, federation = self.site, self.site.federation
        self._check_rows()
        key = run_key(site.run_folder / "run.key")
        peers = site.network.of(site.name).peers  # those who have left are told so
        seal = Seal(self.identity, federation.hash, site.run_name, peers, key)
        patience = None if federation.absent == "wait" else federation.absent_after
        args = (gone, held, self.status.report, Card(seal, site.run_folder / "hello"))
        noisy = kept_release(site.run_folder, federation, site.name, self.rows, site.config.data)
        learner = Learner(federation, site.name, self.rows, *args, noisy)
        with Journal(site.run_folder / f"journal-{len(gone)}", self._meta(gone, held)) as journal:
            driver = Driver(
                net.of(site.name),
                carrier,
                seal,
                journal,
                gone=gone,
                patience=patience,
                part=partial(part_of, site.network.links, site.name),
                books=books,
                allow=Guard(consent_of(federation, site.name, net, len(site.shared))),
                told=self.status.update,
            )
            self.driver = driver
            learnt = driver.run(program_of(learner, site.config.model, site.shared))
            facts = write_results(site.run_folder, site.run_name, learner, learnt, driver)
            self.status.write(state="ending", gap=facts["gap"], **books.over_all())
            if not driver.linger(federation.absent_after):
                self.tell(f"Not heard that they have ended too: {', '.join(driver.waiting)}.")
        self.status.write(state="finished", late={}, why="", **books.over_all())
        return SiteRun(site.run_folder, learnt, driver, gone, facts)

    def _digest(self) -> str:
        """A hash of the rows; it stays here."""
        rows = self.rows
        digest = hashlib.sha256()
        for array in (rows.X, rows.y, np.array(rows.node_ids, dtype=str)):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _check_rows(self) -> None:
        """Refuse to go on with other rows than the run began with, its folder lost or not.

        Neighbours answer a site that comes back from what they have heard: they would end with a
        mixture of both.
        """
        file = self.site.run_folder.parent / f"rows-{self.site.run_name}.sha256"
        if not file.is_file():
            write(file, self._digest().encode())
        elif file.read_bytes() != self._digest().encode():
            raise ValueError(
                f"Run {self.site.run_name} must go on with the rows it began with here; they have "
                "changed. Put them back, or agree with all members on a new run: --run NAME."
            )

    def _meta(self, gone: list[str], held: dict[str, Any]) -> bytes:
        """What a journal belongs to: another file, other rows or versions are another run."""
        found = {
            "federation": self.site.federation.hash,
            "run": self.site.run_name,
            "without": gone,
            "held": held,
            "rows": self._digest(),
            "released": mark_of_release(self.site.run_folder),
            "model": mark_of(self.site.config.model),
            "versions": {name: version(name) for name in self._packages},
        }
        return json.dumps(found, sort_keys=True).encode()

    @property
    def _packages(self) -> list[str]:
        """What decides the numbers of a run."""
        more = [] if self.site.federation.network is None else ["torch"]
        return ["nefele", "numpy", "scipy", "numba", "scikit-learn", *more]

    # -- members that stay away -----------------------------------------------------------------

    @property
    def _list(self) -> Path:
        return self.site.run_folder / "gone.json"

    def _gone(self) -> tuple[list[str], dict[str, Any], Books]:
        """Who has left, the parameters of their nodes that are held here, and what was sent."""
        found: dict[str, Any] = {"gone": [], "held": {}, "books": {}}
        if self._list.exists():
            found |= json.loads(self._list.read_bytes())
        books = Books()
        books.begin_with(
            found["books"], self._before if self.driver is None else self.driver.books.over_all()
        )
        return list(found["gone"]), dict(found["held"]), books

    def _leave(self, error: AbsentError, gone: list[str], held: dict[str, Any]) -> None:
        """Go on without some members, as agreed."""
        site = self.site
        if site.name in error.names:
            raise ValueError(
                f"{site.name} has been away for longer than agreed, and the others go on without "
                "it. Ask them for a new run."
            ) from None
        held = dict(held)
        for name in error.names if site.federation.absent == "freeze" else ():
            rows = {} if self.driver is None else self.driver.latest
            for k, node in enumerate(heard_nodes(site.federation, site.name, name)):
                if name in rows:
                    held[held_name(node, site.name)] = rows[name][k].tolist()
        how = "as it last was heard" if held else "without"
        self.tell(f"Away for too long, the others go on {how}: {', '.join(error.names)}.")
        books = {} if self.driver is None else self.driver.books.plain()
        content = {"gone": [*gone, *error.names], "held": held, "books": books}
        write(self._list, json.dumps(content).encode())
