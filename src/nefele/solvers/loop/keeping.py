"""What a checkpoint holds, and a state that goes on from it: to the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele.problem import Problem
from nefele.result import Record
from nefele.solvers.base import Solver, State
from nefele.solvers.loop.best import Best
from nefele.solvers.loop.checkpoint import Saved, damaged

_LOSS = "loss_"  # first part of the names of what the losses remember


def keep(
    problem: Problem,
    best: Best,
    solver: Solver,
    state: State,
    facts: dict[str, Any],
    history: list[Record],
) -> Saved | None:
    """All that is needed to go on later; None when an iterate has overflowed."""
    w, u = solver.current(problem, state)
    if not (np.isfinite(w).all() and np.isfinite(u).all()):
        return None
    own = {_LOSS + name: array for name, array in problem.loss.memory().items()}
    extra = {**solver.arrays(state), **own}
    best_w = w if best.w is None else best.w
    dual_w, dual_u, proof = best_w, u if best.dual is None else best.dual.u, None
    if best.dual is not None and best.dual.origin is not None:
        dual_w, dual_u, firm, tol, direct = best.dual.origin
        proof = {"firm": firm, "tol": tol, "direct": direct}
    facts = {
        **facts,
        "estimate": best.estimate,
        "least": best.least,
        "proof": proof,
        "scalars": solver.scalars(state),
    }
    return Saved(w, u, best_w, dual_w, dual_u, facts, list(history), extra)


def resume(problem: Problem, solver: Solver, state: State, saved: Saved) -> None:
    """Make a state that was begun from w and u the one that was kept, losses included.

    A ValueError when the file does not hold what this solver needs.
    """
    size = len(_LOSS)
    own = {name[size:]: array for name, array in saved.extra.items() if name.startswith(_LOSS)}
    extra = {name: array for name, array in saved.extra.items() if not name.startswith(_LOSS)}
    arrays = {**extra, "w": saved.w.copy(), "u": saved.u.copy()}
    shapes = {**solver.arrays(state), **{_LOSS + k: a for k, a in problem.loss.memory().items()}}
    wrong = [k for k, a in saved.extra.items() if k in shapes and shapes[k].shape != a.shape]
    try:
        if wrong:
            raise ValueError(f"{wrong[0]} has another shape")
        solver.resume(problem, state, saved.facts["scalars"], arrays)
        problem.loss.recall(own)
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(saved.path) from error
