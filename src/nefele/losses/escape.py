"""Directions along which losses fall for ever: separable labels, counts that are all zero.

A direction t of some nodes' parameters costs nothing if F t >= 0, P t = 0 and R t >= 0 for matrices
that their losses give, and there is no minimiser if F t != 0 for one of them: linear programmes, as
of Albert and Anderson (1984) for the logistic loss. R keeps t in a set that has no end that way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array

_FALLS = 1e-7  # least fall of a row, in units of its size, that counts


class Escape(NamedTuple):
    """Directions t that cost nothing: free @ t >= 0, pinned @ t = 0 and room @ t >= 0.

    Attributes
    ----------
    free : array of shape (n_free, d)
        Some loss falls for ever where an entry of free @ t is not zero.
    pinned, room : arrays of shapes (n_pinned, d) and (n_room, d)
    """

    free: Array
    pinned: Array
    room: Array

    def along(self, basis: Array) -> Escape:
        """The same for coordinates x with t = basis @ x.

        Parameters
        ----------
        basis : array of shape (d, k)
        """
        return Escape(*(matrix @ basis for matrix in self))


def joined(parts: Sequence[Escape]) -> Escape:
    """What costs nothing in all of them."""
    return Escape(*(np.concatenate(rows) for rows in zip(*parts, strict=True)))


def runs_away(escape: Escape) -> bool:
    """Whether some t has free @ t >= 0, not all zero, pinned @ t = 0 and room @ t >= 0.

    Examples
    --------
    >>> rows, none = np.array([[1.0, 2.0], [1.0, -1.0]]), np.zeros((0, 2))
    >>> runs_away(Escape(rows, none, none)), runs_away(Escape(rows, none, -np.eye(2)))
    (True, False)
    """
    from scipy.optimize import linprog

    free, pinned, room = escape
    if not len(free):
        return False
    size = np.max([np.abs(matrix).max(axis=0, initial=0.0) for matrix in escape], axis=0)
    size = np.where(size > 0, size, 1.0)
    upper = np.concatenate([free, room])
    best = linprog(
        -(free / size).sum(axis=0),
        A_ub=-upper / size,
        b_ub=np.zeros(len(upper)),
        A_eq=pinned / size if len(pinned) else None,
        b_eq=np.zeros(len(pinned)) if len(pinned) else None,
        bounds=(-1, 1),
    )
    return bool(best.status == 0 and -best.fun > _FALLS)


def runs_together(
    found: Sequence[Escape], groups: NDArray[np.int64], personal: Array
) -> NDArray[np.bool_]:
    """Nodes that fall for ever when directions are common to a group but for personal ones.

    Parameters
    ----------
    found : sequence of Escape
        Of each node.
    groups : int array of shape (n_nodes,)
        The group of each node, from 0.
    personal : array of shape (d, k)
        An orthonormal basis of the directions that every node has to itself.

    Returns
    -------
    bool array of shape (n_nodes,)

    Examples
    --------
    >>> none = np.zeros((0, 2))
    >>> found = [Escape(np.array([[1.0, 1.0]]), none, none), Escape(none, np.eye(2), none)]
    >>> runs_together(found, np.zeros(2, dtype=int), np.array([[0.0], [1.0]]))
    array([ True, False])
    """
    *matrices, owner = _stacked(found, groups, personal)
    out = np.zeros(len(found), dtype=bool)
    out[owner[falling(*matrices)]] = True
    return out


def falling(free: Any, pinned: Any, room: Any) -> NDArray[np.bool_]:
    """Rows of `free` that fall for ever along some t with pinned @ t = 0 and room @ t >= 0.

    Parameters
    ----------
    free, pinned, room : arrays or sparse arrays of shape (n_rows, k)
        Rows of about unit length, each as many as it has.

    Examples
    --------
    >>> falling(np.eye(2), np.array([[0.0, 1.0]]), np.zeros((0, 2))).tolist()
    [True, False]
    """
    from scipy import sparse
    from scipy.optimize import linprog

    rows, columns = free.shape
    if not rows:
        return np.zeros(0, dtype=bool)
    # As many rows as possible fall, each by at most 1: t itself may be as long as it takes.
    upper = sparse.block_array([[-free, sparse.eye_array(rows)], [-room, None]])
    equal = sparse.hstack([pinned, sparse.csr_array((pinned.shape[0], rows))])
    best = linprog(
        np.concatenate([np.zeros(columns), -np.ones(rows)]),
        A_ub=upper,
        b_ub=np.zeros(upper.shape[0]),
        A_eq=equal if pinned.shape[0] else None,
        b_eq=np.zeros(pinned.shape[0]) if pinned.shape[0] else None,
        bounds=[(None, None)] * columns + [(0, 1)] * rows,
    )
    return np.asarray(best.x[columns:] > 0.5) if best.status == 0 else np.zeros(rows, dtype=bool)


def _stacked(found, groups, personal):  # type: ignore[no-untyped-def]
    """All nodes' matrices in common and personal coordinates, rows of unit length, as sparse."""
    from scipy import sparse

    d, k = personal.shape
    common = np.linalg.qr(np.hstack([personal, np.eye(d)]))[0][:, k:d]
    n_groups, c = int(groups.max()) + 1, d - k
    width = n_groups * c + len(found) * k
    parts: tuple[list[Any], ...] = ([], [], [])
    owner = []
    for i, matrices in enumerate(found):
        own = n_groups * c + i * k + np.arange(k)
        columns = np.concatenate([groups[i] * c + np.arange(c), own])
        for part, matrix in zip(parts, matrices, strict=True):
            size = np.sqrt((matrix**2).sum(axis=1, keepdims=True))
            rows = matrix[size[:, 0] > 0] / size[size[:, 0] > 0]
            part.append((rows @ common, rows @ personal, columns))
        owner += [i] * len(parts[0][-1][0])
    return *(_sparse(part, width, sparse) for part in parts), np.array(owner, dtype=np.int64)


def _sparse(parts, width, sparse):  # type: ignore[no-untyped-def]
    blocks = [np.hstack([first, second]) for first, second, _ in parts]
    n = sum(len(block) for block in blocks)
    columns = [
        np.tile(where, len(block)) for block, (_, _, where) in zip(blocks, parts, strict=True)
    ]
    rows = np.repeat(np.arange(n), blocks[0].shape[1])
    values = np.concatenate([block.ravel() for block in blocks])
    return sparse.csr_array((values, (rows, np.concatenate(columns))), shape=(n, width))
