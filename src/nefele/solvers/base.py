"""What a solver is: mathematics only. The loop around it is in `loop`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.certificate import Certificate
from nefele.certificate.posed import Posed
from nefele.problem import Problem


@dataclass
class State:
    """What a solver carries from one iteration to the next; each adds fields of its own.

    Attributes
    ----------
    w : array of shape (n_nodes, d)
        Parameters.
    u : array of shape (n_edges, d)
        Duals.
    final : bool
        Whether the next point is the last one, which must carry a certificate.
    traced : bool
        Whether certificates say what they rest on, for a checkpoint.

    Examples
    --------
    >>> import numpy as np
    >>> State(w=np.zeros((2, 1)), u=np.zeros((1, 1))).final
    False
    """

    w: Array  # parameters, shape (n_nodes, d)
    u: Array  # flow, shape (n_edges, d)
    final: bool = field(default=False, kw_only=True)  # the last point must carry a certificate
    traced: bool = field(default=True, kw_only=True)  # certificates say what they rest on


S = TypeVar("S", bound=State)


class Solver(ABC, Generic[S]):
    """Mathematics only: the loop lives in `run`."""

    #: Iterations when the caller gives no max_iter.
    max_iter: int = 50_000
    #: Fields of the state, numbers or arrays, that a resumed solve needs beside w and u.
    kept: tuple[str, ...] = ()
    #: Whether it takes couplings by linear maps, see `nefele.graphs.mapped`.
    maps: bool = False

    @property
    def perturbed(self) -> bool:
        """Whether iterates carry noise: then all iterations are done, and none is the best."""
        return False

    def check(self, problem: Problem) -> None:
        """Raise when the solver does not fit the problem.

        Parameters
        ----------
        problem : Problem
        """
        return None

    @abstractmethod
    def init(self, problem: Problem, w0: Array, u0: Array) -> S:
        """State before the first iteration.

        Parameters
        ----------
        problem : Problem
        w0 : array of shape (n_nodes, d)
            Parameters to start from.
        u0 : array of shape (n_edges, d)
            Flow to start from.
        """

    @abstractmethod
    def step(self, problem: Problem, state: S) -> None:
        """One iteration, changing the state.

        Parameters
        ----------
        problem : Problem
        state : State
            As `init` made it.
        """

    def certify(
        self, problem: Problem, state: S, *, tol: float, exact: bool
    ) -> tuple[Array, Certificate]:
        """A point and its certificate, good enough for tol if that can be had.

        `exact` asks for the iterate itself, unimproved.

        Parameters
        ----------
        problem : Problem
        state : State
            As `init` made it.
        tol : float
            Relative gap.
        exact : bool
        """
        return state.w, problem.certificate(state.w, state.u)

    def point(self, problem: Problem, state: S) -> tuple[Array, Array]:
        """Parameters and flow to judge without a certificate.

        Parameters
        ----------
        problem : Problem
        state : State
            As `init` made it.
        """
        return state.w, state.u

    def current(self, problem: Problem, state: S) -> tuple[Array, Array]:
        """Parameters and flow to start from when a solve is resumed.

        Parameters
        ----------
        problem : Problem
        state : State
            As `init` made it.
        """
        return state.w, state.u

    def scalars(self, state: S) -> dict[str, Any]:
        """What a resumed solve needs beside arrays; anything that JSON can hold.

        Parameters
        ----------
        state : State
            As `init` made it.
        """
        fields = {name: getattr(state, name) for name in self.kept}
        return {name: x for name, x in fields.items() if not isinstance(x, np.ndarray)}

    def arrays(self, state: S) -> dict[str, Array]:
        """Arrays of floats that a resumed solve needs beside those of `current`, by name.

        Parameters
        ----------
        state : State
            As `init` made it.
        """
        fields = {name: getattr(state, name) for name in self.kept}
        return {name: x for name, x in fields.items() if isinstance(x, np.ndarray)}

    def resume(
        self,
        problem: Problem,
        state: S,
        scalars: dict[str, Any],
        arrays: dict[str, Array],
    ) -> None:
        """Go on where `scalars` and `arrays` were taken; the state was made from w and u.

        `arrays` also has "w" and "u", the arrays of `current`.

        Parameters
        ----------
        problem : Problem
        state : State
            As `init` made it.
        scalars : dict
        arrays : dict of arrays
        """
        state.w, state.u = arrays["w"], arrays["u"]
        for name in self.kept:
            now = getattr(state, name)
            is_array = isinstance(now, np.ndarray)
            setattr(state, name, arrays[name] if is_array else type(now)(scalars[name]))

    def again(self, problem: Problem, u: Array) -> Certificate | None:
        """The bound that a flow of a checkpoint proves; None if it takes more than the flow.

        Parameters
        ----------
        problem : Problem
        u : array of shape (n_edges, d)
            Of the best certificate, which does not say by itself how to compute it again.
        """
        return None

    def immediate(self, problem: Problem) -> bool:
        """Whether the start is worth a certificate even if nothing is known of it.

        Parameters
        ----------
        problem : Problem
        """
        return False

    def promising(self, problem: Problem, state: S, tol: float) -> bool:
        """Whether a certificate is worth its price now, beside the regular ones.

        Parameters
        ----------
        problem : Problem
        state : State
            As `init` made it.
        tol : float
            Relative gap.
        """
        return False

    def doubtful(self, state: S) -> bool:
        """Whether to ask at once if there is a minimiser, since it should have been found.

        Parameters
        ----------
        state : State
            As `init` made it.
        """
        return False

    def adapt(self, problem: Problem, state: S, gap: float) -> None:
        """Called after each certified point.

        Parameters
        ----------
        problem : Problem
        state : State
            As `init` made it.
        gap : float
            Relative gap of that point.
        """
        return None


def check_maps(problem: Problem, solver: Solver) -> None:
    """Raise when edges compare linear images and the solver takes differences only."""
    if not solver.maps:
        problem.graph.check_plain(type(solver).__name__)


def settled(problem: Posed, w0: Array, alone: NDArray[np.bool_]) -> Array:
    """A copy of w0 in which nodes that nothing couples have the minimiser of their own loss."""
    if not alone.any():
        return w0.copy()
    w = np.where(alone[:, None], problem.loss.minimise(), w0)
    problem.loss.forget()  # parts without such nodes have not looked for minimisers
    return w
