"""Attacks on what nodes say: programs that send something else than they should.

Each is a small object that is called with a program and gives one that behaves badly, whoever
drives it: in one process or between sites.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np

from nefele._checks import Array, check_count, check_number
from nefele.program import Exchange, Heard, Program, between
from nefele.robust.guarded import with_arrays

_SAID = ("parameters", "predictions", "probabilities")


class MessageAttack(ABC):
    """A node that computes as agreed and says something else.

    A subclass gives `say`. `contents` are the messages that are changed; sums stay honest.
    """

    contents: tuple[str, ...] = _SAID

    @abstractmethod
    def say(self, own: Array, heard: Array, draw: np.random.Generator) -> Array:
        """What is sent instead of `own`, with the last rows heard, shape (k, own.size).

        Parameters
        ----------
        own : array
            What an honest node would send.
        heard : array of shape (k, own.size)
            The last rows of the neighbours.
        draw : numpy Generator
            For attacks that are random.
        """

    def __call__(self, program: Program[Any]) -> Program[Any]:
        """The program with its messages changed."""
        draw = np.random.default_rng(getattr(self, "seed", 0))
        known: dict[Any, Array] = {}

        def ours(request: Any) -> bool:
            return isinstance(request, Exchange) and request.content in self.contents

        def hears(request: Any, answer: Any) -> Any:
            if ours(request) and isinstance(answer, Heard):
                known.update(answer.rows)
            return answer

        def asks(request: Any) -> Any:
            return self._changed(request, known, draw) if ours(request) else request

        return between(program, asks, hears)

    def _changed(
        self, request: Exchange, known: dict[Any, Array], draw: np.random.Generator
    ) -> Exchange:
        said, heard = {}, np.zeros((0, 0))
        for name, array in request.arrays.items():
            own = np.asarray(array, dtype=float)
            if heard.shape[1] != own.size:
                alike = [np.ravel(rows) for rows in known.values() if np.size(rows) == own.size]
                heard = np.stack(alike) if alike else np.zeros((0, own.size))
            with np.errstate(over="ignore"):
                new = np.asarray(self.say(own.ravel(), heard, draw), dtype=float)
            if new.shape not in ((), (1,), (own.size,)):
                raise ValueError(
                    f"{type(self).__name__} must say one number or {own.size}, as many as are in "
                    f"a message here; got {new.size}."
                )
            said[name] = np.broadcast_to(new, own.size).reshape(own.shape).copy()
        return with_arrays(request, said)


@dataclass(frozen=True)
class Constant(MessageAttack):
    """Says the same number, or vector, whatever it has learnt.

    Parameters
    ----------
    value : float or array of shape (d,)

    Examples
    --------
    >>> Constant(1e6).say(np.zeros(2), np.zeros((0, 2)), np.random.default_rng(0)).tolist()
    1000000.0
    """

    value: Any = 1e6

    def __post_init__(self) -> None:
        value = np.asarray(self.value, dtype=float)
        if value.ndim > 1 or not np.isfinite(value).all():
            raise ValueError(
                f"value must be a finite number or vector; got {self.value!r}. What is not finite "
                "is refused by every driver."
            )

    def say(self, own: Array, heard: Array, draw: np.random.Generator) -> Array:
        return np.asarray(self.value, dtype=float)


@dataclass(frozen=True)
class Random(MessageAttack):
    """Says noise of this size, new in every round and for every neighbour.

    Parameters
    ----------
    size : float
        Standard deviation of the noise.
    seed : int

    Examples
    --------
    >>> Random(10.0, seed=1).say(np.zeros(1), np.zeros((0, 1)), np.random.default_rng(1)).round(2)
    array([3.46])
    """

    size: float = 10.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_number(self.size, "size", low=0.0)
        check_count(self.seed, "seed")

    def say(self, own: Array, heard: Array, draw: np.random.Generator) -> Array:
        return self.size * draw.standard_normal(own.shape)


@dataclass(frozen=True)
class SignFlip(MessageAttack):
    """Says its own model with the sign turned, `factor` times as large.

    Parameters
    ----------
    factor : float
        How large, in units of its own model.

    Examples
    --------
    >>> SignFlip(2.0).say(np.ones(2), np.zeros((0, 2)), np.random.default_rng(0)).tolist()
    [-2.0, -2.0]
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        check_number(self.factor, "factor", low=0.0, strict=True)

    def say(self, own: Array, heard: Array, draw: np.random.Generator) -> Array:
        return -self.factor * own


