"""One member of a federation, run beside its data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele._files import only_writer
from nefele.estimators.design import Rows
from nefele.sites._secrets import write
from nefele.sites.books import Books
from nefele.sites.carriers import Carrier
from nefele.sites.carriers.folder import Folder
from nefele.sites.carriers.routes import Routes
from nefele.sites.carriers.zenoh import Zenoh
from nefele.sites.config import SiteConfig
from nefele.sites.consent import Consent, Guard, consent_of
from nefele.sites.driver import Driver
from nefele.sites.federation import Federation
from nefele.sites.frozen import heard_nodes, held_name
from nefele.sites.identity import AUTHORITY, CERTIFICATE, KEY, check_pinned, expiry_message
from nefele.sites.introducing import Card
from nefele.sites.journal import Journal
from nefele.sites.learning import Learner, Learnt
from nefele.sites.links import Network, network
from nefele.sites.models import mark_of
from nefele.sites.peers import AbsentError
from nefele.sites.predicting import Predicted, program_of
from nefele.sites.presence import part_of
from nefele.sites.results import write_results
from nefele.sites.rows import read_rows, read_shared
from nefele.sites.sealing import Seal, run_key
from nefele.sites.signing import Identity
from nefele.sites.status import Status, read_status
from nefele.sites.validity import one_certificate
from nefele.sites.wire import most_bytes

Tell = Callable[[str], object]

_HELLO = 1 << 15  # bytes that must fit in any case
_SHORTEST = 16  # characters of a hash that name it


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


class Site:
    """A member of a federation, in a folder with site.toml, federation.toml, key and certificates.

    Parameters
    ----------
    folder : path
    accept : str, optional
        Hash of the federation's file that people here agreed to; without it nothing runs.
    run : str
        Name of the run: the same at all members, another one for each new run.
    carrier : Carrier, optional
        Default: what the federation's file says, Zenoh or a shared folder.

    Examples
    --------
    Three sites in threads of one process, on a hub instead of a network:

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from tempfile import mkdtemp
    >>> from nefele.sites.carriers.memory import Hub
    >>> from nefele.sites.example import coast, trial_of
    >>> folder, hub = Path(mkdtemp()), Hub()
    >>> federation = trial_of(coast(alpha=0.3), folder)
    >>> def run(name):
    ...     carrier = hub.carrier(name)
    ...     return Site(folder / name, accept=federation.hash, carrier=carrier).run()
    >>> with ThreadPoolExecutor() as pool:
    ...     runs = list(pool.map(run, ["oulu", "kemi", "inari"]))
    >>> [(found.facts["name"], found.facts["converged"]) for found in runs]
    [('oulu', True), ('kemi', True), ('inari', True)]
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        accept: str | None = None,
        run: str = "1",
        carrier: Carrier | None = None,
    ) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise ValueError(f"No folder {str(folder)!r}. Make one by: nefele site request")
        if not (run.isalnum() and run.isascii() and len(run) <= 40):
            raise ValueError(f"run must be letters and digits, at most 40; got {run!r}.")
        self.config = SiteConfig.read(self.folder)
        self.federation = Federation.read(self.folder)
        self.config.check(self.federation)
        self.federation.member(self.config.name)  # the relay has a folder, too, but no rows
        self.name, self.accept = self.config.name, accept
        self.run_name, self._carrier = run, carrier
        self.network = network(self.federation)

    @property
    def run_folder(self) -> Path:
        """Where a run keeps its journal and leaves its results."""
        return self.folder / f"run-{self.run_name}"

    def consent(self) -> Consent:
        """What would leave this site."""
        return consent_of(self.federation, self.name, self.network, len(self.shared))

    def rows(self) -> Rows:
        """The rows of this site, checked."""
        return read_rows(self.federation, self.config)

    @cached_property
    def shared(self) -> Array:
        """The shared rows of the method "predictions", checked; none for other methods."""
        return read_shared(self.federation, self.config)

    def run(self, tell: Tell = lambda text: None, progress: Any = None) -> SiteRun:
        """Take part in a run, from its beginning or from where it was stopped, to its end.

        Parameters
        ----------
        tell : callable, optional
            Is given what a person should know.
        progress : callable, optional
            Is given the facts of `nefele site status` about twice a second.
        """
        self._check_accepted()
        if self.finished() is not None:
            raise ValueError(
                f"Run {self.run_name} is finished: its results are in {str(self.run_folder)!r}. "
                "For a new run all members name another one: --run"
            )
        identity = self.identity()
        if soon := expiry_message(identity.certificate, self.folder):
            tell(soon)
        rows = self.rows()
        self.run_folder.mkdir(exist_ok=True)
        with only_writer(self.run_folder):
            return _Attempt(self, identity, rows, tell, progress).run()

    def identity(self) -> Identity:
        """Key and certificates, checked: they are of this member and of this federation."""
        identity = Identity(self.folder)
        if identity.name != self.name:
            text = f"The certificate must be of {self.name}, as site.toml says"
            raise ValueError(f"{text}; it is of {identity.name}.")
        check_pinned(one_certificate(identity.authority, AUTHORITY), self.federation)
        return identity

    def finished(self) -> dict[str, Any] | None:
        """What run.json holds, if the run has been finished; None otherwise."""
        try:
            if read_status(self.run_folder)["state"] != "finished":
                return None
            return dict(json.loads((self.run_folder / "run.json").read_bytes()))
        except (OSError, ValueError):
            return None

    def _check_accepted(self) -> None:
        wanted, said = self.federation.hash, (self.accept or "").strip().lower()
        if len(said) < _SHORTEST or not wanted.startswith(said):
            got = f"got {said[:20]}..." if said else "nobody has agreed yet"
            if said and len(said) < _SHORTEST:
                got = f"got {said}, and its first {_SHORTEST} characters are the least"
            raise ValueError(
                f"A run starts only with the hash that people here agreed to; {got}. Read what "
                f"leaves the site: nefele site check {self.folder}"
            )

    def make_carrier(self) -> Carrier:
        """What leads to all peers, by the federation's file."""
        federation, me = self.federation, self.federation.member(self.name)
        peers = [federation.member(q) for q in self.network.of(self.name).peers]
        filed = [q.name for q in peers if "folder" in (q.kind, me.kind)]
        dialled = {q.name: q.address for q in peers if q.name not in filed}
        longest = max((item.numbers for item in self.consent().items), default=0)
        size, mark = max(most_bytes(longest), _HELLO), federation.mark
        ways: dict[str, Carrier] = {}
        if filed:
            if self.config.folder is None:
                raise ValueError(
                    f"site.toml must name the folder that is shared with {', '.join(filed)}. Add "
                    'a line folder = "..."'
                )
            ways |= dict.fromkeys(
                filed,
                Folder(self.name, filed, self.config.folder, federation=mark, most_bytes=size),
            )
        if dialled:
            relayed = "relay" in (me.kind, *(q.kind for q in peers))
            ways |= dict.fromkeys(
                dialled,
                Zenoh(
                    me=self.name,
                    neighbours=dialled,
                    federation=mark,
                    private_key=self.folder / KEY,
                    certificate=self.folder / CERTIFICATE,
                    authority=self.folder / AUTHORITY,
                    listen=self.config.listens(federation),
                    relay=federation.relay if relayed else None,
                    proxy=self.config.proxy and f"http://{self.config.proxy}",
                    most_bytes=size,
                ),
            )
        return Routes(ways)


