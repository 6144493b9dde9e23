"""The API reference: a page for each package that exports names, and one for each name."""

from __future__ import annotations

import importlib
import inspect
import re
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gallery import write
from numpydoc.docscrape import NumpyDocString, Parameter
from sphinx.ext.autodoc.mock import mock

import nefele

# Extras that the environment of the site may lack; their names are documented all the same.
EXTRAS = [name for name in ("cryptography", "nacl", "torch", "zenoh") if find_spec(name) is None]
PACKAGES = {
    "nefele": "The names that most users need",
    "nefele.estimators": "scikit-learn estimators",
    "nefele.agnostic": "Models of any kind, networks of torch, boosting",
    "nefele.networks": "Networks whose parameters are coupled",
    "nefele.networks.baselines": "Federated methods with a server, for networks",
    "nefele.online": "Rows that arrive over time",
    "nefele.losses": "Losses",
    "nefele.penalties": "Penalties",
    "nefele.solvers": "Solvers",
    "nefele.graphs": "Graphs",
    "nefele.graph_learning": "Graphs learnt from rows",
    "nefele.selection": "Splits, choices, verdicts",
    "nefele.encoding": "Tables with text, dates and gaps",
    "nefele.accountable": "Explanations, fairness, cost",
    "nefele.theory": "What can be proven",
    "nefele.robust": "Attacks, bounds, defences",
    "nefele.privacy": "Differential privacy",
    "nefele.privacy.audit": "What leaks",
    "nefele.privacy.maps": "Feature maps of the lecture notes",
    "nefele.baselines": "Other methods",
    "nefele.flavours": "Flavours of federated learning",
    "nefele.engines": "Solves by parts",
    "nefele.runtime": "Programs, parts and messages",
    "nefele.sites": "Learning between sites",
    "nefele.report": "The report",
    "nefele.datasets": "Data that come along",
}


def exported() -> dict[str, dict[str, Any]]:
    """Names and things of each package, by `__all__`."""
    with mock(EXTRAS):
        return _exported()


def _exported() -> dict[str, dict[str, Any]]:
    return {
        package: {name: getattr(importlib.import_module(package), name) for name in names}
        for package in PACKAGES
        if (names := importlib.import_module(package).__all__)
    }


def homes(found: dict[str, dict[str, Any]]) -> dict[int, str]:
    """The one page of each thing, by its shortest public name."""
    pages: dict[int, str] = {}
    for package in sorted(found, key=lambda name: name.count(".")):
        for name, thing in found[package].items():
            if not inspect.ismodule(thing):
                pages.setdefault(id(thing), f"{package}.{name}")
    return pages


def package_page(package: str, things: dict[str, Any], pages: dict[int, str]) -> str:
    """A table of names with the first line of what they say."""
    rows = []
    for name, thing in things.items():
        if inspect.ismodule(thing):
            target = f":doc:`{name} <{thing.__name__}>`"
            about = PACKAGES.get(thing.__name__, "")
        else:
            target = f":doc:`{name} <{pages[id(thing)]}>`"
            about = _plain((inspect.getdoc(thing) or "").split("\n")[0])
        rows.append(f"   * - {target}\n     - {about}")
    own = [pages[id(t)] for n, t in things.items() if not inspect.ismodule(t)]
    mine = [page for page in own if page.rpartition(".")[0] == package]
    about = _plain((importlib.import_module(package).__doc__ or "").strip().split("\n\n")[0])
    table = ".. list-table::\n   :widths: 30 70\n   :class: names\n\n" + "\n".join(rows)
    toc = ".. toctree::\n   :hidden:\n\n" + "\n".join(f"   {page}" for page in mine)
    return f"{package}\n{'=' * len(package)}\n\n{about}\n\n{table}\n\n{toc if mine else ''}\n"


def thing_page(page: str, thing: Any) -> str:
    """What one class or function does."""
    package, _, name = page.rpartition(".")
    kind = "autoclass" if inspect.isclass(thing) else "autofunction"
    if not inspect.isclass(thing) and not inspect.isroutine(thing):
        kind = "autodata"
    options = "   :members:\n   :inherited-members: BaseEstimator,Warning,tuple\n"
    text = f"{name}\n{'=' * len(name)}\n\n.. currentmodule:: {package}\n\n.. {kind}:: {name}\n"
    return text + (options if kind == "autoclass" else "")


def make_pages(app: Any) -> None:
    found = exported()
    pages = homes(found)
    folder = Path(app.srcdir) / "api"
    for package, things in found.items():
        write(folder / f"{package}.rst", package_page(package, things, pages))
        for thing in things.values():
            if not inspect.ismodule(thing):
                page = pages[id(thing)]
                write(folder / f"{page}.rst", thing_page(page, thing))
    rows = "\n".join(f"   * - :doc:`{name}`\n     - {about}" for name, about in PACKAGES.items())
    toc = "\n".join(f"   {name}" for name in PACKAGES)
    write(
        folder / "index.rst",
        "API reference\n=============\n\nMade from the names that each package exports.\n\n"
        f".. list-table::\n   :widths: 30 70\n   :class: names\n\n{rows}\n\n"
        f".. toctree::\n   :hidden:\n\n{toc}\n",
    )


