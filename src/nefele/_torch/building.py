"""A network from what a user gives, its outputs checked."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

from nefele._checks import check_name, type_name
from nefele._torch.base import DTYPES, Module, torch


def plain_network(n_features: int, n_outputs: int = 1) -> Module:
    """One hidden layer of 32 units, the default network."""
    return torch.nn.Sequential(
        torch.nn.Linear(n_features, 32), torch.nn.Tanh(), torch.nn.Linear(32, n_outputs)
    )


def build(module: Any, n_features: int, n_outputs: int, dtype: str) -> Module:
    """A network of one's own from a factory or as a copy, its outputs checked.

    A factory gets n_features and, if it has a parameter n_outputs or a second one without a
    default, n_outputs.
    """
    if module is None:
        made: Any = plain_network(n_features, n_outputs)
    elif isinstance(module, Module):
        made = copy.deepcopy(module)
    elif callable(module):
        both = _takes_outputs(module)
        made = module(n_features, n_outputs) if both else module(n_features)
    else:
        made = module
    if not isinstance(made, Module):
        raise ValueError(
            "module must be a torch.nn.Module, or a function of n_features[, n_outputs] that "
            f"makes one; got {type_name(made)}."
        )
    made = made.to(DTYPES[check_name(dtype, DTYPES, "dtype")])
    _check_outputs(made, n_features, n_outputs, dtype)
    return made


def _takes_outputs(factory: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(factory).parameters
    except ValueError:
        return False
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters.values() if p.kind in plain and p.default is p.empty]
    return len(needed) > 1 or "n_outputs" in list(parameters)[1:2]


def _check_outputs(module: Module, n_features: int, n_outputs: int, dtype: str) -> None:
    """Two rows and one through the network: it must take the features and give the outputs."""
    module.eval()
    for count in (2, 1):
        rows = torch.zeros(count, n_features, dtype=DTYPES[dtype])
        try:
            with torch.no_grad():
                shape = tuple(module(rows).shape)
        except (RuntimeError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(
                f"module must take rows of {n_features} features, shape (n_rows, {n_features}), "
                f"and give one tensor; it failed: {error}"
            ) from error
        allowed: list[tuple[int, ...]] = [(count, n_outputs)]
        if n_outputs <= 2:  # one logit is enough for two classes
            allowed += [(count, 1), (count,)]
        if shape not in allowed:
            raise ValueError(
                f"module must give {n_outputs} output(s) per row (a classifier: one for each class "
                f"among its rows); {count} row(s) of {n_features} features gave shape {shape}. "
                "Change its last layer, or use a function of n_features, n_outputs."
            )
