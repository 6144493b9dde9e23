"""What a federation lists: its members with their nodes, the edges, the columns of the data."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from nefele._checks import check_name, check_number
from nefele._words import short
from nefele.sites._toml import check_keys, check_text, check_texts

KINDS = ("direct", "relay", "folder")
_LARGEST = 1e12  # of a bound: rows are scaled by bounds, and must not vanish
RELAY = "relay"  # the relay has a certificate too
RESERVED = (RELAY, "authority")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_HOST = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*\.?")


def check_member_name(name: Any, where: str, what: str = "The name of a member") -> str:
    """A name that is safe in certificates, key expressions and names of files.

    Examples
    --------
    >>> check_member_name("oulu-2", "federation.toml")
    'oulu-2'
    >>> check_member_name("Oulu", "federation.toml")
    Traceback (most recent call last):
    ValueError: The name of a member must be 1 to 63 of a-z, 0-9 and -, not - first; got 'Oulu'...
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        hint = f' Write "{safe_name(name)}".' if isinstance(name, str) else ""
        raise ValueError(
            f"{what} must be 1 to 63 of a-z, 0-9 and -, not - first; got {short(name)} in "
            f"{where}.{hint}"
        )
    return name


def safe_name(text: str) -> str:
    """The nearest name that `check_member_name` takes; two texts may give the same.

    Examples
    --------
    >>> safe_name("Jyväskylä, Harju"), safe_name("007"), safe_name("東京")
    ('jyvaskyla-harju', '007', 'member')
    """
    import unicodedata

    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:63].rstrip("-") or "member"


def split_address(address: Any, where: str) -> tuple[str, int]:
    """Host and port of an address such as "oulu.example:7447" or "[::1]:7447".

    Examples
    --------
    >>> split_address("oulu.example:7447", "federation.toml")
    ('oulu.example', 7447)
    >>> split_address("tls/oulu.example", "federation.toml")
    Traceback (most recent call last):
    ValueError: An address must be host:port, such as "oulu.example:7447"; got 'tls/oulu.example'...
    """
    host, _, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    boxed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if boxed else host
    number = int(port) if re.fullmatch("[0-9]{1,5}", port) else 0
    if not 0 < number < 2**16 or not _is_host(host, boxed):
        raise ValueError(
            f'An address must be host:port, such as "oulu.example:7447"; got {short(address)} in '
            f"{where}."
        )
    return host, number


def _is_host(host: str, boxed: bool) -> bool:
    if boxed or host.replace(".", "").isdecimal():
        try:
            return ipaddress.ip_address(host).version == (6 if boxed else 4)
        except ValueError:
            return False
    return len(host) <= 253 and _HOST.fullmatch(host) is not None


@dataclass(frozen=True)
class Member:
    """A site: the nodes whose data it keeps, and how it is reached.

    Attributes
    ----------
    name : str
        Its name in certificates, messages and names of files.
    nodes : tuple of str
    address : str, optional
        Where it listens, if others can reach it: "oulu.example:7447".
    kind : {"direct", "relay", "folder"}
        Whether its messages go to its neighbours, to the relay, or into a shared folder.

    Examples
    --------
    >>> Member("oulu", ("oulu-1", "oulu-2"), "oulu.example:7447").kind
    'direct'
    """

    name: str
    nodes: tuple[str, ...]
    address: str | None = None
    kind: str = "direct"

    def __post_init__(self) -> None:
        where = f'member "{self.name}"'
        check_member_name(self.name, "the members")
        if self.name in RESERVED:
            raise ValueError(f'No member may be called "{self.name}": it means something else.')
        check_texts(self.nodes, "nodes", where)
        if not self.nodes:
            raise ValueError(f"A member must have at least one node; {where} has none. Add it.")
        check_name(self.kind, KINDS, "kind of member")
        if self.address is not None:
            split_address(self.address, where)

    @classmethod
    def from_dict(cls, values: Any, where: str = "the members") -> Member:
        """A member from plain values; unknown names are refused."""
        check_keys(values, _names(cls), where, ("name", "nodes"))
        nodes = check_texts(values["nodes"], "nodes", where)
        return cls(**{**values, "nodes": nodes})


@dataclass(frozen=True)
class Edge:
    """Two nodes that are neighbours.

    Examples
    --------
    >>> Edge("oulu", "kemi").weight
    1.0
    """

    source: str
    target: str
    weight: float = 1.0

    def __post_init__(self) -> None:
        where = f"edge {short(self.source)} - {short(self.target)}"
        check_text(self.source, "source", where)
        check_text(self.target, "target", where)
        advice = f"It is at {where}: drop it, or give another one."
        weight = check_number(self.weight, "weight", low=0.0, strict=True, advice=advice)
        object.__setattr__(self, "weight", weight)
        if self.source == self.target:
            raise ValueError(f"An edge must join two nodes; {where} is a loop. Drop it.")

    @classmethod
    def from_dict(cls, values: Any, where: str = "the edges") -> Edge:
        """An edge from plain values; unknown names are refused."""
        return cls(**check_keys(values, _names(cls), where, ("source", "target")))


