"""Networks whose graph and strength of coupling are chosen at held-out rows of the nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nefele._checks import Array
from nefele._torch.base import to_numpy, torch
from nefele.estimators.rows_base import RowsClassifier, RowsRegressor
from nefele.networks.choosing import NetCVBase


class GTVNetRegressorCV(RowsRegressor, NetCVBase):
    """One regression network per node; graph and strength of the coupling are chosen.

    A share of each node's rows is held out. Candidates begin with rounds as one network for all,
    the limit of strong coupling, and go on for the remaining rounds with a graph and an alpha each:
    warm starts along a path. What predicts the held-out rows best is then fitted to all rows.
    Looked for is first when to part, with one network for all and own rows only among the
    candidates, then who is coupled with whom and how strongly, then what: coupling is used only
    where it predicts better.

    Parameters
    ----------
    module, loss, form, dtype, n_threads, random_state
        See `GTVNetRegressor`.
    graph : Graph, graph builder, dict of str to these, or None
        Candidates by name. None: the complete graph, and four nearest nodes by label counts, for a
        regression by the moments of the rows. Builders learn from the training rows of each fold.
    alphas : sequence of float, optional
        Candidates. Default: 4 and 1 times `1 / (sum of learning rates * mean degree)` of the
        personal rounds, see `nefele.networks.coupled.unit_of_alpha`.
    couple : str or sequence of {"all", "body"}
        What may be coupled: all parameters, or all but the last layer.
    common : float or sequence of float
        Shares of the rounds as one network, before the personal ones.
    cv : int
        Splits of the rows, each with the share `held_out` of every node's rows.
    held_out, share : float
        Share of the rows that judge, and of the rounds in the splits.
    one_se : bool
        Whether to take the strongest coupling within one standard error of the best.
    verbose : bool or int
        Whether to show progress in one line, as `nefele.solve` does.
    node, rounds, local_steps, optimizer, lr, batch_size, falling, weighting
        See `nefele.networks.baselines.PersonalRegressor`.

    Attributes
    ----------
    coupling_ : str
        The choice in words.
    alpha_ : float
        Its strength for all rows; 0: none, inf: one network.
    graph_ : Graph
        The graph chosen; without edges where nothing is coupled.
    verdict_ : nefele.selection.Verdict
        Own rows only, one network and the coupled ones at the same held-out rows.
    coupling_helps_, gain_, gain_se_, baseline_scores_, best_score_, cv_results_
        See `GTVRegressorCV`.
    nodes_, parameters_, module_, ledger_, gradients_
        Of the final fit, see `PersonalRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(list("abcdef"), 8), rng.uniform(-1, 1, (48, 1))
    >>> y = X[:, 0] + 0.3 * rng.standard_normal(48)
    >>> model = GTVNetRegressorCV(rounds=20, random_state=0).fit(X, y, node_ids=ids)
    >>> bool(model.verdict_.own.mean() > model.verdict_.coupled.mean())
    True
    """

    def predict(self, X: Any, *, node_ids: Any = None) -> Array:
        """Predictions of each row's own network, shape (n_rows,).

        Parameters
        ----------
        X : table or array, or datasets
            As in `fit`; with datasets the rows go node by node, in the order of the dict.
        node_ids : array of shape (n_rows,), optional
            Node of each row, unless `node` names the column of a table.
        """
        return to_numpy(self._forward(X, node_ids))


@dataclass(eq=False, repr=False, kw_only=True)
class GTVNetClassifierCV(RowsClassifier, NetCVBase):
    """One classification network per node; graph and strength of the coupling are chosen.

    As `GTVNetRegressorCV`, with logits as outputs; held-out rows are judged by the log loss.

    Parameters
    ----------
    module, graph, alphas, couple, common, cv, held_out, share, one_se, verbose, node, rounds, \
local_steps, optimizer, lr, batch_size, falling, weighting, form, dtype, n_threads, random_state
        See `GTVNetRegressorCV`.
    loss : "cross_entropy" or callable
        See `GTVNetClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coupling_, alpha_, graph_, verdict_, coupling_helps_, gain_, gain_se_, baseline_scores_, \
best_score_, cv_results_, nodes_, parameters_, module_, ledger_, gradients_
        See `GTVNetRegressorCV`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(list("abcdef"), 8), rng.uniform(-1, 1, (48, 2))
    >>> y = X[:, 0] > 0
    >>> model = GTVNetClassifierCV(rounds=20, random_state=0).fit(X, y, node_ids=ids)
    >>> model.score(X, y, node_ids=ids) > 0.8
    True
    """

    _labels = True

    loss: Any = "cross_entropy"

    def predict_proba(self, X: Any, *, node_ids: Any = None) -> Array:
        """Probabilities of the classes by each row's own network, shape (n_rows, n_classes).

        Parameters
        ----------
        X : table or array, or datasets
            As in `fit`; with datasets the rows go node by node, in the order of the dict.
        node_ids : array of shape (n_rows,), optional
            Node of each row, unless `node` names the column of a table.
        """
        return to_numpy(torch.softmax(self._forward(X, node_ids).double(), dim=1))

    def predict(self, X: Any, *, node_ids: Any = None) -> Any:
        """The most likely class of each row by its own network, shape (n_rows,).

        Parameters
        ----------
        X : table or array, or datasets
            As in `fit`; with datasets the rows go node by node, in the order of the dict.
        node_ids : array of shape (n_rows,), optional
            Node of each row, unless `node` names the column of a table.
        """
        return self.classes_[self._forward(X, node_ids).argmax(dim=1).numpy()]
