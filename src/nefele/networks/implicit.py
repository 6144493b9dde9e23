"""Networks coupled by squared differences: every step in the metric of the coupling itself.

The objective is F(w) = sum_i L_i(w_i) + 1/2 <w, K w>, K = alpha times the Laplacian of the graph,
nodes without rows eliminated. Its gradient in the metric I + gamma K is

    s = S (g + K w),   S = (I + gamma K)^-1,

the local gradients g smoothed over the graph, and a pull of every node towards the smoothed
parameters. The optimiser steps along s in place of g. S is positive definite, so that s = 0 where
the gradient of F is zero and only there: no step size biases the result. S K has no eigenvalue
above 1 / gamma, so that steps stay stable for every alpha. For alpha = 0 it is s = g, local
training; for alpha to infinity S averages over each component, and networks that began alike stay
equal: one network, trained on the mean of the gradients. With plain steps of length lr and
gamma = lr this is the implicit (forward-backward) step w+ = S (w - lr g).
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nefele._checks import Array
from nefele._torch.base import Tensor, torch
from nefele.networks.rounds import Rounds, Task

LARGEST = 2000  # nodes of which a matrix with all pairs is held
_NOTHING = 1e-9  # entries of S below this are left out
_DENSE = 0.25  # share of entries from which a matrix is not kept as a sparse one


class Implicit(Rounds):
    """Steps along S (g + K w); needs the penalty SquaredL2 and someone who applies S."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.rest = None
        if not task.coupled:
            return
        K, self.on, self.rest, extend = _eliminated(task)
        n, dtype = len(self.on), self.stack.dtype
        self.smooth = _kept(np.linalg.inv(np.eye(n) + task.gamma * K), dtype)
        self.pull = _kept(K, dtype)
        self.extend = torch.tensor(extend, dtype=dtype)
        parts = task.graph.components[self.on]
        first = np.unique(parts, return_index=True)[1]
        # A node of each component: K takes differences to it, which are exactly zero when equal.
        self.middle = torch.from_numpy(first[np.unique(parts, return_inverse=True)[1]])
        self.at = torch.from_numpy(self.on)
        self.every = n == len(self.w)

    @property
    def messages(self) -> int:
        """In each step every node tells its gradient to whoever applies S, and hears its step."""
        return 2 * self.task.steps * len(self.on) if self.task.coupled else 0

    def move(self, gradient: Tensor) -> None:
        if self.task.coupled:
            columns = self.task.columns
            g, w = columns.take(gradient), columns.take(self.w)
            if not self.every:
                g, w = g[self.at], w[self.at]
            apart = w - w[self.middle]
            s = _product(self.smooth, g + _product(self.pull, apart))
            own = self.at if not self.every else torch.arange(len(self.w))
            columns.put(gradient, own, s)
        super().move(gradient)

    def round(self, k: int) -> Tensor:
        losses = super().round(k)
        if self.rest is not None and len(self.rest):
            w = self.task.columns.take(self.w)
            found = torch.addmm(
                w[self.at][:1].repeat(len(self.rest), 1), self.extend, w[self.at] - w[self.at][:1]
            )
            self.task.columns.put(self.w, torch.from_numpy(self.rest), found)
        return losses


def _eliminated(task: Task) -> tuple[Array, Array, Array, Array]:
    """K of the nodes with rows, these, the others that data reach, and what makes these of them.

    A node without rows is where its neighbours pull it: w_o = -L_oo^-1 L_on w_n.
    """
    graph = task.graph
    weight = task.alpha * graph.weight
    at = np.concatenate([graph.head, graph.tail]), np.concatenate([graph.tail, graph.head])
    A = sparse.coo_array(
        (np.concatenate([weight, weight]), at), shape=(graph.n_nodes, graph.n_nodes)
    ).toarray()
    L = np.diag(A.sum(axis=1)) - A
    on = np.flatnonzero(task.labelled)
    reached = np.isin(graph.components, graph.components[on])
    rest = np.flatnonzero(~task.labelled & reached)
    extend = -np.linalg.solve(L[np.ix_(rest, rest)], L[np.ix_(rest, on)])
    K = L[np.ix_(on, on)] + L[np.ix_(on, rest)] @ extend
    K = (K + K.T) / 2
    K -= np.diag(K.sum(axis=1))  # constants are free, to the last bit
    return K, on, rest, extend


def _kept(matrix: Array, dtype: torch.dtype) -> Tensor:
    """The matrix as a tensor, sparse if most entries are next to nothing."""
    small = np.abs(matrix) < _NOTHING * np.abs(matrix).max()
    if small.mean() < 1 - _DENSE:
        return torch.tensor(matrix, dtype=dtype)
    return torch.tensor(np.where(small, 0.0, matrix), dtype=dtype).to_sparse_csr()


def _product(matrix: Tensor, rows: Tensor) -> Tensor:
    return matrix @ rows
