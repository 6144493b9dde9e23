"""Several methods on the same splits: errors at held-out rows, rounds, bytes and time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nefele._checks import Array, check_count, check_name, check_number
from nefele.baselines._common import Fit
from nefele.baselines.fedavg import fedavg
from nefele.baselines.fedgd import fedgd
from nefele.baselines.fedprox import fedprox
from nefele.baselines.gtv import gtv
from nefele.baselines.ifca import ifca
from nefele.baselines.local import local
from nefele.baselines.pooled import pooled
from nefele.data import LocalData
from nefele.graph import Graph
from nefele.losses import Hinge, Logistic, Loss, Multinomial, Poisson, SquaredHinge, as_loss

Method = Callable[[LocalData, Graph], Any]
_WORST = 0.1  # share of the nodes in the worst decile


@dataclass(frozen=True)
class Row:
    """One method: means over the splits.

    Attributes
    ----------
    name : str
    error : float
        Mean over the nodes of the error at their held-out rows.
    spread : float
        Standard deviation of that over the splits.
    worst : float
        Mean error of the tenth of the nodes with the largest errors.
    rounds, bytes, seconds : float
        NaN for methods that keep no books.
    """

    name: str
    error: float
    spread: float
    worst: float
    rounds: float
    bytes: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found; `print` it for the table.

    Attributes
    ----------
    metric : str
    rows : list of Row
    errors : dict of str to array of shape (n_splits, n_nodes)
        Error of each node at its held-out rows; NaN for nodes without any.

    Examples
    --------
    >>> found = Comparison("mean squared error", [Row("local", 2.0, 0.1, 3.0, 0, 0, 0.01)], {})
    >>> found["local"].worst
    3.0
    """

    metric: str
    rows: list[Row]
    errors: dict[str, Array] = field(repr=False)

    def __getitem__(self, name: str) -> Row:
        rows = {row.name: row for row in self.rows}
        if name not in rows:
            raise KeyError(f"No method {name!r}; there are {', '.join(rows)}.")
        return rows[name]

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        title = self.metric
        lines = [
            f"{'method':{width}} {title:>22} {'worst decile':>12} {'rounds':>7} "
            f"{'kB sent':>10} {'seconds':>8}"
        ]
        for row in self.rows:
            error = f"{row.error:.4g} ± {row.spread:.2g}"
            counted = np.isfinite(row.rounds)
            rounds, sent = f"{row.rounds:.0f}", f"{row.bytes / 1e3:.1f}"
            lines.append(
                f"{row.name:{width}} {error:>22} {row.worst:12.4g} {rounds if counted else '-':>7} "
                f"{sent if counted else '-':>10} {row.seconds:8.3f}"
            )
        return "\n".join(lines)


def compare(
    methods: Mapping[str, Any] | Sequence[str],
    data: Any,
    graph: Any,
    *,
    loss: Any = "squared",
    n_splits: int = 5,
    test_size: float = 0.3,
    seed: int = 0,
) -> Comparison:
    """Fit every method to the same training rows and judge it at the same held-out rows.

    Parameters
    ----------
    methods : sequence of names, or dict of name to method
        Names: "local", "pooled", "gtv", "fedavg", "fedprox", "fedgd", "ifca". A method is a
        callable (data, graph) -> Fit or array of shape (n_nodes, d), or an estimator with
        fit(X, y, node_ids=...) and predict(X, node_ids=...), which is cloned and not given the
        graph: it brings its own.
    data : LocalData
    graph : Graph
    loss : str or Loss
        For the methods given by name; the logistic losses make the error a share of wrong labels,
        all others a mean squared error.
    n_splits : int
    test_size : float
        Share of the rows of each node that is held out; a node with one row keeps it.
    seed : int

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from nefele import LocalData, graphs
    >>> rng = np.random.default_rng(0)
    >>> rows = [(rng.normal(size=(6, 2)), rng.normal(size=6)) for _ in range(4)]
    >>> found = compare(["local", "pooled"], LocalData.from_list(rows), graphs.chain(4))
    >>> [row.name for row in found.rows], found["pooled"].error < found["local"].error
    (['local', 'pooled'], True)
    """
    if not isinstance(data, LocalData) or not isinstance(graph, Graph):
        raise ValueError(
            f"compare needs a LocalData and a Graph; got {type(data).__name__} and "
            f"{type(graph).__name__}."
        )
    n_splits = check_count(n_splits, "n_splits", low=1)
    if not 0 < check_number(test_size, "test_size") < 1:
        raise ValueError(f"test_size must be in (0, 1); got {test_size!r}.")
    chosen = as_loss(loss)
    data = data.align(graph.ids)
    todo = _methods(methods, chosen)
    wrong = isinstance(chosen, Logistic | Hinge | SquaredHinge | Multinomial)
    errors: dict[str, list[Array]] = {name: [] for name in todo}
    costs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in todo}
    for train, test in _splits(data, n_splits, test_size, seed):
        for name, method in todo.items():
            start = time.perf_counter()
            predict, fit = _fitted(name, method, train, graph, chosen)
            seconds = time.perf_counter() - start
            costs[name].append((*_traffic(fit), seconds))
            errors[name].append(_node_errors(predict(test), test, chosen))
    tables = {name: np.stack(found) for name, found in errors.items()}
    metric = "share of wrong labels" if wrong else "mean squared error"
    rows = [_row(name, tables[name], costs[name]) for name in todo]
    return Comparison(metric, rows, tables)


