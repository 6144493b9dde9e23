"""Nodes whose rows have similar Gaussian fits (NFL, Sec. VI-E, Eqs. (42)-(43))."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from nefele._checks import Array, check_flag
from nefele.graph_learning._rows import gaussian_fits, node_rows, tell_constant, within_units
from nefele.graph_learning.builders import TrainingRows
from nefele.graph_learning.pairwise import PairwiseGraph

_BLOCK = 2_000_000  # numbers of the largest temporary array


class WassersteinGraph(PairwiseGraph):
    """Join nodes whose rows look like draws from the same Gaussian.

    The discrepancy is the squared Wasserstein distance of Gaussian fits, W_ij = |mu_i - mu_j|^2 +
    tr(S_i + S_j - 2 (S_i^1/2 S_j S_i^1/2)^1/2) (NFL, Eq. (42)); nodes with W_ij <= eta are joined
    with weight 1 / W_ij (NFL, Eq. (43)).

    Parameters
    ----------
    eta : float, "auto" or None
        Largest squared distance of an edge, in the squared units of the columns; "auto": see
        `PairwiseGraph`.
    k : int, "auto" or None
        Only the k nearest of each node. Default: no limit with eta; 4 without.
    target : bool
        Whether the target counts as well as the features.
    shrinkage : float in [0, 1]
        Share of the covariance common to all nodes; above 0 a node may have a single row.
    standardize : bool
        Whether to measure each column by its standard deviation inside the nodes.
    weight, scale, degree, connect, normalize
        See `graph_from_discrepancy`; the weight is 1 / W by default.

    Examples
    --------
    >>> ids = np.repeat(["a", "b", "c"], 3)
    >>> X = np.array([0.0, 1.0, 2.0, 1.0, 2.0, 3.0, 9.0, 10.0, 11.0])[:, None]
    >>> rows = TrainingRows(X, np.zeros((9, 1)), ids, np.ones(9))
    >>> graph = WassersteinGraph(eta=5.0).fit_graph(rows)
    >>> graph.neighbors("a"), graph.weight.round(9).tolist()
    (['b'], [1.0])
    """

    _threshold = "eta"

    def __init__(
        self,
        eta: Any = None,
        k: Any = None,
        *,
        target: bool = True,
        shrinkage: float = 0.0,
        standardize: bool = False,
        weight: str = "inverse",
        scale: float | None = None,
        degree: float | None = None,
        connect: bool = False,
        normalize: str = "none",
    ) -> None:
        self.eta = eta
        self.k = k
        self.target = target
        self.shrinkage = shrinkage
        self.standardize = standardize
        self.weight = weight
        self.scale = scale
        self.degree = degree
        self.connect = connect
        self.normalize = normalize

    def discrepancy(self, rows: TrainingRows) -> tuple[NDArray[Any], Array]:
        """Ids and squared Wasserstein distances of all pairs.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        nodes = node_rows(rows)
        values = nodes.values(self.target)
        if check_flag(self.standardize, "standardize"):
            values = values / within_units(nodes, values)
        fits = gaussian_fits(nodes, values, self.shrinkage)
        tell_constant(rows)
        return nodes.ids, squared_wasserstein(*fits)


def squared_wasserstein(mean: Array, cov: Array) -> Array:
    """Squared Wasserstein distances of Gaussians (NFL, Eq. (42)), all pairs.

    Parameters
    ----------
    mean : array of shape (n, p)
    cov : array of shape (n, p, p)
        Positive semidefinite, perhaps singular.

    Returns
    -------
    array of shape (n, n)

    Examples
    --------
    >>> squared_wasserstein(np.zeros((2, 1)), np.array([[[1.0]], [[9.0]]])).tolist()
    [[0.0, 4.0], [4.0, 0.0]]
    """
    n, p = mean.shape
    centred = mean - mean.mean(axis=0)
    spread = np.sqrt(np.abs(np.trace(cov, axis1=1, axis2=2)))
    # fourth powers follow: spare them over- and underflow
    unit = float(max(np.abs(centred).max(), spread.max())) or 1.0
    centred, cov = centred / unit, cov / unit / unit
    values, vectors = np.linalg.eigh(cov)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.swapaxes(1, 2)
    trace = np.trace(cov, axis1=1, axis2=2)
    out = np.zeros((n, n))
    step = max(1, _BLOCK // (n * p * p))
    for start in range(0, n, step):
        i = np.arange(start, min(start + step, n))
        j = np.arange(start, n)  # the rest follows by symmetry
        # tr (R_i S_j R_i)^1/2 is the sum of the singular values of R_i R_j
        fidelity = _nuclear(root[i][:, None], root[j][None])
        apart = cdist(centred[i], centred[j], "sqeuclidean")
        block = apart + trace[i][:, None] + trace[j] - 2 * fidelity
        out[start : i[-1] + 1, start:] = block
    out = np.triu(np.maximum(out, 0.0), 1) * unit * unit
    return out + out.T


def _nuclear(left: Array, right: Array) -> Array:
    """Sums of the singular values of the products left @ right."""
    p = left.shape[-1]
    product = left @ right
    if p == 1:
        return np.abs(product[..., 0, 0])
    if p == 2:  # (s1 + s2)^2 = |M|_F^2 + 2 |det M|
        det = product[..., 0, 0] * product[..., 1, 1] - product[..., 0, 1] * product[..., 1, 0]
        return np.sqrt((product**2).sum(axis=(-2, -1)) + 2 * np.abs(det))
    gram = product.swapaxes(-1, -2) @ product
    return np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0.0)).sum(axis=-1)
