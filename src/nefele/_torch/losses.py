"""What outputs of a network mean, and the loss of each row."""

from __future__ import annotations

from typing import Any

from nefele._checks import check_name
from nefele._torch.base import RowLoss, Tensor, torch


def values_of(out: Tensor) -> Tensor:
    """Predictions of a regression network, shape (n_rows,)."""
    return out.squeeze(-1) if out.ndim == 2 else out


def logits_of(out: Tensor, n_outputs: int) -> Tensor:
    """Logits of all classes, shape (n_rows, n_classes); a single one is that of the second."""
    if n_outputs == 2 and (out.ndim == 1 or out.shape[-1] == 1):
        single = values_of(out)
        return torch.stack([torch.zeros_like(single), single], dim=-1)
    return out


def _squared(z: Tensor, y: Tensor) -> Tensor:
    return (z - y) ** 2


def _absolute(z: Tensor, y: Tensor) -> Tensor:
    return (z - y).abs()


def _cross_entropy(z: Tensor, y: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(z, y, reduction="none")


REGRESSION: dict[str, RowLoss] = {"absolute": _absolute, "squared": _squared}
CLASSIFICATION: dict[str, RowLoss] = {"cross_entropy": _cross_entropy}


def as_row_loss(loss: Any, known: dict[str, RowLoss]) -> RowLoss:
    """The loss of each row, by name or as a function of outputs and targets."""
    if callable(loss):

        def by_row(z: Tensor, y: Tensor) -> Tensor:
            value = loss(z, y)
            if value.shape != y.shape[:1]:
                raise ValueError(
                    f"loss must give one number per row, shape {tuple(y.shape[:1])}; got shape "
                    f'{tuple(value.shape)}. Use reduction="none".'
                )
            return value

        return by_row
    return known[check_name(loss, known, "loss")]
