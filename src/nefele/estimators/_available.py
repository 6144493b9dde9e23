"""scikit-learn's `available_if`, which type checkers see through."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

if TYPE_CHECKING:

    def available_if(check: Callable[[Any], bool]) -> Callable[[Method], Method]:
        """The method as it is; at run time only objects that pass the check have it."""
        return lambda method: method

else:
    from sklearn.utils.metaestimators import available_if

__all__ = ["available_if"]
