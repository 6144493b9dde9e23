"""Instances a to f, convex clustering and logistic regression against the peers of peers.py."""

from __future__ import annotations

from functools import partial

import instances
import numpy as np
import peers
from measure import Reference, cheapest, clock, duel, least, ours

from nefele import LocalData, Problem, path, solve
from nefele.graphs import chain
from nefele.solvers import PrimalDual


def against_cone(report, name, make, tol, solver, key=None, limit=600.0, warm=None, exact=None):
    """nefele to a certified gap, the cone solver at the loosest setting with this error."""
    if warm is not None:
        solve(warm(), tol=tol)
    exact = exact or Reference(make, tol=1e-3 * tol)

    def theirs(eps):
        return peers.cone(make(), solver, eps, limit)

    settings = [tol * 10.0**k for k in (2, 1, 0, -1, -2)]
    eps, seconds, error, reached = cheapest(settings, theirs, exact.error, tol, limit)
    again = (lambda: theirs(eps)) if seconds < 10 else (lambda: (seconds, None))
    (mine, result), (theirs_best, _) = duel(lambda: ours(make, tol), again)
    peer, setting = peers.NAMES[solver], f"eps {eps:.0e}"
    best = min(seconds, theirs_best)
    key = key if result.converged else None
    report.against(name, peer, setting, result.gap, mine, error, best, reached, key=key)


def against_loop(report, name, make, tol, key=None, limit=300.0):
    """The node-by-node code, run until its true error is at most tol."""
    exact = Reference(make, tol=1e-3 * tol)
    loop = peers.NodeByNode(make())
    seconds, steps, error = loop.until(exact.error, tol, limit)
    mine, result = least(lambda: ours(make, tol))
    report.against(
        name,
        "node by node",
        f"{steps} steps",
        result.gap,
        mine,
        error,
        seconds,
        error <= tol,
        key=key if result.converged else None,
    )


def against_printed(report, name, make, tol, key=None, warm=None):
    """Algorithm 1 with the printed steps in the compiled loops, certified in the same way."""
    if warm is not None:
        solve(warm(), tol=tol)
    mine, result = ours(make, tol)
    seconds, printed = ours(make, tol, PrimalDual.as_printed(), max_iter=50_000)
    report.against(
        name,
        "Algorithm 1, same kernels",
        f"{printed.n_iter} steps",
        result.gap,
        mine,
        printed.gap,
        seconds,
        printed.converged,
        key=key if result.converged else None,
    )


def few(report) -> None:
    """What a minute allows."""
    report.table("Cone solvers and loops")
    against_loop(report, "a, 1e-6", instances.a, 1e-6, key="a node")
    against_cone(report, "a, 1e-6", instances.a, 1e-6, "CLARABEL", key="a clarabel")
    against_cone(report, "a, 1e-6", instances.a, 1e-6, "SCS")
    against_cone(report, "f, 1e-6", instances.f, 1e-6, "CLARABEL", key="f clarabel")


def all_instances(report) -> None:
    few(report)
    against_loop(report, "b, 1e-6", instances.b, 1e-6, key="b node")
    against_cone(report, "b, 1e-6", instances.b, 1e-6, "CLARABEL", key="b clarabel")
    against_cone(report, "f, 1e-6", instances.f, 1e-6, "SCS", limit=120)
    against_cone(report, "c, 1e-4", instances.c, 1e-4, "SCS", key="c scs")
    d, small_d = instances.d, lambda: instances.d(20, 21)
    against_printed(report, "d, 1e-6", d, 1e-6, key="d printed", warm=small_d)
    points, few_points = instances.clustering, lambda: instances.clustering(500)
    exact = Reference(points, tol=1e-8, limit=300.0)
    for solver in ("CLARABEL", "SCS"):
        name = "convex clustering, 10k points, 1e-6"
        against_cone(report, name, points, 1e-6, solver, limit=300.0, warm=few_points, exact=exact)


def along_lam(report) -> None:
    """c: the price of more digits, and of 50 lams."""
    report.table("Instance c: more digits, many lams", ("what", "seconds", "over"))
    ours(instances.c, 1e-4)  # loads what it uses
    coarse, fine = duel(lambda: ours(instances.c, 1e-4), lambda: ours(instances.c, 1e-6))
    report.row("one solve to 1e-4", f"{coarse[0]:.3g}", "")
    report.row("one solve to 1e-6", f"{fine[0]:.3g}", f"{fine[0] / coarse[0]:.2f}")
    if fine[1].converged and coarse[1].converged:
        report.figure("c fine", fine[0] / coarse[0])
    path(instances.c(), n_lams=6)  # loads what only paths use
    middle = float(path(instances.c(), n_lams=50).lams[25])
    (seconds, found), (cold, _) = duel(
        lambda: clock(lambda: path(instances.c(), n_lams=50)),
        lambda: ours(lambda: instances.c(lam=middle), 1e-4),
    )
    report.row(f"one solve to 1e-4 at lam {middle:.3g}, the middle of 50", f"{cold:.3g}", "")
    report.row("path of 50 lams, 1e-4 each", f"{seconds:.3g}", f"{seconds / cold:.2f}")
    if found.converged:
        report.figure("path", seconds / cold)


def logistic(report, *, full: bool = True) -> None:
    """The batched prox against L-BFGS per node; the network problem against exponential cones."""
    report.table(
        "Logistic prox of many nodes",
        ("rows, d", "nodes", "nefele: error", "s", "L-BFGS-B", "error", "s", "ratio"),
    )
    for rows, d in ((10, 5), (50, 10)):
        _prox(report, rows, d, nodes=1000 if full else 200)
    if full:
        report.table("Logistic, Poisson and multinomial regression over a network")
        for kind in ("logistic", "counts", "classes"):
            for side in (30, 100):
                make = partial(getattr(instances, kind), side)
                name = f"{kind}, grid {side} x {side}, 10 rows, d = {make().d}, 1e-6"
                key = f"{kind} {side}"
                against_cone(report, name, make, 1e-6, "CLARABEL", key=key, limit=300.0)


def _prox(report, rows, d, nodes, goal=1e-8) -> None:
    """Largest error of an entry of the prox relative to the largest entry, matched at `goal`."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((nodes * rows, d))
    chance = 1 / (1 + np.exp(-X @ rng.standard_normal(d)))
    y = np.where(rng.random(len(X)) < chance, 1.0, -1.0)
    data = LocalData(X, y, np.arange(0, len(X) + 1, rows))
    loss = Problem(chain(nodes), data, loss="logistic", lam=1.0).loss
    v, step = rng.standard_normal((nodes, d)), np.full(nodes, 2.0)
    # The steps of Newton's method end at rounding errors: from its own result, where they end.
    exact = loss.prox(v, step, start=loss.prox(v, step))

    def off(z):
        return float(np.abs(z - exact).max() / np.abs(exact).max())

    def theirs(gtol):
        return clock(lambda: peers.lbfgs_prox(data, v, step, gtol))

    gtol, _, error, _ = cheapest((1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10), theirs, off, goal)
    mine, other = duel(lambda: clock(lambda: loss.prox(v, step)), lambda: theirs(gtol))
    report.row(
        f"{rows}, {d}",
        nodes,
        f"{off(mine[1]):.1e}",
        f"{mine[0]:.3g}",
        f"gtol {gtol:.0e}",
        f"{error:.1e}",
        f"{other[0]:.3g}",
        f"{other[0] / mine[0]:.3g}",
    )
    report.figure(f"prox {rows} {d}", other[0] / mine[0])
