"""Small datasets that come with the package."""

from nefele.datasets.incomes import IncomesData, load_incomes, split_incomes
from nefele.datasets.states import StatesData, load_states, split_states

__all__ = [
    "IncomesData",
    "StatesData",
    "load_incomes",
    "load_states",
    "split_incomes",
    "split_states",
]
