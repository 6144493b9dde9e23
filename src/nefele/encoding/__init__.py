"""Tables as people have them, with text, dates and gaps, turned into numbers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nefele.encoding.encoder import TableEncoder
    from nefele.encoding.groups import group_level

__all__ = ["TableEncoder", "group_level"]

# The encoder needs scikit-learn, which takes long to import; what reads columns does not.
_HOME = {"TableEncoder": "encoder", "group_level": "groups"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'nefele.encoding' has no attribute {name!r}")
    return getattr(import_module(f"nefele.encoding.{_HOME[name]}"), name)
