"""What the FedRelax regressor and classifier share: checks, the fit, which model a row gets."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from nefele._checks import Array, check_count, check_name, check_number, type_name
from nefele._ids import as_ids, describe, did_you_mean
from nefele._progress import check_verbose, progress
from nefele._words import Text
from nefele.agnostic._discrepancy import Discrepancy, as_discrepancy
from nefele.agnostic._models import constant, fresh, model_of
from nefele.agnostic._private import Noisy, charge, rehearse
from nefele.agnostic._private import check as check_private
from nefele.agnostic._rounds import Relaxation
from nefele.agnostic._shared import shared_rows
from nefele.agnostic._site import Site, need_gradients
from nefele.agnostic._summary import summary_of
from nefele.estimators.design import Rows
from nefele.estimators.nodes import row_places
from nefele.estimators.private import forget
from nefele.estimators.rows_base import RowsBase
from nefele.graph import Graph
from nefele.result import ConvergenceWarning, DataWarning
from nefele.runtime.faults import Faults

_SEEDS = 2**31 - 1
_LARGE = 20_000  # rows of a fit from which its own threads may pay off


@dataclass(eq=False, repr=False)
class FedRelaxBase(RowsBase):
    """Fit and choice of models; a subclass gives the target, the default model and `predict`."""

    estimator: Any = None
    _: KW_ONLY
    graph: Any = None
    node: Any = None
    alpha: float = 1.0
    X_shared: Any = "gaussian"
    n_shared: int = 200
    rounds: int = 50
    tol: float | None = 1e-3
    schedule: str = "jacobi"
    discrepancy: Any = "squared"
    init: str = "local"
    random_state: Any = None
    n_jobs: int | None = None
    faults: Any = None
    noise: float = 0.0
    privacy: Any = None
    verbose: bool | int = False

    _discrepancies: ClassVar[tuple[str, ...]]

    def _default(self) -> Any:
        raise NotImplementedError

    def _spread(self, rows: Rows) -> float:
        """Unit of changes of predictions."""
        raise NotImplementedError

    def _classes_or_none(self) -> NDArray[Any] | None:
        return None

    def _labels(self, y: Array) -> NDArray[Any]:
        """The target as the local models see it."""
        return y

    # -- fit ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None) -> Self:
        """Fit one model per node of the graph.

        Parameters
        ----------
        X, y, sample_weight, node_ids
            See `GTVRegressor.fit`; local models get float arrays.
        """
        rows = self._take_rows(X, y, sample_weight, node_ids, reset=True)
        graph = self._make_graph(rows)
        place = row_places(graph, rows.node_ids)
        seed = int(check_random_state(self.random_state).randint(_SEEDS))
        shared = shared_rows(self.X_shared, self.n_shared, rows, self._names(), self.node, seed)
        coupled = float(self.alpha) > 0 and graph.n_edges > 0
        if self.privacy is not None:
            check_private(self, rows, self._classes_or_none() is not None)
        reached = self._reached(graph, place, coupled)
        sites = dict(self._sites(rows, graph, place, reached, seed))
        if callable(self.discrepancy) and coupled:
            for site in sites.values():
                need_gradients(site)
        with _few_threads(rows, shared), Parallel(n_jobs=self.n_jobs) as pool:
            run = Relaxation(
                graph,
                sites,
                shared,
                float(self.alpha),
                self._discrepancy(rows),
                self._unit(rows),
                self._classes_or_none(),
                pool,
                self.faults,
                self.schedule,
                seed,
                self.init,
                float(self.noise),
            )
            run.noisy = self._noisy(run, coupled)
            converged = self._iterate(run, coupled)
        return self._keep(run, converged)

    def _iterate(self, run: Relaxation, coupled: bool) -> bool:
        if not coupled:
            run.fit_local()
            return True
        # Noise never settles, and the number of rounds is paid for beforehand.
        with progress(self.verbose) as line:
            converged = run.run(int(self.rounds), self._tol(), line)
        without = np.array([i for i in run.sites if i not in run.state], dtype=np.int64)
        if without.size:
            what = "zero" if self._classes_or_none() is None else "all classes alike"
            warnings.warn(
                f"No news reached {without.size} nodes in {self.rounds} rounds, such as "
                f"{describe(run.graph.ids[without])}: they predict {what}. Increase rounds.",
                DataWarning,
                stacklevel=3,
            )
        elif not converged:
            last = run.history[-1].change
            warnings.warn(
                f"FedRelax stopped after {self.rounds} rounds: predictions still change by "
                f"{last:.1e} (tol {self.tol:g}). Increase rounds or tol, or set tol=None to do "
                "all rounds without a test; models such as trees may never settle.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return converged

    def _tol(self) -> float | None:
        """None does all rounds."""
        return None if self.noise or self.privacy is not None else self.tol

    def _reached(self, graph: Graph, place: NDArray[np.int64], coupled: bool) -> NDArray[Any]:
        """Nodes that data reach, shape (n_nodes,)."""
        parts = graph.components if coupled else np.arange(graph.n_nodes)
        reached = np.isin(parts, parts[place])
        if not reached.all():
            what = "zero" if self._classes_or_none() is None else "all classes alike"
            warnings.warn(
                f"{int((~reached).sum())} nodes are not connected to any data, such as "
                f"{describe(graph.ids[~reached])}: they predict {what}. "
                f"{'Add edges or data' if coupled else 'Use alpha > 0, add data'}, or drop them.",
                DataWarning,
                stacklevel=3,
            )
        return reached

    def _sites(
        self,
        rows: Rows,
        graph: Graph,
        place: NDArray[np.int64],
        reached: NDArray[Any],
        seed: int,
    ) -> Iterator[tuple[int, Site]]:
        classifier = self._classes_or_none() is not None
        if isinstance(self.estimator, dict):
            keys = [key for key in self.estimator if key is not None]
            lost = as_ids(keys)[graph.positions(as_ids(keys)) < 0] if keys else as_ids([])
            if len(lost):
                raise ValueError(
                    f"The keys of estimator must be nodes of the graph, or None; unknown: "
                    f"{describe(lost)}.{did_you_mean(graph.ids, lost)}"
                )
        draws = np.random.default_rng([seed, 3]).integers(_SEEDS, size=graph.n_nodes)
        even, labels = (rows.sample_weight == 1.0).all(), self._labels(rows.y)
        groups = grouped(place, graph.n_nodes)
        for i, (name, own) in enumerate(zip(graph.ids.tolist(), groups, strict=True)):
            if not reached[i]:
                continue
            state = None if self.random_state is None else int(draws[i])
            model = fresh(model_of(self.estimator, name, self._default()), name, classifier, state)
            weight = None if even else rows.sample_weight[own]
            yield i, Site(name, rows.X[own], labels[own], weight, model, int(draws[i]))

    def _keep(self, run: Relaxation, converged: bool) -> Any:
        """Set the fitted attributes."""
        self.graph_ = run.graph
        self.nodes_ = np.array(run.graph.ids)
        idle = constant(self._classes_or_none(), run.X_shared)
        self.estimators_ = {
            name: run.state[i].model if i in run.state else idle
            for i, name in enumerate(run.graph.ids.tolist())
        }
        self.X_shared_ = run.X_shared
        self.rounds_ = len(run.history)
        self.converged_ = converged
        self.history_ = run.history
        self.ledger_ = run.ledger
        return self

    def summary(self) -> Text:
        """What was fitted and sent, as text, and what is promised about privacy.

        Examples
        --------
        >>> import numpy as np
        >>> from nefele import FedRelaxRegressor, Graph
        >>> model = FedRelaxRegressor(
        ...     graph=Graph.from_edges([("a", "b")]), noise=0.1, rounds=3, random_state=0
        ... ).fit(np.array([[0.0], [1.0], [0.0], [1.0]]), np.arange(4.0), node_ids=list("aabb"))
        >>> print(model.summary().splitlines()[-1])
        privacy: no guarantee (predictions perturbed by noise of deviation 0.1)
        """
        check_is_fitted(self, "estimators_")
        return Text(summary_of(self))

    # -- checks -------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_number(self.alpha, "alpha", low=0.0, advice="Use alpha=0 for local fits.")
        check_name(self.schedule, ("jacobi", "gauss-seidel", "random"), "schedule")
        check_name(self.init, ("local", "zero"), "init")
        check_count(self.rounds, "rounds", low=1)
        check_verbose(self.verbose)
        if self.tol is not None:
            check_number(self.tol, "tol", low=0.0, advice="Use tol=None to do all rounds.")
        check_number(self.noise, "noise", low=0.0, advice="It is a standard deviation.")
        if self.noise and self.privacy is not None:
            raise ValueError(
                "noise is without any guarantee, privacy is one with noise of its own; got both. "
                "Leave noise out."
            )
        as_discrepancy(self.discrepancy, self._discrepancies, 1.0)
        if self.faults is not None and not isinstance(self.faults, Faults):
            raise ValueError(
                f"faults must be a nefele.runtime.Faults or None; got {type_name(self.faults)}."
            )

    def _discrepancy(self, rows: Rows) -> Discrepancy:
        return as_discrepancy(self.discrepancy, self._discrepancies, self._unit(rows))

    def _unit(self, rows: Rows) -> float:
        """The unit of changes: with privacy from the declared bounds, not from the rows."""
        if self.privacy is None or self._classes_or_none() is not None:
            return self._spread(rows)
        low, high = self.privacy.bounds.target
        return (high - low) / 4

    def _noisy(self, run: Relaxation, coupled: bool) -> Noisy | None:
        """The noise of what will be said, paid for; None when nothing is, or without privacy."""
        if self.privacy is not None and coupled:
            seen = (run.X_shared, run.alpha, run.classes, self.privacy)
            rehearse(run.sites.values(), run.possible(), *seen)
            return charge(self, run.graph)
        forget(self)
        return None

    # -- prediction ---------------------------------------------------------------------------

    def _by_node(self, X: Any, node_ids: Any) -> Iterator[tuple[NDArray[np.int64], Any, Array]]:
        """Rows, model and features of each node that occurs in X."""
        check_is_fitted(self, "estimators_")
        X, place = self._known_rows(X, node_ids, "a model")
        groups = grouped(place, len(self.nodes_))
        for name, own in zip(self.nodes_.tolist(), groups, strict=True):
            if own.size:
                yield own, self.estimators_[name], X[own]


def grouped(labels: NDArray[np.int64], n: int) -> list[NDArray[np.int64]]:
    """Positions of each of the labels 0, ..., n - 1, in order.

    Examples
    --------
    >>> [group.tolist() for group in grouped(np.array([1, 0, 1]), 3)]
    [[1], [0, 2], []]
    """
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels, minlength=n))[:-1])


def _few_threads(rows: Rows, shared: Array) -> AbstractContextManager[Any]:
    """One OpenMP thread for small fits: on two busy cores boosting 12 rows took 1.8 s, then 19 ms.

    The threads of the linear algebra library are left alone: they may change the last bits.
    """
    if len(rows.y) + len(shared) >= _LARGE:
        return nullcontext()
    return ThreadpoolController().limit(limits=1, user_api="openmp")
