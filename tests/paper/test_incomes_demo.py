"""The mixed model of `nefele demo` is that of statsmodels."""

import warnings

import numpy as np
import pytest
import statsmodels.api as sm

from nefele.cli._demo_incomes import MIXED, fit_incomes
from nefele.datasets import load_incomes, split_incomes


def test_the_mixed_model_of_the_demo_is_mixedlm():
    incomes = load_incomes()
    train = split_incomes(incomes, seed=0)
    X = sm.add_constant(incomes.X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = sm.MixedLM(
            incomes.y[train], X[train], groups=incomes.node_ids[train], exog_re=X[train]
        ).fit(reml=True)
    predicted = X @ peer.fe_params
    for state, effects in peer.random_effects.items():
        rows = incomes.node_ids == state
        predicted[rows] += X[rows] @ np.asarray(effects)
    bare = ~np.isin(incomes.node_ids, incomes.node_ids[train])
    errors = (predicted - incomes.y) ** 2
    ours = next(f for f in fit_incomes(incomes, 1, lambda text: None) if f.method == MIXED)
    assert ours.seen == pytest.approx(errors[~train & ~bare].mean(), rel=0.01)
    assert ours.without == pytest.approx(errors[bare].mean(), rel=0.01)
