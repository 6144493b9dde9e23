"""torch, if it is installed: kinds of numbers, seeds and threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import check_name

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
SEEDS = 2**31 - 1


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


def to_numpy(values: Tensor) -> NDArray[np.float64]:
    """As float64."""
    return values.detach().cpu().numpy().astype(np.float64)
