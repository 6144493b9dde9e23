"""A new federation: the edges of a graph and what its members agreed to, as one file."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from nefele._words import visible
from nefele.runs.edges import read_edges
from nefele.sites._secrets import write
from nefele.sites._toml import check_keys, parse_toml, read_bytes
from nefele.sites.federation import FILE, FORMAT, Federation
from nefele.sites.identity import make_authority
from nefele.sites.links import network
from nefele.sites.members import RESERVED, safe_name

AUTHORITY = "authority"  # folder of the authority, inside that of a federation
_MADE = ("edges", "authority", "source")
_HEADER = """\
# The federation {name}. All members keep the same bytes of this file, and sites with another file
# do not talk: after a change everyone has to get the new one.

"""


def found_federation(edges: Path, schema: Path, out: Path) -> tuple[Federation, list[str]]:
    r"""Write a federation and its authority into a folder; also what a user should know.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     graph, schema, out = (Path(place) / n for n in ("graph.csv", "schema.toml", "coast"))
    ...     _ = graph.write_text("source,target\nOulu,Kemi\n")
    ...     _ = schema.write_text(schema_template())
    ...     federation, notes = found_federation(graph, schema, out)
    ...     federation == Federation.read(out)
    True
    >>> federation.name, federation.owner
    ('coast', {'Kemi': 'kemi', 'Oulu': 'oulu'})
    """
    federation, notes = draft(edges, schema, safe_name(out.absolute().name))
    for name in (FILE, AUTHORITY):
        if (out / name).exists():
            raise ValueError(
                f"{str(out / name)!r} is there already, and federations are not replaced. Name "
                "another folder by --out."
            )
    out.mkdir(parents=True, exist_ok=True)
    federation = replace(federation, authority=make_authority(out / AUTHORITY, federation.name))
    federation = Federation.parse(file_of(federation), str(out / FILE))
    write(out / FILE, federation.content)
    return federation, notes


def file_of(federation: Federation) -> bytes:
    """The file of a federation, with a word to its readers.

    Examples
    --------
    >>> from nefele.sites.example import coast
    >>> Federation.parse(file_of(coast())) == coast()
    True
    """
    return (_HEADER.format(name=federation.name) + federation.to_toml()).encode()


def draft(edges: Path, schema: Path, name: str) -> tuple[Federation, list[str]]:
    r"""A federation from files, not written yet and without an authority.

    Without members in the schema every node is one; without a name there it is called `name`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     graph, schema = Path(place) / "graph.csv", Path(place) / "schema.toml"
    ...     _ = graph.write_text("source,target\nOulu,Kemi\n")
    ...     _ = schema.write_text(schema_template())
    ...     federation, notes = draft(graph, schema, "coast")
    >>> notes[0]
    'schema.toml names no members: each of the 2 nodes of graph.csv is a member of its own, ...
    """
    known = [f.name for f in fields(Federation) if f.name not in _MADE]
    content = read_bytes(schema, f"Write one by: nefele federation new --template {schema}")
    values = parse_toml(content, str(schema))
    check_keys(values, known, str(schema), ("features", "target"))
    frame, notes = read_edges(edges)
    used = frame.filter(frame["weight"] > 0)
    if len(used) < len(frame):
        notes.append(f"{len(frame) - len(used)} edges of {edges.name} of weight 0 are left out.")
    nodes = sorted({*frame["source"].to_list(), *frame["target"].to_list()})
    if "members" not in values:
        values = {**values, "members": own_members(nodes)}
        notes.append(
            f"{schema.name} names no members: each of the {len(nodes)} nodes of {edges.name} is a "
            f'member of its own, such as "{values["members"][0]["name"]}".'
        )
    named = {"format": FORMAT, "name": name, **values, "edges": used.to_dicts()}
    federation = Federation.from_dict(named, str(schema))
    network(federation)  # an error when members do not hang together
    if not federation.has_addresses:
        notes.append(
            "No member has an address, and there is no relay. That is enough for nefele federation "
            f"pilot; before sites talk, give addresses in {schema.name} and make it anew."
        )
    idle = [node for node in federation.owner if node not in set(nodes)]
    if idle:
        notes.append(f"{len(idle)} nodes have no edge in {edges.name}, such as {idle[0]!r}.")
    return federation, notes


def own_members(nodes: list[str]) -> list[dict[str, Any]]:
    """A member for each node, named by a safe form of its id.

    Examples
    --------
    >>> [member["name"] for member in own_members(["Oulu", "OULU", "Ähtäri"])]
    ['oulu', 'oulu-2', 'ahtari']
    """
    taken = set(RESERVED)
    members = []
    for node in nodes:
        base = name = safe_name(node)
        number = 1
        while name in taken:
            number += 1
            name = f"{base[: 62 - len(str(number))]}-{number}"
        taken.add(name)
        members.append({"name": name, "nodes": [node]})
    return members


def schema_template(name: str = "data-schema.toml") -> str:
    """A commented schema, for a file of this name.

    Examples
    --------
    >>> print(schema_template().splitlines()[0])
    # nefele federation new graph.csv data-schema.toml --out coast
    """
    return _TEMPLATE.format(name=visible(name))


_TEMPLATE = """\
# nefele federation new graph.csv {name} --out coast
# graph.csv has the columns source, target and perhaps weight: ids of nodes that are neighbours.

# name = "coast"            # a-z, 0-9 and -; default: the folder of --out
task = "regression"         # or "classification"
# relay = "relay.example:7447"

# How: all that follows has these values unless it is set.
# method = "algorithm1"     # fedrelax (on parameters), predictions (any model, needs shared)
# loss = "squared"          # huber, absolute; for classes logistic, multinomial
# l2 = 0.0                  # ridge term of each node; for classes 0.001
# penalty = "l2"            # l1, linf, squared_l2, huber
# alpha = "auto"            # or a number >= 0
# alphas = [0.01, 0.1, 1.0] # candidates for "auto"; default: n_alphas of them
# n_alphas = 10
# folds = 5
# held_out = 0.2            # share of each node's rows that judge the models
# tol = 1e-4                # certified relative gap to reach
# rounds = 10000            # most rounds of one fit
# check_every = 100         # rounds between two certificates
# standardize = "bounds"    # by low and high below; "sums": by means over all rows; "none"
# weighting = "rows"        # every row counts the same, or every node ("nodes")
# seed = 0
# wait = true               # false: rounds on old messages, with fedrelax and l2 > 0 only
# absent = "wait"           # a silent member: "freeze" its last word, "drop" its edges
# absent_after = 600        # seconds of silence
# masked = false            # only sums over three or more neighbours are seen; fedrelax only
# guard = "..."             # how nodes hear their neighbours, with fedrelax or predictions:
#                           # clip:RADIUS, trimmed-mean:N, median, geometric-median, krum:N,
#                           # centred-clip:RADIUS:STEPS, fltrust
# shared = "..."            # sha256sum of the file with the shared rows, for predictions

[target]
name = "tmax"
unit = "C"
low = -60                   # for classes instead: classes = ["no", "yes"]
high = 50

[[features]]                # in the order of the parameters, one such block each
name = "wind"
unit = "m/s"
low = 0
high = 60

[[features]]
name = "pressure"
unit = "hPa"
low = 850
high = 1100

# Without members, every node is a member of its own.
# [[members]]
# name = "oulu"             # a-z, 0-9 and -
# nodes = ["oulu-1", "oulu-2"]
# address = "oulu.example:7447"  # if others can reach it; one end of each edge is enough
# kind = "direct"           # "relay": over the relay only; "folder": by files in a shared folder
"""
