"""Whether coupling helps at held-out rows: one rule for all who ask, and its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._html import facts
from nefele._words import Text

OWN, POOLED, COUPLED = "own data only", "one model", "nefele"
_WORTH = 0.01  # gain, relative to the error, below which nobody should care
_MOST = 0.5  # share of the gain that is worth naming who carries it
_ALONE = 0.9  # share of the gain that one node must not have if it shall be one of others too
_SAME = 1e-6  # relative difference of errors that is none
_FEWEST = 1.5  # 1 / sum_i p_i^2, the number of nodes that count, from which there is an error


@dataclass(frozen=True)
class Gain:
    """By how much errors fall below those of a rival, and how surely.

    Attributes
    ----------
    mean : float
        Mean over all held-out rows.
    error : float
        Its standard error over the nodes (or folds); NaN with one.
    size : float
        The rival's error.
    largest : float
        Share of the gain that one node (or fold) has, 0 where there is none.

    Examples
    --------
    >>> found = Gain.over(np.array([2.0, 3.0]), np.array([1.0, 1.5]), np.array([5, 5]))
    >>> found.mean, found.helps, str(found)
    (1.25, 'yes', '1.25 ± 0.25')
    """

    mean: float
    error: float
    size: float
    largest: float = 0.0

    @classmethod
    def over(cls, rival: Array, errors: Array, weight: NDArray[np.float64 | np.int64]) -> Gain:
        """From mean errors of nodes and the weights of their held-out rows, each of shape (n,).

        Parameters
        ----------
        rival, errors, weight : arrays of shape (n,)
        """
        share = weight / weight.sum()
        difference = rival - errors
        difference[np.abs(difference) <= _SAME * np.abs(rival)] = 0.0
        mean, size = float(share @ difference), float(np.average(rival, weights=weight))
        n = len(share)
        if 1 / float(share @ share) < _FEWEST:  # nearly all of the weight is one node's
            return cls(mean, float("nan"), size)
        spread = float(np.sqrt((share**2) @ (difference - mean) ** 2))
        largest = float((share * difference).max()) / mean if mean > 0 else 0.0
        return cls(mean, spread * float(np.sqrt(n / (n - 1))), size, largest)

    @property
    def worth(self) -> bool:
        """Whether it is 1% of the rival's error, or of its score, or more."""
        return not self.mean < _WORTH * abs(self.size)

    @property
    def helps(self) -> str:
        """Whether it helps: "yes", "probably", "unclear" or "no"; see `Verdict` for the rule."""
        if not self.mean > _SAME * abs(self.size):
            return "no"
        if not self.worth or not self.mean > self.error or self.largest > _ALONE:
            return "unclear"
        return "yes" if self.mean > 2 * self.error else "probably"

    def __str__(self) -> str:
        error = "" if np.isnan(self.error) else f" ± {self.error:.2g}"
        return f"{self.mean:.3g}{error}"


