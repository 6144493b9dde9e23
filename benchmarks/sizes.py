"""Seconds against nodes on grids of growing size, and the picture of it."""

from __future__ import annotations

import instances
import numpy as np
import peers
from measure import Reference, cheapest, least, ours

from nefele import solve

TOL = 1e-4
LIMIT = 60.0  # seconds: a peer that takes longer at one size is not asked for the next
SIDES = (10, 18, 32, 56, 100, 178, 316, 562)
LARGEST_DENSE = 1.0  # GB of the node-by-node code's incidence matrix

NEFELE = "nefele"
# Okabe and Ito's colours, told apart also by markers and line styles.
STYLES = {
    NEFELE: dict(color="#0072B2", marker="o", linestyle="-", linewidth=2.5),
    "CVXPY + Clarabel": dict(color="#D55E00", marker="s", linestyle="--"),
    "CVXPY + SCS": dict(color="#009E73", marker="^", linestyle="-."),
    "node by node": dict(color="#CC79A7", marker="D", linestyle=":"),
}


def sizes(report, sides=SIDES, limit=LIMIT) -> None:
    """Every peer to a true error of 1e-4, nefele to a certified gap of 1e-4."""
    report.table(f"Seconds to {TOL:g} on grids like e", ("nodes", *STYLES))
    found = {name: [] for name in STYLES}
    solve(instances.e(20), tol=TOL)
    for side in sides:
        make = lambda side=side: instances.e(side)  # noqa: E731
        seconds, result = least(lambda make=make: ours(make, TOL), repeats=3)
        if result.converged:
            found[NEFELE].append((side * side, seconds))
        exact = None
        for name in list(STYLES)[1:]:
            if _goes_on(found[name], name, make, limit, first=side == sides[0]):
                exact = exact or Reference(make, tol=0.1 * TOL)
                seconds, ok = _peer(name, make, exact, limit)
                found[name].append((side * side, seconds if ok else np.inf))
        cells = [dict(found[name]).get(side * side, np.nan) for name in STYLES]
        report.row(
            f"{side * side:,}",
            *(_cell(value, limit) for value in cells),
        )
    found[NEFELE] += [pair for pair in report.solved.items() if pair[0] > sides[-1] ** 2]
    for n, seconds in report.solved.items():
        report.row(f"{n:,}", f"{seconds:.3g}", *[""] * (len(STYLES) - 1))
    draw(found, report.target.with_suffix(".svg"), limit)
    report.note(f"![Seconds against nodes]({report.target.with_suffix('.svg').name})")
    report.write()


def _goes_on(points, name, make, limit, *, first: bool) -> bool:
    """Whether the next size is within reach of a peer."""
    if not first and (not points or points[-1][1] > limit / 2):
        return False
    return name != "node by node" or peers.NodeByNode.gigabytes(make()) <= LARGEST_DENSE


def _peer(name, make, exact, limit):
    if name == "node by node":
        seconds, _, error = peers.NodeByNode(make()).until(exact.error, TOL, limit)
        return seconds, error <= TOL
    solver = next(key for key, value in peers.NAMES.items() if value == name)
    settings = [TOL * 10.0**k for k in (1, 0, -1, -2)]
    _, seconds, _, ok = cheapest(
        settings, lambda eps: peers.cone(make(), solver, eps, limit), exact.error, TOL, limit
    )
    return seconds, ok


def _cell(value: float, limit: float) -> str:
    if np.isnan(value):
        return ""
    return f"{value:.3g}" if np.isfinite(value) else f"> {limit:g}"


def draw(found, target, limit) -> None:
    """Log-log picture: nodes to the right, seconds upwards."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "nefele", "font.size": 11})
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    for name, points in found.items():
        if not points:
            continue
        style = STYLES[name]
        reached = [(n, min(seconds, limit) if name != NEFELE else seconds) for n, seconds in points]
        axes.loglog(*zip(*reached, strict=True), **style, markersize=6, label=name)
        missed = [n for n, seconds in points if not np.isfinite(seconds)]
        axes.plot(missed, [limit] * len(missed), style["marker"], color=style["color"], mfc="white")
    axes.axhline(limit, color="0.6", linewidth=1, linestyle=(0, (1, 3)), zorder=0)
    axes.annotate(
        f"time limit of the peers, {limit:g} s (hollow: not reached)",
        (0.01, limit),
        xycoords=("axes fraction", "data"),
        xytext=(0, 4),
        textcoords="offset points",
        color="0.4",
        fontsize=9,
    )
    axes.legend(loc="lower right", frameon=False)
    axes.set_xlabel("nodes (grid with 8 neighbours, d = 5, squared loss, l2 penalty)")
    axes.set_ylabel(f"CPU seconds to a relative error of {TOL:g}")
    axes.grid(which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)
