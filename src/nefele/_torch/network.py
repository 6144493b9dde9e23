"""What estimators with networks share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from nefele._checks import check_count, check_name
from nefele._torch.base import DTYPES, SEEDS, Module, RowLoss, Tensor, session
from nefele._torch.building import build
from nefele._torch.losses import CLASSIFICATION, REGRESSION, as_row_loss, logits_of, values_of


@dataclass(eq=False, repr=False)
class Network(BaseEstimator):
    """What estimators with networks share: how one is built, its outputs, the loss of a row."""

    _labels = False  # whether the target holds classes

    module: Any = None
    _: KW_ONLY
    loss: Any = "squared"
    optimizer: Any = "adam"
    lr: float = 0.01
    batch_size: int | None = None
    dtype: str = "float32"
    n_threads: int | None = 1
    random_state: Any = None

    classes_: NDArray[Any] = field(init=False)

    @property
    def _n_outputs(self) -> int:
        return len(self.classes_) if self._labels else 1

    def _row_loss(self) -> RowLoss:
        return as_row_loss(self.loss, CLASSIFICATION if self._labels else REGRESSION)

    def _outputs(self, out: Tensor) -> Tensor:
        """Predictions, or logits of all classes."""
        return logits_of(out, self._n_outputs) if self._labels else values_of(out)

    def _check_network(self) -> None:
        self._row_loss()
        check_name(self.dtype, DTYPES, "dtype")
        if self.n_threads is not None:
            check_count(self.n_threads, "n_threads", low=1)

    def _session(self) -> AbstractContextManager[None]:
        seed = int(check_random_state(self.random_state).randint(SEEDS))
        return session(seed, self.n_threads)

    def _build(self, n_features: int) -> Module:
        return build(self.module, n_features, self._n_outputs, self.dtype)
