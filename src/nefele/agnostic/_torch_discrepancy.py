"""A discrepancy of the user's own: a function of two tensors of predictions."""

from __future__ import annotations

from typing import Any

from nefele._checks import Array
from nefele._torch.base import Tensor, torch


def symmetric(call: Any, h: Tensor, p: Tensor) -> Tensor:
    """Mean over the rows of [call(h, p) + call(p, h)] / 2."""
    both = call(h, p) + call(p, h)
    if both.shape != h.shape[:1]:
        raise ValueError(
            f"discrepancy must give one number per shared row, shape {tuple(h.shape[:1])}; got "
            f"{tuple(both.shape)}. Sum over the classes, and leave out the mean over the rows."
        )
    return both.mean() / 2


def free_value(call: Any, h: Array, p: Array) -> float:
    """The discrepancy of two arrays of predictions."""
    with torch.no_grad():
        return float(symmetric(call, torch.tensor(h), torch.tensor(p)))
