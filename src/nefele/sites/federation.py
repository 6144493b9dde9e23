"""The file that all members of a federation agree to: who, along which edges, about what, how.

Every site keeps the same bytes of `federation.toml`; their hash names the federation, and sites
with another hash do not talk. A member is removed by agreeing to a new file without it: its
certificate stays valid and is refused all the same, because members are those of the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import tomli_w

from nefele._checks import check_name
from nefele._ids import as_ids, describe, did_you_mean
from nefele._words import short
from nefele.graph import Graph
from nefele.runs.config import check_features
from nefele.sites._toml import (
    check_keys,
    check_tables,
    check_text,
    first_twice,
    parse_toml,
    read_bytes,
)
from nefele.sites.crowds import check_crowd
from nefele.sites.members import (
    Edge,
    Feature,
    Member,
    Privacy,
    Target,
    check_member_name,
    plain,
    split_address,
)
from nefele.sites.nets import NetTerms
from nefele.sites.terms import Terms, is_sha256, usual

FORMAT = 1
FILE = "federation.toml"
_LISTS: dict[str, Any] = {"features": Feature, "members": Member, "edges": Edge}
_FIRST = ("name", "authority", "relay")


@dataclass(frozen=True, kw_only=True)
class Federation(Terms):
    """A federation; see `Terms` for the choices about the computation.

    Attributes
    ----------
    name : str
    features : tuple of Feature
        In the order of the parameters.
    target : Target
    members : tuple of Member
    edges : tuple of Edge
        Between nodes, of one member or of two.
    relay : str, optional
        Address of the relay.
    authority : str, optional
        SHA-256 of the authority's certificate: no other authority counts.
    privacy : Privacy
    network : NetTerms, optional
        With the method "networks", and only then.

    Examples
    --------
    >>> federation = Federation(
    ...     name="coast",
    ...     features=(Feature("wind", low=0, high=40),),
    ...     target=Target("tmax", low=-50, high=40),
    ...     members=(Member("oulu", ("a", "b"), "oulu.example:7447"), Member("kemi", ("c",))),
    ...     edges=(Edge("a", "b"), Edge("b", "c", 0.5)),
    ... )
    >>> federation.owner["c"], federation.neighbours("oulu"), federation.graph().n_edges
    ('kemi', ['kemi'], 2)
    >>> Federation.parse(federation.content) == federation
    True
    """

    name: str
    features: tuple[Feature, ...]
    target: Target
    members: tuple[Member, ...]
    edges: tuple[Edge, ...]
    relay: str | None = None
    authority: str | None = None
    privacy: Privacy = field(default_factory=Privacy)
    network: NetTerms | None = None
    # Not an argument: a changed copy must not keep the bytes, and with them the hash.
    source: bytes | None = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_member_name(self.name, "the federation", "The name of a federation")
        if self.relay is not None:
            split_address(self.relay, "the relay")
        if self.authority is not None and not is_sha256(self.authority):
            raise ValueError(
                "authority must be the SHA-256 of a certificate, 64 of 0-9 and a-f; got "
                f"{short(self.authority)}."
            )
        if (self.method == "networks") != (self.network is not None):
            have = "none" if self.network is None else f'one with method "{self.method}"'
            raise ValueError(
                'A table [network] must be there with method "networks", and only then; got '
                f"{have}."
            )
        self._check_columns()
        self._check_privacy()
        self._check_members()
        self._check_edges()
        if self.has_addresses:
            self.check_reachable()
        if self.masked:
            check_crowd(self.owner, [(e.source, e.target, e.weight) for e in self.edges])

    def _check_privacy(self) -> None:
        if self.privacy.mechanism == "none":
            return
        if self.loss != "squared" or self.method in ("predictions", "networks"):
            raise ValueError(
                'privacy by "statistics" needs loss "squared" and a method on parameters; got '
                f'"{self.loss}" and "{self.method}". Second moments tell squared errors only.'
            )

    def _check_columns(self) -> None:
        names = [feature.name for feature in self.features]
        if not names:
            raise ValueError("A federation must have at least one feature; got none. Add one.")
        check_features(names)
        twice = first_twice([*names, self.target.name])
        if twice is not None:
            raise ValueError(f"features and target must be distinct; {twice!r} stands there twice.")
        if self.task != self.target.task:
            wanted = "classes" if self.task == "classification" else "low and high"
            raise ValueError(
                f'The target of a {self.task} must have {wanted}; "{self.target.name}" is for '
                f"{self.target.task}. Change task or target."
            )
        several = len(self.target.classes or ()) > 2
        if self.task == "classification" and several != (self.loss == "multinomial"):
            raise ValueError(
                'loss must be "logistic" for two classes and "multinomial" for more; got '
                f'"{self.loss}" for {len(self.target.classes or ())}.'
            )

    def _check_members(self) -> None:
        if not self.members:
            raise ValueError("A federation must have members; got none. Add [[members]].")
        for what in ("name", "address"):
            given = [getattr(member, what) for member in self.members]
            twice = first_twice([value for value in given if value is not None])
            if twice is not None:
                raise ValueError(
                    f"Each member must have its own {what}; {twice!r} stands there twice."
                )
        owner: dict[str, str] = {}
        for member in self.members:
            for node in member.nodes:
                if node in owner:
                    raise ValueError(
                        f"A node must belong to exactly one member; {node!r} is of "
                        f'"{owner[node]}" and of "{member.name}". Take it from one of them.'
                    )
                owner[node] = member.name

    def _check_edges(self) -> None:
        self.check_nodes({end for edge in self.edges for end in (edge.source, edge.target)})
        seen: set[frozenset[str]] = set()
        for edge in self.edges:
            pair = frozenset((edge.source, edge.target))
            if pair in seen:
                raise ValueError(
                    f"An edge must stand there once; {edge.source!r} - {edge.target!r} does twice. "
                    "Drop one."
                )
            seen.add(pair)

    @property
    def has_addresses(self) -> bool:
        """Whether it is settled how members are reached: some address, relay or folder is there."""
        ways = (m.address is not None or m.kind != "direct" for m in self.members)
        return self.relay is not None or any(ways)

    def check_reachable(self) -> None:
        """A ValueError when neither end of some edge can be reached by the other.

        A federation without any address can be written and tried on one machine; before sites talk
        each pair of neighbouring members needs a way.
        """
        for member in self.members:
            for other in map(self.member, self.neighbours(member.name)):
                kinds = {member.kind, other.kind}
                if "folder" in kinds or member.address or other.address:
                    continue
                if "relay" in kinds and self.relay is not None:
                    continue
                needed = "the relay or one of them" if "relay" in kinds else "one of them"
                raise ValueError(
                    f'Neighbouring members must reach each other; "{member.name}" and '
                    f'"{other.name}" have no address. Give one to {needed}.'
                )

    def check_nodes(self, nodes: Iterable[str], where: str = "the edges") -> None:
        """A ValueError when some node ids belong to no member.

        Parameters
        ----------
        nodes : iterable of str
        where : str
            Where they stand, for the message.
        """
        known, unknown = as_ids(list(self.owner)), as_ids(sorted(set(nodes) - set(self.owner)))
        if len(unknown):
            raise ValueError(
                f"Every node id of {where} must be a node of a member; unknown: "
                f"{describe(unknown)}.{did_you_mean(known, unknown)} Nodes: {describe(known)}."
            )

    @cached_property
    def owner(self) -> dict[str, str]:
        """Name of the member of each node."""
        return {node: member.name for member in self.members for node in member.nodes}

    @cached_property
    def _members(self) -> dict[str, Member]:
        return {member.name: member for member in self.members}

    @cached_property
    def _near(self) -> dict[str, set[str]]:
        near: dict[str, set[str]] = {member.name: set() for member in self.members}
        for edge in self.edges:
            one, other = self.owner[edge.source], self.owner[edge.target]
            if one != other:
                near[one].add(other)
                near[other].add(one)
        return near

    def member(self, name: str) -> Member:
        """The member of this name; a ValueError when there is none.

        Parameters
        ----------
        name : str
        """
        return self._members[check_name(name, self._members, "member")]

    def neighbours(self, member: str) -> list[str]:
        """Names of the members that share an edge with one, sorted.

        Parameters
        ----------
        member : str
        """
        return sorted(self._near[check_name(member, self._members, "member")])

    def graph(self) -> Graph:
        """The graph over all nodes, in the order of the members and their nodes."""
        pairs = [(edge.source, edge.target) for edge in self.edges]
        weight = [edge.weight for edge in self.edges]
        return Graph.from_edges(pairs, weight or None, nodes=list(self.owner))

    @property
    def content(self) -> bytes:
        """The bytes of the file: those that were read, or those to write."""
        return self.to_toml().encode() if self.source is None else self.source

    @property
    def hash(self) -> str:
        """SHA-256 of the bytes of the file: with one of them changed it is another federation."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def mark(self) -> str:
        """By what carriers and the relay tell federations apart: the authority, or the name.

        Not the hash: what comes from one with another file must arrive, to be refused and counted.
        """
        return self.name if self.authority is None else self.authority[:16]

    def to_toml(self) -> str:
        """The federation as TOML, what is not set left out."""
        terms = {f.name: getattr(self, f.name) for f in fields(Terms)}
        first = {name: getattr(self, name) for name in _FIRST}
        flat = {k: v for k, v in {**first, **terms}.items() if v is not None}
        lists = {name: [plain(thing) for thing in getattr(self, name)] for name in _LISTS}
        tables = {"target": plain(self.target), "privacy": plain(self.privacy)}
        if self.network is not None:
            tables["network"] = self.network.plain()
        return tomli_w.dumps({"format": FORMAT, **flat, **lists, **tables})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = FILE) -> Federation:
        """A federation from plain values; what is left out gets the usual value.

        Parameters
        ----------
        values : mapping
            As in the file of the federation.
        where : str
            For messages.
        """
        names = ["format", *(f.name for f in fields(cls) if f.init)]
        check_keys(values, names, where, ("format", "name", "features", "target", "members"))
        if values["format"] != FORMAT or isinstance(values["format"], bool):
            raise ValueError(
                f"{where} must be of format {FORMAT}; got {short(values['format'])}. Use the "
                "version of nefele that wrote it."
            )
        found = {**usual(values), "edges": [], **values}
        del found["format"]
        found["target"] = Target.from_dict(found["target"], f"target of {where}")
        found["privacy"] = Privacy.from_dict(found.get("privacy", {}), f"privacy of {where}")
        if "network" in found:
            found["network"] = NetTerms.from_dict(found["network"], f"network of {where}")
        for name, kind in _LISTS.items():
            items = check_tables(found[name], name, where)
            found[name] = tuple(
                kind.from_dict(item, f"{name} {k + 1} of {where}") for k, item in enumerate(items)
            )
        for name in ("relay", "task", "loss", "penalty", "method", "standardize", "weighting"):
            if name in found:
                check_text(found[name], name, where)
        return cls(**found)

    @classmethod
    def parse(cls, content: bytes, where: str = FILE) -> Federation:
        """A federation from the bytes of its file, which it keeps.

        Parameters
        ----------
        content : bytes
        where : str
            For messages.
        """
        federation = cls.from_dict(parse_toml(content, where), where)
        object.__setattr__(federation, "source", content)
        return federation

    @classmethod
    def read(cls, path: Path | str) -> Federation:
        """A federation from its file, or from the folder with the file.

        Parameters
        ----------
        path : str or Path
        """
        path = Path(path)
        path = path / FILE if path.is_dir() else path
        advice = "Write one by: nefele federation new"
        return cls.parse(read_bytes(path, advice), str(path))
