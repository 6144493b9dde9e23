"""Privacy: guarantees and what they cost; maps of features; audits of what leaks."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nefele.privacy.accountant import calibrate, epsilon_of
from nefele.privacy.bounds import Bounds
from nefele.privacy.budget import Budget, BudgetError
from nefele.privacy.parameters import Privacy, Spent
from nefele.privacy.price import Price, price

if TYPE_CHECKING:
    from nefele.privacy import audit, maps

__all__ = [
    "Bounds",
    "Budget",
    "BudgetError",
    "Price",
    "Privacy",
    "Spent",
    "audit",
    "calibrate",
    "epsilon_of",
    "maps",
    "price",
]


def __getattr__(name: str) -> Any:
    if name in ("audit", "maps"):  # at first use: estimators need neither
        return import_module(f"nefele.privacy.{name}")
    raise AttributeError(f"module 'nefele.privacy' has no attribute {name!r}")
