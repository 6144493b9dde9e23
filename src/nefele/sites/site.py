"""One member of a federation, run beside its data."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from nefele._checks import Array
from nefele._files import only_writer
from nefele.estimators.design import Rows
from nefele.sites.attempt import Attempt, SiteRun, Tell
from nefele.sites.carriers import Carrier
from nefele.sites.carriers.folder import Folder
from nefele.sites.carriers.routes import Routes
from nefele.sites.carriers.zenoh import Zenoh
from nefele.sites.config import SiteConfig
from nefele.sites.consent import Consent, consent_of
from nefele.sites.federation import Federation
from nefele.sites.identity import AUTHORITY, CERTIFICATE, KEY, check_pinned, expiry_message
from nefele.sites.links import network
from nefele.sites.rows import read_rows, read_shared
from nefele.sites.signing import Identity
from nefele.sites.status import read_status
from nefele.sites.validity import one_certificate
from nefele.sites.wire import most_bytes

_HELLO = 1 << 15  # bytes that must fit in any case
_SHORTEST = 16  # characters of a hash that name it


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
        self.run_name, self.carrier = run, carrier
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
            return Attempt(self, identity, rows, tell, progress).run()

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
                f"A run starts only with the hash that people here agreed to; {got}. That of the "
                f"file here begins with {wanted[:16]}. Read what leaves the site: nefele site "
                f"check {self.folder}"
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
