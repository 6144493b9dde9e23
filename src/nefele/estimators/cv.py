"""The coupling, or its strength along a path, by the prediction of rows that are left out."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array
from nefele.estimators._available import available_if
from nefele.estimators._cv_base import GTVBaseCV
from nefele.estimators.classifier import GTVClassifier
from nefele.estimators.regressor import GTVRegressor


class GTVRegressorCV(RegressorMixin, GTVBaseCV):
    """One regression model per node, the coupling chosen by the prediction of left-out rows.

    By default the coupling itself is chosen: one model for all, personal intercepts or slopes held
    together by a centre, by the graph and a centre, with common curves or without. All are members
    of one family of mixed models whose variances are estimated by likelihood, and the simplest one
    that predicts as well as the best is taken, at rows that are left out one by one. It is then
    fitted as a `GTVRegressor` with `scale`, `hub` and `penalty="squared_l2"`.

    With a penalty by name, such as `penalty="l2"`, alpha is chosen: for each fold a path of
    warm-started fits runs from one model per component down; the alpha that predicts the held-out
    rows best is used for a fit to all rows.

    In both forms the same rows are also predicted from each node's own rows only, and by one
    pooled model, so that the gain of the coupling, or its absence, is there to see.

    Parameters
    ----------
    graph, node, loss, fit_intercept, couple, couple_intercept, weighting, standardize, coords, \
unseen, solver, tol, max_iter, verbose
        See `GTVRegressor`; a loss of None is its default. A graph builder learns a graph in each
        fold, from its training rows. With `penalty="auto"` a graph of None is the centre alone.
    penalty : str or Penalty
        "auto", the default: the coupling itself is chosen, see above. By name ("l2", ...) or as
        an object, as of `GTVRegressor`: alpha is chosen along a path.
    features : {"auto", "linear", "spline"}
        "auto" and "spline" let `penalty="auto"` add common curves where they predict better;
        "linear" does without. With a penalty by name "auto" is "linear".
    scale, hub
        See `GTVRegressor`; they go with a penalty by name, "auto" chooses them.
    explainable : float
        See `GTVRegressor`: how much the signals that `fit` is given count against labels. They go
        with a penalty by name.
    alphas : array of shape (n_alphas,), optional
        Candidates, for a penalty by name. Default: `n_alphas` values, geometric, from the least
        alpha with one model per component (`nefele.lam_max`) down to a ten-thousandth of it. When
        all nodes agree exactly and that is 0, from the largest gradient of a node's loss at zero
        instead. Where the best is the last, the grid goes on, tenfold at most three times.
    n_alphas : int
        Number of candidates when none are given.
    cv : int, splitter or iterable of (train, test), optional
        With `penalty="auto"` the default is to leave out rows one by one, by formula; given, or
        with Huber's and the absolute loss, which have no formula, the choice is repeated in each
        fold, to judge it, and the choice for all rows stays. With a penalty by name the default is
        `WithinNodeKFold(5)`: each fold holds out a fifth of the rows of each node, in row order. A
        number k means `WithinNodeKFold(k)`. Other splitters get the `groups` of `fit`, by default
        the node ids: `GroupKFold()` holds out whole nodes.
    scoring : str or callable, optional
        A scorer of scikit-learn, greater is better; default minus the mean squared error, for
        Huber's and the absolute loss minus the mean of that loss.
    one_se : bool
        Whether to take the largest alpha whose score is within one standard error of the best.
    n_jobs : int, optional
        Folds to run at the same time.
    privacy : nefele.privacy.Privacy, optional
        Each fold releases noisy moments; folds share no rows, so that all of them cost one
        release. `cv` is a number, by default 2, and `penalty="auto"` is "l2".

    Attributes
    ----------
    coupling_ : str
        The coupling that `penalty="auto"` chose, in words. This and the next five are there with
        `penalty="auto"` only.
    candidates_ : list of dict
        What it was chosen from, the simplest first: "coupling" in words, "error" at left-out rows
        and "aic", Akaike's criterion.
    scale_ : array of shape (d + 1, d + 1)
        Covariance of the coefficients and, the last, the intercept: `scale` of the final fit. Rows
        and columns of zeros belong to what is common to all nodes.
    hub_ : float
        Share of the centre in the coupling: `hub` of the final fit.
    centre_coef_, centre_intercept_ : array of shape (d,), float
        The model of the centre, for a `hub_` > 0.
    alpha_ : float
        The alpha of the final fit: `best_alpha_`, or a larger one with `one_se`.
    best_alpha_ : float
        The alpha of the best prediction.
    clearest_alpha_ : float or None
        The alpha of the clearest clusters: the middle of the longest stretch of alphas, on a log
        scale, over which the partition of the nodes hardly changes (adjusted Rand index at least
        0.9), with more than one cluster and fewer than nodes with data. For understanding, not
        for prediction. None with `penalty="auto"`.
    clearest_clusters_ : int array of shape (n_nodes,) or None
        The partition there.
    cv_results_ : dict
        For each of `alphas_` (descending): alpha, split0_test_score, ..., mean_test_score,
        std_test_score, rank_test_score, and n_clusters of the fit to all rows.
    baseline_scores_ : dict
        Mean scores at the same held-out rows: "own", each node from its own rows (from the pooled
        model where it has none; NaN when no held-out row is of a node with training rows), and
        "pooled", one model for all rows.
    verdict_ : nefele.selection.Verdict
        Whether coupling helps, with the alpha of each fold chosen by the other folds; its
        docstring has the rule, `verdict_.text()` says it in words.
    coupling_helps_ : bool
        Whether the verdict is "yes" or "probably".
    gain_, gain_se_ : float
        By how much the error falls below that of the better baseline, and the standard error over
        the nodes; with `scoring`, the gain in score and the standard error over the folds.
    best_estimator_ : GTVRegressor
        The final fit; its `nodes_`, `coef_`, `intercept_`, `clusters_`, `graph_`, `dual_gap_`,
        `status_`, `n_iter_` and `history_` are attributes of this estimator as well.
    best_score_, best_index_, alphas_
        Score and place of alpha_ among the candidates.
    n_left_out_ : int
        Held-out rows that were not judged: a graph learnt in their fold lacks their node.

    Examples
    --------
    >>> import nefele, pandas as pd
    >>> states = nefele.datasets.load_states()
    >>> X = pd.DataFrame(states.X[:, :4], columns=states.feature_names[:4])
    >>> X["state"] = states.node_ids
    >>> model = GTVRegressorCV(states.graph, node="state").fit(X, states.y)
    >>> model.coupling_
    'personal correlated slopes by graph 90%, centre 10%, common curves'
    >>> model.coupling_helps_, model.coef_.shape, round(model.hub_, 2)
    (True, (48, 4), 0.1)
    """

    _estimator = GTVRegressor
    best_estimator_: GTVRegressor

    def predict(self, X: Any, *, node_ids: Any = None) -> Array:
        """Predictions of each row's own model, shape (n_rows,).

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X, node_ids=node_ids)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None) -> float:
        """Coefficient of determination R^2 of the predictions over all rows.

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        y : array of shape (n_rows,)
            Target.
        sample_weight : array of shape (n_rows,), optional
            Row weights >= 0.
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        check_is_fitted(self)
        return self.best_estimator_.score(X, y, sample_weight, node_ids=node_ids)


class GTVClassifierCV(ClassifierMixin, GTVBaseCV):
    """One linear classifier per node, the coupling chosen by the prediction of left-out rows.

    As `GTVRegressorCV`: the coupling itself, or with a penalty by name its strength along a path,
    and both baselines at the same rows. More than two classes get half a graph and half a centre,
    without a choice.

    Parameters
    ----------
    graph, node, loss, fit_intercept, couple, couple_intercept, weighting, standardize, coords, \
