"""scikit-learn's own checks of every estimator of this folder."""

import pytest
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from nefele import GTVClassifier, GTVRegressor
from nefele.estimators import KeepNode
from nefele.losses import Logistic

# Nothing is skipped: tests/conftest.py has SciPy support the array API, which one check needs.
ESTIMATORS = [
    GTVRegressor(),
    GTVRegressor(standardize=True, weighting="rows", penalty="l1", loss="huber", unseen="pooled"),
    GTVClassifier(),
    GTVClassifier(loss=Logistic(l2=1e-3), standardize=True, weighting="rows"),
    GTVClassifier(loss="hinge"),
    KeepNode(StandardScaler(), node=0),
]


# Many checks use classes that can be separated, some of them in part: without l2 the coefficients
# grow without bound, which is a warning, and there may be no certificate, which is another.
@pytest.mark.filterwarnings("ignore::nefele.DataWarning")
@pytest.mark.filterwarnings("ignore::nefele.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
