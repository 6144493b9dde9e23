"""What a site knows in the end: scales, errors at held-out rows, and its models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.estimators.design import Rows
from nefele.runtime.part import Part
from nefele.runtime.programs import Fitted

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Scales:
    """How rows become those of the problem: columns (X - shift) / scale, target y - offset."""

    shift: Array
    scale: Array
    offset: float
    rows_per_node: float  # mean over the nodes with rows


@dataclass(frozen=True, eq=False)
class Scores:
    """Sums over the held-out rows of the own nodes, in the order own, one model, coupled.

    Attributes
    ----------
    nodes : array of node ids
    count : int array of shape (n,)
    error : array of shape (3, n)
        Sums of squared errors, or of minus the log of the right class's probability.
    wrong : array of shape (3, n)
        Wrong classes; zero for a regression.
    """

    nodes: NDArray[Any]
    count: Index
    error: Array
    wrong: Array


@dataclass(frozen=True, eq=False)
class Learnt:
    """What a site knows in the end.

    Attributes
    ----------
    part : Part
        Its nodes with their final parameters, of shape (n_own, d), in `part.w1`.
    rows : Rows
    scales : Scales
    alpha : float
    fitted : Fitted
        Of the final fit over all rows.
    alphas, errors : arrays of shape (n_alphas,)
        Candidates, and their mean error at held-out rows over all sites; empty if alpha was given.
    scores : Scores
    everywhere : array of shape (2, 3)
        Mean error and share of wrong classes over the held-out rows of all sites.
    """

    part: Part
    rows: Rows
    scales: Scales
    alpha: float
    fitted: Fitted
    alphas: Array
    errors: Array
    scores: Scores
    everywhere: Array
    one: Array | None = field(default=None, repr=False)
