"""Why a model says what it says, whom it serves badly, and what it cost."""

from nefele.accountable.cost import Cost, measure_cost
from nefele.accountable.explaining import explain
from nefele.accountable.explanation import Explanation
from nefele.accountable.fair import Fairness, fairness
from nefele.accountable.minimax import Minimax, fit_minimax
from nefele.accountable.prediction import PredictionExplanation
from nefele.accountable.signals import ExplainableFit, fit_explainable

__all__ = [
    "Cost",
    "ExplainableFit",
    "Explanation",
    "Fairness",
    "Minimax",
    "PredictionExplanation",
    "explain",
    "fairness",
    "fit_explainable",
    "fit_minimax",
    "measure_cost",
]
