"""Differential privacy: guarantees, what they cost, and an account of what was spent."""

from nefele.privacy.accountant import calibrate, epsilon_of
from nefele.privacy.bounds import Bounds
from nefele.privacy.budget import Budget, BudgetError
from nefele.privacy.parameters import Privacy, Spent

__all__ = [
    "Bounds",
    "Budget",
    "BudgetError",
    "Privacy",
    "Spent",
    "calibrate",
    "epsilon_of",
]