def _methods(methods: Any, loss: Any) -> dict[str, Any]:
    known: dict[str, Method] = {
        "local": lambda data, graph: local(data, loss),
        "pooled": lambda data, graph: pooled(data, loss),
        "gtv": lambda data, graph: gtv(data, graph, loss),
        "fedavg": lambda data, graph: fedavg(data, loss),
        "fedprox": lambda data, graph: fedprox(data, loss),
        "fedgd": lambda data, graph: fedgd(data, graph, loss),
        "ifca": lambda data, graph: ifca(data, loss),
    }
    if not len(methods):
        raise ValueError("methods must name at least one method; got none.")
    if not isinstance(methods, Mapping):
        if isinstance(methods, str):
            methods = [methods]
        return {name: known[check_name(name, known, "method")] for name in methods}
    for name, method in methods.items():
        if not callable(method) and not (hasattr(method, "fit") and hasattr(method, "predict")):
            raise ValueError(
                f"Method {name!r} must be a callable (data, graph) or an estimator with fit and "
                f"predict; got {method!r}."
            )
    return dict(methods)


def _splits(
    data: LocalData, n_splits: int, test_size: float, seed: int
) -> Iterator[tuple[LocalData, LocalData]]:
    """Training and held-out rows inside each node, drawn anew for each split."""
    rng = np.random.default_rng(seed)
    held = np.minimum(np.round(test_size * data.counts), np.maximum(data.counts - 1, 0))
    if not held.any():
        raise ValueError(
            f"No node has a row to hold out: the largest has {data.counts.max()} row(s), test_size "
            f"is {test_size:g}. Use a larger test_size, or nodes with more rows."
        )
    for _ in range(n_splits):
        order = np.lexsort((rng.random(data.n_rows), data.row_node))
        rank = np.arange(data.n_rows) - data.ptr[data.row_node]
        test = np.zeros(data.n_rows, dtype=bool)
        test[order] = rank < held[data.row_node]
        yield _rows(data, ~test), _rows(data, test)


def _rows(data: LocalData, on: Any) -> LocalData:
    counts = np.bincount(data.row_node[on], minlength=data.n_nodes)
    return LocalData(
        data.X[on],
        data.y[on],
        np.concatenate([[0], np.cumsum(counts)]),
        data.ids,
        sample_weight=None if data.sample_weight is None else data.sample_weight[on],
        feature_names=data.feature_names,
        node_weight=data.node_weight,
        shrink=data.shrink,
        offset=None if data.offset is None else data.offset[on],
    )


def _fitted(
    name: str, method: Any, train: LocalData, graph: Graph, loss: Loss
) -> tuple[Callable[..., Array], Any]:
    """How the method predicts labels, and what it returned."""
    if hasattr(method, "fit") and hasattr(method, "predict"):
        from sklearn.base import clone

        extra = {} if train.sample_weight is None else {"sample_weight": train.sample_weight}
        model = clone(method).fit(train.X, train.y, node_ids=train.ids[train.row_node], **extra)
        return (lambda rows: model.predict(rows.X, node_ids=rows.ids[rows.row_node])), model
    fit = method(train, graph)
    w = np.asarray(fit.w if isinstance(fit, Fit) else fit, dtype=float)
    shape = (train.n_nodes, loss.bind(train).d)
    if w.shape != shape or not np.isfinite(w).all():
        raise ValueError(
            f"Method {name!r} must give finite parameters of shape {shape} for the loss {loss!r}; "
            f"got shape {w.shape}{'' if np.isfinite(w).all() else ' with NaN or inf'}."
        )
    return (lambda rows: _linear(rows, w, loss)), fit


def _linear(rows: LocalData, w: Array, loss: Loss) -> Array:
    """Labels as the loss predicts them from x^T w, or from one column per class."""
    models = w[rows.row_node].reshape(rows.n_rows, -1, rows.d)
    z = np.einsum("rkj,rj->rk", models, rows.X)
    z = z if rows.offset is None else z + rows.offset[:, None]
    if isinstance(loss, Multinomial):
        return np.argmax(z, axis=1)
    return np.exp(z[:, 0]) if isinstance(loss, Poisson) else z[:, 0]


def _node_errors(predicted: Array, rows: LocalData, loss: Loss) -> Array:
    if isinstance(loss, Logistic | Hinge | SquaredHinge):
        miss = (np.where(np.asarray(predicted, dtype=float) > 0, 1.0, -1.0) != rows.y) * 1.0
    elif isinstance(loss, Multinomial):
        miss = (np.asarray(predicted) != rows.y) * 1.0
    else:
        miss = (np.asarray(predicted) - rows.y) ** 2
    with np.errstate(invalid="ignore"):
        return np.bincount(rows.row_node, miss, rows.n_nodes) / rows.counts


def _traffic(fit: Any) -> tuple[float, float]:
    ledger = getattr(fit, "ledger", None) or getattr(fit, "ledger_", None)
    return (np.nan, np.nan) if ledger is None else (float(ledger.rounds), float(ledger.bytes))


def _row(name: str, errors: Array, costs: list[tuple[float, float, float]]) -> Row:
    means = np.nanmean(errors, axis=1)
    worst = [_worst(split[np.isfinite(split)]) for split in errors]
    rounds, sent, seconds = np.mean(costs, axis=0)
    return Row(
        name, float(means.mean()), float(means.std()), float(np.mean(worst)), rounds, sent, seconds
    )


def _worst(errors: Array) -> float:
    """Mean error of the worst tenth of the nodes, at least one."""
    count = int(np.ceil(_WORST * len(errors)))
    return float(np.sort(errors)[-count:].mean())
