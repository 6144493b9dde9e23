"""Networks coupled by squared differences: every step in the metric of the coupling itself.

The objective is F(w) = sum_i L_i(w_i) + 1/2 <w, K w>, K = alpha times the Laplacian of the graph,
nodes without rows eliminated. Its gradient in the metric I + gamma K is

    s = S (g + K w),   S = (I + gamma K)^-1,

the local gradients g smoothed over the graph, and a pull of every node towards the smoothed
parameters. The optimiser steps along s in place of g. S is positive definite, so that s = 0 where
the gradient of F is zero and only there: no step size biases the result. S K has no eigenvalue
above 1 / gamma, so that steps stay stable for every alpha. For alpha = 0 it is s = g, local
training; for alpha to infinity S averages over each component, and networks that began alike stay
equal: one network, trained on the mean of the gradients. When S is that mean to rounding, the mean
is taken as such: optimisers such as Adam would blow up rounding errors where gradients are zero,
as those of a bias before BatchNorm. With plain steps of length lr and
gamma = lr this is the implicit (forward-backward) step w+ = S (w - lr g).
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse

from nefele._checks import Array
from nefele._torch.base import Tensor, torch
from nefele.networks.features import Index
from nefele.networks.rounds import Rounds, Task

LARGEST = 2000  # nodes of which a matrix with all pairs is held
_SAME = {torch.float32: 1e-6, torch.float64: 1e-10}
_NOTHING = 1e-8  # entries of a matrix below this share of the largest are left out
_ROUNDED = 1e-4  # what rounding may change of the gradients at the point of rest, as a share
_DENSE = 0.25  # share of entries from which a matrix is not kept as a sparse one


class Implicit(Rounds):
    """Steps along S (g + K w); needs the penalty SquaredL2 and someone who applies S."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.rest, self.alone = None, not task.coupled
        if not task.coupled:
            return
        K, self.on, self.rest, extend = _eliminated(task)
        n, dtype = len(self.on), self.stack.dtype
        S = np.linalg.inv(np.eye(n) + task.gamma * K)
        same = task.graph.components[self.on]
        mean = (same[:, None] == same) / np.bincount(same)[same]
        # One network for each component, of equal bits at all its nodes.
        self.equal = bool(np.abs(S - mean).max() < _SAME[dtype])
        # S = I + T with T = -gamma S K, so that S (g + K w) = g + T (g - w / gamma): one product in
        # place of two, where rounding T moves the point of rest by little.
        bend = 1 + task.gamma * float(np.linalg.norm(K, 2))
        self.once = not self.equal and bend * torch.finfo(dtype).eps < _ROUNDED
        smooth = -task.gamma * S @ K if self.once else mean if self.equal else S
        self.smooth = _kept(np.asarray(smooth), dtype)
        self.pull = _kept(K, dtype)
        self.extend = torch.tensor(extend, dtype=dtype)
        first, where = np.unique(same, return_index=True, return_inverse=True)[1:]
        # A node of each component: K takes differences to it, which are exactly zero when equal.
        self.middle = torch.from_numpy(first[where])
        self.base = slice(0, 1) if len(first) == 1 else self.middle
        self.at = torch.from_numpy(self.on)
        self.every = n == len(self.w)

    @property
    def messages(self) -> int:
        """In each step every node tells its gradient to whoever applies S, and hears its step."""
        return 2 * self.task.steps * len(self.on) if self.task.coupled else 0

    def move(self, gradient: Tensor) -> None:
        if self.task.coupled:
            for part in self.task.columns.blocks(len(self.w)):
                g, w = gradient[:, part], self.w[:, part]
                if self.every and isinstance(part, slice):
                    self.turn(g, w)
                elif self.every:
                    gradient[:, part] = self.turn(g, w)
                else:
                    own = torch.zeros_like(g)
                    own[self.at] = self.turn(g[self.at], w[self.at])
                    gradient[:, part] = own
        super().move(gradient)

    def turn(self, g: Tensor, w: Tensor) -> Tensor:
        """S (g + K w) in place of g, of some columns."""
        if self.equal:
            return g.copy_((self.smooth @ g)[self.middle])
        apart = w - w[self.base]
        if self.once:
            moved = torch.add(g, apart, alpha=-1 / self.task.gamma)
            sparse_one = self.smooth.is_sparse_csr
            return g.add_(self.smooth @ moved) if sparse_one else g.addmm_(self.smooth, moved)
        return g.copy_(self.smooth @ (g + self.pull @ apart))

    def round(self, k: int) -> Tensor:
        if self.task.coupled and self.equal and k == 1:  # a warm start may be anywhere
            index = self.task.columns.index
            w = self.task.columns.take(self.w)[self.at]
            for i, row in zip(
                self.on, (w[:1] + self.smooth @ (w - w[:1]))[self.middle], strict=True
            ):
                self.w[i, index] = row
        losses = super().round(k)
        if self.rest is not None and len(self.rest):
            index = self.task.columns.index
            w = self.task.columns.take(self.w)[self.at]
            found = w[:1] + self.extend @ (w - w[:1])
            for i, row in zip(self.rest.tolist(), found, strict=True):
                self.w[i, index] = row
        return losses


def _eliminated(task: Task) -> tuple[Array, Index, Index, Array]:
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
    with warnings.catch_warnings():  # torch calls such tensors beta
        warnings.simplefilter("ignore", UserWarning)
        return torch.tensor(np.where(small, 0.0, matrix), dtype=dtype).to_sparse_csr()
