"""Every node alone: no communication."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele.baselines._common import Fit, bound
from nefele.runtime.messages import Ledger


def local(data: Any, loss: Any = "squared") -> Fit:
    """w_i = argmin L_i, of least norm where there are many; zero for nodes without data.

    Parameters
    ----------
    data : LocalData
    loss : str or Loss

    Returns
    -------
    Fit

    Examples
    --------
    >>> from nefele import LocalData
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> local(data).w.round(6).tolist()
    [[0.0], [4.0]]
    """
    losses = bound(data, loss)
    w = losses.minimise()
    w[~losses.labelled] = 0.0
    return Fit("local", w, 0, Ledger(), np.array([float(losses.value(w).sum())]), True)
