"""`nefele demo`: the fits that show whether coupling over the borders helps, and why.

Each state predicts its gross product from 6 of its 17 years. The fits compared: own data only,
one pooled model, a mixed model, GTVMin over the borders, and, as control, GTVMin over shuffled
borders, which keeps the coupling and destroys the geography.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nefele._checks import Array, check_count, check_name, check_number
from nefele.data import LocalData
from nefele.datasets import StatesData, split_states
from nefele.graph import Graph

# Name on the command line -> penalty of the core, and the factor from `lam` to its lam:
# "squared" is lam * ||v||^2, the core's SquaredL2 is ||v||^2 / 2.
PENALTIES = {"l2": ("l2", 1.0), "l1": ("l1", 1.0), "squared": ("squared_l2", 2.0)}


@dataclass(frozen=True)
class Method:
    """A row of the comparison; without a penalty it is fitted in closed form."""

    label: str
    penalty: str | None = None
    shuffled: bool = False


OWN = Method("own data only")
POOLED = Method("one pooled model")
MIXED = Method("mixed model")  # random slopes by REML, what lmer and MixedLM fit
AUTO = Method("nefele auto")  # borders and centre, chosen from the training rows


@dataclass(frozen=True)
class DemoOptions:
    """What to fit: penalties in order, number of seeds, coupling strength, relative gap."""

    penalties: tuple[str, ...]
    seeds: int
    lam: float
    tol: float

    @classmethod
    def checked(cls, penalties: Sequence[str], seeds: int, lam: float, tol: float) -> DemoOptions:
        """Options after the checks; ValueError says what is wrong.

        Examples
        --------
        >>> DemoOptions.checked(["l2", "l2"], seeds=1, lam=1e-3, tol=1e-6).penalties
        ('l2',)
        """
        names = tuple(dict.fromkeys(check_name(name, PENALTIES, "penalty") for name in penalties))
        return cls(
            names,
            check_count(seeds, "--seeds", low=1),
            check_number(lam, "--lam", low=0.0, strict=True),
            check_number(tol, "--tol", low=0.0, strict=True),
        )

    def methods(self) -> list[Method]:
        """The rows of the comparison; the first penalty also gets the control.

        Examples
        --------
        >>> options = DemoOptions.checked(["l1"], seeds=1, lam=1e-3, tol=1e-6)
        >>> [method.label for method in options.methods()]
        ['own data only', 'one pooled model', 'mixed model', 'nefele auto', 'nefele l1', \
'l1, shuffled borders']
        """
        first = self.penalties[0]
        return [
            OWN,
            POOLED,
            MIXED,
            AUTO,
            *(Method(f"nefele {name}", name) for name in self.penalties),
            Method(f"{first}, shuffled borders", first, shuffled=True),
        ]


@dataclass(frozen=True, eq=False)
class DemoFit:
    """One method on one split: test error of each state, and whether to trust the fit.

    `gap` is None for closed-form fits; `problem` is empty when the fit converged.
    """

    method: Method
    seed: int
    state_mse: Array
    n_models: int
    gap: float | None = None
    problem: str = ""


def fit_own(train: LocalData) -> Array:
    """Least squares of each node on its own rows, the minimum-norm solution, shape (n_nodes, d).

    Examples
    --------
    >>> fit_own(LocalData.from_list([([[2.0]], [4.0]), ([[1.0]], [5.0])])).tolist()
    [[2.0], [5.0]]
    """
    w = np.zeros((train.n_nodes, train.d))
    for i, (start, stop) in enumerate(zip(train.ptr[:-1], train.ptr[1:], strict=True)):
        w[i] = np.linalg.lstsq(train.X[start:stop], train.y[start:stop], rcond=None)[0]
    return w


def fit_pooled(train: LocalData) -> Array:
    """One least-squares model on all rows, repeated for each node, shape (n_nodes, d).

    Examples
    --------
    >>> fit_pooled(LocalData.from_list([([[1.0]], [4.0]), ([[1.0]], [6.0])])).round(9).tolist()
    [[5.0], [5.0]]
    """
    w = np.linalg.lstsq(train.X, train.y, rcond=None)[0]
    return np.tile(w, (train.n_nodes, 1))


def node_mse(w: Array, test: LocalData) -> Array:
    """Mean squared error of each node's model on its own rows, shape (n_nodes,).

    Examples
    --------
    >>> data = LocalData.from_list([([[1.0], [1.0]], [4.0, 6.0])])
    >>> node_mse(np.array([[5.0]]), data).tolist()
    [1.0]
    """
    errors = np.einsum("rd,rd->r", test.X, w[test.row_node]) - test.y
    return test.node_sum(errors**2 * test.row_weight)


def shuffle_nodes(graph: Graph, seed: int) -> Graph:
    """The same graph with its nodes permuted at random: each keeps its id, not its neighbours.

    Examples
    --------
    >>> chain = Graph(list("abc"), head=[0, 1], tail=[1, 2])
    >>> shuffle_nodes(chain, seed=0).degree.sum() == chain.degree.sum()
    np.True_
    """
    place = np.random.default_rng(seed).permutation(graph.n_nodes)
    return Graph(graph.ids, place[graph.head], place[graph.tail], graph.weight)


def fit_demo(
    states: StatesData, options: DemoOptions, tick: Callable[[str], object]
) -> list[DemoFit]:
    """All fits of the demo, seed by seed; `tick(text)` is called before each.

    Examples
    --------
    >>> options = DemoOptions.checked(["squared"], seeds=1, lam=1e-3, tol=1e-6)
    >>> from nefele.datasets import load_states
    >>> fits = fit_demo(load_states(), options, tick=lambda text: None)
    >>> [bool(fit.state_mse.mean() < 0.002) for fit in fits]
    [False, False, True, True, True, True]
    """
    fits = []
    for seed in range(options.seeds):
        train, test = split_states(states, seed)
        for method in options.methods():
            tick(f"{method.label}, seed {seed}")
            fits.append(_fit(method, states.graph, train, test, seed, options))
    return fits


def _fit(
    method: Method,
    graph: Graph,
    train: LocalData,
    test: LocalData,
    seed: int,
    options: DemoOptions,
) -> DemoFit:
    if method == OWN:
        return DemoFit(method, seed, node_mse(fit_own(train), test), train.n_nodes)
    if method == POOLED:
        return DemoFit(method, seed, node_mse(fit_pooled(train), test), 1)
    if method in (MIXED, AUTO):
        borders = Graph(np.arange(graph.n_nodes), graph.head, graph.tail, graph.weight)
        return _chosen(method, borders if method == AUTO else None, train, test, seed)
    from nefele import Problem, solve
    from nefele.result import ConvergenceWarning

    assert method.penalty is not None
    penalty, factor = PENALTIES[method.penalty]
    if method.shuffled:
        graph = shuffle_nodes(graph, seed)
    problem = Problem(graph, train, loss="squared", penalty=penalty, lam=factor * options.lam)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # told by Fit.problem
        result = solve(problem, tol=options.tol)
    return DemoFit(
        method,
        seed,
        node_mse(result.w, test),
        len(np.unique(result.clusters())),
        float(result.gap),
        "" if result.converged else f"{result.status}: {result.status.advice}",
    )


def _chosen(
    method: Method, graph: Graph | None, train: LocalData, test: LocalData, seed: int
) -> DemoFit:
    """Variances from the training rows; without a graph by a centre alone."""
    from nefele import GTVRegressorCV
    from nefele.result import Status

    model = GTVRegressorCV(graph, features="linear")  # nodes by their numbers
    model.fit(train.X[:, :-1], train.y, node_ids=train.row_node)
    predicted = model.predict(test.X[:, :-1], node_ids=test.row_node)
    status = Status(model.status_)
    return DemoFit(
        method,
        seed,
        test.node_sum((predicted - test.y) ** 2 * test.row_weight),
        len(np.unique(model.clusters_)),
        float(model.dual_gap_),
        "" if status.reached else f"{status}: {status.advice}",
    )
