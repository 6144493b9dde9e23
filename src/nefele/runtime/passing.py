"""The papers' algorithms as message passing between the parts of a problem, in one process.

A part holds its own data; others hear of it only what the messages list. These are twins of the
vectorised solvers, equal to rounding, for tests and teaching, under faults if one likes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nefele._checks import Array, check_count, check_name, check_number
from nefele.problem import Problem
from nefele.program import Program
from nefele.robust.guarded import Guarded
from nefele.runtime.drivers import InProcess
from nefele.runtime.faults import Faults
from nefele.runtime.part import Part, join, split
from nefele.runtime.programs import Error, algorithm1, algorithm1_latest, fedrelax
from nefele.runtime.run import Run
from nefele.solvers import FedRelax, PrimalDual
from nefele.solvers.fedrelax import Block, colours, contraction, prox_steps

ProxError = float | Callable[[int], float]
Wrap = Mapping[Any, Callable[[Program[Any]], Program[Any]]]


def pass_messages(
    problem: Problem,
    rounds: int,
    solver: PrimalDual | None = None,
    *,
    parts: Any = None,
    faults: Faults | None = None,
    exchange: str = "wait",
    prox_error: ProxError | None = None,
    seed: int = 0,
    wrap: Wrap | None = None,
) -> Run:
    """Run NFL, Algorithm 1, between the parts of a problem.

    Parameters
    ----------
    problem : Problem
    rounds : int
        Without faults each sends one message over every edge in each direction.
    solver : PrimalDual, optional
        Whose steps to use; default: as printed in the paper.
    parts : dict of node id to name, or one name per node in the order of `graph.ids`, optional
        The part that each node belongs to; default: every node is one. A loss of one's own needs
        `restrict` for more than one part.
    faults : Faults, optional
        What goes wrong; its nodes are the parts.
    exchange : {"wait", "latest"}
        What a part does when something it needs has not come, or was refused since it was not
        finite. "wait": it repeats what it last said, and goes on when the answers are there. The
        steps are those of a run without faults, so it converges whatever is lost; it only takes
        longer. "latest": it goes on with the flows it knows, and a flow moves in the rounds in
        which both ends of its edge do. Nobody waits for a part that is gone; there is no proof,
        and when about half of all messages are lost it may not converge.
    prox_error : float or callable, optional
        Size of the error in step k of every node, in a random direction: a constant, or a
        function of k = 1, 2, ... The method tolerates errors with a finite sum, such as 1/k^2.
    seed : int
        Of the directions of these errors.
    wrap : dict of part to callable, optional
        What changes a part's program, such as an attack of `nefele.robust`; no `Guarded`.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> run = pass_messages(Problem(Graph.from_edges([(0, 1)]), data, lam=1.0), 100)
    >>> run.w.round(6).tolist(), run.n_messages
    ([[0.5], [3.5]], 200)
    """
    rounds = check_count(rounds, "rounds", low=1)
    check_name(exchange, ("wait", "latest"), "exchange")
    wait = exchange == "wait"
    solver = PrimalDual.as_printed() if solver is None else solver
    if not isinstance(solver, PrimalDual):
        raise ValueError(f"solver must be a PrimalDual; got {solver!r}.")
    if any(isinstance(one, Guarded) for one in (wrap or {}).values()):
        raise ValueError(
            "wrap must not have a Guarded in Algorithm 1: both ends of an edge must do the same to "
            "its flow. There a norm or Huber as penalty is the guard; use relax_messages."
        )
    error = _errors(prox_error, seed)
    shares, program = split(problem, parts), algorithm1 if wait else algorithm1_latest
    programs = {part.name: program(part, solver, rounds, error(part)) for part in shares}
    programs = wrapped(programs, wrap)
    driver = InProcess(_links(shares), programs, faults, wait=wait, steps=1 if wait else 2)
    driver.run(rounds)
    return Run(problem, *join(problem, shares), driver.ledger, rounds, _steps(problem, shares))


def relax_messages(
    problem: Problem,
    rounds: int,
    schedule: str = "jacobi",
    *,
    parts: Any = None,
    faults: Faults | None = None,
    noise: float = 0.0,
    seed: int | None = None,
    transcript: bool = False,
    wrap: Wrap | None = None,
) -> Run:
    """Run FedRelax on parameters (AGN, Algorithm 1) between the parts of a problem, from zero.

    A part that hears nothing new from a neighbour goes on with what it last heard. So it does when
    the news are not finite: it refuses them, and the ledger counts that.

    Parameters
    ----------
    problem : Problem
        With the penalty `SquaredL2` or `Quadratic`.
    rounds : int
    schedule : {"jacobi", "gauss-seidel"}
        All nodes at once, or one colour after the other with the newest news; the latter for
        parts of one node each.
    parts : dict of node id to name, or one name per node in the order of `graph.ids`, optional
        The part that each node belongs to; default: every node is one.
    faults : Faults, optional
        What goes wrong; its nodes are the parts.
    noise, seed
        Of the noise on each update, see `nefele.solvers.FedRelax`: one draw for all neighbours,
        and no guarantee of privacy.
    transcript : bool
        Whether the ledger keeps the messages themselves, for an audit.
    wrap : dict of part to callable, optional
        What changes a part's program, such as an attack or a guard of `nefele.robust`. What is
        proven of a run holds for programs as they are.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, penalty="squared_l2", lam=1.0)
    >>> run = relax_messages(problem, 40, faults=Faults(link_loss=0.3, until=20))
    >>> run.w.round(6).tolist(), run.kappa < 0.34, run.speed
    ([[1.0], [3.0]], True, 'linear')
    """
    rounds = check_count(rounds, "rounds", low=1)
    shares = split(problem, parts)
    solver = FedRelax(schedule, noise, seed)
    solver.check(problem)
    if schedule != "jacobi" and len(shares) < problem.graph.n_nodes:
        raise ValueError(f'parts of several nodes move at once: use "jacobi"; got "{schedule}".')
    error = _noise(solver)
    own = {part.name: fedrelax(part, rounds, error(part)) for part in shares}
    programs = wrapped(own, wrap)
    driver = InProcess(_links(shares), programs, faults, wait=False)
    names = [part.name for part in shares]
    groups = None
    if schedule != "jacobi":
        groups = [[names[i] for i in nodes.tolist()] for nodes in colours(problem.graph)]
    if transcript:
        driver.ledger.transcript = []
    driver.start()
    for k in range(1, rounds + 1):
        driver.round(k, groups)
    return _relaxed(problem, shares, driver, rounds, solver)


def _relaxed(
    problem: Problem, parts: list[Part], driver: InProcess, rounds: int, solver: FedRelax
) -> Run:
    """What is proven of FedRelax after so many rounds, as they really went."""
    w, steps = join(problem, parts)[0], _steps(problem, parts)
    if solver.perturbed:  # not even where it goes is proven
        words = f"no guarantee (updates perturbed by noise of deviation {solver.noise:g})"
        u = problem.smooth_flow(w)
        return Run(problem, w, u, driver.ledger, rounds, steps, privacy=words)
    stale = max(driver.staleness, driver.rested(rounds))
    kappa = contraction(problem)
    # A node that was not finite once is so for ever: its update starts from where it is.
    factor = float(kappa ** (rounds // (2 * stale + 1))) if np.isfinite(w).all() else np.inf
    step, start = prox_steps(problem, np.zeros_like(w))
    block = Block(problem, np.arange(len(w)), problem.loss.prox)
    first = np.sqrt(((block.update(problem, start, step) - start) ** 2).sum(axis=1)).max()
    bound = float(factor * first / (1 - kappa)) if kappa < 1 else np.inf
    flow = problem.smooth_flow(w)
    return Run(problem, w, flow, driver.ledger, rounds, steps, kappa, stale, factor, bound)


def wrapped(programs: dict[Any, Program[Any]], wrap: Wrap | None) -> dict[Any, Program[Any]]:
    """The programs, some of them changed by what `wrap` has for their part.

    Examples
    --------
    >>> wrapped({"a": 1}, {"b": str})
    Traceback (most recent call last):
    ValueError: wrap must name parts of the network; 'b' is none. Parts: 'a'.
    """
    wrap = {} if wrap is None else dict(wrap)
    if strange := [name for name in wrap if name not in programs]:
        parts = ", ".join(map(repr, list(programs)[:10]))
        raise ValueError(
            f"wrap must name parts of the network; {strange[0]!r} is none. Parts: {parts}."
        )
    if odd := [name for name, one in wrap.items() if not callable(one)]:
        raise ValueError(
            f"wrap must have callables that take a program, such as Constant(1e6); got "
            f"{wrap[odd[0]]!r} for {odd[0]!r}."
        )
    return {q: wrap[q](program) if q in wrap else program for q, program in programs.items()}


def _links(parts: list[Part]) -> dict[Any, list[Any]]:
    return {part.name: list(part.says) for part in parts}


def _steps(problem: Problem, parts: list[Part]) -> np.ndarray:
    steps = np.zeros(problem.graph.n_nodes, dtype=np.int64)
    for part in parts:
        steps[part.nodes] = part.rounds
    return steps


def _noise(solver: FedRelax) -> Callable[[Part], Error | None]:
    """Noise on the updates of a part's nodes, each node with a generator of its own."""
    if not solver.perturbed:
        return lambda part: None
    root = np.random.SeedSequence(solver.seed).entropy

    def of(part: Part) -> Error:
        keys = [np.random.SeedSequence(root, spawn_key=(i,)) for i in part.nodes.tolist()]
        draws = [np.random.default_rng(key) for key in keys]

        def error(k: int, w: Array) -> Array:
            return solver.noise * np.stack([draw.standard_normal(w.shape[1]) for draw in draws])

        return error

    return of


def _errors(prox_error: ProxError | None, seed: int) -> Callable[[Part], Error | None]:
    """Errors of a part's nodes in step k: of the given size, in directions drawn from the seed."""
    if prox_error is None:
        return lambda part: None
    check_count(seed, "seed")
    constant = 0.0 if callable(prox_error) else check_number(prox_error, "prox_error", low=0.0)

    def of(part: Part) -> Error:
        def error(k: int, w: Array) -> Array:
            size = constant
            if callable(prox_error):
                size = check_number(prox_error(k), f"prox_error({k})", low=0.0)
            draws = [np.random.default_rng([seed, i, k]) for i in part.nodes.tolist()]
            way = np.stack([draw.standard_normal(w.shape[1]) for draw in draws])
            return size * way / np.linalg.norm(way, axis=1, keepdims=True)

        return error

    return of
