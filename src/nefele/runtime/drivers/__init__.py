"""Drivers bring programs what they ask for; they hold no formulas."""

from nefele.runtime.drivers.in_process import InProcess

__all__ = ["InProcess"]
