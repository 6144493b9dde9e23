"""`nefele federation demo`: five sites as five processes, one of them killed on the way."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nefele._files import only_writer, write_whole
from nefele.sites.demo_page import demo_page
from nefele.sites.demo_processes import Processes
from nefele.sites.demo_reference import Reference, reference
from nefele.sites.demo_states import NODE, states_federation, write_rows
from nefele.sites.demo_watch import Story, watch
from nefele.sites.federation import Federation
from nefele.sites.pilot import make_pilot

Tell = Callable[[str], object]

VICTIM = "plains"  # between the others: without it the west hears nothing
FACTS, PAGE, DATA, SITES = "demo.json", "demo.html", "data.csv", "sites"
_KIND = "nefele federation demo"


def check_place(out: Path, force: bool = False) -> None:
    """A ValueError when something else is where the demo is to go.

    A demo that was not finished is replaced, a finished one only with `force`; what no demo wrote
    is never touched.
    """
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder; {str(out)!r} is a file. Name another.")
    if out.is_dir() and any(file.name != ".lock" for file in out.iterdir()):
        try:
            facts = json.loads((out / FACTS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            facts = {}
        if not isinstance(facts, dict) or facts.get("kind") != _KIND:
            raise ValueError(
                f"--out must be a new or empty folder, or that of such a demo; {str(out)!r} holds "
                "something else. Name another folder."
            )
        if facts.get("finished") and not force:
            raise ValueError(
                f"{str(out)!r} holds a demo that was finished at {facts['finished']}. Name another "
                "folder by --out, or use --force to replace it."
            )


def _clear(out: Path) -> None:
    """Remove what a demo before has left."""
    _write(out, {"kind": _KIND})
    shutil.rmtree(out / SITES, ignore_errors=True)
    for name in (PAGE, DATA):
        (out / name).unlink(missing_ok=True)


def run_demo(
    out: Path, tell: Tell = lambda text: None, force: bool = False, **changes: Any
) -> dict[str, Any]:
    """Run the demo in a folder, and return the facts of its demo.json.

    Parameters
    ----------
    out : Path
    tell : callable, optional
        Is given a line now and then.
    force : bool
        Whether to replace a finished demo.
    **changes
        Of what the federation agrees to.
    """
    began = time.monotonic()
    check_place(out, force)
    out.mkdir(parents=True, exist_ok=True)
    with only_writer(out):
        _clear(out)
        write_rows(out / DATA)
        sites = out / SITES
        trial, _ = make_pilot(states_federation(**changes), sites, out / DATA, NODE, port=0)
        names = [member.name for member in trial.members]
        tell(f"{len(names)} sites with keys and certificates; the same programs in one process.")
        one = reference(trial, sites)
        start, agreed = [sys.executable, "-m", "nefele", "site", "run"], ["--accept", trial.hash]
        commands = {name: [*start, str(sites / name), *agreed, "--quiet"] for name in names}
        with Processes(commands, {name: sites / name / "log.txt" for name in names}) as processes:
            story = watch(processes, sites, one.requests, VICTIM, tell)
        facts = {"kind": _KIND, **found(trial, sites, one, story)}
        facts["seconds"] = round(time.monotonic() - began, 1)
        page = demo_page(facts)
        write_whole(out / PAGE, lambda part: part.write_text(page, encoding="utf-8"))
        _write(out, facts)
    return {**facts, "folder": str(out), "page": str(out / PAGE)}


def found(trial: Federation, sites: Path, one: Reference, story: Story) -> dict[str, Any]:
    """What the five processes left, and whether it is what one process finds."""
    names = [member.name for member in trial.members]
    runs = {name: sites / name / "run-1" for name in names}
    left = {name: json.loads((run / "run.json").read_text()) for name, run in runs.items()}
    same = {name: one.same(name, runs[name], left[name]) for name in names}
    first = left[names[0]]
    agree = one.apart <= trial.tol + one.gap
    went_on = bool(left[story.killed["site"]]["resumed"] and story.killed.get("went_on"))
    return {
        "finished": time.strftime("%Y-%m-%d %H:%M:%S"),
        "federation": trial.name,
        "hash": trial.hash,
        "gap": first["gap"],
        "tol": trial.tol,
        "alpha": first["alpha"],
        "converged": all(facts["converged"] for facts in left.values()),
        "rounds": first["rounds"],
        "requests": one.requests,
        "history": [[k, value, _number(gap)] for k, value, gap in _history(one)],
        "bit_equal": all(same.values()),
        "objective": one.objective,
        "optimum": one.optimum,
        "optimum_gap": _number(one.gap),
        "objective_difference": _number(one.apart),
        "parameter_difference": _number(one.parameters_apart),
        "errors": first["errors_everywhere"],
        "sites": {
            name: {
                "nodes": len(trial.member(name).nodes),
                "same": same[name],
                **{key: left[name][key] for key in _KEPT},
                "payload_bytes": sum(_sent(runs[name]).values()),
            }
            for name in names
        },
        "links": _links(runs),
        "killed": story.killed,
        "trace": story.trace,
        "equal": bool(
            agree and went_on and all(same.values()) and all(f["converged"] for f in left.values())
        ),
    }


_KEPT = ("rows", "messages_sent", "numbers_sent", "bytes_sent", "said_again", "resumed", "refused")


def _history(one: Reference) -> list[tuple[int, float, float]]:
    """Certified points, the same at all sites."""
    return next(iter(one.learnt.values())).fitted.history


def _sent(run: Path) -> dict[str, int]:
    """Bytes by receiver."""
    import polars as pl

    table = pl.read_csv(run / "ledger.csv").filter(pl.col("direction") == "sent")
    sums = table.group_by("peer").agg(pl.col("bytes").sum())
    return {str(peer): int(count) for peer, count in sums.sort("peer").iter_rows()}


def _links(runs: dict[str, Path]) -> list[list[Any]]:
    """Pairs of sites with the bytes of both directions."""
    found: dict[tuple[str, str], int] = {}
    order = list(runs)
    for name, run in runs.items():
        for peer, count in _sent(run).items():
            a, b = sorted((name, peer), key=order.index)
            found[a, b] = found.get((a, b), 0) + count
    return [[a, b, count] for (a, b), count in found.items()]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _write(out: Path, facts: dict[str, Any]) -> None:
    text = json.dumps(facts, indent=2, allow_nan=False)
    write_whole(out / FACTS, lambda part: part.write_text(text, encoding="utf-8"))
