"""Model selection: candidates for alpha, splits, folds along a path, the choice, the verdict."""

from nefele.selection.choice import choose, choose_by_others
from nefele.selection.clearest import clearest
from nefele.selection.grid import alpha_grid
from nefele.selection.splits import ForwardWithinNode, WithinNodeKFold
from nefele.selection.verdict import Gain, Verdict

__all__ = [
    "ForwardWithinNode",
    "Gain",
    "Verdict",
    "WithinNodeKFold",
    "alpha_grid",
    "choose",
    "choose_by_others",
    "clearest",
]
