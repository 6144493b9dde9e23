"""torch, if it is installed, and what all networks need of it: building, seeds, threads, losses."""

from __future__ import annotations

import copy
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from nefele._checks import Array, check_count, check_name, type_name

try:
    import torch
except ImportError as error:
    raise ImportError('Networks of torch need torch: pip install "nefele[torch]".') from error

Tensor = torch.Tensor
Module = torch.nn.Module
RowLoss = Callable[[Tensor, Tensor], Tensor]

DTYPES = {"float32": torch.float32, "float64": torch.float64}

# torch has one random generator per process: who seeds it must be alone.
_ALONE = threading.RLock()
_SEEDS = 2**31 - 1


@contextmanager
def session(seed: int, n_threads: int | None) -> Iterator[None]:
    """Seeded random numbers and a number of threads, both as before afterwards."""
    with _ALONE, torch.random.fork_rng(devices=[]), torch.enable_grad(), threads(n_threads):
        torch.manual_seed(seed)
        yield


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """So many threads of torch; None leaves them alone."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if count is not None:
            torch.set_num_threads(before)


def tensor(values: NDArray[Any], dtype: str) -> Tensor:
    """A copy, so that read-only arrays are welcome."""
    return torch.tensor(values, dtype=DTYPES[check_name(dtype, DTYPES, "dtype")])


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
        seed = int(check_random_state(self.random_state).randint(_SEEDS))
        return session(seed, self.n_threads)

    def _build(self, n_features: int) -> Module:
        return build(self.module, n_features, self._n_outputs, self.dtype)


def to_numpy(values: Tensor) -> NDArray[np.float64]:
    """As float64."""
    return values.detach().cpu().numpy().astype(np.float64)


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
