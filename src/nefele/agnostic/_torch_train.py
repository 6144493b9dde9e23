"""The training of one network: a weighted mean of losses, minimised by an optimiser of torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from nefele._checks import check_count, check_name, check_number
from nefele._torch.base import Module, Tensor, torch

OPTIMIZERS = ("adam", "lbfgs", "sgd")
_PROGRESS = 1e-4  # relative fall of the objective that counts as progress


@dataclass(frozen=True)
class Plan:
    """How to train; see `TorchRegressor`."""

    optimizer: Any
    lr: float
    epochs: int
    batch_size: int | None
    early_stop: int | None
    weight_decay: float

    @classmethod
    def of(cls, model: Any) -> Plan:
        """From the parameters of an estimator, checked."""
        if not callable(model.optimizer):
            check_name(model.optimizer, OPTIMIZERS, "optimizer")
        size, patience = model.batch_size, model.early_stop
        if size is not None and model.optimizer == "lbfgs":
            raise ValueError(
                f'optimizer="lbfgs" needs all rows at once; got batch_size={size!r}. Use '
                'batch_size=None, or "adam".'
            )
        return cls(
            model.optimizer,
            check_number(model.lr, "lr", low=0.0, strict=True),
            check_count(model.epochs, "epochs", low=1),
            None if size is None else check_count(size, "batch_size", low=1),
            None if patience is None else check_count(patience, "early_stop", low=1),
            check_number(model.weight_decay, "weight_decay", low=0.0),
        )

    def start(self, parameters: list[Tensor]) -> Any:
        """The optimiser; weight decay is part of the objective and not its affair."""
        if callable(self.optimizer):
            return self.optimizer(parameters, lr=self.lr)
        if self.optimizer == "lbfgs":
            return torch.optim.LBFGS(
                parameters,
                lr=self.lr,
                tolerance_grad=1e-12,
                tolerance_change=1e-14,
                line_search_fn="strong_wolfe",
            )
        kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
        return kinds[self.optimizer](parameters, lr=self.lr)


def train(
    module: Module, objective: Callable[[Any], Tensor], n_rows: int, plan: Plan
) -> list[float]:
    """Minimise objective(rows) + weight_decay / 2 ||w||^2; its value in each epoch.

    The module is changed in place, and left in evaluation mode. The objective takes some of the
    n_rows rows, as a slice or by their numbers.
    """
    parameters: list[Tensor] = [p for p in module.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError("module must have parameters to train; got none. Add a layer.")
    optimizer = plan.start(parameters)

    def backward(rows: Any) -> Tensor:
        optimizer.zero_grad()
        value = objective(rows)
        if plan.weight_decay:
            value = value + plan.weight_decay / 2 * sum((p**2).sum() for p in parameters)
        value.backward()
        return value.detach()

    module.train()
    curve: list[float] = []
    for epoch in range(plan.epochs):
        total = 0.0
        for rows, share in _batches(n_rows, plan.batch_size):
            total += share * float(optimizer.step(partial(backward, rows)))
        if not torch.isfinite(torch.tensor(total)):
            raise ValueError(
                f"Training diverged: the objective is {total} in epoch {epoch + 1}. Lower lr "
                f"({plan.lr:g}), or scale the features and the target."
            )
        curve.append(total)
        if plan.early_stop is not None and _stuck(curve, plan.early_stop):
            break
    module.eval()
    return curve


def _batches(n_rows: int, size: int | None) -> Iterator[tuple[Any, float]]:
    """Rows of each batch in random order, and their share in all rows."""
    if size is None or size >= n_rows:
        yield slice(None), 1.0
        return
    order = torch.randperm(n_rows)
    for start in range(0, n_rows, size):
        rows = order[start : start + size]
        yield rows, len(rows) / n_rows


def _stuck(curve: list[float], patience: int) -> bool:
    """Whether the last epochs brought nothing over what there was before."""
    if len(curve) <= patience:
        return False
    best = min(curve[:-patience])
    return min(curve[-patience:]) > best - _PROGRESS * abs(best)
