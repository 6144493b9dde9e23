"""Small datasets that come with the package."""

from nefele.datasets.states import StatesData, load_states, split_states

__all__ = ["StatesData", "load_states", "split_states"]
