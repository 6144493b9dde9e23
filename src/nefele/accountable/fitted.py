"""A fitted estimator as a problem with its way back to the units of X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array, type_name
from nefele.data import LocalData
from nefele.estimators import GTVClassifier, GTVRegressor
from nefele.estimators.design import Design, Rows
from nefele.estimators.fitting import core_loss, feature_names, fitted_design, labels_of
from nefele.problem import Problem


@dataclass(frozen=True, eq=False)
class Fitted:
    """The problem of a fit, its solution, and the linear map from parameters to the units of X.

    Attributes
    ----------
    model : GTVRegressor or GTVClassifier
    rows : Rows
        Training rows.
    order : int array
        Row of `rows.places` of each row of the problem: training rows, then signals.
    design : Design
    problem : Problem
        That of the design, with the target not shifted where the models can hold the shift.
    w, u : arrays
        Parameters and duals.
    units : array of shape (d + 1, p)
        Coefficients and, the last, intercept of parameters; of more than two classes one after
        the other.
    base : array of shape (d + 1,)
        What is common to all nodes and no parameter.
    names : list of str
        The features, then "intercept"; of more than two classes all in turn.
    """

    model: Any
    rows: Rows
    order: Any
    design: Design
    problem: Problem
    w: Array
    u: Array
    units: Array
    base: Array
    names: list[str]

    def to_units(self, parameters: Array) -> Array:
        """Coefficients and intercepts of parameters (..., p), without what is common."""
        return np.asarray(parameters @ self.units.T)

    @property
    def n_outputs(self) -> int:
        """Models of a node: 1, or one for each of more than two classes."""
        return int(self.design.n_outputs)

    def targets(self, y: Array) -> list[Any]:
        """Labels as the user gave them: numbers, or classes as text."""
        found = labels_of(self.model, y).tolist()
        return [str(label) for label in found] if hasattr(self.model, "classes_") else found

    def stored(self, at: int) -> Array:
        """Coefficients and intercept of a node as the model has them, shape (n_outputs, d + 1)."""
        coef, intercept = self.model.coef_[at], self.model.intercept_[at]
        return np.column_stack([np.atleast_2d(coef), np.atleast_1d(intercept)])


def one_estimator(model: Any) -> Any:
    """The GTVRegressor or GTVClassifier of a fitted model; that of a search is its best one."""
    inner = getattr(model, "best_estimator_", model)
    if not isinstance(inner, GTVRegressor | GTVClassifier):
        raise ValueError(
            "model must be a fitted GTVRegressor, GTVClassifier or a search for one "
            f"(GTVRegressorCV, GTVClassifierCV); got {type_name(model)}."
        )
    check_is_fitted(inner, "coef_")
    return inner


def fitted(model: Any) -> Fitted:
    """A fitted model as a problem; an error for lost rows."""
    model = one_estimator(model)
    rows, design, w, u = fitted_design(model)
    units, base = _affine(design, w.shape[1])
    problem, w, base = _unshifted(design, core_loss(model), w, units, base)
    order = np.argsort(design.graph.positions(rows.node_ids[rows.places]), kind="stable")
    names = [*feature_names(model), "intercept"]
    if design.n_outputs > 1:
        names = [f"{name} [{label}]" for label in model.classes_.tolist() for name in names]
    return Fitted(model, rows, order, design, problem, w, u, units, base, names)


def _affine(design: Design, p: int) -> tuple[Array, Array]:
    """Matrix and constant of the map from parameters to the units of X."""
    coef, intercept = design.to_units(np.vstack([np.zeros((1, p)), np.eye(p)]), fill=False)
    whole = np.concatenate([coef, intercept[:, :, None]], axis=2).reshape(p + 1, -1)
    return (whole[1:] - whole[0]).T, whole[0]


def _unshifted(
    design: Design, loss: Any, w: Array, units: Array, base: Array
) -> tuple[Problem, Array, Array]:
    """The same fit with the target as given: what was taken from it belongs to the rows."""
    problem, data = design.problem, design.problem.data
    if not design.offset or data is None:
        return problem, w, base
    goal = np.zeros(len(base))
    goal[-1] = design.offset
    step = np.linalg.lstsq(units, goal, rcond=None)[0]
    if np.abs(units @ step - goal).max() > 1e-9 * abs(design.offset):
        return problem, w, base
    whole = LocalData(
        data.X,
        data.y + design.offset,
        data.ptr,
        data.ids,
        sample_weight=data.sample_weight,
        node_weight=data.node_weight,
        shrink=data.shrink,
        offset=data.offset,
    )
    again = Problem(problem.graph, whole, loss, problem.penalty, lam=problem.lam)
    return again, w + step, base - goal
