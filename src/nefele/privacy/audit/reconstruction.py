"""What a reconstruction found: a sentence, an uncertainty, a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele._draw.drawing import BLUE, ORANGE, axes


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """What was worked out.

    Attributes
    ----------
    what : str
    values : dict of str to array
    uncertainty : float
        Relative: by rounding, by noise where there are more answers than needed.
    error : float or None
        Relative distance from the truth, where that was given.
    answers : int
        Messages that it took.
    truth : dict of str to array, or None
        What was looked for, where it is known.

    Examples
    --------
    >>> print(Reconstruction("the row", {"x": np.ones(2)}, 1e-15, None, 1))
    1 answer gives the row, up to a relative uncertainty of 1e-15.
    """

    what: str
    values: dict[str, Array] = field(repr=False)
    uncertainty: float
    error: float | None
    answers: int
    truth: dict[str, Array] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        gives = "answer gives" if self.answers == 1 else "answers give"
        text = (
            f"{self.answers} {gives} {self.what}, up to a relative uncertainty of "
            f"{self.uncertainty:.0e}."
        )
        if self.error is None:
            return text
        return f"{text} Compared with the truth the relative error is {self.error:.0e}."

    def plot(self, ax: Any = None) -> Any:
        """Every number that was worked out, against the truth where that is known.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Examples
        --------
        >>> import matplotlib; matplotlib.use("agg")
        >>> Reconstruction("the row", {"x": np.ones(2)}, 1e-15, None, 1).plot().get_ylabel()
        'worked out'
        """
        ax = axes(ax)
        found = _flat(self.values)
        if self.truth is None:
            ax.scatter(np.arange(len(found)), found, color=BLUE)
            ax.set_xlabel("number")
        else:
            true = _flat(self.truth)
            ends = [min(true.min(), found.min()), max(true.max(), found.max())]
            ax.plot(ends, ends, color="0.6", linewidth=1)
            ax.scatter(true, found, color=ORANGE, zorder=3)
            ax.set_xlabel("truth, which never left")
        ax.set_ylabel("worked out")
        return ax


def _flat(values: dict[str, Array]) -> Array:
    return np.concatenate([np.ravel(one) for one in values.values()])


def distance(values: dict[str, Array], truth: dict[str, Array] | None) -> float | None:
    """Relative distance of all numbers from the truth; None where that is not known."""
    if truth is None:
        return None
    true = _flat(truth)
    return float(np.linalg.norm(_flat(values) - true) / (np.linalg.norm(true) or 1.0))