def _status(folder: Path) -> dict[str, Any]:
    """What a process before wrote last; nothing if there was none."""
    try:
        return read_status(folder)
    except ValueError:
        return {}


class _Attempt:
    """One call of `Site.run`: epochs, each with those members that are still there."""

    def __init__(
        self, site: Site, identity: Identity, rows: Rows, tell: Tell, progress: Any
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
        carrier = site._carrier or site.make_carrier()
        carrier.open(self._receive)
        try:
            while True:
                gone, held, books = self._gone()
                net = self._network(gone)
                try:
                    return self._epoch(carrier, net, gone, held, books)
                except AbsentError as error:
                    self._leave(error, gone, held)
        except BaseException:
            self.status.write(state="failed")
            raise
        finally:
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
        key = run_key(site.run_folder / "run.key")
        peers = site.network.of(site.name).peers  # those who have left are told so
        seal = Seal(self.identity, federation.hash, site.run_name, peers, key)
        patience = None if federation.absent == "wait" else federation.absent_after
        args = (gone, held, self.status.report, Card(seal, site.run_folder / "hello"))
        learner = Learner(federation, site.name, self.rows, *args)
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

    def _meta(self, gone: list[str], held: dict[str, Any]) -> bytes:
        """What a journal belongs to: another file, other rows or versions are another run."""
        rows = self.rows
        digest = hashlib.sha256()
        for array in (rows.X, rows.y, np.array(rows.node_ids, dtype=str)):
            digest.update(np.ascontiguousarray(array).tobytes())
        found = {
            "federation": self.site.federation.hash,
            "run": self.site.run_name,
            "without": gone,
            "held": held,
            "rows": digest.hexdigest(),
            "model": mark_of(self.site.config.model),
            "versions": {
                name: version(name)
                for name in ("nefele", "numpy", "scipy", "numba", "scikit-learn")
            },
        }
        return json.dumps(found, sort_keys=True).encode()

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
