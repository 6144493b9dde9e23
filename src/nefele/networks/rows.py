"""The rows of all nodes: batches of them without replacement, and all of them in chunks.

Nothing is padded to the longest node: what is in memory at once is a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nefele._checks import Array
from nefele._torch.base import Tensor, tensor, torch
from nefele.networks.features import Features, Index

CHUNK = 256  # rows of a node that are worked on at once where all of them count


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of some nodes.

    Attributes
    ----------
    source : Source
    nodes : int array of shape (k,)
        Ascending; nodes without rows in the batch are left out.
    at : int array of shape (n_rows,)
        Numbers of the rows, those of the first node first.
    counts : int array of shape (k,)
        Rows of each node, at least one.
    factor : array of shape (k,)
        By which the weights of a node's rows are multiplied, so that the mean over all batches of
        sum_r weight_r loss_r is the node's L_i.
    """

    source: Source
    nodes: Index
    at: Index
    counts: Index
    factor: Array

    def each(self) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
        """Node, features, targets and weights, one node after the other."""
        source, counts = self.source, self.counts.tolist()
        factor = tensor(np.repeat(self.factor, self.counts), source.dtype)
        places, at = source.places[self.at], torch.from_numpy(self.at)
        y, weight = source.y[at].split(counts), (source.share[at] * factor).split(counts)
        ends = np.cumsum(self.counts).tolist()
        for k, node in enumerate(self.nodes.tolist()):
            X = source.features.take(places[ends[k] - counts[k] : ends[k]])
            yield node, X, y[k], weight[k]

    def padded(self) -> tuple[Tensor, Tensor, Tensor]:
        """Features (k, m, ...), targets and weights (k, m) of all nodes.

        Shorter nodes are padded to the longest of this batch by rows of weight zero.
        """
        k, m = len(self.nodes), int(self.counts.max(initial=0))
        there = np.arange(m) < self.counts[:, None]
        at = np.full((k, m), self.at[0] if len(self.at) else 0)
        at[there] = self.at
        flat, source = at.ravel(), self.source
        X = source.features.take(source.places[flat]).reshape(k, m, *source.features.shape)
        weight = source.share[flat].reshape(k, m) * tensor(self.factor, source.dtype)[:, None]
        weight = torch.where(torch.from_numpy(there), weight, torch.zeros_like(weight))
        return X, source.y[flat].reshape(k, m), weight


class Source:
    """The rows of all nodes, node by node.

    Parameters
    ----------
    features : Features
    places : int array of shape (n_rows,)
        The number among the features of each row; the rows go node by node.
    ptr : int array of shape (n_nodes + 1,)
        Rows of node i are ptr[i] to ptr[i + 1].
    y : array of shape (n_rows,)
        Class numbers if they are integers.
    weight : array of shape (n_rows,)
        > 0; those of a node are scaled to the sum 1.
    dtype : str
    seed : int
    keys : int array of shape (n_nodes,), optional
        Numbers of the nodes in the whole network: a node's batches depend on the seed and on its
        own number alone, so that a site draws those that one process would.
    """

    def __init__(
        self,
        features: Features,
        places: Index,
        ptr: Index,
        y: Array,
        weight: Array,
        dtype: str,
        seed: int = 0,
        keys: Index | None = None,
    ) -> None:
        self.features, self.places, self.ptr, self.seed = features, places, ptr, int(seed)
        self.counts: Index = np.diff(ptr)
        self.weight, self.dtype, self.target = weight, dtype, y
        self.keys = np.arange(len(self.counts)) if keys is None else keys
        self.y = torch.as_tensor(y) if y.dtype.kind == "i" else tensor(y, dtype)
        node = np.repeat(np.arange(len(self.counts)), self.counts)
        total = np.bincount(node, weight, minlength=len(self.counts))
        self.share = tensor(weight / total[node], dtype)
        self.drawn = 0  # batches; all that is needed to go on from here
        self._order: dict[int, tuple[int, Index]] = {}

    @property
    def n_nodes(self) -> int:
        """Nodes, those without rows included."""
        return len(self.counts)

    @property
    def row_node(self) -> Index:
        """The node of each row."""
        return np.repeat(np.arange(self.n_nodes), self.counts)

    def steps_of_epoch(self, size: int | None) -> int:
        """Batches until the longest node has been through once."""
        return 1 if size is None else max(1, -(-int(self.counts.max(initial=1)) // size))

    def batch(self, size: int) -> Batch:
        """The next rows of each node, min(size, m_i) of them.

        Each node goes through its rows in random order, all of them before any comes again; a
        batch that reaches the end is filled up from the next order.
        """
        step, self.drawn = self.drawn, self.drawn + 1
        nodes = np.flatnonzero(self.counts)
        counts = np.minimum(self.counts[nodes], size)
        rows = [self._next(i, step, int(b)) for i, b in zip(nodes.tolist(), counts, strict=True)]
        at = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
        return Batch(self, nodes, at, counts, self.counts[nodes] / counts)

    def _next(self, node: int, step: int, size: int) -> Index:
        m, first = int(self.counts[node]), int(self.ptr[node])
        if size == m:
            return np.arange(first, first + m)
        epoch, start = divmod(step * size, m)
        rows = self._epoch(node, epoch)[start : start + size]
        if len(rows) < size:
            rows = np.concatenate([rows, self._epoch(node, epoch + 1)[: size - len(rows)]])
        return rows + first

    def _epoch(self, node: int, epoch: int) -> Index:
        known = self._order.get(node)
        if known is None or known[0] != epoch:
            key = [self.seed, int(self.keys[node]), epoch]
            known = epoch, np.random.default_rng(key).permutation(int(self.counts[node]))
            self._order[node] = known
        return known[1]

    def chunks(self, size: int = CHUNK) -> Iterator[Batch]:
        """All rows, at most `size` of each node at a time, in parts of about one length."""
        parts = -(-self.counts // size)  # a rest of one row would be none for BatchNorm
        for k in range(int(parts.max(initial=0))):
            nodes = np.flatnonzero(parts > k)
            first, last = (j * self.counts[nodes] // parts[nodes] for j in (k, k + 1))
            spans = zip(self.ptr[nodes], first, last, strict=True)
            at = np.concatenate([np.arange(p + f, p + t) for p, f, t in spans])
            yield Batch(self, nodes, at, last - first, np.ones(len(nodes)))

    def pick(self, rows: Index, seed: int | None = None) -> Source:
        """Some of the rows, ascending, with all nodes."""
        counts = np.bincount(self.row_node[rows], minlength=self.n_nodes)
        return Source(
            self.features,
            self.places[rows],
            np.concatenate([[0], np.cumsum(counts)]),
            self.target[rows],
            self.weight[rows],
            self.dtype,
            self.seed if seed is None else seed,
            self.keys,
        )

    def held_out(self, share: float) -> tuple[Source, Source]:
        """Rows to train on, and a share of each node's rows to test on.

        round(share m_i) rows of node i, drawn by the seed; at least one stays to train on.
        """
        on = np.zeros(len(self.places), dtype=bool)
        for i in np.flatnonzero(self.counts).tolist():
            m = int(self.counts[i])
            key = [self.seed, int(self.keys[i]), 2**31]
            some = np.random.default_rng(key).permutation(m)[: min(round(share * m), m - 1)]
            on[self.ptr[i] + some] = True
        return self.pick(np.flatnonzero(~on)), self.pick(np.flatnonzero(on))
