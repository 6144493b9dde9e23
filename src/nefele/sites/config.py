"""What one site says about itself: `site.toml`, beside its keys, seen by nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import tomli_w

from nefele._checks import check_name
from nefele._words import short
from nefele.runs.names import check_file_name
from nefele.sites._toml import check_keys, check_text, parse_toml, read_bytes
from nefele.sites.federation import Federation
from nefele.sites.members import RELAY, check_member_name, split_address

FILE = "site.toml"
_PATHS = ("data", "shared", "folder")
_TEXTS = ("node", "target", "listen", "proxy")


@dataclass(frozen=True)
class Model:
    """A local model of the method "predictions": a class to import, or a Python file.

    Attributes
    ----------
    use : str, optional
        Full name of a class with fit and predict, such as
        "sklearn.ensemble.RandomForestRegressor".
    file : Path, optional
        Python file with a function `make_model`.
    parameters : dict
        Arguments of the class or the function.

    Examples
    --------
    >>> Model("sklearn.linear_model.Ridge", parameters={"alpha": 2.0}).parameters
    {'alpha': 2.0}
    """

    use: str | None = None
    file: Path | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.use is None) == (self.file is None):
            raise ValueError("model must have use or file, and not both. Leave one of them out.")
        if self.use is not None:
            parts = self.use.split(".") if isinstance(self.use, str) else []
            if len(parts) < 2 or not all(part.isidentifier() for part in parts):
                raise ValueError(
                    "use must be the full name of a class, such as sklearn.linear_model.Ridge; "
                    f"got {short(self.use)} in model."
                )

    @classmethod
    def from_dict(cls, values: Any, base: Path, where: str) -> Model:
        """A model from plain values; its file starts at `base`."""
        found = dict(check_keys(values, [f.name for f in fields(cls)], where))
        if "file" in found:
            found["file"] = _place(check_text(found["file"], "file", where), base)
        if not isinstance(found.get("parameters", {}), Mapping):
            raise ValueError(f"parameters must be a table; got another kind in {where}.")
        return cls(**found)


@dataclass(frozen=True)
class SiteConfig:
    """A site: where its rows are, and how it listens.

    Attributes
    ----------
    name : str
        The member that it is.
    data : Path
        CSV or Parquet file with one row per observation.
    node : str, optional
        Column with the node ids; not needed by a member with one node.
    target : str, optional
        Column with the target; default: the name in the federation.
    columns : dict
        By name of a feature: its column, where that has another name.
    listen : str, optional
        Address to listen at, if not the port of the federation file at all interfaces.
    folder : Path, optional
        Folder shared with neighbours that exchange files only.
    proxy : str, optional
        Address of an HTTP proxy that leads out.
    shared : Path
        The file with the shared rows, for the method "predictions".
    model : Model, optional
        The local model of that method.

    Examples
    --------
    >>> from nefele.sites.example import coast
    >>> config = SiteConfig("oulu", node="station", columns={"wind": "v10"})
    >>> config.check(coast())
    >>> config.columns_of(coast())
    {'wind': 'v10', 'pressure': 'pressure', 'tmax': 'tmax'}
    >>> config.listens(coast())
    '0.0.0.0:7447'
    """

    name: str
    data: Path = Path("data.csv")
    node: str | None = None
    target: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    listen: str | None = None
    folder: Path | None = None
    proxy: str | None = None
    shared: Path = Path("shared.csv")
    model: Model | None = None

    def __post_init__(self) -> None:
        check_member_name(self.name, FILE)
        for address in (self.listen, self.proxy):
            if address is not None:
                split_address(address, FILE)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], base: Path, where: str = FILE) -> SiteConfig:
        """A site from plain values; names of files start at `base`, unknown keys are refused."""
        check_keys(values, [f.name for f in fields(cls)], where, ("name",))
        found = {"data": "data.csv", "shared": "shared.csv", **values}
        for name in _TEXTS:
            if name in found:
                check_text(found[name], name, where)
        for name in _PATHS:
            if name in found:
                found[name] = _place(check_text(found[name], name, where), base)
        if "proxy" in found:
            found["proxy"] = found["proxy"].removeprefix("http://").rstrip("/")
        columns = found.get("columns", {})
        if not isinstance(columns, Mapping):
            raise ValueError(
                f'columns must be a table, feature = "column"; got another in {where}.'
            )
        for feature, column in columns.items():
            check_text(column, feature, f"columns of {where}")
        if "model" in found:
            found["model"] = Model.from_dict(found["model"], base, f"model of {where}")
        return cls(**found)

    @classmethod
    def read(cls, path: Path | str) -> SiteConfig:
        """A site from its file, or from the folder with the file."""
        path = Path(path)
        path = path / FILE if path.is_dir() else path
        content = read_bytes(path, "Write one by: nefele site request")
        return cls.from_dict(parse_toml(content, str(path)), path.absolute().parent, str(path))

    def check(self, federation: Federation) -> None:
        """A ValueError when the site does not fit the federation."""
        if self.name == RELAY and federation.relay is not None:
            return
        member = federation.member(self.name)
        if self.node is None and len(member.nodes) > 1:
            raise ValueError(
                f'{FILE} must say which column has the node ids; "{self.name}" has '
                f'{len(member.nodes)} nodes. Add node = "...".'
            )
        for feature in self.columns:
            check_name(feature, [f.name for f in federation.features], f"feature of {FILE}")
        if federation.method == "predictions" and self.model is None:
            raise ValueError(f'{FILE} must have a [model] for method "predictions"; it has none.')
        near = (member, *(federation.member(other) for other in federation.neighbours(self.name)))
        filed = [other.name for other in near if other.kind == "folder"]
        if filed and self.folder is None:
            raise ValueError(
                f'{FILE} must name the shared folder of "{filed[0]}". Add folder = "...".'
            )

    def columns_of(self, federation: Federation) -> dict[str, str]:
        """The column of each feature, and of the target, in this site's file."""
        names = {f.name: self.columns.get(f.name, f.name) for f in federation.features}
        return {**names, federation.target.name: self.target or federation.target.name}

    def listens(self, federation: Federation) -> str | None:
        """Where the site listens: its own word, or the port that others know; None if nowhere."""
        relays = self.name == RELAY and federation.relay is not None
        address = federation.relay if relays else federation.member(self.name).address
        if self.listen is not None or address is None:
            return self.listen
        return f"0.0.0.0:{split_address(address, FILE)[1]}"