@dataclass(frozen=True)
class Feature:
    """A column of the data: its name, its unit, and the bounds of its values.

    Examples
    --------
    >>> Feature("wind", low=0, high=40, unit="m/s")
    Feature(name='wind', low=0.0, high=40.0, unit='m/s')
    """

    name: str
    low: float
    high: float
    unit: str = ""

    def __post_init__(self) -> None:
        where = f"feature {short(self.name)}"
        check_text(self.name, "name", where)
        _set_bounds(self, where)
        _check_unit(self.unit, where)

    @classmethod
    def from_dict(cls, values: Any, where: str = "the features") -> Feature:
        """A feature from plain values; unknown names are refused."""
        return cls(**check_keys(values, _names(cls), where, ("name", "low", "high")))


@dataclass(frozen=True)
class Target:
    """What is predicted: a number between bounds, or one of some classes.

    Examples
    --------
    >>> Target("tmax", low=-50, high=40, unit="C").task
    'regression'
    >>> Target("ill", classes=("no", "yes")).task
    'classification'
    """

    name: str
    low: float | None = None
    high: float | None = None
    unit: str = ""
    classes: tuple[str, ...] | None = None
    where: ClassVar[str] = "the target"

    def __post_init__(self) -> None:
        check_text(self.name, "name", self.where)
        _check_unit(self.unit, self.where)
        if self.classes is None:
            if self.low is None or self.high is None:
                raise ValueError(
                    f'{self.where} must have low and high, or classes; "{self.name}" has neither. '
                    'Add low = ... and high = ..., or classes = ["...", "..."].'
                )
            _set_bounds(self, self.where)
            return
        if self.low is not None or self.high is not None:
            raise ValueError(f"{self.where} must have bounds or classes; it has both. Drop one.")
        if len(check_texts(self.classes, "classes", self.where)) < 2:
            raise ValueError(f"classes must be two or more; got {self.classes} in {self.where}.")

    @property
    def task(self) -> str:
        """The task that this target allows."""
        return "regression" if self.classes is None else "classification"

    @classmethod
    def from_dict(cls, values: Any, where: str = "the target") -> Target:
        """A target from plain values; unknown names are refused."""
        found = dict(check_keys(values, _names(cls), where, ("name",)))
        if "classes" in found:
            found["classes"] = check_texts(found["classes"], "classes", where)
        return cls(**found)


@dataclass(frozen=True)
class Privacy:
    """What is done so that messages tell less about single rows.

    Attributes
    ----------
    mechanism : {"none", "statistics"}
        Nothing; or noisy second moments of each node, made once, from which all that is ever sent
        follows. For squared errors.
    epsilon, delta : float, optional
        The guarantee of differential privacy; needed with a mechanism, and only then.
    unit : {"record", "node"}
        What may be replaced: one row, or all rows of one node.

    Examples
    --------
    >>> Privacy().mechanism, Privacy("statistics", 1.0, 1e-6).unit
    ('none', 'record')
    """

    mechanism: str = "none"
    epsilon: float | None = None
    delta: float | None = None
    unit: str = "record"

    def __post_init__(self) -> None:
        check_name(self.mechanism, ("none", "statistics"), "mechanism of privacy in a federation")
        check_name(self.unit, ("record", "node"), "unit of privacy")
        if self.mechanism == "none":
            if self.epsilon is not None or self.delta is not None:
                raise ValueError(
                    'epsilon and delta must go with a mechanism. Add mechanism = "statistics".'
                )
            return
        check_number(self.epsilon, "epsilon of privacy", low=0.0, strict=True)
        if check_number(self.delta, "delta of privacy", low=0.0, strict=True) >= 1:
            raise ValueError(f"delta of privacy must be below 1; got {self.delta!r}.")

    def text(self) -> str:
        """In words."""
        if self.mechanism == "none":
            return "none"
        what = "one record" if self.unit == "record" else "all records of one node"
        return f"{self.mechanism}, epsilon {self.epsilon:g}, delta {self.delta:g} for {what}"

    @classmethod
    def from_dict(cls, values: Any, where: str = "privacy") -> Privacy:
        """From plain values; unknown names are refused."""
        return cls(**check_keys(values, _names(cls), where))


def plain(thing: Member | Edge | Feature | Target | Privacy) -> dict[str, Any]:
    """The fields of a thing that are set, for a TOML file.

    Examples
    --------
    >>> plain(Member("oulu", ("a", "b")))
    {'name': 'oulu', 'nodes': ('a', 'b'), 'kind': 'direct'}
    """
    return {name: value for name, value in asdict(thing).items() if value not in (None, "")}


def _names(cls: Any) -> list[str]:
    return [f.name for f in fields(cls)]


def _check_unit(unit: Any, where: str) -> None:
    if not isinstance(unit, str):
        raise ValueError(f'unit must be text; got {short(unit)} in {where}. Write unit = "...".')


def _set_bounds(thing: Any, where: str) -> None:
    for name in ("low", "high"):
        value = check_number(getattr(thing, name), f"{name} of {where}")
        object.__setattr__(thing, name, value)
        if abs(value) > _LARGEST:
            raise ValueError(
                f"{name} must be at most {_LARGEST:g} in size; got {value:g} in {where}. Bounds "
                "that rows fill only to a tiny share leave nothing to learn from: narrow them."
            )
    if not thing.low < thing.high:
        raise ValueError(f"low must be < high; got {thing.low:g} and {thing.high:g} in {where}.")