# -- docstrings ---------------------------------------------------------------------------------


def _plain(text: str) -> str:
    r"""Prose as reStructuredText: stars, bars and trailing underscores mean themselves.

    Examples
    --------
    >>> print(_plain("alpha * sum_e |w_| of `coef_`"))
    alpha \* sum_e \|w\_\| of `coef_`
    """
    pieces = re.split(r"(``[^`]*``|`[^`]*`)", text)
    for k in range(0, len(pieces), 2):
        pieces[k] = re.sub(r"([*|])", r"\\\1", pieces[k])
        pieces[k] = re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", pieces[k])
    for k in range(1, len(pieces), 2):  # code, unless it is the name of something
        inner = pieces[k].strip("`")
        if not re.fullmatch(r"[\w.]+", inner):
            pieces[k] = f"``{inner}``"
    return "".join(pieces)


def _prose(lines: list[str]) -> list[str]:
    """Plain text as it is read: doctests stay, prose is escaped."""
    return _plain("\n".join(lines)).split("\n") if ">>>" not in "\n".join(lines) else lines


def _names(parameter: Parameter) -> list[str]:
    return [name.strip() for name in parameter.name.split(",")]


def _expanded(listed: list[Parameter], section: str) -> list[Parameter]:
    """Entries that say "See `X`" for several names, in the words of X."""
    out = []
    for entry in listed:
        seen = re.match(r"See `(\w+)`(?: with .*?)?[;.]?\s*(.*)", " ".join(entry.desc))
        other = getattr(nefele, seen[1], None) if seen else None
        if seen is None or not inspect.isclass(other):
            out.append(entry)
            continue
        told = _listed(other, section)
        note = seen[2][:1].upper() + seen[2][1:]
        for name in _names(entry):
            known = told.get(name)
            out.append(entry if known is None else Parameter(name, known.type, known.desc))
        if note:
            out[-1] = out[-1]._replace(desc=[*out[-1].desc, "", f"Here: {note}"])
    return list({entry.name: entry for entry in out}.values())


def _listed(thing: type, section: str) -> dict[str, Parameter]:
    doc = NumpyDocString(inspect.getdoc(thing) or "")
    found = _expanded(doc[section], section)
    return {name: entry for entry in found for name in _names(entry)}


def _untold(thing: Any, told: list[Parameter]) -> list[Parameter]:
    """Parameters that a docstring leaves out: in the words of a base class, or by type alone."""
    known = {name for entry in told for name in _names(entry)}
    out = []
    for name, given in signature_of(thing).items():
        if name in known:
            continue
        bases = thing.__mro__[1:] if inspect.isclass(thing) else ()
        inherited = (_listed(base, part).get(name) for base in bases for part in _LISTS)
        told_there = next((entry for entry in inherited if entry is not None), None)
        kind = "" if given.annotation is given.empty else str(given.annotation)
        kind = (
            getattr(given.annotation, "__name__", kind)
            if not isinstance(given.annotation, str)
            else kind
        )
        if given.default is not given.empty:
            kind += f", default {given.default!r}"
        out.append(
            Parameter(name, kind, []) if told_there is None else told_there._replace(name=name)
        )
    return out


_LISTS = ("Parameters", "Attributes")


def signature_of(thing: Any) -> dict[str, inspect.Parameter]:
    """What a call may give by name, but for private names and what enumerations take."""
    if inspect.isclass(thing) and issubclass(thing, Enum | Warning | Exception):
        return {}
    try:
        found = inspect.signature(thing).parameters
    except (TypeError, ValueError):
        return {}
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {n: p for n, p in found.items() if p.kind not in several and not n.startswith("_")}


def tidy(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """A docstring as numpydoc takes it, with every parameter told."""
    doc = NumpyDocString("\n".join(lines))
    for section in ("Summary", "Extended Summary", "Notes"):
        doc[section] = _prose(doc[section])
    for section in ("Parameters", "Attributes", "Returns", "Yields", "Raises"):
        listed = doc[section]
        if what == "class" and section in _LISTS:
            listed = _expanded(listed, section)
        if what in ("class", "function") and section == "Parameters":
            listed = [*listed, *_untold(obj, [*listed, *doc["Attributes"]])]
        doc[section] = [
            Parameter(entry.name, _plain(entry.type), _prose(entry.desc)) for entry in listed
        ]
    signature, doc["Signature"] = doc["Signature"], ""
    text = str(doc).split("\n")
    lines[:] = text if not signature else [signature, "", *text]


def skip(app: Any, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """What was inherited from other packages is described there."""
    thing = getattr(obj, "fget", None) or getattr(obj, "__func__", None) or obj
    home = getattr(thing, "__module__", None)
    known = inspect.isroutine(thing) or home is not None
    return True if known and not str(home).startswith("nefele") else None


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", make_pages)
    app.connect("autodoc-process-docstring", tidy, priority=400)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
