"""TV denoising against prox_tv and cut pursuit, each in an environment of its own.

`make bench-peers` builds the environments. A peer runs as a subprocess that reads the image from
a file and writes its result and the seconds of its solver alone; nefele's objective and certified
lower bound judge the result. Each setting of a peer is tried from cheap to costly, and the first
one that reaches the error counts, for each of its methods.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import instances
import numpy as np
from measure import Reference, cheapest
from report import PEER_COLUMNS

from nefele import solve

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".bench"
GOAL = 1e-4

STEPS = (5, 7, 10, 14, 20, 24, 28, 34, 40, 48, 56, 66, 80, 112, 160, 320, 640, 1280)
PROX_TV = {
    method: [dict(method=method, max_iters=k) for k in STEPS]
    for method in ("kolmogorov", "yang", "dr")
}
CUTS = (4, 5, 6, 7, 8, 9, 10, 12, 16, 24)


def _cuts(inner: float, **more) -> list[dict]:
    """Settings of cut pursuit: more and more cuts, each with inner solves to this accuracy."""
    common = dict(cp_dif_tol=0.1 * inner, pfdr_dif_tol=inner, pfdr_rho=1.5, **more)
    return [dict(cp_it_max=cuts, **common) for cuts in CUTS]


# For d > 1, K is the number of directions of a cut; with the default of 2 the error stays above
# the goal. For d = 1 the accuracy of the inner solves makes no difference.
CUT_PURSUIT = {
    1: {"": _cuts(1e-3)},
    3: {f"{k} {inner}": _cuts(inner, K=k) for k, inner in ((3, 1e-3), (3, 1e-4), (4, 1e-3))},
}


SHOWN = (("method", ""), ("max_iters", " steps"), ("cp_it_max", " cuts"), ("K", " directions"))
LABELS = {"cut_pursuit": "cut pursuit", "prox_tv": "prox_tv"}


class Peer:
    """A package in its own environment, run on one problem."""

    def __init__(self, name: str, problem, folder: Path, limit: float) -> None:
        self.script, self.limit = HERE / f"peer_{name}.py", limit
        self.python = ENVIRONMENTS / name / "bin" / "python"
        self.source, self.target = folder / f"{name}_in.npz", folder / f"{name}_out.npz"
        points = _points(problem)
        n, d = points.shape
        side = round(n**0.5)
        np.savez(
            self.source,
            points=points,
            image=np.ascontiguousarray(points[:, 0].reshape(side, side)),
            first=np.searchsorted(problem.graph.head, np.arange(n + 1)),
            tail=problem.graph.tail,
            lam=problem.lam,
        )
        self.shape = (n, d)

    @property
    def installed(self) -> bool:
        return self.python.exists()

    def __call__(self, options):
        """Seconds and w, or None when the peer fails or takes too long."""
        command = [self.python, self.script, self.source, self.target, json.dumps(options)]
        self.target.unlink(missing_ok=True)
        try:
            subprocess.run(command, check=True, timeout=self.limit, env=os.environ)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return self.limit, None
        with np.load(self.target) as found:
            return float(found["seconds"]), found["w"].reshape(self.shape)


def _points(problem):
    """a_i of the losses 1/2 ||w - a_i||^2."""
    data, d = problem.data, problem.d
    return (data.y / data.X.max()).reshape(-1, d)


def agree(report, side=30) -> None:
    """All minimise the same function: the errors of all at tight settings on a small image."""
    tight = dict(cp_it_max=50, cp_dif_tol=1e-7)
    for name, make, settings in (
        ("tv1", instances.tv1, {"prox_tv": dict(max_iters=1000), "cut_pursuit": tight}),
        ("tv3", instances.tv3, {"cut_pursuit": dict(K=8, **tight)}),
    ):
        exact = Reference(lambda make=make: make(side), tol=1e-8)
        found = [f"nefele {exact.gap:.1e} (certified)"]
        with tempfile.TemporaryDirectory() as folder:
            for peer, options in settings.items():
                run = Peer(peer, exact.problem, Path(folder), 60.0)
                w = run(options)[1] if run.installed else None
                if w is not None:
                    found.append(f"{LABELS[peer]} {exact.error(w):.1e}")
        report.note(f"{name} with {side} x {side} pixels at tight settings: {', '.join(found)}.")


def denoising(report, side=1000, limit=300.0, methods=None) -> None:
    """Both sides to a true error of 1e-4; nefele also to a certified gap of 1e-4.

    `limit`: seconds for each method of a peer; `methods`: most methods of a peer that are tried.
    """
    columns = [name.replace("gap", "error") for name in PEER_COLUMNS]
    report.table(f"TV denoising, {side} x {side} pixels, error {GOAL:g}", columns)
    agree(report)
    for name, make in (("tv1", instances.tv1), ("tv3", instances.tv3)):
        problem, mine = make(side), Mine()
        solve(make(side // 4), tol=GOAL)  # loads the compiled code, that of large problems as well
        mine.run(problem, limit)
        exact = Reference(lambda problem=problem: problem, tol=0.05 * GOAL, limit=3 * limit)
        seconds, error = mine.first(exact)
        report.note(
            f"{name}: nefele has an error of {error:.1e} after {seconds:.3g} s and a certified gap "
            f"of {mine.gap:.1e} after {mine.seconds:.3g} s. Errors are against a lower bound with "
            f"gap {exact.gap:.1e}."
        )
        for peer, found in _peers(problem, exact, limit, methods):
            if found is None:
                report.note(f"{peer} is not installed: `make bench-peers`.")
                continue
            options, theirs, off, reached = found
            report.against(
                f"{name}, error {GOAL:g}",
                peer,
                ", ".join(f"{options[key]}{label}" for key, label in SHOWN if key in options),
                error,
                seconds,
                off,
                theirs,
                reached,
                key=f"{name} {peer}" if error <= GOAL and side >= 1000 else None,
            )


class Mine:
    """A solve to a certified gap, with the time and objective of each certified point."""

    def run(self, problem, limit) -> None:
        self.points = []
        begun = time.process_time()

        def watch(record):
            self.points.append((time.process_time() - begun, record.objective))
            return record.seconds > 3 * limit

        self.gap = solve(problem, tol=GOAL, callback=watch).gap
        self.seconds = time.process_time() - begun

    def first(self, exact) -> tuple[float, float]:
        """Seconds and true error of the first point within the goal, or of the last."""
        errors = [(seconds, exact.error_of(objective)) for seconds, objective in self.points]
        return next((pair for pair in errors if pair[1] <= GOAL), errors[-1])


def _peers(problem, exact, limit, most):
    """Name of each peer that fits, and its best setting, seconds, error and success, or None."""
    rivals = {"cut_pursuit": CUT_PURSUIT[problem.d]}
    if problem.d == 1:
        rivals["prox_tv"] = PROX_TV
    with tempfile.TemporaryDirectory() as folder:
        for name, methods in rivals.items():
            run, found = Peer(name, problem, Path(folder), limit), None
            if run.installed:
                tried = (
                    cheapest(settings, run, exact.error, GOAL, limit)
                    for settings in list(methods.values())[:most]
                )
                found = min(tried, key=lambda t: (not t[3], t[1] if t[3] else t[2]))
            yield LABELS[name], found