def site_template(federation: Federation, name: str, **values: str) -> str:
    """A commented site.toml, with some of its values set.

    Examples
    --------
    >>> import tomllib
    >>> from nefele.sites.example import coast
    >>> tomllib.loads(site_template(coast(), "kemi", listen="127.0.0.1:7447"))
    {'name': 'kemi', 'data': 'data.csv', 'listen': '127.0.0.1:7447'}
    """
    address = federation.relay if name == RELAY else federation.member(name).address
    port = 7447 if address is None else split_address(address, FILE)[1]
    usual = {
        "node": "node",
        "target": federation.target.name,
        "listen": f"0.0.0.0:{port}",
        "folder": "../shared-folder",
        "proxy": "proxy.example:3128",
    }
    if name != RELAY and len(federation.member(name).nodes) > 1:
        values = {"node": "node", **values}
    lines = [
        f"{'' if key in values else '# '}{_line(key, values.get(key, text))}{_COMMENTS[key]}"
        for key, text in usual.items()
    ]
    column = _line(federation.features[0].name, "my column")
    return _TEMPLATE.format(name=name, lines="\n".join(lines), column=column)


def _line(key: str, text: str) -> str:
    return tomli_w.dumps({key: text}).strip()


def _place(value: str, base: Path) -> Path:
    check_file_name(value)
    return base / Path(value).expanduser()


_COMMENTS = {
    "node": "  # column with the node ids, for a member with several nodes",
    "target": "  # column with the target, if it has another name here",
    "listen": "  # if not at all interfaces; others use the address of federation.toml",
    "folder": "  # shared with neighbours that exchange files only",
    "proxy": "  # an HTTP proxy that leads out",
}
_TEMPLATE = """\
# This site alone: nothing here is seen by others.
# Names of files are relative to the folder of this file.

name = "{name}"
data = "data.csv"  # CSV (comma, semicolon or tab) or Parquet, one row per observation
{lines}

# Features that have another name here:
# [columns]
# {column}

# The local model, for method "predictions" only: a class with fit and predict, or a Python file
# with a function make_model(); and the file with the shared rows: shared = "shared.csv" above.
# [model]
# use = "sklearn.ensemble.RandomForestRegressor"
# file = "model.py"
# parameters = {{ n_estimators = 100 }}
"""
