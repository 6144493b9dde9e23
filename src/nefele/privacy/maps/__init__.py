"""Feature maps of the lecture notes (Algorithm 6) as transformers, and what remains after them."""

from nefele.privacy.maps.linear import CourseMap, RemoveAttribute
from nefele.privacy.maps.mondrian import KAnonymous
from nefele.privacy.maps.noise import AddNoise
from nefele.privacy.maps.pictures import plot_cells, plot_removed
from nefele.privacy.maps.remains import Remains, what_remains

__all__ = [
    "AddNoise",
    "CourseMap",
    "KAnonymous",
    "Remains",
    "RemoveAttribute",
    "plot_cells",
    "plot_removed",
    "what_remains",
]
