"""What a report shows, as plain arrays and words: the report reads nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.report.pictures import Picture
from nefele.report.trust import Requirement
from nefele.runtime.messages import Ledger

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """An examined point of the final solve.

    Parameters
    ----------
    iteration : int
    objective : float
    gap : float
        Certified relative gap; inf while nothing is proven.
    seconds : float
        Since the start.

    Examples
    --------
    >>> Step(iteration=10, objective=2.5, gap=1e-3, seconds=0.1).gap
    0.001
    """

    iteration: int
    objective: float
    gap: float
    seconds: float


@dataclass(frozen=True, eq=False)
class View:
    """Everything a report shows. n nodes, E edges, K alphas from large to small, p parameters.

    Attributes
    ----------
    title, task, target, metric : str
        `task` is "regression" or "classification"; `metric` names the error, lower is better.
    command, created, version : str
        The command that repeats the run, the time in ISO form, the version of nefele.
    facts : sequence of (str, str)
        What was run, as label and value: data file, rows, hash, seed, penalty, graph, ...
    verdict : str
        One or two plain sentences: does coupling help, and by how much.
    notes : sequence of str
        Warnings a reader must see, such as "the graph was learnt from the data".
    scores : sequence of (str, float)
        Error on held-out rows by method: own data only, one model, nefele.
    nodes : sequence of str
        Node ids, shape (n,).
    parameters : sequence of str
        Names of the parameters, shape (p,): features, then "intercept" if there is one.
    rows : int array of shape (n,)
        Training rows of each node.
    edges : int array of shape (E, 2)
    weights : array of shape (E,)
    positions : array of shape (n, 2), optional
        Coordinates (x, y), or (longitude, latitude) when `geographic`.
    centre : bool
        Whether a centre couples the nodes, which is not drawn.
    geographic : bool
    alphas : array of shape (K,)
        Descending.
    coef : array of shape (K, n, p)
        Parameters along the path, fitted to all rows.
    clusters : int array of shape (K, n)
        Cluster of each node along the path.
    gaps : array of shape (K,)
        Certified relative gap of each point of the path.
    cv_error, cv_se : arrays of shape (K,)
        Cross-validated error and its standard error; NaN where it was not computed.
    cv_own, cv_pooled : float
        Cross-validated errors of own data only and of one model, from the folds of `cv_error`; NaN
        where they were not computed.
    chosen, best, clearest : int
        Places in `alphas` of the alpha used, of the best prediction and of the clearest clusters;
        -1 where there is none.
    own_error, pooled_error : arrays of shape (n,)
        Error of each node on its held-out rows; NaN for a node without held-out rows.
    node_error : array of shape (K, n)
        The same for the coupled models along the path.
    held_out : array of shape (n,), optional
        Held-out rows of each node, by which nodes count in means; None: all nodes count alike.
    ledger : Ledger, optional
        What the nodes sent each other, for methods that exchange messages.
    history : sequence of Step
        The final solve.
    tol : float
        Tolerance of the final solve, relative gap.
    pictures : sequence of Picture
        More pictures, such as those of `nefele.theory`; see `Picture.drawn`.
    trust : sequence of Requirement
        What is known of the seven requirements for trustworthy AI.

    Examples
    --------
    >>> from nefele.report.example import small_view
    >>> small_view().coef.shape
    (2, 2, 1)
    """

    title: str
    task: str
    target: str
    metric: str
    command: str
    created: str
    version: str
    facts: Sequence[tuple[str, str]]
    verdict: str
    notes: Sequence[str]
    scores: Sequence[tuple[str, float]]
    nodes: Sequence[str]
    parameters: Sequence[str]
    rows: Ints
    edges: Ints
    weights: Array
    alphas: Array
    coef: Array
    clusters: Ints
    gaps: Array
    cv_error: Array
    cv_se: Array
    chosen: int
    best: int
    clearest: int
    own_error: Array
    pooled_error: Array
    node_error: Array
    tol: float
    history: Sequence[Step] = field(default_factory=tuple)
    positions: Array | None = None
    geographic: bool = False
    centre: bool = False
    ledger: Ledger | None = None
    held_out: Array | None = None
    cv_own: float = math.nan
    cv_pooled: float = math.nan
    pictures: Sequence[Picture] = ()
    trust: Sequence[Requirement] = ()


def check_view(view: View) -> None:
    """Raise ValueError, with the field's name, when an array of the view has the wrong shape."""
    n, p, K = len(view.nodes), len(view.parameters), len(view.alphas)
    if not n or not K:
        raise ValueError(f"A view must have nodes and alphas; got {n} nodes and {K} alphas.")
    wanted: dict[str, tuple[int, ...]] = {
        "rows": (n,),
        "alphas": (K,),
        "coef": (K, n, p),
        "clusters": (K, n),
        "gaps": (K,),
        "cv_error": (K,),
        "cv_se": (K,),
        "own_error": (n,),
        "pooled_error": (n,),
        "node_error": (K, n),
        "weights": (len(view.edges),),
    }
    if len(view.edges):
        wanted["edges"] = (len(view.edges), 2)
    if view.positions is not None:
        wanted["positions"] = (n, 2)
    for name, shape in wanted.items():
        came = np.shape(getattr(view, name))
        if came != shape:
            raise ValueError(
                f"view.{name} must have shape {shape} ({n} nodes, {p} parameters, {K} alphas); "
                f"got {came}."
            )
    edges = np.asarray(view.edges)
    if edges.size and not 0 <= edges.min() <= edges.max() < n:
        raise ValueError(
            f"view.edges must hold places of nodes, 0 to {n - 1}; got {edges.min()} to "
            f"{edges.max()}."
        )
    for name in ("chosen", "best", "clearest"):
        if not -1 <= getattr(view, name) < K:
            raise ValueError(
                f"view.{name} must be a place in alphas, 0 to {K - 1}, or -1; got "
                f"{getattr(view, name)}."
            )
