"""What can be worked out from messages that were really sent: statistics, single rows, models.

An answer of FedRelax to a question v is w = argmin L(w) + (rho/2) ||w - v||^2, so rho (v - w) is
the gradient of the local loss at w: a neighbour who asks gets gradients.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array, check_finite, check_number
from nefele.data import LocalData
from nefele.graph import Graph
from nefele.privacy.audit.reconstruction import Reconstruction, distance
from nefele.problem import Problem
from nefele.solvers import solve


def statistics_from_answers(
    asked: Any, answers: Any, pull: float, *, truth: tuple[Any, Any] | None = None
) -> Reconstruction:
    """Q = X^T X / m and q = X^T y / m of a node with the squared loss, from d + 1 answers.

    With L(w) = ||y - X w||^2 / m, an answer w to v says Q w - q = rho (v - w) / 2: linear
    equations for Q and q. More answers than d + 1 average noise.

    Parameters
    ----------
    asked, answers : arrays of shape (n_answers, d)
        Weighted means of the neighbours that the node heard, and what it said then.
    pull : float
        rho = lam d_i, d_i the node's weighted degree.
    truth : pair of arrays (Q, q), optional
        To compare.

    Returns
    -------
    Reconstruction
        With "Q" and "q".

    Examples
    --------
    >>> import numpy as np
    >>> from nefele.privacy.audit import statistics_from_answers
    >>> asked = np.array([[0.0], [4.0]])  # of a node with the row x = 1, y = 2, and rho = 2
    >>> found = statistics_from_answers(asked, (2.0 + asked) / 2.0, 2.0)
    >>> found.values["Q"].round(9).tolist(), found.values["q"].round(9).tolist()
    ([[1.0]], [2.0])
    """
    v, w = _questions(asked, answers)
    check_number(pull, "pull", low=0.0, strict=True)
    n, d = w.shape
    rows, gradient = np.column_stack([w, -np.ones(n)]), pull * (v - w) / 2
    unit = np.abs(rows).max(axis=0)
    unit[unit == 0] = 1.0
    solved, _, rank, size = np.linalg.lstsq(rows / unit, gradient, rcond=None)
    if rank < d + 1:
        raise ValueError(
            f"The answers must not lie in one plane; {n} answers span {rank - 1} of {d} "
            "directions. Ask about other points."
        )
    left = np.linalg.norm(gradient - rows / unit @ solved) / np.linalg.norm(gradient)
    solved = solved / unit[:, None]
    values = {"Q": (solved[:d] + solved[:d].T) / 2, "q": solved[d]}
    known = None if truth is None else {"Q": np.asarray(truth[0]), "q": np.asarray(truth[1])}
    # Beyond d + 1 answers what the equations leave open is noise, or rounding.
    noise = left / np.sqrt(n - d - 1) if n > d + 1 else 0.0
    sure = float(size[0] / size[-1] * max(noise, 4 * (d + 1) * np.finfo(float).eps))
    what = f"the statistics X^T X / m and X^T y / m ({d * (d + 1) // 2 + d} numbers) of the node"
    return Reconstruction(what, values, sure, distance(values, known), n, known)


def _questions(asked: Any, answers: Any) -> tuple[Array, Array]:
    """Both as arrays, checked."""
    v, w = as_float_array(asked, "asked", 2), as_float_array(answers, "answers", 2)
    if v.shape != w.shape:
        raise ValueError(f"asked and answers must have one shape; got {v.shape} and {w.shape}.")
    n, d = w.shape
    if n < d + 1:
        raise ValueError(f"{d} parameters take at least {d + 1} answers; got {n}. Listen longer.")
    check_finite(v, lambda at: f"asked, answer {at[0]},")
    check_finite(w, lambda at: f"answers, answer {at[0]},")
    return v, w


def statistics_from_messages(
    messages: Iterable[Any], graph: Graph, lam: float, node: Any
) -> Reconstruction:
    """The statistics of a node from the messages of a run of FedRelax that were really sent.

    Parameters
    ----------
    messages : iterable of nefele.runtime.Message
        Those that the node and its neighbours sent: `ledger.transcript`. Who is the node's only
        neighbour needs no others than its own and the node's.
    graph : Graph
    lam : float
    node : node id

    Returns
    -------
    Reconstruction

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.runtime import relax_messages
    >>> data = LocalData.from_list([([[1.0], [2.0]], [1.0, 4.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, penalty="squared_l2", lam=1.0)
    >>> run = relax_messages(problem, 5, transcript=True)
    >>> found = statistics_from_messages(run.ledger.transcript, problem.graph, 1.0, 0)
    >>> found.values["Q"].round(6).tolist(), found.values["q"].round(6).tolist()
    ([[2.5]], [4.5])
    """
    i = graph.position(node)
    said: dict[Any, dict[int, Array]] = {}
    for message in messages:
        values = np.asarray(message.payload, dtype=float).ravel()
        said.setdefault(message.sender, {})[int(message.round)] = values
    around = graph.adjacency[[i]].tocoo()
    near = {graph.ids[j].item(): float(a) for j, a in zip(around.col, around.data, strict=True)}
    own = said.get(graph.ids[i].item(), {})
    asked, answers = [], []
    for k in sorted(own):
        if k + 1 in own and all(k in said.get(name, {}) for name in near):
            heard = sum(a * said[name][k] for name, a in near.items()) / sum(near.values())
            asked.append(heard)
            answers.append(own[k + 1])
    if not asked:
        raise ValueError(f"The messages must have answers of node {node!r}; got none of its own.")
    return statistics_from_answers(
        np.array(asked), np.array(answers), lam * float(graph.weighted_degree[i])
    )


def row_from_gradient(
    gradient: Any, w: Any, *, constant: int = -1, truth: tuple[Any, Any] | None = None
) -> Reconstruction:
    """The only row of a node with the squared loss, from one gradient.

    g = 2 (x^T w - y) x, and where x has a column of ones g says 2 (x^T w - y) there: the quotient
    is x, and y follows.

    Parameters
    ----------
    gradient, w : arrays of shape (d,)
        Of the loss, and where it was taken.
    constant : int
        The column of ones, the intercept.
    truth : pair (x, y), optional
        To compare.

    Returns
    -------
    Reconstruction
        With "x" and "y".

    Examples
    --------
    >>> import numpy as np
    >>> x, y, w = np.array([3.0, 1.0]), 5.0, np.zeros(2)
    >>> found = row_from_gradient(2 * (x @ w - y) * x, w)
    >>> found.values["x"].tolist(), found.values["y"].tolist()
    ([3.0, 1.0], [5.0])
    """
    g, at = as_float_array(gradient, "gradient", 1), as_float_array(w, "w", 1)
    if g.shape != at.shape:
        raise ValueError(f"gradient and w must have one shape; got {g.shape} and {at.shape}.")
    slope = float(g[constant])
    if slope == 0 or not np.isfinite(g).all():
        raise ValueError(
            f"The gradient must be finite and not 0 at column {constant}, the constant; got "
            f"{slope!r}. At a perfect fit it says nothing."
        )
    x = g / slope
    values = {"x": x, "y": np.array([x @ at - slope / 2])}
    known = None
    if truth is not None:
        known = {"x": np.asarray(truth[0]), "y": np.atleast_1d(np.asarray(truth[1]))}
    bits = float(np.finfo(float).eps * len(g))
    what = "the node's only row, features and target"
    return Reconstruction(what, values, bits, distance(values, known), 1, known)


def watch(
    problem: Problem, node: Any, *, loss: Any = "squared", weight: float = 1.0, tol: float = 1e-9
) -> Reconstruction:
    """What an edge to a member without rows gives away: the watcher ends with the node's weights.

    A node without data and with one neighbour has nothing of its own to weigh against it.

    Parameters
    ----------
    problem : Problem
        With `LocalData`.
    node : node id
        Whom the watcher is joined to.
    loss : str or Loss
        That of the problem.
    weight : float
        Of the edge.
    tol : float
        Of the solve.

    Returns
    -------
    Reconstruction
        With "w", the watcher's parameters; the truth are those of the node.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, penalty="squared_l2", lam=1.0)
    >>> watch(problem, 1).values["w"].round(6).tolist()
    [3.0]
    """
    check_number(weight, "weight", low=0.0, strict=True)
    graph, data = problem.graph, problem.data
    if not isinstance(data, LocalData):
        raise ValueError("watch needs a problem with LocalData; got one without rows of its own.")
    i, n = graph.position(node), graph.n_nodes
    ids = np.arange(n + 1)
    more = Graph(
        ids, np.r_[graph.head, i], np.r_[graph.tail, n], np.r_[graph.weight, float(weight)]
    )
    counts = None if data.node_weight is None else np.r_[data.node_weight, 1.0]
    wider = LocalData(
        data.X, data.y, np.r_[data.ptr, data.ptr[-1]], ids, sample_weight=data.sample_weight,
        node_weight=counts, shrink=data.shrink, offset=data.offset,
    )  # fmt: skip
    found = solve(Problem(more, wider, loss, problem.penalty, lam=problem.lam), tol=tol)
    values, truth = {"w": found.w[n]}, {"w": found.w[i]}
    what = "the weights of the node to a neighbour without data"
    return Reconstruction(what, values, max(found.gap, 1e-16), distance(values, truth), 1, truth)
