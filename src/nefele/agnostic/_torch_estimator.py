"""What the regressor and the classifier of torch share: training, and the pull of neighbours."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from nefele._checks import Array, check_flag
from nefele._torch.base import Tensor, tensor, threads, torch
from nefele._torch.network import Network
from nefele.agnostic._discrepancy import Pull
from nefele.agnostic._torch_discrepancy import symmetric
from nefele.agnostic._torch_train import Plan, train


@dataclass(eq=False, repr=False)
class TorchBase(Network):
    """Training and prediction; a subclass gives the loss and the meaning of the outputs."""

    _: KW_ONLY
    epochs: int = 200
    early_stop: int | None = None
    weight_decay: float = 0.0
    warm_start: bool = False

    # -- for the subclasses -------------------------------------------------------------------

    def _shared(self, outputs: Tensor) -> Tensor:
        """What neighbours compare: predictions, or probabilities."""
        return torch.softmax(outputs, dim=1) if self._labels else outputs

    def _check(
        self, X: Any, y: Any, going_on: bool, classes: NDArray[Any] | None, at_least: int
    ) -> tuple[Array, NDArray[Any]]:
        """X and the target as numbers; sets `classes_` of a classifier."""
        raise NotImplementedError

    # -- fit ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train from new parameters; with `warm_start` from those of the last fit.

        Parameters
        ----------
        X : array of shape (n_rows, d)
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
            Row weights >= 0: the weighted mean of the losses is minimised.
        """
        going_on = bool(self.warm_start) and hasattr(self, "module_")
        return self._fit(X, y, sample_weight, going_on)

    def fit_pulled(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        X_shared: Array,
        pull: Pull,
        alpha: float,
        classes: NDArray[Any] | None = None,
    ) -> Any:
        """One update of FedRelax with a discrepancy of the user's own (AGN, Eq. (11)).

        Minimises L(h) + alpha sum_j A_j d(h, p_j), d the mean over the shared rows of
        [discrepancy(h, p) + discrepancy(p, h)] / 2, which is symmetric whatever was given.

        Parameters
        ----------
        X, y, sample_weight
            See `fit`; there may be no rows.
        X_shared : array of shape (m', d)
        pull : Pull
            The neighbours' predictions on the shared rows, the weights of the edges, and the
            discrepancy: a function of two tensors of shape (m',), or (m', n_classes) with
            probabilities, that gives one number per row.
        alpha : float
        classes : array of shape (n_classes,), optional
            All labels there are; for classifiers.
        """
        same = classes is None or np.array_equal(getattr(self, "classes_", []), classes)
        going_on = bool(self.warm_start) and hasattr(self, "module_") and same
        return self._fit(X, y, sample_weight, going_on, classes, (X_shared, pull, alpha))

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        going_on: bool,
        classes: NDArray[Any] | None = None,
        coupling: tuple[Array, Pull, float] | None = None,
    ) -> Any:
        plan = self._check_parameters()
        X, y = self._check(X, y, going_on, classes, 0 if coupling else 1)
        weight = np.zeros(0)
        if len(X):
            weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        on = weight > 0
        with self._session():
            if not going_on:
                self.module_ = self._build(X.shape[1])
            self.loss_curve_ = self._train(plan, X[on], y[on], weight[on], coupling)
        self.n_iter_ = len(self.loss_curve_)
        return self

    def _train(
        self,
        plan: Plan,
        X: Array,
        y: NDArray[Any],
        weight: Array,
        coupling: tuple[Array, Pull, float] | None,
    ) -> list[float]:
        rows, loss = tensor(X, self.dtype), self._row_loss()
        target = torch.tensor(y) if y.dtype.kind == "i" else tensor(y, self.dtype)
        share = tensor(weight / weight.mean() if len(weight) else weight, self.dtype)

        def local(at: Any) -> Tensor:
            losses = loss(self._outputs(self.module_(rows[at])), target[at])
            return (share[at] * losses).mean()

        if coupling is None:
            return train(self.module_, local, len(rows), plan)
        X_shared, pull, alpha = coupling
        common = tensor(X_shared, self.dtype)
        heard, weights = tensor(pull.news, self.dtype), tensor(pull.weights, self.dtype)

        def pulled(at: Any) -> Tensor:
            h = self._shared(self._outputs(self.module_(common)))
            apart = torch.stack([symmetric(pull.call, h, p) for p in heard])
            coupling = alpha * (weights * apart).sum()
            return coupling + local(at) if len(rows) else coupling

        return train(self.module_, pulled, len(rows), plan)

    def _check_parameters(self) -> Plan:
        check_flag(self.warm_start, "warm_start")
        self._check_network()
        return Plan.of(self)

    def _forward(self, X: Any) -> Tensor:
        """Outputs of the fitted network, without dropout."""
        check_is_fitted(self, "module_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        with torch.no_grad(), threads(self.n_threads):
            return self._outputs(self.module_.eval()(tensor(X, self.dtype)))