@dataclass(frozen=True, eq=False)
class Verdict:
    """Whether coupling helps: own models, one model and coupled models at the same held-out rows.

    The rival is the better of own models and one model, by the mean error over all rows. Node i
    has the share p_i of the held-out rows and the mean errors r_i (rival) and c_i (coupled):

        gain  = sum_i p_i g_i,   g_i = r_i - c_i,
        error = sqrt(n / (n - 1) sum_i p_i^2 (g_i - gain)^2),   the standard error over n nodes.

    where a g_i below 1e-6 of r_i is none. Coupling helps ("yes") when gain > 2 error, "probably"
    when gain > error; both only when the gain is 1% of the rival's error or more. A smaller gain,
    one without a standard error (one node has nearly all rows), or one of which a single node
    carries more than 90%, is "unclear"; none at all is "no". Two errors of few nodes are less than
    they seem: of gains that are noise, 14% with two nodes, 6% with five and 3% with thirty are
    called "yes". The alpha that a row judges is chosen without that row, by the other folds; see
    `choose_by_others`.

    Nodes are the units since it is they that differ: folds share most of their training rows, and
    a gain that one node carries is no gain of the others. A score that is no mean over rows has
    no errors of nodes: there the parts are the folds, with equal shares.

    Attributes
    ----------
    own, pooled, coupled : arrays of shape (n,)
        Mean error of each node that has held-out rows; `own` is NaN where nodes are held out as a
        whole.
    held_out : array of shape (n,)
        Their numbers of held-out rows, or the weight of these.
    nodes : sequence of str
        Their ids, to name those that carry the gain.
    part : {"node", "fold"}
        What the entries stand for; of folds, errors are scores with the sign turned.

    Examples
    --------
    >>> count = np.full(4, 3)
    >>> own, coupled = np.array([2.0, 3.0, 2.0, 3.0]), np.array([1.0, 1.1, 1.0, 1.1])
    >>> found = Verdict(own, own + 1.0, coupled, count)
    >>> found.helps
    'yes'
    >>> print(found.text())
    Coupling helps: the error at held-out rows is 58% smaller than with own data only and 70%
    smaller than with one model; the gain over own data only is 1.4 ± 0.26 (standard error).
    """

    own: Array
    pooled: Array
    coupled: Array
    held_out: NDArray[np.float64 | np.int64]
    nodes: Sequence[str] = ()
    part: str = "node"

    def total(self, errors: Array) -> float:
        """Mean over all held-out rows.

        Parameters
        ----------
        errors : array of shape (n,)
            Of the entries that were judged, in the order of `nodes`.
        """
        return float(np.average(errors, weights=self.held_out))

    @property
    def scores(self) -> list[tuple[str, float]]:
        """Overall errors by method."""
        pairs = ((OWN, self.own), (POOLED, self.pooled), (COUPLED, self.coupled))
        return [(name, self.total(errors)) for name, errors in pairs]

    def count(self, errors: Array) -> tuple[int, int]:
        """Number of nodes that do better and worse than with own data only.

        Parameters
        ----------
        errors : array of shape (n,)
            Of the entries that were judged, in the order of `nodes`.
        """
        slack = _SAME * self.own
        return int((errors < self.own - slack).sum()), int((errors > self.own + slack).sum())

    @property
    def rival(self) -> tuple[str, Array]:
        """The better of the two simple methods."""
        own_wins = self.total(self.own) <= self.total(self.pooled)  # not so for NaN
        return (OWN, self.own) if own_wins else (POOLED, self.pooled)

    @property
    def gain(self) -> Gain:
        """By how much the coupled models beat the rival."""
        return Gain.over(self.rival[1], self.coupled, self.held_out)

    @property
    def helps(self) -> str:
        """Whether it helps: "yes", "probably", "unclear" or "no"."""
        return self.gain.helps

    def text(self) -> Text:
        """One to three plain sentences."""
        return Text(self._sentences())

    def __str__(self) -> str:
        return str(self.text())

    def _repr_html_(self) -> str:
        errors = {name: f"{error:.4g}" for name, error in self.scores}
        return facts(self.text(), {"nodes": len(self.own), **errors} if len(self.own) else {})

    def _sentences(self) -> str:
        helps, name = self.helps, self.rival[0]
        amount = self._amount()
        if self.part == "fold":
            if helps == "no":
                return f"Coupling does not help here: {name} does as well or better ({amount})."
            return f"Coupling {_WORDS[helps]}: the gain over {name} is {amount}."
        own, pooled, coupled = (error for _, error in self.scores)
        best = self.gain.size
        if helps == "no":
            better = "does better" if coupled > best * (1 + _SAME) else "does as well"
            return (
                f"Coupling does not help here: {name} {better} at held-out rows ({best:.4g} "
                f"against {coupled:.4g}); the gain is {amount}.{self._uncoupled()}"
            )
        if helps == "unclear":
            return (
                f"Coupling {_WORDS[helps]}: the error at held-out rows is {coupled:.4g} "
                f"against {best:.4g} with {name}, a gain of {amount}.{self._carriers()}"
            )
        over_own = "" if np.isnan(own) else f"{_less(coupled, own)} smaller than with {OWN} and "
        return (
            f"Coupling {_WORDS[helps]}: the error at held-out rows is {over_own}"
            f"{_less(coupled, pooled)} smaller than with {POOLED}; the gain over {name} is "
            f"{amount}.{self._carriers()}"
        )

    def _amount(self) -> str:
        gain = self.gain
        if not np.isfinite(gain.error):
            return f"{gain.mean:.2g}, from one {self.part}, so without a standard error"
        over = "" if self.part == "node" else " over the folds"
        return f"{gain.mean:.2g} ± {gain.error:.2g} (standard error{over})"

    def _uncoupled(self) -> str:
        """A sentence when the coupled models are no others than those of own data."""
        same = np.allclose(self.own, self.coupled, rtol=_SAME, atol=0.0)
        if not same or self.rival[0] == OWN:
            return ""
        return f" There is nothing to couple, or alpha is 0: the models are those of {OWN}."

    def _carriers(self) -> str:
        """A sentence when few nodes carry half of the gain or more."""
        parts = self.held_out / self.held_out.sum() * (self.rival[1] - self.coupled)
        order = np.argsort(-parts, kind="stable")
        share = np.cumsum(parts[order]) / parts.sum()
        few = int(np.argmax(share >= _MOST)) + 1
        if len(parts) < 3 or len(self.nodes) != len(parts) or few > max(1, len(parts) // 10):
            return ""
        names = ", ".join(str(self.nodes[i]) for i in order[: min(few, 3)])
        more = ", ..." if few > 3 else ""
        who = f"One node, {names}, carries" if few == 1 else f"{few} nodes, {names}{more}, carry"
        much = f"{share[few - 1]:.0%} of it" if share[few - 1] < 1 else "all of it"
        return f" {who} {much}."


_WORDS = {"yes": "helps", "probably": "probably helps", "unclear": "does not clearly help"}


def _less(value: float, base: float) -> str:
    share = 1.0 - value / base
    if share < 0.995:
        return f"{share:.0%}"
    return f"{share:.2%}" if share < 0.99995 else "almost 100%"  # models that fit nothing but noise
