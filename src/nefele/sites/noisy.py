"""A federation with privacy: each member releases noisy moments once, and works with them alone.

Whatever it sends after that follows from the release: scales, sums, parameters of all rounds. The
release is kept, so that a site that comes back says the same again and pays for it once.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nefele._records import DamagedError, VersionError, read_record, write_record
from nefele.estimators.design import Rows
from nefele.estimators.released import Released, release_cells, times
from nefele.graph import Graph
from nefele.privacy import Bounds, Budget, Privacy
from nefele.privacy.bounds import Box
from nefele.sites.federation import Federation

Index = NDArray[np.int64]

_HELD = -1  # the part that judges the models
_FILE, _KIND, _VERSION = "released.npz", "nefele release", 1
_SUFFIX = ".budget"  # of the account beside the data


class Member(Protocol):
    """What is needed of a `Learner`."""

    federation: Federation
    rows: Rows
    noisy: Released | None
    graph: Graph


def parted(member: Member) -> tuple[Rows, Rows, Rows]:
    """All rows, those to learn from, and those held out; or what stands for them."""
    rows, noisy = member.rows, member.noisy
    if noisy is not None:
        whole = np.ones(len(noisy.fold), dtype=bool)
        return noisy.rows(whole), noisy.rows(noisy.fold != _HELD), noisy.rows(noisy.fold == _HELD)
    if member.federation.privacy.mechanism != "none" and len(rows.y):
        raise ValueError("A federation with privacy must work with noisy moments; got rows.")
    terms = member.federation
    held = judged(member.graph.positions(rows.node_ids), terms.seed, terms.held_out)
    return rows, rows.take(np.flatnonzero(~held)), rows.take(np.flatnonzero(held))


def folded(member: Member, rows: Rows, number: int) -> tuple[Rows, Rows]:
    """The rows to learn from without a fold, and the fold; or what stands for them."""
    noisy = member.noisy
    if noisy is None:
        terms = member.federation
        fold = draws(member.graph.positions(rows.node_ids), terms.seed) % terms.folds
        return rows.take(np.flatnonzero(fold != number)), rows.take(np.flatnonzero(fold == number))
    inside = noisy.fold != _HELD
    return noisy.rows(inside & (noisy.fold != number)), noisy.rows(noisy.fold == number)


def promise_of(federation: Federation, budget: Budget | None = None) -> Privacy:
    """The guarantee that was agreed to, with the agreed bounds."""
    terms, target = federation.privacy, federation.target
    assert terms.epsilon is not None
    assert terms.delta is not None
    x = [(feature.low, feature.high) for feature in federation.features]
    bounds = Bounds(x=x, y=(target.low, target.high))
    return Privacy(terms.epsilon, terms.delta, terms.unit, bounds, budget=budget)


def fresh_release(
    federation: Federation, name: str, rows: Rows, budget: Budget | None = None
) -> Released | None:
    """The noisy moments of a member, charged to its account; None without privacy or rows."""
    if federation.privacy.mechanism == "none" or not len(rows.y):
        return None
    promise = promise_of(federation, budget)
    parts = _parts(federation, rows)
    spent = promise.charge("statistics", times(promise, rows, parts), [])
    made = release_cells(promise, _box(promise, rows), rows, parts, spent.multiplier)
    return replace(made, spread=None)  # a site does not know what others released


def kept_release(
    folder: Path, federation: Federation, name: str, rows: Rows, data: Path
) -> Released | None:
    """The release of a run, made and charged at its beginning, read again after that."""
    if federation.privacy.mechanism == "none" or not len(rows.y):
        return None
    path = folder / _FILE
    if path.exists():
        try:
            facts, found = read_record(path, _KIND, _VERSION)
        except (DamagedError, VersionError):
            facts, found = {}, {}
        if facts.get("federation") != federation.hash:
            raise ValueError(
                f"{str(path)!r} must be what this run released; it is damaged, or of another "
                "federation. Bring it back, or agree with all members on a new run: --run NAME."
            )
        _account(federation, data).check_head(facts["head"])
        box = _box(promise_of(federation), rows)
        return Released(found["names"], found["fold"], found["count"], found["noise"], box)
    account = _account(federation, data)
    made = fresh_release(federation, name, rows, account)
    assert made is not None
    arrays = {"names": made.names.astype(str), "fold": made.fold, "count": made.count}
    facts = {"federation": federation.hash, "name": name, "head": account.head}
    write_record(path, _KIND, _VERSION, facts, {**arrays, "noise": made.noise})
    return made


def mark_of_release(folder: Path) -> str:
    """What tells one release from another; empty where there is none."""
    path = folder / _FILE
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def _account(federation: Federation, data: Path) -> Budget:
    """The account beside the data: all runs and federations on these rows add up.

    A link to the data has the account of the data.
    """
    path = Path(f"{data.resolve()}{_SUFFIX}")
    if path.exists() or Path(f"{path}.head").exists():
        return Budget.open(path)
    terms = federation.privacy
    return Budget(terms.epsilon, terms.delta, unit=terms.unit, path=path)


def _box(promise: Privacy, rows: Rows) -> Box:
    found: Box = promise.bounds.fixed(rows.X.shape[1])
    return found


def _parts(federation: Federation, rows: Rows) -> Index:
    """The part of each row: held out, or its fold; by its place and the agreed seed alone."""
    place = federation.graph().positions(rows.node_ids)
    held = judged(place, federation.seed, federation.held_out)
    part = np.where(held, _HELD, 0)
    if federation.alpha == "auto":
        part[~held] = draws(place[~held], federation.seed) % federation.folds
    return part


def draws(place: Index, seed: int) -> Index:
    """A random rank of each row among those of its node, the same however sites are cut.

    `place` is the position of each row's node in the graph.
    """
    rank = np.empty(len(place), dtype=np.int64)
    for node in np.unique(place).tolist():
        at = np.flatnonzero(place == node)
        rank[at] = np.random.default_rng([seed, int(node)]).permutation(len(at))
    return rank


def judged(place: Index, seed: int, share: float) -> NDArray[np.bool_]:
    """Rows that are held out to judge the models: of each node the agreed share."""
    count = np.bincount(place)
    held = np.where(count > 1, np.maximum((share * count).astype(int), 1), 0)
    return np.asarray(draws(place, seed) < held[place])