unseen, solver, tol, max_iter, verbose
        See `GTVClassifier`; a loss of None is its default. A graph builder learns a graph in each
        fold, from its training rows.
    penalty, features, scale, hub, explainable, alphas, n_alphas, one_se, n_jobs
        See `GTVRegressorCV`.
    cv : int, splitter or iterable of (train, test), optional
        See `GTVRegressorCV`; folds draw their rows at random, since rows are often sorted by
        class.
    scoring : str or callable, optional
        Default minus the mean log loss; for the hinge loss the share of right predictions.
    privacy : nefele.privacy.Privacy, optional
        The final fit is private, the choice of alpha sees raw rows: it needs `allow_outside=True`,
        and is listed as spent outside the accountant.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    coupling_, candidates_, scale_, hub_, centre_coef_, centre_intercept_, alpha_, best_alpha_, \
clearest_alpha_, clearest_clusters_, cv_results_, baseline_scores_, \
verdict_, coupling_helps_, gain_, gain_se_, best_estimator_, best_score_, best_index_, alphas_, \
n_left_out_
        See `GTVRegressorCV`; the final fit is a `GTVClassifier`.

    Examples
    --------
    >>> import nefele, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(np.arange(10), 12), rng.normal(size=(120, 2))
    >>> y = np.where(X[:, 0] * np.where(ids < 5, 1, -1) + 0.5 * rng.normal(size=120) > 0, "b", "a")
    >>> model = GTVClassifierCV(nefele.graphs.chain(10)).fit(X, y, node_ids=ids)
    >>> model.coupling_helps_, model.score(X, y, node_ids=ids) > 0.8
    (True, True)
    """

    _estimator = GTVClassifier
    _shuffle = True
    best_estimator_: GTVClassifier
    classes_: NDArray[Any]
    _advice = ", or where classes can be separated or a fold lacks one, use Logistic(l2=1e-3)"

    def predict(self, X: Any, *, node_ids: Any = None) -> NDArray[Any]:
        """The likeliest class of each row by its own model, shape (n_rows,).

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X, node_ids=node_ids)

    def decision_function(self, X: Any, *, node_ids: Any = None) -> Array:
        """Scores of the rows: (n_rows,) for two classes (positive: the second), else per class.

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X, node_ids=node_ids)

    @available_if(lambda self: hasattr(self._template(), "predict_proba"))
    def predict_proba(self, X: Any, *, node_ids: Any = None) -> Array:
        """Probabilities of the classes by each row's own model, shape (n_rows, n_classes).

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X, node_ids=node_ids)

    @available_if(lambda self: hasattr(self._template(), "predict_log_proba"))
    def predict_log_proba(self, X: Any, *, node_ids: Any = None) -> Array:
        """Logarithms of the probabilities, shape (n_rows, n_classes).

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_log_proba(X, node_ids=node_ids)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None) -> float:
        """Share of rows whose class is predicted.

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        y : array of shape (n_rows,)
            Classes.
        sample_weight : array of shape (n_rows,), optional
            Row weights >= 0.
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        check_is_fitted(self)
        return self.best_estimator_.score(X, y, sample_weight, node_ids=node_ids)