@dataclass(frozen=True)
class Alie(MessageAttack):
    """A little is enough: the mean of what it heard, moved by z standard deviations.

    Near enough to the others to pass for one of them (Baruch et al. 2019). The mean and the
    deviations, of each coordinate over the rows heard, divide by their number. `among` gives the
    z of the paper.

    Parameters
    ----------
    z : float
        Standard deviations by which the mean is moved.

    Examples
    --------
    >>> heard = np.array([[0.0], [2.0]])
    >>> Alie(1.0).say(np.zeros(1), heard, np.random.default_rng(0)).tolist()
    [0.0]
    """

    z: float = 1.5

    def __post_init__(self) -> None:
        check_number(self.z, "z", low=0.0, strict=True)

    @classmethod
    def among(cls, n: int, bad: int) -> Alie:
        """With the largest z at which `bad` of n hide (Baruch et al. 2019, Algorithm 3).

        Phi(z) = (n - bad - s) / (n - bad), s = floor(n/2 + 1) - bad: so many honest ones must be
        further from the mean than the attackers for these to be in the majority.

        Parameters
        ----------
        n, bad : int
            Senders in all, and attackers among them.

        Examples
        --------
        >>> round(Alie.among(50, 24).z, 2)
        1.43
        """
        n, bad = check_count(n, "n", low=1), check_count(bad, "bad", low=1)
        needed = n // 2 + 1 - bad
        if needed < 1:
            raise ValueError(f"bad must be at most half of n={n}; got {bad}: any z will do.")
        z = NormalDist().inv_cdf((n - bad - needed) / (n - bad)) if n - bad > needed else 0.0
        if not z > 0:
            raise ValueError(f"{bad} of n={n} are too few to hide: z must be > 0; it is {z:.3g}.")
        return cls(z)

    def say(self, own: Array, heard: Array, draw: np.random.Generator) -> Array:
        return own if not len(heard) else heard.mean(axis=0) - self.z * heard.std(axis=0)


@dataclass(frozen=True)
class InnerProduct(MessageAttack):
    """The mean of what it heard, turned round and scaled (Xie et al. 2019).

    Parameters
    ----------
    factor : float
        By how much the turned mean is scaled.

    Examples
    --------
    >>> heard = np.array([[1.0], [3.0]])
    >>> InnerProduct(1.5).say(np.zeros(1), heard, np.random.default_rng(0)).tolist()
    [-3.0]
    """

    factor: float = 1.0

    def __post_init__(self) -> None:
        check_number(self.factor, "factor", low=0.0, strict=True)

    def say(self, own: Array, heard: Array, draw: np.random.Generator) -> Array:
        return -self.factor * (heard.mean(axis=0) if len(heard) else own)


@dataclass(frozen=True)
class Curious:
    """Behaves as agreed, and keeps all it hears: what a neighbour learns without any fault.

    Parameters
    ----------
    contents : tuple of str
        Which messages it keeps.

    Attributes
    ----------
    notes : list of (content, sender, array)
        In the order in which they came.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.runtime import pass_messages
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> spy = Curious()
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> run = pass_messages(problem, 200, wrap={0: spy})
    >>> spy.models()[1].round(4).tolist(), run.w[1].round(4).tolist()
    ([[3.5]], [3.5])
    """

    contents: tuple[str, ...] = _SAID
    notes: list[tuple[str, Any, Array]] = field(default_factory=list, repr=False, compare=False)

    def __call__(self, program: Program[Any]) -> Program[Any]:
        """The program, with a note of all it hears."""

        def hears(request: Any, answer: Any) -> Any:
            if isinstance(request, Exchange) and isinstance(answer, Heard):
                self._note(request.content, answer)
            return answer

        return between(program, lambda request: request, hears)

    def _note(self, content: str, heard: Heard) -> None:
        if content in self.contents:
            self.notes.extend((content, q, np.array(rows)) for q, rows in heard.rows.items())

    def models(self) -> dict[Any, Array]:
        """The last rows of each neighbour."""
        return {sender: rows for _, sender, rows in self.notes}
