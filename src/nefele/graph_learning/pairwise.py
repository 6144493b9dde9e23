"""Base of the builders that compare nodes pair by pair."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

from numpy.typing import NDArray

from nefele._checks import Array, check_name
from nefele._ids import distinct
from nefele.graph import Graph
from nefele.graph_learning._finish import FromDiscrepancy
from nefele.graph_learning.builders import TrainingRows
from nefele.graph_learning.refine import check_k

_AUTO = "auto"


@dataclass(eq=False, repr=False)
class PairwiseGraph(FromDiscrepancy):
    """Join nodes of small discrepancy; a subclass gives the discrepancy of all pairs.

    Parameters
    ----------
    k : int, "auto" or None
        Nearest of each node to join; "auto": the best of 2, 4, 8, ... by cross-validation inside
        the training rows, see `choose_by_validation`. None: by the threshold alone, or 4 (or all
        others when they are fewer) when there is none.
    threshold : float, "auto" or None
        Largest discrepancy of an edge; "auto": the best of those that give mean degrees of 2, 4,
        8, ..., chosen like k. Only one of the two may be "auto".
    weight, scale, degree, connect, normalize
        See `graph_from_discrepancy`.

    Examples
    --------
    A discrepancy of your own is one method:

    >>> import numpy as np
    >>> from nefele.graph_learning.builders import node_moments
    >>> class MeanGraph(PairwiseGraph):
    ...     def discrepancy(self, rows):
    ...         ids, mean, _ = node_moments(rows, rows.targets)
    ...         return ids, np.abs(mean - mean.T)
    >>> y = np.array([[1.0], [1.2], [5.0]])
    >>> rows = TrainingRows(np.ones((3, 1)), y, np.array(["a", "b", "c"]), np.ones(3))
    >>> MeanGraph(threshold=1.0).fit_graph(rows).neighbors("a")
    ['b']
    """

    _threshold = "threshold"  # what the parameter is called

    k: Any = None
    _: KW_ONLY
    threshold: Any = None

    @abstractmethod
    def discrepancy(self, rows: TrainingRows) -> tuple[NDArray[Any], Array]:
        """Ids and the symmetric matrix of discrepancies, shapes (n_nodes,), (n_nodes, n_nodes).

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph of the training rows, see the class.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        from nefele.graph_learning.validation import auto_k, auto_threshold

        name = self._threshold
        limit = _number_or_auto(getattr(self, name), name)
        k = _number_or_auto(self.k, "k")
        self._check_options(None if k == _AUTO else k, None if limit == _AUTO else limit, name)
        if k == limit == _AUTO:
            raise ValueError(f'Only one of k and {name} may be "auto"; give the other or None.')
        ids = distinct(rows.node_ids[rows.sample_weight > 0])
        if len(ids) == 1:
            return Graph(ids, [], [])
        if k == _AUTO:
            k = auto_k(self, rows, len(ids))
        elif k is not None:
            check_k(k, len(ids))
        ids, matrix = self.discrepancy(rows)
        if limit == _AUTO:
            limit = auto_threshold(self, rows, name, matrix)
        return self._near(ids, matrix, k, limit)


def _number_or_auto(value: Any, name: str) -> Any:
    return check_name(value, (_AUTO,), f"choice of {name}") if isinstance(value, str) else value
