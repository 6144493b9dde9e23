"""A trial on one machine: the folders of all sites at once, with keys made in one place.

Its authority is a new one, so no key of a trial opens the real federation.
"""

from __future__ import annotations

import ipaddress
import socket
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from nefele.runs.spreadsheets import write_csv
from nefele.runs.tables import Table
from nefele.sites._secrets import write
from nefele.sites.config import FILE as SITE
from nefele.sites.config import site_template
from nefele.sites.federation import FILE, Federation
from nefele.sites.founding import AUTHORITY, file_of
from nefele.sites.identity import CERTIFICATE, install, make_authority, make_request, sign_request
from nefele.sites.members import RELAY, split_address

PORT = 7450
SHARED_FOLDER = "_shared"  # no member has such a name


def make_pilot(
    federation: Federation,
    out: Path,
    data: Path | None = None,
    node: str | None = None,
    port: int = PORT,
) -> tuple[Federation, list[str]]:
    """Make the folder of each site, ready to run; return the federation of the trial, and notes.

    Parameters
    ----------
    federation : Federation
    out : Path
        Folder that is new or empty; each member gets a folder in it, and the relay if there is one.
    data : Path, optional
        File with the rows of all nodes, which is split.
    node : str, optional
        Its column with the node ids.
    port : int
        First port; 0 takes ports that are free now.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nefele.sites.example import coast
    >>> with TemporaryDirectory() as place:
    ...     trial, _ = make_pilot(coast(), Path(place))
    ...     files = sorted(file.name for file in (Path(place) / "kemi").iterdir())
    >>> files
    ['authority.pem', 'certificate.pem', 'federation.toml', 'key.pem', 'request.pem', 'site.toml']
    >>> trial.member("oulu").address, trial.hash == coast().hash
    ('127.0.0.1:7450', False)
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{str(out)!r} must be new or empty; it is not. Name another by --out.")
    rows, notes = ({}, []) if data is None else split_rows(federation, data, node)
    out.mkdir(parents=True, exist_ok=True)
    digest = make_authority(out / AUTHORITY, federation.name)
    trial = replace(local(federation, port), authority=digest)
    trial = Federation.parse(file_of(trial), str(out / FILE))
    write(out / FILE, trial.content)
    folders = any(member.kind == "folder" for member in trial.members)
    if folders:
        (out / SHARED_FOLDER).mkdir()
    names = [member.name for member in trial.members]
    for name in names if trial.relay is None else [*names, RELAY]:
        _make_site(trial, out, name, node, folders)
        if name in rows:
            write_csv(rows[name], out / name / "data.csv")
    return trial, notes


def local(federation: Federation, port: int = PORT) -> Federation:
    """The federation with addresses on this machine, where they are not already.

    Every direct member gets one, others if they had one, and the relay if there is one.

    Examples
    --------
    >>> from nefele.sites.example import coast
    >>> [member.address for member in local(coast(relay="relay.example:7447")).members]
    ['127.0.0.1:7450', '127.0.0.1:7451', '127.0.0.1:7452']
    """
    known = [*(member.address for member in federation.members), federation.relay]
    taken = {split_address(one, FILE)[1] for one in known if one is not None and _is_local(one)}
    ports = iter(_ports(len(known), port, taken))
    members = []
    for member in federation.members:
        listens = member.kind == "direct" or member.address is not None
        if listens and not _is_local(member.address):
            member = replace(member, address=f"127.0.0.1:{next(ports)}")
        members.append(member)
    relay = federation.relay
    if relay is not None and not _is_local(relay):
        relay = f"127.0.0.1:{next(ports)}"
    return replace(federation, members=tuple(members), relay=relay)


def split_rows(
    federation: Federation, data: Path, node: str | None
) -> tuple[dict[str, Any], list[str]]:
    r"""The rows of each member that has some, as tables, and what was noticed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from nefele.sites.example import coast
    >>> with TemporaryDirectory() as place:
    ...     file = Path(place) / "data.csv"
    ...     _ = file.write_text("id,tmax\noulu-1,4\nkemi,2\noulu-2,1\n")
    ...     rows, notes = split_rows(coast(), file, "id")
    >>> rows["oulu"]["tmax"].to_list(), notes[0][:25]
    (['4', '1'], 'No rows in data.csv for 1')
    """
    import numpy as np

    if node is None:
        raise ValueError("--data needs --node, the column with the node ids. Add it.")
    table = Table.read(data)
    ids = table.ids(node)
    federation.check_nodes(ids.tolist(), data.name)
    owners = np.array([federation.owner[key] for key in ids.tolist()])
    rows = {name: table.take(owners == name).frame for name in sorted(set(owners.tolist()))}
    lost = [member.name for member in federation.members if member.name not in rows]
    if not lost:
        return rows, []
    return rows, [
        f"No rows in {data.name} for {len(lost)} members, such as {lost[0]}: no data.csv."
    ]


def _make_site(trial: Federation, out: Path, name: str, node: str | None, folders: bool) -> None:
    folder = out / name
    folder.mkdir()
    write(folder / FILE, trial.content)
    address = trial.relay if name == RELAY else trial.member(name).address
    values = {} if address is None else {"listen": address}
    if node is not None and name != RELAY:
        values["node"] = node
    if folders and name != RELAY:
        values["folder"] = f"../{SHARED_FOLDER}"
    write(folder / SITE, site_template(trial, name, **values).encode())
    certificate = sign_request(out / AUTHORITY, make_request(folder, name), trial)
    install(folder, certificate + (out / AUTHORITY / CERTIFICATE).read_bytes())


def _is_local(address: str | None) -> bool:
    host = "" if address is None else split_address(address, FILE)[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _ports(count: int, first: int, taken: set[int]) -> list[int]:
    """Ports from the first one on, or with 0 such that are free now."""
    if first:
        found = [port for port in range(first, 2**16) if port not in taken][:count]
        if len(found) < count:
            raise ValueError(f"--port must leave {count} ports below 65536; got {first}.")
        return found
    with ExitStack() as stack:
        free = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in free:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in free]
