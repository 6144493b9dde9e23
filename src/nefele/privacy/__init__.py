"""Differential privacy: guarantees, what they cost, and an account of what was spent."""

from nefele.privacy.accountant import calibrate, epsilon_of
from nefele.privacy.bounds import Bounds
from nefele.privacy.budget import Budget, BudgetError
from nefele.privacy.parameters import Privacy, Spent
from nefele.privacy.price import Price, price

__all__ = [
    "Bounds",
    "Budget",
    "BudgetError",
    "Price",
    "Privacy",
    "Spent",
    "calibrate",
    "epsilon_of",
    "price",
]
