"""A network from what a user gives, its outputs checked."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

from nefele._checks import check_name, type_name
from nefele._torch.base import DTYPES, Module, Tensor, torch


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
    kind = DTYPES[check_name(dtype, DTYPES, "dtype")]
    return build_for(module, torch.zeros(1, n_features, dtype=kind), n_outputs, dtype)[0]


def build_for(module: Any, example: Tensor, n_outputs: int, dtype: str) -> tuple[Module, bool]:
    """A network for rows like the example, shape (1, ...), and whether it needs whole numbers.

    A factory gets the number of features, or the shape of a row that is not flat, such as
    (1, 28, 28). Whole numbers are for networks with an embedding that do not take others.
    """
    shape = tuple(example.shape[1:])
    made = _made(module, shape[0] if len(shape) == 1 else shape, n_outputs)
    made = made.to(DTYPES[check_name(dtype, DTYPES, "dtype")]).eval()
    embeds = any(isinstance(layer, torch.nn.Embedding) for layer in made.modules())
    tokens = embeds and (not example.is_floating_point() or not takes(made, example))
    _check_outputs(made, example.long() if tokens else example, n_outputs)
    return made, tokens


def _made(module: Any, shape: Any, n_outputs: int) -> Module:
    if module is None and isinstance(shape, int):
        made: Any = plain_network(shape, n_outputs)
    elif isinstance(module, Module):
        made = copy.deepcopy(module)
    elif callable(module):
        made = module(shape, n_outputs) if _takes_outputs(module) else module(shape)
    else:
        made = module
    if not isinstance(made, Module):
        raise ValueError(
            "module must be a torch.nn.Module, or a function of n_features[, n_outputs] that "
            f"makes one (of the shape of a row, if that is not flat); got {type_name(made)}."
        )
    return made


def _takes_outputs(factory: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(factory).parameters
    except ValueError:
        return False
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters.values() if p.kind in plain and p.default is p.empty]
    return len(needed) > 1 or "n_outputs" in list(parameters)[1:2]


def takes(module: Module, rows: Tensor) -> bool:
    """Whether the network runs on such rows."""
    try:
        with torch.no_grad():
            module(rows)
    except (RuntimeError, TypeError, IndexError):
        return False
    return True


def _check_outputs(module: Module, example: Tensor, n_outputs: int) -> None:
    """Two rows and one through the network: it must take the features and give the outputs."""
    row = tuple(example.shape[1:])
    what = f"{row[0]} features" if len(row) == 1 else f"shape {row}"
    for count in (2, 1):
        rows = example.repeat(count, *[1] * len(row))
        try:
            with torch.no_grad():
                shape = tuple(module(rows).shape)
        except (RuntimeError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise ValueError(
                f"module must take rows of {what}, shape {('n_rows', *row)}, "
                f"and give one tensor; it failed: {error}".replace("'n_rows'", "n_rows")
            ) from error
        allowed: list[tuple[int, ...]] = [(count, n_outputs)]
        if n_outputs <= 2:  # one logit is enough for two classes
            allowed += [(count, 1), (count,)]
        if shape not in allowed:
            raise ValueError(
                f"module must give {n_outputs} output(s) per row (a classifier: one for each class "
                f"among its rows); {count} row(s) of {what} gave shape {shape}. "
                "Change its last layer, or use a function of n_features, n_outputs."
            )
