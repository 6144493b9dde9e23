"""What the regressor and the classifier share: checks, the fit, which model a row gets."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array, check_name, check_number, type_name
from nefele._ids import describe
from nefele._progress import check_verbose
from nefele.data import LocalData
from nefele.engines import solve
from nefele.estimators import design as designs
from nefele.estimators import private
from nefele.estimators.design import Design, Rows
from nefele.estimators.fitted_model import FittedModel
from nefele.estimators.layout import Layout
from nefele.estimators.metric import check_layout, make_layout
from nefele.estimators.nodes import row_places
from nefele.estimators.rows_base import NodeTags, RowsBase
from nefele.estimators.scores import raw, warn_outside
from nefele.estimators.signals import told_signals
from nefele.graph import Graph
from nefele.graphs.mapped import MappedGraph
from nefele.losses import Loss, PointwiseLoss, Zero
from nefele.paths.follow import whole_solve
from nefele.problem import Problem
from nefele.result import DataWarning, Result, equal_groups


@dataclass(eq=False, repr=False)
class GTVParameters(NodeTags):
    """The parameters of a fit but for the strength of the coupling."""

    graph: Any = None
    _: KW_ONLY
    node: Any = None
    penalty: Any = "l2"
    loss: Any = None
    fit_intercept: bool = True
    couple: Any = None
    couple_intercept: bool = True
    weighting: str = "rows"
    standardize: bool = True
    scale: Any = None
    hub: float = 0.0
    features: str = "linear"
    coords: Any = None
    unseen: str = "raise"
    solver: Any = "auto"
    tol: float = 1e-4
    max_iter: int | None = None
    verbose: bool | int = False
    privacy: Any = None


@dataclass(eq=False, repr=False)
class GTVBase(FittedModel, RowsBase, GTVParameters):
    """Fit, partial fit and choice of models; a subclass gives the target, the loss, `predict`."""

    _encodes: ClassVar[bool] = True

    _: KW_ONLY
    alpha: float = 1.0
    loss: Any = "squared"
    explainable: float = 1.0
    engine: Any = None

    # -- for the subclasses -------------------------------------------------------------------

    def _core_loss(self) -> Loss:
        """The core's loss object."""
        raise NotImplementedError

    @property
    def _n_outputs(self) -> int:
        return 1

    # -- fit ----------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        node_ids: Any = None,
        signal: Any = None,
    ) -> Self:
        """Fit one model per node of the graph.

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
            pandas, polars, NumPy or SciPy sparse.
        y : array of shape (n_rows,)
            Target.
        sample_weight : array of shape (n_rows,), optional
            Row weights >= 0.
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        signal : array of shape (n_rows,) or (n_rows, n_classes), optional
            What a user would expect of each row, NaN where nothing: `explainable` says how near to
            it predictions are kept. In the units of y; for two classes the probability of the
            second, for more those of all.

        Returns
        -------
        self
        """
        rows = self._take_rows(X, y, sample_weight, node_ids, reset=True)
        rows = self._with_signals(rows, signal, sample_weight)
        self._forget_layout()
        self._forget_choice()
        if self.privacy is not None:
            return private.fit(self, rows)
        private.forget(self)
        design = self._make_design(rows, self._make_graph(rows))
        return self._solve(rows, design)

    def _with_signals(self, rows: Rows, signal: Any, sample_weight: Any) -> Rows:
        """The rows and what a user would expect of them."""
        if signal is None or not self.explainable:
            return rows
        if self.privacy is not None:
            raise ValueError("signal must be left out with privacy: no bound covers signals.")
        strength, classes = float(self.explainable), getattr(self, "classes_", None)
        found = told_signals(signal, rows.y, sample_weight, strength, self._core_loss(), classes)
        return replace(rows, signals=found)

    def solution(self) -> tuple[Problem, Array, Array] | None:
        """The fit as the core has it: the problem, its parameters and its duals.

        Returns
        -------
        (problem, w, u), or None for a model without its training rows
        """
        if not hasattr(self, "_flow") or getattr(self, "_rows", None) is None:
            return None
        design = self._make_design(self._rows, self.graph_)
        return design.problem, self._point(design), self._flow

    def _point(self, design: Design) -> Array:
        """The parameters of the fit as those of its problem."""
        point = getattr(self, "_parameters", None)
        return design.from_units(*self._stacked()) if point is None else np.asarray(point)

    def _forget_layout(self) -> None:
        for name in ("_layout", "_parameters", "_curve_weight"):
            self.__dict__.pop(name, None)

    def _forget_choice(self) -> None:
        for name in ("coupling_", "candidates_"):
            self.__dict__.pop(name, None)

    def _partial_fit(
        self, X: Any, y: Any, sample_weight: Any, node_ids: Any, forget: float = 1.0
    ) -> Any:
        if not 0 < check_number(forget, "forget") <= 1:
            raise ValueError(f"forget must be in (0, 1]; got {forget!r}.")
        if self.privacy is not None:
            raise ValueError(
                "partial_fit keeps the rows it has seen, which privacy does not allow. Use fit; "
                "every fit is charged."
            )
        first = not hasattr(self, "graph_")
        rows = self._take_rows(X, y, sample_weight, node_ids, reset=first)
        if first:
            return self._solve(rows, self._make_design(rows, self._make_graph(rows)))
        if getattr(self, "_rows", None) is None:
            raise ValueError(
                "partial_fit needs the rows that were fitted before, and this model was saved "
                "without them. Save it by model.save(path, rows=True), or fit it again."
            )
        rows = self._rows.faded(forget).then(rows)
        again = hasattr(self, "_layout")
        self._forget_layout()
        self._forget_choice()
        design = self._make_design(rows, self.graph_)
        if again:  # the metric is estimated again: what was fitted is of another problem
            return self._solve(rows, design)
        w0 = design.from_units(*self._stacked())
        same = self._flow.shape == (design.problem.graph.n_edges, w0.shape[1])
        return self._solve(rows, design, w0, self._flow if same else None)

    def _check_parameters(self) -> None:
        check_number(self.alpha, "alpha", low=0.0, advice="Use alpha=0 for local fits.")
        check_number(self.explainable, "explainable", low=0.0)
        check_verbose(self.verbose)
        check_name(self.weighting, ("nodes", "rows"), "weighting")
        check_name(self.unseen, ("raise", "pooled", "nearest", "centre"), "rule for unseen nodes")
        check_layout(self.scale, self.hub, self.features)
        if isinstance(self.graph, MappedGraph) and self.graph.block and self.standardize:
            raise ValueError(
                "Maps compare parameters as they are, the intercept last: use standardize=False."
            )
        if (self.scale is not None or self.hub) and not (
            self.couple is None and self.couple_intercept
        ):
            raise ValueError(
                "couple and couple_intercept must be left out with scale or hub; a scale of 0 "
                "makes a coefficient common."
            )
        if self.unseen == "nearest" and self.coords is None:
            raise ValueError(
                'unseen="nearest" needs coords: a dict {node id: point} or a table with one row '
                'per node. Use unseen="pooled" without coordinates.'
            )

    def _check_bare(self) -> None:
        if not self.fit_intercept:
            raise ValueError(
                "X must have a feature beside the node ids when there is no intercept; got none. "
                "Add a feature, or use fit_intercept=True for one mean per node."
            )

    def _make_design(self, rows: Rows, graph: Graph) -> Design:
        """The problem of these rows over this graph, and the way back to the units of X."""
        row_places(graph, rows.node_ids)  # all must be there
        intercept = bool(self.fit_intercept)
        layout = self._make_layout(rows, graph)
        if layout is not None:
            args = (self._core_loss(), self.penalty, float(self.alpha), self.weighting)
            return designs.laid_out(rows, graph, layout, *args, self._n_outputs)
        shift, scale = designs.scaling(rows, bool(self.standardize), intercept)
        coupled = designs.coupled_mask(
            self.couple, self.couple_intercept, self._names(), rows.X.shape[1], intercept
        )
        loss, outputs = self._core_loss(), self._n_outputs
        offset = designs.target_offset(rows, loss, intercept)
        data = designs.local_data(rows, graph.ids, shift, scale, intercept, self.weighting, offset)
        problem = designs.make_problem(
            graph, data, loss, self.penalty, float(self.alpha), coupled, outputs
        )
        return Design(problem, shift, scale, coupled, outputs, offset)

    def _make_layout(self, rows: Rows, graph: Graph) -> Layout | None:
        """The metric, common part and centre that are asked for, or those of the fit."""
        if hasattr(self, "_layout"):
            return self._layout
        if self.scale is not None or self.features != "linear":
            self._check_labels(rows, graph)
        return make_layout(
            rows,
            graph,
            self._core_loss(),
            scale=self.scale,
            hub=float(self.hub),
            features=self.features,
            fit_intercept=bool(self.fit_intercept),
            alpha=float(self.alpha),
            standardize=bool(self.standardize),
        )

    def _check_labels(self, rows: Rows, graph: Graph) -> None:
        """The loss sees the target before anything is estimated from it."""
        loss = self._core_loss()
        if isinstance(loss, PointwiseLoss):
            none = np.zeros((len(rows.y), 1))
            loss.check(LocalData.from_long(none, rows.y, rows.node_ids, graph.ids))

    def _solve(self, rows: Rows, design: Design, w0: Any = None, u0: Any = None) -> Any:
        with warnings.catch_warnings():
            if not design.coupled.all():  # said below: not all of their parameters are 0
                warnings.filterwarnings("ignore", ".* not connected to any data", DataWarning)
            options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
            options["verbose"] = self.verbose
            if self.engine is None:
                result = whole_solve(design.problem, self.solver, w0=w0, u0=u0, **options)
            else:  # begins at zero
                chosen = engine_options(self.engine)
                result = solve(design.problem, self.solver, **options, **chosen)
        lost = result.undetermined
        if lost.any() and not design.coupled.all():
            some = "coupled parameters are set to 0, the others"
            some = some if design.coupled.any() else "models"
            warnings.warn(
                f"{int(lost.sum())} nodes are not connected to any data, such as "
                f"{describe(design.problem.graph.ids[lost])}: their {some} are the mean over the "
                "nodes with rows. Add edges or data, or drop them.",
                DataWarning,
                stacklevel=3,
            )
        return self._store(rows, design, result)

    def _store(self, rows: Rows, design: Design, result: Result) -> Any:
        """Set the fitted attributes from a solution of the design's problem."""
        graph = design.graph
        self.graph_ = graph
        self.nodes_ = np.array(graph.ids)
        self._forget_layout()
        for name in ("centre_coef_", "centre_intercept_"):
            self.__dict__.pop(name, None)
        coef, intercept = self._shaped(*design.to_units(result.w))
        n = graph.n_nodes
        self.coef_, self.intercept_ = coef[:n], intercept[:n]
        if design.layout is not None:
            self._layout, self._parameters = design.layout, result.w
            if design.carried:
                self._curve_weight = design.common_weights(result.w)
        if design.hub:
            self.centre_coef_, self.centre_intercept_ = coef[n], intercept[n]
        self.clusters_ = self._clusters(design, result.w)
        self.dual_gap_ = float(result.gap)
        self.status_ = str(result.status)
        self.n_iter_ = max(int(result.n_iter), 1)
        self.history_ = list(result.history)
        self._rows = rows
        self._flow = result.u
        self._pool(design)
        return self

    def _clusters(self, design: Design, w: Array) -> NDArray[np.int64]:
        part = design.coupled_part(w) if design.problem.coupled else w
        labels = equal_groups(design.problem.graph, part)[: design.graph.n_nodes]
        return np.unique(labels, return_inverse=True)[1] if design.hub else labels

    def _pool(self, design: Design) -> None:
        """The pooled model with the same weighting, for ids that the graph does not know."""
        for name in ("pooled_coef_", "pooled_intercept_"):
            if hasattr(self, name):
                delattr(self, name)
        if self.unseen != "pooled" or design.problem.data is None:
            return
        found = whole_solve(design.one_model(self._core_loss()), tol=self.tol)
        coef, intercept = self._shaped(*design.to_units(found.w, fill=False))
        self.pooled_coef_, self.pooled_intercept_ = coef[0], intercept[0]

    def _shaped(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Without the axis of the outputs where there is only one."""
        return (coef[:, 0], intercept[:, 0]) if self._n_outputs == 1 else (coef, intercept)

    def _stacked(self) -> tuple[Array, Array]:
        """The fitted coefficients with the axis of the outputs."""
        if self._n_outputs == 1:
            return self.coef_[:, None, :], self.intercept_[:, None]
        return self.coef_, self.intercept_

    # -- prediction ---------------------------------------------------------------------------

    def _raw(self, X: Any, node_ids: Any) -> Array:
        """x^T w + b with the model of each row's node, shape (n_rows,) or (n_rows, n_classes)."""
        check_is_fitted(self, "coef_")
        X, ids = self._rows_to_predict(X, node_ids)
        warn_outside(self, X)
        return raw(self, X, ids)


def engine_options(engine: Any) -> dict[str, Any]:
    """The options of `nefele.solve` that an estimator's `engine` stands for.

    Examples
    --------
    >>> engine_options("ray"), engine_options({"engine": "mpi", "parts": 4})
    ({'engine': 'ray'}, {'engine': 'mpi', 'parts': 4})
    """
    given = {"engine": engine} if isinstance(engine, str) else engine
    known = ("engine", "parts", "address", "checkpoint", "every", "resume")
    if not isinstance(given, dict) or "engine" not in given or not set(given) <= set(known):
        raise ValueError(
            'engine must be None, a name such as "ray", or a dict with "engine" and perhaps '
            f"{', '.join(known[1:])}; got {engine!r}."
        )
    return dict(given)


def as_loss(loss: Any, names: dict[str, type[Loss]]) -> Loss:
    """The loss object that a name or an object stands for."""
    if isinstance(loss, str):
        return names[check_name(loss, names, "loss")]()
    if isinstance(loss, type):
        raise ValueError(f"loss must be an object; got a class. Use {loss.__name__}().")
    if not isinstance(loss, Loss) or isinstance(loss, Zero):
        raise ValueError(
            f"loss must be one of {', '.join(names)} or a Loss object; got {type_name(loss)}."
        )
    return loss
